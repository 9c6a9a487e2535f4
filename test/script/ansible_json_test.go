package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocumentHasAnsiblesShape runs recorded/site.yml with -o ansible-json, and
// compares the keys of the document, and the values that no machine changes,
// with what ansible-playbook (ansible-core 2.14, callback ansible.posix.json)
// wrote for it.
func TestDocumentHasAnsiblesShape(t *testing.T) {
	// testscript.Main has put this very program under the name kk on the PATH.
	cmd := exec.Command("kk", "run", "-o", "ansible-json", "-i", "hosts", "site.yml")
	cmd.Dir = "recorded"
	cmd.Env = append(os.Environ(), "KK_WORKDIR="+t.TempDir())
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 2 {
		t.Fatal(err)
	}
	recorded, err := os.ReadFile(filepath.Join("recorded", "ansible.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outline(t, recorded), outline(t, out)); diff != "" {
		t.Errorf("-ansible +kk\n%s", diff)
	}
}

// outline writes a document as lines of paths, without what differs from
// machine to machine or is Ansible's own affair.
func outline(t *testing.T, text []byte) []string {
	t.Helper()
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var lines []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				if !ansiblesOwn(k) {
					walk(path+"/"+k, v[k])
				}
			}
			if len(v) == 0 {
				lines = append(lines, path+" {}")
			}
		case []any:
			for i, e := range v {
				walk(fmt.Sprintf("%s/%d", path, i), e)
			}
		default:
			if isSame(path) {
				path += fmt.Sprintf(" %v", v)
			}
			lines = append(lines, path)
		}
	}
	walk("", doc)
	return lines
}

// ansiblesOwn tells keys of Ansible's machinery, and those that releases after
// 2.14 added, as kk did.
func ansiblesOwn(key string) bool {
	return strings.HasPrefix(key, "_ansible_") ||
		slices.Contains([]string{"invocation", "discovered_interpreter_python", "false_condition", "ansible_facts"}, key)
}

// isSame tells values that do not depend on the machine.
func isSame(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return strings.HasPrefix(path, "/stats/") ||
		slices.Contains([]string{"name", "action", "changed", "failed", "skipped", "unreachable", "rc", "stdout", "item",
			"censored"}, name)
}
