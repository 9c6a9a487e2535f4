package cli

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"

	"kubekey/pkg/connector/ssh"
	"kubekey/pkg/engine"
	"kubekey/pkg/project"
	"kubekey/pkg/settings"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
)

// TestSettingsFitTheFlags checks that each setting names an existing flag and accepts the same values as the flag.
func TestSettingsFitTheFlags(t *testing.T) {
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	(&runFlags{}).flags(flags)
	words := map[string][]string{
		"output":       ui.Formats(),
		"ssh_host_key": {string(ssh.Strict), string(ssh.AcceptNew), string(ssh.Insecure)},
		"gathering":    {string(engine.Implicit), string(engine.Explicit), string(engine.Smart)},
	}
	for _, s := range settings.Table() {
		if s.Flag != "" && flags.Lookup(s.Flag) == nil {
			t.Errorf("%s: kk run has no flag --%s", s.Name, s.Flag)
		}
		want, limited := words[s.Name]
		if limited && !slices.Equal(s.Choices, want) {
			t.Errorf("%s may be %v, and is known as %v", s.Name, want, s.Choices)
		}
	}
}

// TestBuiltinPlaybooksRunAsWritten checks that play settings in a project's ansible.cfg do not affect builtin
// playbooks.
func TestBuiltinPlaybooksRunAsWritten(t *testing.T) {
	a := &app{settings: &settings.Loaded{Settings: settings.Settings{Gathering: "explicit", Strategy: "free",
		AnyErrorsFatal: true, HashBehaviour: "merge"}}}
	want := engine.PlayDefaults{Gathering: engine.Explicit, Free: true, AnyErrorsFatal: true, MergeDicts: true}
	if got := a.playDefaults([]*project.Playbook{{Path: "/srv/site.yml"}}); got != want {
		t.Errorf("a playbook of the user's runs with %+v", got)
	}
	if got := a.playDefaults([]*project.Playbook{{Path: source.Builtin + "/playbooks/create_cluster.yaml",
		Bundled: true}}); got != (engine.PlayDefaults{}) {
		t.Errorf("a playbook that kk carries runs with %+v", got)
	}
}
