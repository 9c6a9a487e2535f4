package value

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// literalRow is a row of testdata/literals.json, which testdata/literals.py has printed.
type literalRow struct {
	Text, Value string
	Error       bool
}

// TestLiteralsArePythons compares our values with those of Python's ast.literal_eval.
func TestLiteralsArePythons(t *testing.T) {
	stored, err := os.ReadFile("testdata/literals.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []literalRow
	if err := json.Unmarshal(stored, &rows); err != nil {
		t.Fatal(err)
	}
	refused := map[string]bool{"1 + 2j": true, "2j": true, "...": true} // values have no such things
	for _, row := range rows {
		v, err := FromLiteral(row.Text, PythonNames())
		switch {
		case row.Text == "{1, 1.0, True}": // keys of our dicts tell 1 from True
		case row.Error || refused[row.Text]:
			if err == nil {
				t.Errorf("%q is %s, and an error in Python", row.Text, Repr(v))
			}
		case err != nil:
			t.Errorf("%q: %v, and in Python %s", row.Text, err, row.Value)
		case Repr(v) != row.Value:
			t.Errorf("%q is %s, and in Python %s", row.Text, Repr(v), row.Value)
		}
	}
}

// TestLiteralAnswersArePythons asks the Python of this machine for the values that are stored.
func TestLiteralAnswersArePythons(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	const supported = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))"
	if err := exec.Command(python, "-c", supported).Run(); err != nil {
		t.Skip("the answers are those of Python 3.11 to 3.13")
	}
	stored, err := os.ReadFile("testdata/literals.json")
	if err != nil {
		t.Fatal(err)
	}
	now, err := exec.Command(python, "testdata/literals.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(now, stored) {
		t.Error("testdata/literals.json is not what python3 testdata/literals.py prints")
	}
}

// TestLiteralsBesidePython are texts of JSON, and Python's values that ours do not have.
func TestLiteralsBesidePython(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [true, false, null], "b": "\ud83d\ude00"}`: `{'a': [True, False, None], 'b': '😀'}`,
		`["\ud83d"]`: "", `["\ud83d\u0041"]`: "", `b'a'`: "", `{(1, 2): 3}`: "",
		`18446744073709551616`: "", `'\N{BULLET}'`: "",
	} {
		v, err := FromLiteral(text, JSONNames())
		if err != nil && want != "" || err == nil && Repr(v) != want {
			t.Errorf("%s is %s, %v, not %s", text, Repr(v), err, want)
		}
	}
}

func FuzzFromLiteral(f *testing.F) {
	for _, seed := range []string{
		`[1, -2.5e3, 'a' r"\b"]`, `{'a': (1,), "b": {2}}`, "'''x\n'''",
		`"\u00e9\ud83d\ude00\101"`, "[#\n]", "1, 2", "-(0x_1)",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := FromLiteral(text, PythonNames())
		if err != nil {
			return
		}
		printed := Repr(v)
		if strings.Contains(printed, "inf") || strings.Contains(printed, "\uFFFD") {
			return // which reads back as something else
		}
		again, err := FromLiteral(printed, PythonNames())
		if err != nil || Repr(again) != printed {
			t.Errorf("%q is %s, which reads back as %s, %v", text, printed, Repr(again), err)
		}
	})
}
