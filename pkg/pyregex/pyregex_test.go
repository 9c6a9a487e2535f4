package pyregex

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// answered is a row of testdata/answers.json, which testdata/answers.py prints.
type answered struct {
	Op, Pattern, Text, Flags string
	Repl                     string
	Answer                   any
	Error                    string
}

func (a answered) String() string {
	return strings.Join([]string{a.Op, a.Pattern, a.Text, a.Flags, a.Repl}, " | ")
}

func readAnswers(t *testing.T, text []byte) (rows []answered) {
	t.Helper()
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

func stored(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unsupported reports whether a row of Python's is not supported here.
func unsupported(a answered) bool {
	return strings.HasPrefix(a.Error, "undefined character name") // a table of character names would be a megabyte
}

// TestPythonsAnswers compares our results with Python's, with both engines where both apply.
func TestPythonsAnswers(t *testing.T) {
	for _, row := range readAnswers(t, stored(t)) {
		if unsupported(row) {
			continue
		}
		t.Run(row.String(), func(t *testing.T) {
			for _, engine := range []string{"the engine that was chosen", "backtracking"} {
				got, err := ours(row, engine == "backtracking")
				if err != nil || row.Error != "" {
					if err == nil || err.Error() != row.Error {
						t.Errorf("%s: the error is %v, and Python's is %q", engine, err, row.Error)
					}
					continue
				}
				if diff := cmp.Diff(row.Answer, got); diff != "" {
					t.Errorf("%s: Python's answer is -, ours is +:\n%s", engine, diff)
				}
			}
		})
	}
}

// TestAnswersArePythons compares the stored results with the Python of this machine.
func TestAnswersArePythons(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	const supported = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))"
	if err := exec.Command(python, "-c", supported).Run(); err != nil {
		t.Skip("the answers are those of Python 3.11 to 3.13")
	}
	now, err := exec.Command(python, "testdata/answers.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(now, stored(t)) {
		t.Error("testdata/answers.json is not what python3 testdata/answers.py prints")
	}
}

// ours returns our result for a row, in the form of Python's.
func ours(row answered, backtracking bool) (any, error) {
	flags := map[string]Flags{"match": AtStart, "full": Whole}[row.Op]
	for _, letter := range row.Flags {
		flags |= flagOf(string(letter))
	}
	re, err := Compile(row.Pattern, flags, time.Minute)
	if err != nil {
		return nil, err
	}
	if backtracking {
		re.linear = nil
	}
	switch row.Op {
	case "all", "split", "sub":
	default:
		m, err := re.Find(row.Text)
		return spans(row.Text, m), err
	}
	all, err := re.FindAll(row.Text, 0)
	if err != nil {
		return nil, err
	}
	if row.Op == "sub" {
		tmpl, err := re.Template(row.Repl)
		if err != nil {
			return nil, err
		}
		out, _ := tmpl.Replace(row.Text, all, 1<<20)
		return out, nil
	}
	out, last := []any{}, 0
	for _, m := range all {
		if row.Op == "all" {
			out = append(out, spans(row.Text, m))
			continue
		}
		out = append(out, row.Text[last:m[0]])
		for g := range re.Groups() {
			if !m.Has(g + 1) {
				out = append(out, nil)
				continue
			}
			out = append(out, m.Text(row.Text, g+1))
		}
		last = m[1]
	}
	if row.Op == "split" {
		out = append(out, row.Text[last:])
	}
	return out, nil
}

// spans counts in characters, as Python does.
func spans(text string, m Match) any {
	if m == nil {
		return nil
	}
	at := func(i int) any {
		if i < 0 {
			return -1.0
		}
		return float64(utf8.RuneCountInString(text[:i]))
	}
	out := []any{}
	for pair := range slices.Chunk(m, 2) {
		out = append(out, []any{at(pair[0]), at(pair[1])})
	}
	return out
}
