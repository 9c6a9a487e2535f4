package cli

import (
	"slices"
	"testing"

	"kubekey/pkg/schema"
)

func TestEveryModuleIsDocumented(t *testing.T) {
	all, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	tellNothing := []string{"fail", "import_playbook", "import_role", "import_tasks", "include_role", "include_tasks",
		"meta", "npm", "patch", "result"}
	for _, s := range all.Specs() {
		args, err := schema.Describe(s.New())
		if err != nil || s.Summary == "" || len(s.Examples) == 0 ||
			(len(s.Returns) == 0) != slices.Contains(tellNothing, s.Name) {
			t.Errorf("%s: %v, summary %q, %d examples, %d results", s.Name, err, s.Summary, len(s.Examples), len(s.Returns))
		}
		for _, a := range args {
			if a.Doc == "" {
				t.Errorf("%s: argument %s has no description", s.Name, a.Name)
			}
		}
	}
}
