package template

import (
	"errors"
	"fmt"
	"io"

	"github.com/flosch/pongo2/v6"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
)

// errNoSuper is the error of super() in a block that overrides none.
var errNoSuper = errors.New("there is no parent block for super()")

// render runs a document, and then the parents that it extends. Each parent gets the scope of its child, and runs
// the youngest override of each block.
func (f *frame) render(u *unit, root *scope, out *output) error {
	inst := &instance{root: root}
	opened := 0
	defer func() {
		for ; opened > 0; opened-- {
			f.leave()
		}
	}()
	for {
		for name, b := range u.blocks {
			if inst.blocks == nil {
				inst.blocks = map[string][]*blockNode{}
			}
			inst.blocks[name] = append(inst.blocks[name], b)
		}
		inst.parent = nil
		if err := f.document(u, inst, out); err != nil {
			return err
		}
		if inst.parent == nil {
			return nil
		}
		u = inst.parent
		if err := f.enter("extends "+u.name, inst.at); err != nil {
			return f.fail(err, inst.at)
		}
		opened++
	}
}

// document runs one document in its own frame.
func (f *frame) document(u *unit, inst *instance, out *output) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("render %s: internal error: %v", u.name, r)
		}
	}()
	inner := &frame{run: f.run, scope: inst.root, out: out, inst: inst}
	if len(inst.blocks) > 0 {
		inst.root.set("self", &selfVar{inner, inst.root})
	}
	if u.flat != nil {
		return inner.runFlat(u.flat)
	}
	if err := u.tpl.ExecuteWriterUnbuffered(pongo2.Context{frameKey: inner}, io.Discard); err != nil {
		return unwrapPongo(err)
	}
	return nil
}

// runFlat runs the nodes of a document without tags.
func (f *frame) runFlat(nodes []node) error {
	for _, n := range nodes {
		if err := n.run(f); err != nil {
			return err
		}
	}
	return nil
}

type extendsNode struct {
	name *expr.Expr
	at   source.Pos
	from *unit
}

func (n *extendsNode) run(f *frame) error {
	if f.inst.parent != nil {
		return f.fail(fmt.Errorf("this template extends %s already", f.inst.parent.name), n.at)
	}
	u, err := f.find(n.name, n.from, "extends", n.at)
	if err != nil {
		return f.fail(err, n.at)
	}
	f.inst.parent, f.inst.at = u, n.at
	f.muted = true
	return nil
}

type blockNode struct {
	name             string
	scoped, required bool
	at               source.Pos
	body             body
}

func (n *blockNode) run(f *frame) error {
	if f.muted {
		return nil
	}
	outer := f.inst.root
	if n.scoped {
		outer = f.scope
	}
	return f.runBlock(n.name, 0, outer)
}

// runBlock runs the block of a name at a generation; 0 is the youngest.
func (f *frame) runBlock(name string, generation int, outer *scope) error {
	chain := f.inst.blocks[name]
	b := chain[generation]
	if b.required {
		return f.fail(fmt.Errorf("block %q is required, but no template defines it", name), b.at)
	}
	inner := &scope{outer: outer}
	inner.set("super", expr.Func(func(*expr.Call, expr.Args) (any, error) {
		if generation+1 == len(chain) {
			return nil, errNoSuper
		}
		return f.blockText(name, generation+1, outer)
	}))
	return f.inScope(inner, b.body.run)
}

func (f *frame) blockText(name string, generation int, outer *scope) (any, error) {
	if err := f.enter("block "+name, f.inst.blocks[name][generation].at); err != nil {
		return nil, err
	}
	defer f.leave()
	text, err := f.capture(func() error { return f.runBlock(name, generation, outer) })
	if err != nil {
		return nil, err
	}
	return text, nil
}

// selfVar is the variable `self`: self.title() prints the block again.
type selfVar struct {
	frame *frame
	scope *scope
}

// String is the variable as Jinja2 prints it.
func (s *selfVar) String() string { return "<TemplateReference>" }

// Attr implements expr.Attrs.
func (s *selfVar) Attr(name string) (any, bool) {
	if len(s.frame.inst.blocks[name]) == 0 {
		return nil, false
	}
	return expr.Func(func(*expr.Call, expr.Args) (any, error) {
		return s.frame.blockText(name, 0, s.scope)
	}), true
}
