package template

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func repr(v any) string { return value.Repr(v) }

func newEngine(opts ...Option) *Engine {
	tree := source.Tree{}
	return New(expr.New(expr.Options{Files: tree}, library.Standard()), tree, opts...)
}

// at returns a position for a string in a file with that text.
func at(text string) source.Pos {
	return source.Pos{File: source.NewFile("site.yml", []byte(text)), Line: 1, Col: 1}
}

// renderValue renders a string of a playbook.
func renderValue(t *testing.T, e *Engine, src string, s expr.Scope) (any, error) {
	t.Helper()
	tpl, err := e.String(src, at(src))
	if err != nil {
		return nil, err
	}
	return tpl.Value(context.Background(), s)
}

// renderFiles writes files to a folder and renders its main.j2.
func renderFiles(t *testing.T, e *Engine, files map[string]string, o FileOptions, s expr.Scope) (string, error) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, files)
	tpl, err := e.File(filepath.Join(dir, "main.j2"), o)
	if err != nil {
		return "", err
	}
	return tpl.Text(context.Background(), s)
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// renderText renders one document as a file.
func renderText(t *testing.T, src string, s expr.Scope) (string, error) {
	t.Helper()
	return renderFiles(t, newEngine(), map[string]string{"main.j2": src}, FileOptions{}, s)
}

// names makes a scope from JSON.
func names(t testing.TB, text string) expr.Names {
	t.Helper()
	v, err := value.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d, ok := v.(*value.Dict)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	out := expr.Names{}
	for k, v := range d.All() {
		out[value.Str(k)] = v
	}
	return out
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not hold %q", err, p)
		}
	}
}

func diagnosticOf(err error) *source.Diagnostic {
	var d *source.Diagnostic
	errors.As(err, &d)
	return d
}
