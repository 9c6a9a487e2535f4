package language

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/cli"
)

// level is one place where a variable can be set, and the files that set it.
type level struct {
	name string
	file string // one of the folder's files
	text string // the value's line in it
}

// levels is every place, lowest first. The variable is ansible_system, as
// gathered facts cannot have just any name.
func levels() []level {
	const set = "ansible_system: "
	return []level{
		{"role defaults", "play/roles/r/defaults/main.yml", set + "role defaults"},
		{"inventory file all", "inv/hosts.yml", "all: {vars: {ansible_system: 'inventory file all'}, hosts: {h1: {}}}"},
		{"inventory file group", "inv/z.yml", "web: {vars: {ansible_system: 'inventory file group'}, hosts: {h1: {}}}"},
		{"inventory group_vars/all", "inv/group_vars/all.yml", set + "inventory group_vars/all"},
		{"playbook group_vars/all", "play/group_vars/all.yml", set + "playbook group_vars/all"},
		{"inventory group_vars/web", "inv/group_vars/web.yml", set + "inventory group_vars/web"},
		{"playbook group_vars/web", "play/group_vars/web/a.yml", set + "playbook group_vars/web"},
		{"inventory file host", "inv/y.yml", "all: {hosts: {h1: {ansible_system: 'inventory file host'}}}"},
		{"inventory host_vars", "inv/host_vars/h1.yml", set + "inventory host_vars"},
		{"playbook host_vars", "play/host_vars/h1.yml", set + "playbook host_vars"},
		{"Linux", "facts", "gather_facts: true"},
		{"play vars", "vars", "vars: {ansible_system: play vars}"},
		{"vars_files", "play/vf.yml", set + "vars_files"},
		{"role vars", "play/roles/r/vars/main.yml", set + "role vars"},
		{"block vars", "block", "vars: {ansible_system: block vars}"},
		{"task vars", "task", "vars: {ansible_system: task vars}"},
		{"include_vars", "include_vars", "ansible_system: include_vars"},
		{"set_fact", "set_fact", "- set_fact: {ansible_system: set_fact}"},
		{"role params", "params", "ansible_system: role params"},
		{"include params", "include", "vars: {ansible_system: include params}"},
		{"extra vars", "extra", "ansible_system=extra vars"},
	}
}

// TestPrecedence sets one name at every level, and peels them off one at a time.
func TestPrecedence(t *testing.T) {
	all := levels()
	for top := range all {
		t.Run(all[top].name, func(t *testing.T) {
			at := map[string]string{}
			for _, l := range all[:top+1] {
				at[l.file] = l.text
			}
			if got, want := valueOf(t, at), "<"+all[top].name+">"; got != want {
				t.Errorf("the value is %s, want %s", got, want)
			}
		})
	}
}

func valueOf(t *testing.T, at map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) { write(t, filepath.Join(dir, name), []byte(text+"\n")) }
	put("inv/x.yml", "web: {hosts: {h1: {}}}")
	for name, text := range at {
		if strings.Contains(name, "/") {
			put(name, text)
		}
	}
	if at["play/vf.yml"] != "" {
		at["vars_files"] = "vars_files: [vf.yml]"
	}
	facts := at["facts"]
	if facts == "" {
		facts = "gather_facts: false"
	}
	put("play/site.yml", fmt.Sprintf("- hosts: h1\n  gather_subset: min\n  %s\n  %s\n  %s\n  roles:\n    - {role: r, %s}",
		facts, at["vars"], at["vars_files"], at["params"]))
	put("play/roles/r/tasks/main.yml", strings.Join([]string{at["set_fact"], "- include_vars: iv.yml",
		"- include_tasks: show.yml", "  " + at["include"]}, "\n"))
	put("play/roles/r/vars/iv.yml", "other: 1\n"+at["include_vars"])
	put("play/roles/r/tasks/show.yml", "- block:\n    - debug: {msg: '<{{ ansible_system }}>'}\n      "+at["task"]+"\n  "+
		at["block"])
	args := []string{"run", filepath.Join(dir, "play/site.yml"), "-i", filepath.Join(dir, "inv"), "--connection", "local",
		"--workdir", filepath.Join(dir, "work")}
	if e := at["extra"]; e != "" {
		args = append(args, "-e", strings.Replace(e, "=", "='", 1)+"'")
	}
	var out, errs bytes.Buffer
	if code := cli.Main(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
		nil); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errs.String())
	}
	_, rest, _ := strings.Cut(out.String(), `"msg": "`)
	got, _, _ := strings.Cut(rest, `"`)
	return got
}
