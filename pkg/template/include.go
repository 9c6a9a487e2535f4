package template

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// searchPath is the variable with the folders of templates, nearest first.
const searchPath = "ansible_search_path"

type includeNode struct {
	name          *expr.Expr
	context       bool
	ignoreMissing bool
	at            source.Pos
	from          *unit
}

func (n *includeNode) run(f *frame) error {
	if f.muted {
		return nil
	}
	u, err := f.find(n.name, n.from, "include", n.at)
	var missing *errMissing
	if n.ignoreMissing && errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return f.fail(err, n.at)
	}
	if err := f.enter("include "+u.name, n.at); err != nil {
		return f.fail(err, n.at)
	}
	defer f.leave()
	root := &scope{outer: f.scope}
	if !n.context {
		root = &scope{base: noContext{f.base}}
	}
	if err := f.render(u, root, f.out); err != nil {
		return f.fail(err, n.at)
	}
	return nil
}

type member struct{ name, as string }

// importNode is {% import %} or, with members, {% from %}.
type importNode struct {
	name    *expr.Expr
	as      string
	members []member
	context bool
	at      source.Pos
	from    *unit
}

func (n *importNode) run(f *frame) error {
	m, err := n.module(f)
	if err != nil {
		return f.fail(err, n.at)
	}
	if n.members == nil {
		f.scope.set(n.as, m)
		return nil
	}
	for _, member := range n.members {
		v, ok := m.Attr(member.name)
		if !ok {
			v = m.missing(member.name)
		}
		f.scope.set(member.as, v)
	}
	return nil
}

func (n *importNode) module(f *frame) (*module, error) {
	u, err := f.find(n.name, n.from, "import", n.at)
	if err != nil {
		return nil, err
	}
	if err := f.enter("import "+u.name, n.at); err != nil {
		return nil, err
	}
	defer f.leave()
	root := &scope{base: noContext{f.base}}
	if n.context {
		root = &scope{outer: f.scope}
	}
	if err := f.render(u, root, &output{}); err != nil {
		return nil, err
	}
	return &module{u.name, root}, nil
}

// module is an imported template: its macros and top-level variables.
type module struct {
	file string
	root *scope
}

// String is the module as Jinja2 prints it.
func (m *module) String() string { return "<TemplateModule '" + m.file + "'>" }

// Attr implements expr.Attrs.
func (m *module) Attr(name string) (any, bool) {
	if strings.HasPrefix(name, "_") {
		return nil, false
	}
	for i, n := range m.root.names {
		if n == name {
			return m.root.vals[i], true
		}
	}
	return nil, false
}

func (m *module) missing(name string) any {
	return &value.Undefined{Name: name, Hint: strings.TrimSpace(m.file + " does not define it " +
		source.DidYouMean(name, m.root.names))}
}

// find loads the template that x names. A list of names yields the first template that exists.
func (f *frame) find(x *expr.Expr, from *unit, verb string, at source.Pos) (*unit, error) {
	v, err := x.Eval(f.ctx, f.scope)
	if err != nil {
		return nil, err
	}
	names, err := templateNames(v)
	if err != nil {
		return nil, err
	}
	dirs, err := f.folders(from)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		for _, dir := range dirs {
			u, err := f.engine.load(source.Join(dir, name), from.syn)
			if err == nil {
				return u, nil
			}
			if !errors.Is(err, fs.ErrNotExist) {
				return nil, f.failIn(err, verb+" "+name, at)
			}
		}
	}
	return nil, &errMissing{names, dirs}
}

// failIn adds a position to the error of a template that did not load.
func (f *frame) failIn(err error, what string, at source.Pos) error {
	if full := f.enter(what, at); full != nil {
		return full
	}
	defer f.leave()
	return f.fail(err, at)
}

func templateNames(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var names []string
	for _, e := range list {
		name, ok := e.(string)
		if !ok || name == "" {
			return nil, fmt.Errorf("the name of a template must be a string, not '%s'", value.TypeName(e))
		}
		if source.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") {
			return nil, fmt.Errorf("template %q: the name must be relative and without '..'", name)
		}
		names = append(names, name)
	}
	return names, nil
}

// folders returns the folders to search for templates that `from` names.
func (f *frame) folders(from *unit) ([]string, error) {
	var dirs []string
	add := func(dir string) {
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	add(from.dir)
	v, _, err := f.base.Lookup(searchPath)
	if err == nil {
		v, err = value.Force(v)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", searchPath, err)
	}
	list, _ := v.([]any)
	for _, e := range list {
		if dir, ok := e.(string); ok && dir != "" {
			add(source.Join(dir, "templates"))
			add(source.Clean(dir))
		}
	}
	return dirs, nil
}
