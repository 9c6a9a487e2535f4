package rendered

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/builtin"
)

// written is a task as a file has it.
type written struct {
	file string
	line int
	keys map[string]*yaml.Node
}

func (w written) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { return w.keys[k] != nil })
}

// guarded tells whether a task leaves its program alone by whether a file is there.
func (w written) guarded() bool {
	for _, shell := range append(shells(), "args") {
		if n := w.keys[shell]; n != nil && n.Kind == yaml.MappingNode {
			for _, key := range n.Content {
				if key.Value == "creates" || key.Value == "removes" {
					return true
				}
			}
		}
	}
	return false
}

// shells are the modules that run programs, by their short and long names.
func shells() []string {
	var out []string
	for _, name := range []string{"command", "shell", "raw", "script"} {
		out = append(out, name, "ansible.builtin."+name)
	}
	return out
}

// tasks are all tasks that kk carries; blocks are none, what is in them is.
func tasks(t *testing.T) []written {
	t.Helper()
	var all []written
	err := fs.WalkDir(builtin.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		dir := path.Base(path.Dir(name))
		if err != nil || e.IsDir() || path.Ext(name) != ".yaml" || dir != "tasks" && dir != "handlers" && dir != "playbooks" {
			return err
		}
		text, err := fs.ReadFile(builtin.FS(), name)
		if err != nil {
			return err
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			return err
		}
		all = append(all, tasksIn(name, &doc)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// tasksIn are the tasks of a list, and of the lists in its plays and blocks.
func tasksIn(file string, n *yaml.Node) []written {
	var out []written
	for _, item := range n.Content {
		switch {
		case n.Kind == yaml.DocumentNode:
			out = append(out, tasksIn(file, item)...)
		case item.Kind == yaml.MappingNode:
			w := written{file: file, line: item.Line, keys: map[string]*yaml.Node{}}
			for i := 0; i < len(item.Content); i += 2 {
				w.keys[item.Content[i].Value] = item.Content[i+1]
			}
			if !w.has("block", "hosts", "import_playbook") {
				out = append(out, w)
			}
			for _, list := range []string{"pre_tasks", "tasks", "post_tasks", "handlers", "block", "rescue", "always"} {
				if w.has(list) {
					out = append(out, tasksIn(file, w.keys[list])...)
				}
			}
		}
	}
	return out
}

// Modules know what they change; programs have to be asked.
func TestOneTaskInSixRunsAProgram(t *testing.T) {
	programs, others := 0, 0
	for _, w := range tasks(t) {
		switch {
		case w.has(shells()...):
			programs++
			if !w.has("changed_when") && !w.guarded() {
				t.Errorf("%s:%d: a task runs a program, and says neither with changed_when what it changes, nor with creates or removes when there is nothing to do", w.file, w.line)
			}
		case !w.has("include_tasks", "import_tasks", "include_role", "import_role", "meta"):
			others++
		}
		if !w.has("name") {
			t.Errorf("%s:%d: a task has no name", w.file, w.line)
		}
	}
	t.Logf("%d of %d tasks run a program (those that include others are not counted)", programs, programs+others)
	if programs*6 > programs+others {
		t.Errorf("%d of %d tasks run a program: more than one in six", programs, programs+others)
	}
}

// default(true) is what a person set to false becomes true by.
func TestNoDefaultTrue(t *testing.T) {
	err := fs.WalkDir(builtin.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(builtin.FS(), name)
		squeezed := strings.ToLower(strings.ReplaceAll(string(text), " ", ""))
		if strings.Contains(squeezed, "default(true") {
			t.Errorf("%s has default(true)", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
