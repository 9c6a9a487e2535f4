package cli

import (
	"io/fs"
	"regexp"
	"slices"
	"testing"

	"kubekey/builtin"
	"kubekey/pkg/redact"
)

// Every cluster command that names a playbook names one that exists.
func TestShortcutsHavePlaybooks(t *testing.T) {
	named := regexp.MustCompile(`Runs (\S+\.yaml)`)
	var found []string
	for _, family := range (&app{}).clusterCommands() {
		for _, cmd := range family.Commands() {
			m := named.FindStringSubmatch(cmd.Long)
			if m == nil {
				continue
			}
			found = append(found, m[1])
			if _, err := fs.Stat(builtin.FS(), m[1]); err != nil {
				t.Errorf("%s: %v", cmd.CommandPath(), err)
			}
		}
	}
	for _, want := range []string{"playbooks/create_cluster.yaml", "playbooks/add_nodes.yaml",
		"playbooks/delete_nodes.yaml", "playbooks/certs_renew.yaml"} {
		if !slices.Contains(found, want) {
			t.Errorf("no command runs %s", want)
		}
	}
}

func TestCommandLineThatGoesOn(t *testing.T) {
	a := &app{secret: &redact.Set{}, args: []string{"run", "my site.yml", "--resume=last", "-e", "x=1", "--resume", "r0"}}
	if got, want := a.goOn("r1", false), "kk run 'my site.yml' -e x=1 --resume r1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := a.goOn("r1", true), "kk run 'my site.yml' --resume=last -e x=1 --resume r0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A secret in -e or --set is masked in the shown command line, whichever syntax it is written in.
func TestCommandLineWithoutSecrets(t *testing.T) {
	for _, c := range []struct{ args, want []string }{
		{[]string{"-e", "x=1 db_password=hunter2"}, []string{"-e", "x=1 db_password=********"}},
		{[]string{"-vvve", "db_password=hunter2"}, []string{"-vvve", "db_password=********"}},
		{[]string{"-edb_password=hunter2"}, []string{"-edb_password=********"}},
		{[]string{"-e=db_password=hunter2"}, []string{"-e=db_password=********"}},
		{[]string{"-e", `x="a b" db_password='hunter2 it'`}, []string{"-e", `{"x": "a b", "db_password": "********"}`}},
		{[]string{"--extra-vars", `{"db": {"password": "\u0068unter2"}}`},
			[]string{"--extra-vars", `{"db": {"password": "********"}}`}},
		{[]string{`--extra-vars={db_password: "\x68unter2", n: 3}`},
			[]string{`--extra-vars={"db_password": "********", "n": 3}`}},
		{[]string{"-e", "{db_password: 0x1234567}"}, []string{"-e", `{"db_password": "********"}`}},
		{[]string{"-e", "{credentials: {a: X, b: [Y], user: ada}}"},
			[]string{"-e", `{"credentials": {"a": "********", "b": ["********"], "user": "ada"}}`}},
		{[]string{"-e", "{db_password:hunter2}"}, []string{"-e", "********"}},
		{[]string{"-e", `{"db_password": "hunter2`}, []string{"-e", "********"}},
		{[]string{"-e", "hunter2"}, []string{"-e", "********"}},
		{[]string{"--set", "db.password=hunter2"}, []string{"--set", "db.password=********"}},
		{[]string{"--set=db={password: hunter2}"}, []string{"--set=db=********"}},
		{[]string{"--set", "tokens.api_token[0].x=hunter2"}, []string{"--set", "tokens.api_token[0].x=********"}},
		{[]string{"-e", "@secrets.yml", "-e", "x=1", "--set", "a.b=1", "-i", "hosts", "site.yml"},
			[]string{"-e", "@secrets.yml", "-e", "x=1", "--set", "a.b=1", "-i", "hosts", "site.yml"}},
	} {
		if got := withoutSecrets(c.args); !slices.Equal(got, c.want) {
			t.Errorf("%q is shown as %q, want %q", c.args, got, c.want)
		}
	}
}
