package language

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// row is what rows.yaml says of a row of the language.
type row struct {
	Status string   `yaml:"status"`
	Names  []string `yaml:"names"`
	Test   string   `yaml:"test"`
	None   string   `yaml:"none"`
}

func readRows(t *testing.T) map[string]row {
	t.Helper()
	text, err := os.ReadFile("rows.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var sections map[string]map[string]row
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&sections); err != nil {
		t.Fatal(err)
	}
	rows := map[string]row{}
	for section, in := range sections {
		for name, r := range in {
			rows[section+"/"+name] = r
		}
	}
	return rows
}

// TestEveryRowHasACase fails when a row has no case, when what it lists is in
// none of its cases, and when a case does not say which rows it shows.
func TestEveryRowHasACase(t *testing.T) {
	rows := readRows(t)
	cases, err := Cases("testdata")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{} // of all cases of a row
	for name, path := range cases {
		c, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !rowsLine.Match(text) {
			t.Errorf("%s does not begin with the rows that it shows, as in %q", name, "# play/order: what it shows")
		}
		for _, r := range c.rows {
			if _, ok := rows[r]; !ok {
				t.Errorf("%s shows %s, which rows.yaml does not have", name, r)
			}
			texts[r] += string(text)
		}
	}
	for name, r := range rows {
		r.check(t, name, texts[name])
	}
}

// check holds what rows.yaml says of a row against its cases.
func (r row) check(t *testing.T, name, text string) {
	t.Helper()
	switch {
	case r.Status != "M" && r.Status != "S" && r.Status != "L" && r.Status != "no":
		t.Errorf("%s: the status %q is none of M, S, L and no", name, r.Status)
	case r.Status == "no" && r.None == "":
		t.Errorf("%s is not implemented, and there is no reason why", name)
	case r.None != "" && text != "":
		t.Errorf("%s has a case, and a reason why it has none", name)
	case text == "" && r.None == "" && r.Test == "":
		t.Errorf("%s has no case", name)
	}
	for _, word := range r.Names {
		if !regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(word) + `\b`).MatchString(text) {
			t.Errorf("%s: no case of it has %s", name, word)
		}
	}
	if r.Test != "" {
		file, test, _ := strings.Cut(r.Test, " ")
		if found, err := os.ReadFile(filepath.Join("../..", file)); err != nil || !strings.Contains(string(found), test) {
			t.Errorf("%s is held by %s, which is not there", name, r.Test)
		}
	}
}
