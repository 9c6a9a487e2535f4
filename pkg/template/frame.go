package template

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flosch/pongo2/v6"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Limits of one rendering.
const (
	maxOutput = 256 << 20 // bytes, with all that is captured on the way; the engine's default
	maxNested = 64        // includes, imports, parents, macros and recursive loops inside each other
)

// run is what all frames of one rendering share. One goroutine owns it.
type run struct {
	ctx    context.Context // holds the run itself, see renderingIn
	engine *Engine
	base   expr.Scope     // the scope of the caller
	size   int            // bytes written so far
	chain  []source.Frame // the includes and macros that are open, outermost first
	outer  *run           // the rendering that does a lookup of this one
}

// runKey is the context key of the run that an expression is evaluated for.
type runKey struct{}

// renderingIn is the run that a context belongs to, nil when there is none.
func renderingIn(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// start begins a rendering.
func (e *Engine) start(ctx context.Context, s expr.Scope) *frame {
	r := &run{engine: e, base: s, outer: renderingIn(ctx)}
	r.ctx = context.WithValue(ctx, runKey{}, r)
	return &frame{run: r}
}

// depth is how many includes and macros are open, in the runs outside too.
func (r *run) depth() int {
	n := 0
	for ; r != nil; r = r.outer {
		n += len(r.chain)
	}
	return n
}

// enter opens an include or macro; the caller leaves it after.
func (r *run) enter(what string, at source.Pos) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if r.depth() >= maxNested {
		return fmt.Errorf("includes and macros nest deeper than %d: %s", maxNested, r.chainText(what))
	}
	r.chain = append(r.chain, source.Frame{What: what, At: at})
	return nil
}

func (r *run) leave() { r.chain = r.chain[:len(r.chain)-1] }

// chainText names the last steps of the chain.
func (r *run) chainText(next string) string {
	const shown = 4
	names := []string{next}
	for ; r != nil; r = r.outer {
		for _, f := range slices.Backward(r.chain) {
			names = append(names, f.What)
		}
	}
	names = names[:min(len(names), shown)]
	slices.Reverse(names)
	return "… → " + strings.Join(names, " → ")
}

// instance is one document at work, with the parents that it extends.
type instance struct {
	blocks map[string][]*blockNode // of each name, the youngest first
	root   *scope
	parent *unit // set by extends
	at     source.Pos
}

// frame is where nodes run: a scope to read and an output to write. It is the
// writer of pongo2's nodes, too.
type frame struct {
	*run
	pongo *pongo2.ExecutionContext
	scope *scope
	out   *output
	inst  *instance
	muted bool // behind extends: only assignments count
}

// Write implements pongo2.TemplateWriter; our nodes do not call it.
func (f *frame) Write(b []byte) (int, error) { return f.WriteString(string(b)) }

// WriteString implements pongo2.TemplateWriter; our nodes do not call it.
func (f *frame) WriteString(s string) (int, error) { return len(s), f.text(s) }

// text writes the document's own text.
func (f *frame) text(s string) error { return f.put(s, true, nil) }

// data writes what an expression yielded.
func (f *frame) data(v any) error { return f.put(value.Str(v), false, v) }

func (f *frame) put(s string, own bool, v any) error {
	if f.size += len(s); f.size > f.engine.maxOutput {
		return fmt.Errorf("the result is longer than %d bytes", f.engine.maxOutput)
	}
	if f.out.track != nil {
		f.out.track.note(s, own, v)
	}
	if g := f.out.guard; g != nil {
		if err := g.admit(s, own); err != nil {
			return err
		}
	}
	f.out.WriteString(s)
	return nil
}

// fail places an error at a construct.
func (f *frame) fail(err error, at source.Pos) error {
	var c *control
	if errors.As(err, &c) {
		return err
	}
	return locate(err, at, f.run)
}

// capture runs fn and returns what it wrote.
func (f *frame) capture(fn func() error) (string, error) {
	out, muted := f.out, f.muted
	f.out, f.muted = &output{}, false
	err := fn()
	text := f.out.String()
	f.out, f.muted = out, muted
	return text, err
}

// inScope runs fn in another scope.
func (f *frame) inScope(s *scope, fn func(*frame) error) error {
	outer := f.scope
	f.scope = s
	err := fn(f)
	f.scope = outer
	return err
}

// output is the text that a frame has written.
type output struct {
	strings.Builder
	track *provenance // nil when nobody asks where the text came from
	guard *guard      // nil unless the text is to become a condition
}

// provenance is where the ends of a text came from: rule 6 lets a text become
// a container only when its brackets are the template's own.
type provenance struct {
	started  bool
	firstOwn bool // the first byte is the template's own
	lastOwn  bool // so is the last that is not blank
	pieces   int  // how many writes were not blank
	value    any  // of the last write that was not blank, when it was data
}

func (p *provenance) note(s string, own bool, v any) {
	if s == "" {
		return
	}
	if !p.started {
		p.started, p.firstOwn = true, own
	}
	if strings.TrimSpace(s) == "" {
		return
	}
	p.lastOwn = own
	p.pieces++
	p.value = v
}

// scope is the names of a document, a loop or a macro, over an outer scope.
type scope struct {
	outer *scope
	base  expr.Scope // below the outermost
	names []string
	vals  []any
}

// Lookup implements expr.Scope.
func (s *scope) Lookup(name string) (any, bool, error) {
	for ; ; s = s.outer {
		for i := len(s.names) - 1; i >= 0; i-- {
			if s.names[i] == name {
				return s.vals[i], true, nil
			}
		}
		if s.outer == nil {
			return s.base.Lookup(name)
		}
	}
}

// Authored implements expr.Author. What a document binds to a name is data.
func (s *scope) Authored(name string) (any, bool) {
	for ; ; s = s.outer {
		if slices.Contains(s.names, name) {
			return nil, false
		}
		if s.outer == nil {
			break
		}
	}
	author, ok := s.base.(expr.Author)
	if !ok {
		return nil, false
	}
	return author.Authored(name)
}

// AuthoredMember implements expr.Author.
func (s *scope) AuthoredMember(of, key any) (any, bool) {
	for s.outer != nil {
		s = s.outer
	}
	author, ok := s.base.(expr.Author)
	if !ok {
		return nil, false
	}
	return author.AuthoredMember(of, key)
}

// Bind implements expr.Binder: a changed copy takes the place of the value
// where its name is bound. A name of the caller's scope is bound there if it
// can be, or else for the rest of the document.
func (s *scope) Bind(name string, v any) {
	for ; ; s = s.outer {
		for i := range s.names {
			if s.names[i] == name {
				s.vals[i] = v
				return
			}
		}
		if s.outer == nil {
			break
		}
	}
	if b, ok := s.base.(expr.Binder); ok {
		b.Bind(name, v)
		return
	}
	s.set(name, v)
}

// Names implements expr.Lister: the names of the document and of the caller.
func (s *scope) Names() []string {
	var out []string
	for ; ; s = s.outer {
		for _, name := range s.names {
			if name != filterName && name != callerName {
				out = append(out, name)
			}
		}
		if s.outer == nil {
			return append(out, baseNames(s.base)...)
		}
	}
}

func baseNames(base expr.Scope) []string {
	if l, ok := base.(expr.Lister); ok {
		return l.Names()
	}
	return nil
}

// set gives a name a value in this scope.
func (s *scope) set(name string, v any) {
	for i := range s.names {
		if s.names[i] == name {
			s.vals[i] = v
			return
		}
	}
	s.names = append(s.names, name)
	s.vals = append(s.vals, v)
}

// clear forgets the names but the first n.
func (s *scope) clear(n int) {
	s.names, s.vals = s.names[:n], s.vals[:n]
}

// noContext is the scope of an import without context: it sees no variables,
// and says so when one is used.
type noContext struct{ base expr.Scope }

// Lookup implements expr.Scope.
func (n noContext) Lookup(name string) (any, bool, error) {
	_, ok, err := n.base.Lookup(name)
	if !ok || err != nil {
		return nil, false, nil
	}
	return &value.Undefined{Name: name, Hint: "variables are not seen here: write `with context` at the import"}, true, nil
}
