package rendered

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/builtin"
)

// verbs are the first words of names: an operator searches for what a task does.
var verbs = strings.Fields(`
Add Apply Ask Build Check Clean Collect Compare Configure Confirm Connect Copy Create Delete Deploy Disable Download
Drain Empty Enable Encrypt End Enforce Extract Fail Fetch Find Form Gather Generate Harden Inspect Install Join Label
List Load Measure Mount Move Ping Prepare Print Promote Pull Push Read Record Register Reload Remove Render Renew
Report Reset Resolve Restart Restore Restrict Resume Revert Rewrite Run Save Select Set Show Skip Start Stop Turn
Unmount Update Upload Use Wait Write
`)

const longestName = 70

// A named is a play, a block, a task or a handler with its place.
type named struct {
	at, name string
	play     bool
}

// A walk collects what a playbook runs, each file once. An include with a template in its name
// stands for every file that the template may result in.
type walk struct {
	t     *testing.T
	seen  map[string]bool
	found []named
}

func (w *walk) file(name string) {
	w.t.Helper()
	if w.seen[name] {
		return
	}
	w.seen[name] = true
	var doc yaml.Node
	readYAML(w.t, name, &doc)
	for _, list := range doc.Content {
		for _, item := range list.Content {
			w.item(name, item)
		}
	}
}

func (w *walk) item(file string, item *yaml.Node) {
	w.t.Helper()
	keys := map[string]*yaml.Node{}
	for i := 0; i < len(item.Content); i += 2 {
		keys[item.Content[i].Value] = item.Content[i+1]
	}
	if book := keys["import_playbook"]; book != nil {
		w.file(path.Join(path.Dir(file), book.Value))
		return
	}
	at := fmt.Sprintf("%s:%d", file, item.Line)
	n := named{at: at, play: keys["hosts"] != nil}
	if keys["name"] != nil {
		n.name = keys["name"].Value
	}
	w.found = append(w.found, n)
	for _, list := range []string{"pre_tasks", "tasks", "post_tasks", "handlers", "block", "rescue", "always"} {
		if keys[list] != nil {
			for _, item := range keys[list].Content {
				w.item(file, item)
			}
		}
	}
	w.included(file, keys)
}

func (w *walk) included(file string, keys map[string]*yaml.Node) {
	w.t.Helper()
	for _, word := range []string{"include_tasks", "import_tasks"} {
		if keys[word] != nil {
			w.matching(path.Join(path.Dir(file), pattern(keys[word].Value)))
		}
	}
	for _, word := range []string{"include_role", "import_role"} {
		if keys[word] != nil {
			w.role(keys[word])
		}
	}
	if keys["roles"] != nil {
		for _, role := range keys["roles"].Content {
			w.role(role)
		}
	}
}

// role walks through a role that a play or a task names.
func (w *walk) role(n *yaml.Node) {
	w.t.Helper()
	var role struct {
		Role, Name string
		TasksFrom  string `yaml:"tasks_from"`
	}
	role.TasksFrom = "main"
	if n.Kind == yaml.ScalarNode {
		role.Name = n.Value
	} else if err := n.Decode(&role); err != nil {
		w.t.Fatal(err)
	}
	for _, dir := range w.glob(path.Join("roles", pattern(role.Role+role.Name))) {
		from := path.Join(dir, "tasks", pattern(role.TasksFrom)+".yaml")
		if len(w.glob(from)) > 0 {
			w.matching(from)
		}
		for _, file := range w.glob(path.Join(dir, "handlers", "*.yaml")) {
			w.file(file)
		}
	}
}

func (w *walk) matching(pattern string) {
	w.t.Helper()
	files := w.glob(pattern)
	if len(files) == 0 && !strings.Contains(pattern, "cluster/tasks/") {
		w.t.Fatalf("%s: no such file", pattern)
	}
	for _, file := range files {
		w.file(file)
	}
}

func (w *walk) glob(pattern string) []string {
	w.t.Helper()
	files, err := fs.Glob(builtin.FS(), pattern)
	if err != nil {
		w.t.Fatal(err)
	}
	return files
}

var expression = regexp.MustCompile(`\{\{.*?\}\}`)

func pattern(name string) string { return expression.ReplaceAllString(name, "*") }

// everyName is what the playbooks run, by playbook.
func everyName(t *testing.T) map[string][]named {
	t.Helper()
	books, err := fs.Glob(builtin.FS(), "playbooks/*.yaml")
	if err != nil || len(books) == 0 {
		t.Fatalf("no playbooks: %v", err)
	}
	all := map[string][]named{}
	for _, book := range books {
		w := &walk{t: t, seen: map[string]bool{}}
		w.file(book)
		all[book] = w.found
	}
	return all
}

func problemOfName(name string) string {
	word, _, _ := strings.Cut(name, " ")
	switch {
	case name == "":
		return "has no name"
	case !slices.Contains(verbs, word):
		return "does not begin with a verb of the list"
	case strings.HasSuffix(name, "."):
		return "ends with a dot"
	case utf8.RuneCountInString(name) > longestName:
		return fmt.Sprintf("has more than %d characters", longestName)
	}
	return ""
}

// Names are imperatives that an operator can search for.
func TestNamesAreImperatives(t *testing.T) {
	all := everyName(t)
	for _, file := range (&walk{t: t}).glob("roles/*/*/*.yaml") {
		if kind := path.Base(path.Dir(file)); kind == "tasks" || kind == "handlers" {
			w := &walk{t: t, seen: map[string]bool{}}
			w.file(file)
			all[file] = w.found
		}
	}
	reported := map[string]bool{}
	for _, found := range all {
		for _, n := range found {
			if problem := problemOfName(n.name); problem != "" && !reported[n.at] {
				reported[n.at] = true
				t.Errorf("%s: the name %q %s", n.at, n.name, problem)
			}
		}
	}
}

// A name in the output leads to one task.
func TestNamesAreUniqueInAPlaybook(t *testing.T) {
	for book, found := range everyName(t) {
		first := map[string]string{}
		for _, n := range found {
			key := fmt.Sprint(n.play, n.name)
			if at := first[key]; at != "" && at != n.at {
				t.Errorf("%s: %s and %s are both named %q", book, at, n.at, n.name)
			}
			first[key] = n.at
		}
	}
}

// longestLine is for lines of the language; a line of a literal block is a line of what it makes.
const longestLine = 120

var literalBlock = regexp.MustCompile(`^((?:\s|- )*)[\w./-]+: ?\|[-+]?$`)

func TestLinesAreShort(t *testing.T) {
	for _, pattern := range []string{"config/*.yaml", "playbooks/*.yaml", "roles/*/*/*.yaml", "roles/*/*/*/*.yaml"} {
		for _, file := range (&walk{t: t}).glob(pattern) {
			if strings.Contains(file, "/templates/") {
				continue
			}
			text, err := fs.ReadFile(builtin.FS(), file)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range longLines(string(text)) {
				t.Errorf("%s:%d: the line has more than %d characters", file, line, longestLine)
			}
		}
	}
}

// longLines are the numbers of the lines that are too long, outside of literal blocks and of texts that one
// quoted line has to hold.
func longLines(text string) []int {
	var found []int
	block := -1
	for i, line := range strings.Split(text, "\n") {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if block >= 0 && (line == "" || indent > block) {
			continue
		}
		block = -1
		if m := literalBlock.FindStringSubmatch(line); m != nil {
			block = len(m[1])
		}
		if utf8.RuneCountInString(line) > longestLine && !strings.Contains(line, `\n`) {
			found = append(found, i+1)
		}
	}
	return found
}
