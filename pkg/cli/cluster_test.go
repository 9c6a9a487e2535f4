package cli

import (
	"io/fs"
	"regexp"
	"slices"
	"testing"

	"kubekey/builtin"
	"kubekey/pkg/redact"
)

// Every command about clusters that says which playbook it runs, runs one that is there.
func TestShortcutsHavePlaybooks(t *testing.T) {
	named := regexp.MustCompile(`It runs (\S+\.yaml)`)
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
	for _, want := range []string{"playbooks/create_cluster.yaml", "playbooks/add_nodes.yaml", "playbooks/delete_nodes.yaml", "playbooks/certs_renew.yaml"} {
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
