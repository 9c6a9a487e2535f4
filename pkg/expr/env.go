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

// Options are an Env's interfaces to files, time and templates. The zero value works.
type Options struct {
	// Files is the file tree for lookups and file tests.
	Files source.Tree
	// Now is the clock of now() and strftime; time.Now when nil.
	Now func() time.Time
	// Seed is the id of the run. It makes random and shuffle repeatable.
	Seed string
	// Template renders a file for lookup('template'). When it is nil, the lookup is an error. The template engine needs
	// an Env, so the function is a closure over a variable that is set after template.New:
	//
	//	var engine *template.Engine
	//	env := expr.New(expr.Options{Template: func(ctx context.Context, f expr.TemplateFile, s expr.Scope) (string, error) {
	//		return engine.RenderFile(ctx, f, s)
	//	}}, library.Standard())
	//	engine = template.New(env, files)
	Template func(ctx context.Context, f TemplateFile, s Scope) (string, error)
	// Seen is called for each expression that was compiled, from many goroutines at once. It can be nil.
	Seen func(*Expr)
}

// TemplateFile is the file that lookup('template') renders. A mark that is "" has its default.
type TemplateFile struct {
	Path                       string
	VariableStart, VariableEnd string
	CommentStart, CommentEnd   string
}

// Env has the filters, tests, lookups, functions and methods. It is immutable after New and safe for concurrent
// use.
type Env struct {
	opts        Options // Now is never nil
	filters     map[string]filter
	tests       map[string]test
	functions   map[string]function
	lookups     map[string]function
	methods     methodSet
	collections map[string]bool
}

// New returns an Env with the contents of the libraries. A later library replaces equal names of an earlier one.
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

// Options returns the options of the Env; Now is never nil.
func (e *Env) Options() Options { return e.opts }

// FilterNames returns the short names of all filters, sorted.
func (e *Env) FilterNames() []string { return sortedKeys(e.filters) }

// TestNames returns the short names of all tests, sorted.
func (e *Env) TestNames() []string { return sortedKeys(e.tests) }

// LookupNames returns the short names of all lookups, sorted.
func (e *Env) LookupNames() []string { return sortedKeys(e.lookups) }

// FunctionNames returns the names of all global functions, sorted.
func (e *Env) FunctionNames() []string { return sortedKeys(e.functions) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// HasCollection reports whether any filter, test or lookup belongs to a collection.
func (e *Env) HasCollection(name string) bool { return e.collections[name] }

// ShortName removes the collection from the full name of a filter, test or lookup.
func (e *Env) ShortName(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 && e.collections[name[:i]] {
		return name[i+1:]
	}
	return name
}

// unknownName returns the error for an unknown filter, test or lookup.
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
