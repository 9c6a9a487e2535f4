package expr_test

import (
	"os"
	"path/filepath"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// TestYAMLLayout compares with the output of Ansible with PyYAML 6 and libyaml. Each case has the filter, its
// input, its arguments and the text.
func TestYAMLLayout(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "pyyaml.json"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := value.FromJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	c := &expr.Call{Env: expr.New(expr.Options{}, everything()...)}
	for i, row := range v.([]any) {
		row := row.([]any)
		args := expr.Args{Named: row[2].(*value.Dict)}
		got, err := c.Filter(row[0].(string), row[1], args)
		if err != nil {
			t.Errorf("case %d: %v", i, err)
			continue
		}
		if got != row[3] {
			t.Errorf("case %d: %s(%s) of %s is\n%v\nwant\n%v", i, row[0], value.Repr(row[2]), value.Repr(row[1]), got, row[3])
		}
	}
}
