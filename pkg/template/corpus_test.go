package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// corpus is a set of snippets with the results of Jinja2 under Ansible.
type corpus struct {
	Vars  json.RawMessage   `json:"vars"`
	Files map[string]string `json:"files"`
	Cases []corpusCase      `json:"cases"`
}

type corpusCase struct {
	ID    string          `json:"id"`
	Kind  string          `json:"kind"`
	Src   string          `json:"src"`
	Want  json.RawMessage `json:"want"`
	Error string          `json:"error"`
}

func readCorpus(t testing.TB) corpus {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus.json")
	if err != nil {
		t.Fatal(err)
	}
	var c corpus
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// want is the expected value; {"__f": "2.5"} is a float.
func (c *corpusCase) want(t *testing.T) any {
	v, err := value.FromJSON(c.Want)
	if err != nil {
		t.Fatal(err)
	}
	if d, ok := v.(*value.Dict); ok && d.Has("__f") {
		v, err = value.FromLiteral(d.String("__f"), value.PythonNames())
		if err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// same is equality that distinguishes 5 from 5.0 and 1 from True.
func same(a, b any) bool { return repr(a) == repr(b) && value.TypeName(a) == value.TypeName(b) }

func TestCorpus(t *testing.T) {
	c := readCorpus(t)
	dir := t.TempDir()
	writeFiles(t, dir, c.Files)
	writeFiles(t, dir, map[string]string{"f.txt": "file-content\n"})
	t.Setenv("SPIKE_VAR", "envval")
	scope := names(t, string(c.Vars))
	scope["ansible_search_path"] = []any{dir}
	engine := newEngine()
	passed := 0
	for _, k := range c.Cases {
		t.Run(k.ID, func(t *testing.T) {
			got, err := runCase(t, engine, dir, k, scope)
			switch {
			case k.Error != "" && err == nil:
				t.Fatalf("%s\ngot %s, want a %s", k.Src, repr(got), k.Error)
			case k.Error == "" && err != nil:
				t.Fatalf("%s\n%v", k.Src, err)
			case k.Error == "" && !same(got, k.want(t)):
				t.Fatalf("%s\ngot  %s\nwant %s", k.Src, repr(got), repr(k.want(t)))
			}
			passed++
		})
	}
	if passed != 151 || len(c.Cases) != 151 {
		t.Errorf("%d of %d cases pass, want 151 of 151", passed, len(c.Cases))
	}
}

// runCase renders a document as a file, and an expression as a string of a playbook, but with the backslash rules
// of a file, which the corpus uses.
func runCase(t *testing.T, e *Engine, dir string, k corpusCase, scope expr.Scope) (any, error) {
	ctx := context.Background()
	if k.Kind == "document" {
		path := filepath.Join(dir, k.ID+".j2")
		writeFiles(t, dir, map[string]string{k.ID + ".j2": k.Src})
		tpl, err := e.File(path, FileOptions{})
		if err != nil {
			return nil, err
		}
		return tpl.Text(ctx, scope)
	}
	src := "{{ " + k.Src + " }}"
	tpl, err := e.compileString(src, source.Pos{}, FileOptions{}.syntax(), expr.Escaped)
	if err != nil {
		return nil, err
	}
	return tpl.Value(ctx, scope)
}

// TestDocuments renders random documents with a lot of whitespace control, and compares the results with Jinja2's.
func TestDocuments(t *testing.T) {
	text, err := os.ReadFile("testdata/documents.json")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Vars  json.RawMessage
		Files map[string]string
		Cases []struct {
			Src       string
			Want      string
			Undefined bool
			NoTrim    bool `json:"no_trim"`
			LStrip    bool
		}
	}
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFiles(t, dir, c.Files)
	for i, k := range c.Cases {
		name := fmt.Sprintf("case%d.j2", i)
		writeFiles(t, dir, map[string]string{name: k.Src})
		tpl, err := newEngine().File(filepath.Join(dir, name), FileOptions{NoTrimBlocks: k.NoTrim, LStripBlocks: k.LStrip})
		if err != nil {
			t.Errorf("%q\n%v", k.Src, err)
			continue
		}
		got, err := tpl.Text(context.Background(), names(t, string(c.Vars)))
		var u *value.Undefined
		if errors.As(err, &u) != k.Undefined || err != nil && !k.Undefined || got != k.Want {
			t.Errorf("%q\ngot  %q, %v\nwant %q", k.Src, got, err, k.Want)
		}
	}
	if len(c.Cases) < 200 {
		t.Errorf("only %d documents", len(c.Cases))
	}
}
