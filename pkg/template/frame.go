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
	maxOutput = 256 << 20 // bytes, including captured output; the engine's default
	maxNested = 64        // nested includes, imports, parents, macros and recursive loops
)

// run is the state that all frames of one rendering share. Only one goroutine uses it.
type run struct {
	ctx    context.Context // contains the run itself, see renderingIn
	engine *Engine
	base   expr.Scope     // the scope of the caller
	size   int            // bytes written so far
	chain  []source.Frame // the active includes and macros, outermost first
	outer  *run           // the rendering whose lookup started this one
}

// runKey is the context key of the run that an expression is evaluated for.
type runKey struct{}

// renderingIn returns the run that a context belongs to, nil when there is none.
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

// depth counts the active includes and macros, including those of outer runs.
func (r *run) depth() int {
	n := 0
	for ; r != nil; r = r.outer {
		n += len(r.chain)
	}
	return n
}

// enter opens an include or macro. The caller must call leave afterwards.
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

// instance is a running document, with the parents that it extends.
type instance struct {
	blocks map[string][]*blockNode // overrides of each block, the youngest first
	root   *scope
	parent *unit // set by extends
	at     source.Pos
}

// frame is the state in which nodes run: a scope to read and an output to write. It is also the writer of pongo2's
// nodes.
type frame struct {
	*run
	pongo *pongo2.ExecutionContext
	scope *scope
	out   *output
	inst  *instance
	muted bool // after extends: only assignments have an effect
}

// Write implements pongo2.TemplateWriter. Our nodes do not call it.
func (f *frame) Write(b []byte) (int, error) { return f.WriteString(string(b)) }

// WriteString implements pongo2.TemplateWriter. Our nodes do not call it.
func (f *frame) WriteString(s string) (int, error) { return len(s), f.text(s) }

// text writes the document's own text.
func (f *frame) text(s string) error { return f.put(s, true, nil) }

// data writes the result of an expression.
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

// fail adds the position of a construct to an error.
func (f *frame) fail(err error, at source.Pos) error {
	var c *control
	if errors.As(err, &c) {
		return err
	}
	return locate(err, at, f.run)
}

// capture runs fn and returns the output.
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
	track *provenance // nil when the origin of the text does not matter
	guard *guard      // nil unless the text becomes a condition
}

// provenance records where the ends of a text came from. Rule 6 converts a text to a container only when its
// brackets are part of the template itself.
type provenance struct {
	started  bool
	firstOwn bool // the first byte is the template's own
	lastOwn  bool // the last non-blank byte is the template's own
	pieces   int  // number of writes that were not blank
	value    any  // value of the last non-blank write, when it was data
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

// scope has the names of a document, a loop or a macro, on top of an outer scope.
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

// Authored implements expr.Author. Values that a document binds to a name are data.
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

// Bind implements expr.Binder: a changed copy replaces the value where its name is bound. A name of the caller's
// scope is bound there if possible, or else for the rest of the document.
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

// set sets the value of a name in this scope.
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

// clear removes all names but the first n.
func (s *scope) clear(n int) {
	s.names, s.vals = s.names[:n], s.vals[:n]
}

// noContext is the scope of an import without context. It has no variables, and using one is an error that explains
// this.
type noContext struct{ base expr.Scope }

// Lookup implements expr.Scope.
func (n noContext) Lookup(name string) (any, bool, error) {
	_, ok, err := n.base.Lookup(name)
	if !ok || err != nil {
		return nil, false, nil
	}
	return &value.Undefined{Name: name, Hint: "variables are not seen here: write `with context` at the import"}, true, nil
}
