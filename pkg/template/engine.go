// Package template renders documents: text with {{ }}, {% %} and {# #} in it,
// as Jinja2 does. A document is scanned here and its tags are compiled by
// package expr; pongo2, which this package alone knows, builds and walks the
// tree of its blocks.
package template

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/flosch/pongo2/v6"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Engine compiles templates and keeps them by source. It may be used by many goroutines at once.
type Engine struct {
	env      *expr.Env
	tree     source.Tree
	rules    *tagRules
	set      *pongo2.TemplateSet
	setErr   error
	cwd      string // "" when unknown
	textOnly bool
	bound    func(name string) // may be nil

	maxOutput int // bytes of one rendering
	strings   *cache[stringKey, *Template]
	files     *cache[fileKey, *fileEntry]
}

// Template is a compiled template. It does not change.
type Template struct {
	engine  *Engine
	literal string
	pure    *expr.Expr // of a string that is one {{ expr }}
	at      source.Pos
	unit    *unit // nil for a literal and a pure expression
	file    bool
}

// FileOptions change how a template file is read. The zero value is the
// template module's default: trim_blocks on, lstrip_blocks off.
type FileOptions struct {
	NoTrimBlocks             bool
	LStripBlocks             bool
	BlockStart, BlockEnd     string // default {% %}
	VariableStart, VarEnd    string // default {{ }}
	CommentStart, CommentEnd string // default {# #}
	Newline                  string // default "\n"
}

// Option changes an engine.
type Option func(*Engine)

// TextOnly makes strings of text and markup yield text, even when the text
// reads as a list or a mapping (a pure {{ expr }} keeps its native value).
func TextOnly() Option { return func(e *Engine) { e.textOnly = true } }

// Bound tells f of each name that a document binds with set, for, with, macro
// or import, when it is compiled.
func Bound(f func(name string)) Option { return func(e *Engine) { e.bound = f } }

// How many compiled templates an engine keeps. Twice as many are alive at most.
const (
	keptStrings = 20000
	keptFiles   = 2000
)

// New makes an engine that evaluates with env and reads files from tree.
func New(env *expr.Env, tree source.Tree, opts ...Option) *Engine {
	e := &Engine{
		env: env, tree: tree, rules: newTagRules(), maxOutput: maxOutput,
		strings: newCache[stringKey, *Template](keptStrings),
		files:   newCache[fileKey, *fileEntry](keptFiles),
	}
	e.set, e.setErr = newSet()
	e.cwd, _ = os.Getwd() // names are shown in full without it
	for _, o := range opts {
		o(e)
	}
	return e
}

// Env is the expression environment of the engine.
func (e *Engine) Env() *expr.Env { return e.env }

type stringKey struct {
	src string
	at  source.Pos
}

// String compiles a string of a playbook; at is the position of its first
// rune. A string without markup is a literal. The error is a
// *source.Diagnostic, or several joined.
func (e *Engine) String(src string, at source.Pos) (*Template, error) {
	syn := FileOptions{}.syntax()
	if !syn.marked(src) && !strings.HasPrefix(src, headerMark) {
		return &Template{literal: src}, nil
	}
	key := stringKey{src, at}
	if t, ok := e.strings.get(key); ok {
		return t, nil
	}
	t, err := e.compileString(src, at, syn, expr.Raw)
	if err != nil {
		return nil, err
	}
	e.strings.put(key, t)
	return t, nil
}

func (e *Engine) compileString(src string, at source.Pos, syn syntax, lit expr.Literals) (*Template, error) {
	u := &unit{syn: syn}
	if at.File != nil {
		u.dir = source.Dir(source.Join(or(e.cwd, "/"), at.File.Name))
	}
	u.name = or(at.String(), "string")
	o, segs, err := u.scan(src, at)
	if err != nil {
		return nil, err
	}
	if isPure(src, segs, &syn) {
		x, err := e.env.Compile(segs[0].text, o.pos(segs[0].off), lit)
		if err != nil {
			return nil, err
		}
		return &Template{engine: e, pure: x, at: o.pos(0)}, nil
	}
	if u, err = e.compile(u, o, segs, lit); err != nil {
		return nil, err
	}
	return &Template{engine: e, unit: u, at: o.pos(0)}, nil
}

// isPure reports whether src is one {{ expr }} and nothing else, not even blanks.
func isPure(src string, segs []segment, syn *syntax) bool {
	return len(segs) == 1 && segs[0].kind == segOutput && segs[0].at == 0 && strings.HasSuffix(src, syn.varEnd)
}

// scan reads the header and the markup of a source, and fills in what the
// unit keeps of it. Line ends become "\n"; one at the end is not part of the
// document, as in Jinja2.
func (u *unit) scan(src string, at source.Pos) (*origin, []segment, error) {
	if strings.Contains(src, "\r") {
		src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	}
	o := newOrigin(src, at)
	from, d := u.syn.header(src, o.pos(0))
	if d != nil {
		return nil, nil, d
	}
	u.size = len(src)
	u.trailing = len(src) - len(strings.TrimRight(src[from:], "\n")) - from
	text := strings.TrimSuffix(src[from:], "\n")
	for _, mark := range []string{u.syn.blockStart, u.syn.varStart, u.syn.commentStart} {
		u.marked = u.marked || strings.HasPrefix(text, mark)
	}
	segs, bad := scan(src[:from+len(text)], from, &u.syn)
	if bad != nil {
		d := source.Errorf(o.pos(bad.off), "%s", bad.msg)
		d.Help = bad.help
		return nil, nil, d
	}
	return o, segs, nil
}

type fileKey struct {
	path string
	syn  syntax
}

// fileEntry is a compiled file as it was at a time.
type fileEntry struct {
	mtime time.Time
	size  int64
	unit  *unit
}

// File compiles a .j2 file by its path; it is cached by path, options, size
// and modification time. A missing file is fs.ErrNotExist.
func (e *Engine) File(path string, o FileOptions) (*Template, error) {
	syn := o.syntax()
	if d := syn.check(source.Pos{}); d != nil {
		return nil, d
	}
	u, err := e.load(source.Clean(path), syn)
	if err != nil {
		return nil, err
	}
	return &Template{engine: e, unit: u, file: true}, nil
}

// RenderFile renders a file as lookup('template') does. A file that looks itself up ends in an error, since ctx, which comes
// from the rendering that does the lookup, counts how deep.
func (e *Engine) RenderFile(ctx context.Context, f expr.TemplateFile, s expr.Scope) (string, error) {
	if outer := renderingIn(ctx); outer != nil {
		if err := outer.enter("lookup "+f.Path, source.Pos{}); err != nil {
			return "", err
		}
		defer outer.leave()
	}
	t, err := e.File(f.Path, FileOptions{
		VariableStart: f.VariableStart, VarEnd: f.VariableEnd, CommentStart: f.CommentStart, CommentEnd: f.CommentEnd,
	})
	if err != nil {
		return "", err
	}
	return t.Text(ctx, s)
}

// load compiles a file unless the cache has it as it is now.
func (e *Engine) load(path string, syn syntax) (*unit, error) {
	info, err := e.tree.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("read template: %s is a folder", path)
	}
	key := fileKey{path, syn}
	if entry, ok := e.files.get(key); ok && entry.size == info.Size() && entry.mtime.Equal(info.ModTime()) {
		return entry.unit, nil
	}
	file, err := e.tree.Load(path, source.ShownFrom(e.cwd, path))
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	u, err := e.compileFile(path, file, syn)
	if err != nil {
		return nil, err
	}
	e.files.put(key, &fileEntry{info.ModTime(), info.Size(), u})
	return u, nil
}

func (e *Engine) compileFile(path string, file *source.File, syn syntax) (*unit, error) {
	u := &unit{name: file.Name, dir: source.Dir(path), syn: syn}
	o, segs, err := u.scan(string(file.Text), source.Pos{File: file, Line: 1, Col: 1})
	if err != nil {
		return nil, err
	}
	return e.compile(u, o, segs, expr.Escaped)
}

// IsLiteral reports whether the template is plain text: Value returns it as it is.
func (t *Template) IsLiteral() bool { return t.pure == nil && t.unit == nil }

// Value renders a playbook string: a literal, the native value of a pure
// "{{ expr }}", text, or a container (rule 6: a list or mapping whose brackets
// stand in the template itself, or that a single {{ expr }} among tags
// yields). A file yields text. An undefined result is an error that holds a
// *value.Undefined; where a place is known it also holds a *source.Diagnostic.
func (t *Template) Value(ctx context.Context, s expr.Scope) (any, error) {
	switch {
	case t.pure != nil:
		v, err := t.evaluate(ctx, s)
		return v, err
	case t.unit == nil:
		return t.literal, nil
	case t.file || t.engine.textOnly:
		text, err := t.render(ctx, s, &output{})
		return text, err
	}
	track := &provenance{}
	text, err := t.render(ctx, s, &output{track: track})
	if err != nil {
		return nil, err
	}
	return track.container(text, t.unit.marked), nil
}

// Text renders to text.
func (t *Template) Text(ctx context.Context, s expr.Scope) (string, error) {
	switch {
	case t.pure != nil:
		v, err := t.evaluate(ctx, s)
		return value.Str(v), err
	case t.unit == nil:
		return t.literal, nil
	}
	return t.render(ctx, s, &output{})
}

func (t *Template) evaluate(ctx context.Context, s expr.Scope) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("evaluate %q: internal error: %v", t.pure.Source(), r)
		}
	}()
	v, err = t.pure.Eval(ctx, s)
	if err != nil {
		return nil, locate(err, t.at, nil)
	}
	return v, nil
}

func (t *Template) render(ctx context.Context, s expr.Scope, out *output) (string, error) {
	f := t.engine.start(ctx, s)
	out.Grow(t.unit.size)
	if err := f.render(t.unit, &scope{base: s}, out); err != nil {
		return "", f.fail(err, t.at)
	}
	text := out.String()
	kept := len(text) - len(strings.TrimRight(text, "\n"))
	if t.unit.syn.newline != "\n" {
		kept = strings.Count(text[len(strings.TrimRight(text, "\r\n")):], t.unit.syn.newline)
	}
	if missing := t.unit.trailing - kept; missing > 0 {
		text += strings.Repeat(t.unit.syn.newline, missing)
	}
	return text, nil
}

// container is what a rendered text stands for.
func (p *provenance) container(text string, marked bool) any {
	if marked && p.pieces == 1 {
		switch v := p.value.(type) {
		case []any, *value.Dict:
			return v
		case bool:
			if text == value.Str(v) {
				return v
			}
		}
	}
	if !p.firstOwn || !p.lastOwn {
		return text
	}
	if marked && (text == "True" || text == "False") {
		return text == "True"
	}
	body := strings.TrimSpace(text)
	if !bracketed(text, body) {
		return text
	}
	v, err := value.FromLiteral(body, value.JSONNames())
	if err != nil {
		return text
	}
	switch v.(type) {
	case []any, *value.Dict:
		return v
	}
	return text
}

// bracketed reports whether text begins (without blanks) and ends as a list or mapping.
func bracketed(text, body string) bool {
	if body == "" || text[0] != body[0] {
		return false
	}
	first, last := body[0], body[len(body)-1]
	return first == '[' && last == ']' || first == '{' && last == '}'
}
