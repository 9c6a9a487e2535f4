package moduletest

import (
	"os"
	"path/filepath"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// EditCase is one change of a text file by a module whose argument path names it.
// A package with many of them gives it a short name of its own: type editCase moduletest.EditCase.
type EditCase struct {
	Name, Before string
	Args         *value.Dict
	After, Msg   string
}

// editCase is EditCase under any name.
type editCase interface {
	~struct {
		Name, Before string
		Args         *value.Dict
		After, Msg   string
	}
}

// Edits runs a module on a file for each case, in check mode first, and compares what the file
// holds then. The file keeps its mode.
func Edits[C editCase](t *testing.T, spec module.Spec, cases []C) {
	t.Helper()
	for _, row := range cases {
		c := EditCase(row)
		t.Run(c.Name, func(t *testing.T) { edits(t, spec, c) })
	}
}

func edits(t *testing.T, spec module.Spec, c EditCase) {
	const mode = 0o640
	p := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(p, []byte(c.Before), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(p, mode); err != nil {
		t.Fatal(err)
	}
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(p); err != nil || string(got) != want {
			t.Errorf("the file is now\n%s%v\nnot\n%s", got, err, want)
		}
	}
	args := c.Args.Copy()
	args.Set("path", p)
	run := func(o Options) {
		if r := Run(t, spec, args, o); r.Changed != (c.Before != c.After) || r.Msg != c.Msg {
			t.Errorf("check %v: changed %v, msg %q, not %q", o.Check, r.Changed, r.Msg, c.Msg)
		}
	}
	run(Options{Check: true})
	holds(c.Before)
	run(Options{})
	holds(c.After)
	if info, err := os.Stat(p); err != nil || info.Mode().Perm() != mode {
		t.Errorf("the mode became %v, %v", info.Mode(), err)
	}
}

// Want compares fields of a result's data: names and values in turn.
func Want(t testing.TB, r module.Result, pairs ...any) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		if !r.Data.Has(name) {
			t.Errorf("the result has no %s: %s", name, value.Repr(r.Data))
			continue
		}
		if got, want := Field(r, name), value.Of(pairs[i+1]); !value.Equal(got, want) {
			t.Errorf("%s is %s, not %s", name, value.Repr(got), value.Repr(want))
		}
	}
}
