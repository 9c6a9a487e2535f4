package module_test

import (
	"os"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

func callOn(check, diff bool) *module.Call {
	c := &module.Call{Conn: local.New(), Check: check, Diff: diff}
	if check {
		c.Conn = connector.ReadOnly(c.Conn)
	}
	return c
}

func TestDoStartsTheResult(t *testing.T) {
	s := hostscript.New(`say changed 1; say warn careful; say msg done; say was old`)
	r, a, err := callOn(false, false).Do(t.Context(), s, "name", "x")
	if err != nil || !r.Changed || r.Msg != "done" || len(r.Warnings) != 1 || a.Get("was") != "old" {
		t.Errorf("%+v, %v, %v", r, a, err)
	}
	if name, _ := r.Data.Get("name"); name != "x" {
		t.Errorf("data are %v", r.Data)
	}
	r, a, err = callOn(false, false).Do(t.Context(), hostscript.New(`say changed 1; fail "no way"`))
	if err == nil || r.Changed || r.Data != nil || !a.Changed() {
		t.Errorf("of a script that fails: %+v, %v, %v", r, a, err)
	}
}

func TestProbesRunInCheckMode(t *testing.T) {
	a, err := callOn(true, false).Probe(t.Context(), hostscript.New(`say seen "$p_check"`))
	if err != nil || a.Get("seen") != "1" {
		t.Errorf("%v, %v", a, err)
	}
}

func TestActIsForChangesThatAreMade(t *testing.T) {
	type row struct{ check, changed, acts bool }
	for _, row := range []row{{false, true, true}, {true, true, false}, {false, false, false}} {
		path := t.TempDir() + "/f"
		s := hostscript.New(`cat >"$p_path"; say backup "$p_path~"`).Set("path", path)
		r := module.Result{Changed: row.changed, Data: value.NewDict()}
		r, err := callOn(row.check, false).Act(t.Context(), r, s, "text")
		if err != nil || r.Changed != row.changed {
			t.Errorf("%+v: %+v, %v", row, r, err)
		}
		text, _ := os.ReadFile(path)
		if acted := string(text) == "text"; acted != row.acts || r.Data.Has("backup_file") != row.acts {
			t.Errorf("%+v: the file has %q, the result %v", row, text, r.Data)
		}
	}
}

func TestShowStates(t *testing.T) {
	no := false
	states := []any{"name", "a", "b", "zone", "UTC", "", "enabled", true, &no, "masked", true, (*bool)(nil)}
	r := module.Result{Changed: true}
	callOn(false, true).ShowStates(&r, "x", states...)
	if len(r.Diff) != 1 || r.Diff[0].BeforeHeader != "x" {
		t.Fatalf("%+v", r.Diff)
	}
	before, after := value.NewDict("name", "a", "enabled", true), value.NewDict("name", "b", "enabled", false)
	if !value.Equal(r.Diff[0].Before, before) || !value.Equal(r.Diff[0].After, after) {
		t.Errorf("%v -> %v", r.Diff[0].Before, r.Diff[0].After)
	}
	for _, quiet := range []module.Result{{Changed: false}, {Changed: true}} {
		callOn(false, !quiet.Changed).ShowStates(&quiet, "x", states...)
		if quiet.Diff != nil {
			t.Errorf("changed %v: a difference that nothing asks for", quiet.Changed)
		}
	}
}
