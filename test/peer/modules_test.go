package peer

import (
	"os"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/cli"
)

// Every module that Ansible has too is compared, or testdata/without.yaml says
// why it is not. That list is to become shorter.
func TestEveryModuleHasACase(t *testing.T) {
	covered := map[string]bool{}
	for _, folder := range []string{"local", "host"} {
		for _, c := range readCases(t, folder, "*") {
			for _, n := range c.Tasks {
				task := map[string]any{}
				if err := n.Decode(&task); err != nil {
					t.Fatal(err)
				}
				for key := range task {
					covered[key[strings.LastIndex(key, ".")+1:]] = true
				}
			}
		}
	}
	text, err := os.ReadFile("testdata/without.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var without map[string]string
	if err := yaml.Unmarshal(text, &without); err != nil {
		t.Fatal(err)
	}
	modules, err := cli.Modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range modules.Specs() {
		excused := without[spec.Name] != ""
		switch {
		case spec.Collection == "kk" && excused:
			t.Errorf("%s is kk's own and needs no reason", spec.Name)
		case spec.Collection == "kk":
		case covered[spec.Name] && excused:
			t.Errorf("%s has a case: take it out of testdata/without.yaml", spec.Name)
		case !covered[spec.Name] && !excused:
			t.Errorf("%s has no case, and testdata/without.yaml does not say why", spec.Name)
		}
		delete(without, spec.Name)
	}
	for name := range without {
		t.Errorf("testdata/without.yaml has %s, which is no module", name)
	}
}
