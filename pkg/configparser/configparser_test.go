package configparser

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// row is one of testdata/answers.json, which testdata/answers.py has printed.
type row struct {
	Text  string
	Rules struct {
		Inline []string `json:"inline_comment_prefixes"`
		Bare   bool     `json:"allow_no_value"`
		Exact  bool
	}
	Answer any
}

func TestPythonsAnswers(t *testing.T) {
	var rows []row
	if err := json.Unmarshal(stored(t), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		rules := Rules{Inline: strings.Join(r.Rules.Inline, ""), Bare: r.Rules.Bare, Exact: r.Rules.Exact}
		if diff := cmp.Diff(r.Answer, answer(Parse(r.Text, rules))); diff != "" {
			t.Errorf("%q with %+v: Python's answer is -, ours is +:\n%s", r.Text, rules, diff)
		}
	}
}

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

func stored(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/answers.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// answer is ours in the form of Python's. Python goes on behind a line without an option alone.
func answer(f *File, wrong []*Problem) any {
	names := []string{"MissingSectionHeaderError", "ParsingError", "DuplicateSectionError", "DuplicateOptionError"}
	for _, p := range wrong {
		if p.Kind != NoOption {
			return names[p.Kind]
		}
	}
	if len(wrong) > 0 {
		return names[NoOption]
	}
	out := []any{}
	for _, name := range f.Sections {
		options, _ := f.Section(name)
		list := []any{}
		for _, o := range options {
			var v any
			if !o.Bare {
				v = o.Value
			}
			list = append(list, []any{o.Name, v})
		}
		out = append(out, []any{name, list})
	}
	return out
}

// TestPositions counts columns in characters.
func TestPositions(t *testing.T) {
	f, wrong := Parse("ä=1\n[s]\n  é =\tü\nx\n[s]\n  É: 2\ny=", Rules{})
	var got []string
	for _, o := range f.Options {
		text, err := json.Marshal([]any{o.Name, o.Value, o.Line, o.Col, o.ValueCol})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	for _, p := range wrong {
		text, err := json.Marshal([]any{p.Error(), p.Line, p.Col})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`["é","ü",3,3,7]`, `["y","",7,1,1]`,
		`["\"ä=1\" comes before the first section",1,1]`, `["a line must be [section] or key = value, not \"x\"",4,1]`,
		`["[s] is defined twice (first on line 2)",5,1]`, `["[s] é is defined twice (first on line 3)",6,3]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("[a]\nx = 1 ; c\n  2\n\n[DEFAULT]\ny: 3\n", ";", true, true)
	f.Add("é\n[a]]\n=\r\n\xff", "#é", false, false)
	f.Fuzz(func(t *testing.T, text, inline string, bare, exact bool) {
		file, wrong := Parse(text, Rules{Inline: inline, Bare: bare, Exact: exact})
		lines := strings.Count(text, "\n") + 1
		for _, o := range file.Options {
			if o.Line < 1 || o.Line > lines || o.Col < 1 || o.ValueCol < o.Col || strings.TrimSpace(o.Name) != o.Name {
				t.Errorf("%+v", o)
			}
		}
		for _, p := range wrong {
			if p.Line < 1 || p.Line > lines || p.Col < 1 || p.First > p.Line || p.Error() == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}
