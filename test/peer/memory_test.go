package peer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

var ask = flag.Bool("ask", false, "ask Ansible again, whatever it answered before")

// memory is what Ansible answered before, outside the checkout: it takes minutes
// for what kk does in seconds, and says the same again. An answer holds as long
// as the question, Ansible and what is installed beside it stay as they are.
// Only answers that kk's agreed with are kept: where kk's are others now, Ansible
// is asked again.
type memory struct {
	dir   string
	state string // what answers depend on beside the question
}

// newMemory is what Ansible answered before on hosts in a state.
func newMemory(t *testing.T, ansible program, state string) memory {
	t.Helper()
	version, err := exec.Command(ansible.name, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%q\n%s\n", version, ansible.env, state)
	if err := addTree(h, "testdata/files"); err != nil {
		t.Fatal(err)
	}
	m := memory{filepath.Join(cache, "kk-peer", "answers"), hex.EncodeToString(h.Sum(nil))}
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return m
}

// addTree adds names and texts of the files of a tree to a hash.
func addTree(h io.Writer, root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n%s\n", path, len(text), text)
		return err
	})
}

// installed is what a machine has of packages: results tell their versions.
const installed = "dpkg-query -W | sha256sum"

func (m memory) file(question ...string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q", m.state, question))
	return filepath.Join(m.dir, hex.EncodeToString(sum[:]))
}

// recall is the answer to a question, if there is one.
func (m memory) recall(question ...string) (answer []byte, ok bool) {
	if *ask {
		return nil, false
	}
	answer, err := os.ReadFile(m.file(question...))
	return answer, err == nil
}

// keep writes an answer down, the whole of it or nothing.
func (m memory) keep(t *testing.T, answer []byte, question ...string) {
	t.Helper()
	file := m.file(question...)
	temp, err := os.CreateTemp(m.dir, "new-*")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	if _, err := temp.Write(answer); err != nil {
		t.Fatal(err)
	}
	if err := temp.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp.Name(), file); err != nil {
		t.Fatal(err)
	}
}

// fitting finds what Ansible told of cases before, where kk tells the same
// now, and the cases to ask it about.
func (m memory) fitting(t *testing.T, cases []*peerCase, ours results) (results, []*peerCase) {
	t.Helper()
	found := results{}
	var unknown []*peerCase
	for _, c := range cases {
		answer, ok := m.recall(c.question(t)...)
		var theirs results
		if ok {
			theirs = parse(t, answer)
		}
		if !ok || len(c.faults(theirs, ours)) > 0 {
			unknown = append(unknown, c)
			continue
		}
		maps.Copy(found, theirs)
	}
	return found, unknown
}

func (m memory) keepCase(t *testing.T, c *peerCase, all results) {
	t.Helper()
	own := results{}
	for _, s := range c.steps() {
		own[c.variable(s)] = all[c.variable(s)]
	}
	answer, err := json.Marshal(own)
	if err != nil {
		t.Fatal(err)
	}
	m.keep(t, answer, c.question(t)...)
}

// question is the case as it is run.
func (c *peerCase) question(t *testing.T) []string {
	t.Helper()
	tasks, err := yaml.Marshal(c.block(t))
	if err != nil {
		t.Fatal(err)
	}
	return []string{"case", c.name, string(c.text), string(tasks)}
}

// printed is what a program said.
type printed struct {
	Code        int
	Out, Errors string
}

// said is what Ansible prints, as it is remembered or as ask returns it.
func (m memory) said(t *testing.T, ask func() printed, question ...string) printed {
	t.Helper()
	var p printed
	if answer, ok := m.recall(question...); ok {
		if err := json.Unmarshal(answer, &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	p = ask()
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		answer, err := json.Marshal(p)
		if err != nil {
			t.Error(err)
			return
		}
		m.keep(t, answer, question...)
	})
	return p
}

// here is the state of this machine.
func here(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", installed).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Where kk tells something else than before, Ansible is asked again, and what
// was wrong is not remembered.
func TestRememberedAnswersHaveToFit(t *testing.T) {
	m := memory{dir: t.TempDir()}
	c := &peerCase{name: "one", text: []byte("x"), Tasks: make([]yaml.Node, 1)}
	if err := c.Tasks[0].Encode(map[string]any{"ping": nil}); err != nil {
		t.Fatal(err)
	}
	told := func(word string) results { return results{"result_one_1_run": {"ping": word}} }
	fits := func(ours results) bool {
		_, unknown := m.fitting(t, []*peerCase{c}, ours)
		return len(unknown) == 0
	}
	if fits(told("pong")) {
		t.Error("an answer is remembered that nobody gave")
	}
	m.keepCase(t, c, told("pong"))
	if !fits(told("pong")) {
		t.Error("the answer is forgotten")
	}
	if fits(told("gong")) {
		t.Error("another answer fits")
	}
	if c.text = []byte("y"); fits(told("pong")) {
		t.Error("the answer to another case fits")
	}
}
