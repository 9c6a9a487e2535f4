package rendered

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kubekey/builtin"
)

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("the machine has no %s", program)
	}
}

func (s *findings) checkScripts(t *testing.T) {
	s.addFiles(t)
	if len(s.scripts) < 5 {
		t.Errorf("only %d scripts were found", len(s.scripts))
	}
	dir := t.TempDir()
	froms := map[string]string{}
	var names []string
	for text, from := range s.scripts {
		name := filepath.Join(dir, fmt.Sprintf("%d.sh", len(names)))
		if err := os.WriteFile(name, []byte(strings.TrimRight(text, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), "sh", "-n", name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", from, err, out, text)
		}
		names = append(names, name)
		froms[name] = from
	}
	need(t, "shellcheck")
	// A list that has one word; the words of a list that a template put together.
	out, err := exec.CommandContext(t.Context(), "shellcheck",
		append([]string{"-s", "sh", "-e", "SC2043", "-f", "gcc"}, names...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		name, rest, _ := strings.Cut(line, ":")
		t.Errorf("%s:%s", froms[name], rest)
	}
	if err != nil && len(out) == 0 {
		t.Errorf("shellcheck: %v", err)
	}
}

// addFiles adds the scripts that roles carry as files.
func (s *findings) addFiles(t *testing.T) {
	t.Helper()
	names, err := fs.Glob(builtin.FS(), "roles/*/files/*.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(builtin.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		s.script(name, string(text))
	}
}

// missing is what systemd says of programs and units that this machine does not have.
var missing = regexp.MustCompile(`is not executable: No such file|Failed to load unit|not found|Cannot add dependency job`)

func (s *findings) checkUnits(t *testing.T) {
	need(t, "systemd-analyze")
	for _, set := range s.unitSets {
		dir := t.TempDir()
		var units []string
		for name, text := range set {
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(name, "/") {
				units = append(units, at)
			}
		}
		slices.Sort(units)
		cmd := exec.CommandContext(t.Context(), "systemd-analyze",
			append([]string{"verify", "--man=no", "--recursive-errors=no"}, units...)...)
		cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
		out, _ := cmd.CombinedOutput()
		for line := range strings.Lines(string(out)) {
			if !missing.MatchString(line) {
				s.once(t, "%s", strings.ReplaceAll(strings.TrimSpace(line), dir, ""))
			}
		}
	}
	if len(s.unitSets) == 0 {
		t.Error("no unit was made")
	}
}
