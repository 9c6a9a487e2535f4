package badinput

import (
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
)

// FuzzPlaybook starts from the cases: whatever a file holds, the parser ends
// and tells what is wrong.
func FuzzPlaybook(f *testing.F) {
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range cases {
		ar, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range ar.Files {
			if file.Name != "want" {
				f.Add(string(file.Data))
			}
		}
	}
	parser := playbook.NewParser(func(name string) bool { return name == "command" || name == "debug" })
	f.Fuzz(func(t *testing.T, text string) {
		file := source.NewFile("site.yml", []byte(text))
		_, ds := parser.Playbook(file)
		_, more := parser.Tasks(file, false)
		ds = append(ds, more...)
		_, more = parser.Tasks(file, true)
		ds = append(ds, more...)
		_, more = parser.Vars(file)
		ds = append(ds, more...)
		_, more = parser.Meta(file)
		ds = append(ds, more...)
		for _, d := range ds {
			if d.Summary == "" || d.Render() == "" {
				t.Errorf("%q: an error without a text", text)
			}
		}
	})
}
