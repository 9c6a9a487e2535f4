package expr

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/source"
)

// Options are what an Env reaches of the world. The zero value works.
type Options struct {
	// Files is what lookups and file tests read.
	Files source.Tree
	// Now is the clock of now() and strftime; time.Now when nil.
	Now func() time.Time
	// Seed makes random and shuffle repeatable: the id of the run.
	Seed string
	// Template renders a file for lookup('template'); the lookup is an error
	// when it is nil. The template engine is made from an Env, so the function
	// is a closure over a variable that is set after template.New:
	//
	//	var engine *template.Engine
	//	env := expr.New(expr.Options{Template: func(ctx context.Context, f expr.TemplateFile, s expr.Scope) (string, error) {
	//		return engine.RenderFile(ctx, f, s)
	//	}}, library.Standard())
	//	engine = template.New(env, files)
	Template func(ctx context.Context, f TemplateFile, s Scope) (string, error)
	// Seen is told of each expression that was compiled, by many goroutines at
	// once; nil for nobody.
	Seen func(*Expr)
}

// TemplateFile is what lookup('template') renders. Marks that are "" are the usual ones.
type TemplateFile struct {
	Path                       string
	VariableStart, VariableEnd string
	CommentStart, CommentEnd   string
}

// Env is filters, tests, lookups, functions and methods; immutable after New, so that
// many goroutines may use it at once.
type Env struct {
	opts        Options // Now is never nil
	filters     map[string]filter
	tests       map[string]test
	functions   map[string]function
	lookups     map[string]function
	methods     methodSet
	collections map[string]bool
}

// New returns an Env with what the libraries have. A later one replaces what an earlier one has
// under the same name.
func New(o Options, libraries ...Library) *Env {
	if o.Now == nil {
		o.Now = time.Now
	}
	e := &Env{
		opts:        o,
		filters:     map[string]filter{"default": filterDefault, "d": filterDefault},
		tests:       map[string]test{},
		functions:   lookupFunctions(),
		lookups:     map[string]function{},
		collections: map[string]bool{"ansible.builtin": true, "ansible.legacy": true},
	}
	for _, l := range libraries {
		e.add(l)
	}
	return e
}

// Options are what the Env was made with; Now is never nil.
func (e *Env) Options() Options { return e.opts }

// FilterNames are the short names of all filters, sorted.
func (e *Env) FilterNames() []string { return sortedKeys(e.filters) }

// TestNames are the short names of all tests, sorted.
func (e *Env) TestNames() []string { return sortedKeys(e.tests) }

// LookupNames are the short names of all lookups, sorted.
func (e *Env) LookupNames() []string { return sortedKeys(e.lookups) }

// FunctionNames are the names of all global functions, sorted.
func (e *Env) FunctionNames() []string { return sortedKeys(e.functions) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// HasCollection reports whether filters, tests or lookups are of a collection.
func (e *Env) HasCollection(name string) bool { return e.collections[name] }

// ShortName drops the collection of the full name of a filter, test or lookup.
func (e *Env) ShortName(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 && e.collections[name[:i]] {
		return name[i+1:]
	}
	return name
}

// unknownName is the error for a filter, test or lookup that does not exist.
type unknownName struct{ kind, name, hint string }

func (u *unknownName) Error() string {
	msg := fmt.Sprintf("no %s named '%s'", u.kind, u.name)
	if u.hint != "" {
		msg += " (" + u.hint + ")"
	}
	return msg
}

func find[V any](e *Env, m map[string]V, kind, name string) (V, error) {
	short := e.ShortName(name)
	if v, ok := m[short]; ok {
		return v, nil
	}
	var zero V
	return zero, &unknownName{kind, name, source.DidYouMean(short, sortedKeys(m))}
}

func (e *Env) filter(name string) (filter, error)   { return find(e, e.filters, "filter", name) }
func (e *Env) test(name string) (test, error)       { return find(e, e.tests, "test", name) }
func (e *Env) lookup(name string) (function, error) { return find(e, e.lookups, "lookup", name) }
