// Package template renders documents with {{ }}, {% %} and {# #}, as Jinja2 does. This package scans documents,
// package expr compiles the expressions in their tags, and pongo2 builds and walks the tree of blocks. No other
// package uses pongo2.
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

// Engine compiles templates and caches them by source. It is safe for concurrent use.
type Engine struct {
	env      *expr.Env
	tree     source.Tree
	rules    *tagRules
	set      *pongo2.TemplateSet
	setErr   error
	cwd      string // "" when unknown
	textOnly bool
	bound    func(name string) // can be nil

	maxOutput int // maximum bytes of one rendering
	strings   *cache[stringKey, *Template]
	files     *cache[fileKey, *fileEntry]
}

// Template is a compiled template. It is immutable.
type Template struct {
	engine  *Engine
	literal string
	pure    *expr.Expr // of a string that is a single {{ expr }}
	at      source.Pos
	unit    *unit // nil for a literal and a pure expression
	file    bool
}

// FileOptions change how a template file is parsed. The zero value has the defaults of the template module:
// trim_blocks on, lstrip_blocks off.
type FileOptions struct {
	NoTrimBlocks             bool
	LStripBlocks             bool
	BlockStart, BlockEnd     string // default {% %}
	VariableStart, VarEnd    string // default {{ }}
	CommentStart, CommentEnd string // default {# #}
	Newline                  string // default "\n"
}

// Option configures an engine.
type Option func(*Engine)

// TextOnly makes strings of text and markup yield text, even when the text looks like a list or a mapping. A pure
// {{ expr }} keeps its native value.
func TextOnly() Option { return func(e *Engine) { e.textOnly = true } }

// Bound calls f, at compile time, for each name that a document binds with set, for, with, macro or import.
func Bound(f func(name string)) Option { return func(e *Engine) { e.bound = f } }

// Sizes of the caches of an engine. A cache holds at most twice as many entries.
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
	e.cwd, _ = os.Getwd() // without it, names are shown in full
	for _, o := range opts {
		o(e)
	}
	return e
}

// Env returns the expression environment of the engine.
func (e *Engine) Env() *expr.Env { return e.env }

type stringKey struct {
	src string
	at  source.Pos
}

// String compiles a string of a playbook; at is the position of its first rune. A string without markup is a
// literal. The error is a *source.Diagnostic, or several joined.
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

// isPure reports whether src is a single {{ expr }} without anything around it, not even blanks.
func isPure(src string, segs []segment, syn *syntax) bool {
	return len(segs) == 1 && segs[0].kind == segOutput && segs[0].at == 0 && strings.HasSuffix(src, syn.varEnd)
}

// scan reads the header and the markup of a source, and sets the fields of the unit that depend on the source. Line
// ends become "\n". As in Jinja2, a line end at the end is not part of the document.
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

// fileEntry is a compiled file with the state of the file at that time.
type fileEntry struct {
	mtime time.Time
	size  int64
	unit  *unit
}

// File compiles a .j2 file by its path. It is cached by path, options, size and modification time. A missing file
// returns fs.ErrNotExist.
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

// RenderFile renders a file for lookup('template'). ctx must come from the rendering that runs the lookup: it
// counts the depth, so that a file that looks itself up fails with an error.
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

// load compiles a file unless the cache has its current version.
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

// IsLiteral reports whether the template is plain text, which Value returns unchanged.
func (t *Template) IsLiteral() bool { return t.pure == nil && t.unit == nil }

// Value renders a string of a playbook. The result is a literal, the native value of a pure "{{ expr }}", text, or
// a container. A text becomes a container (rule 6) if it is a list or mapping whose brackets are part of the
// template itself, or that a single {{ expr }} among tags yields. A file yields text. An undefined result is an
// error that wraps a *value.Undefined; where a position is known it also wraps a *source.Diagnostic.
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

// container converts a rendered text to the list or mapping that it represents.
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

// bracketed reports whether text, without blanks around it, begins and ends like a list or mapping.
func bracketed(text, body string) bool {
	if body == "" || text[0] != body[0] {
		return false
	}
	first, last := body[0], body[len(body)-1]
	return first == '[' && last == ']' || first == '{' && last == '}'
}
