package template

import (
	"context"
	"fmt"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Condition is a condition of a playbook: an expression, or a text with {{ }} that yields one.
//
// The result of {{ }} is code only where it was written by an author of the project (expr.Author):
// `when: "{{ check }}"` evaluates the text of the variable check. Everything else is data, because it can come from
// a host. Data can be a bool, a number or another literal, or part of a quoted text. It can never be an expression
// that looks up, calls or compares.
type Condition struct {
	engine *Engine
	at     source.Pos
	expr   *expr.Expr
	tmpl   *Template
}

// maxConditions limits the depth of conditions that name other conditions.
const maxConditions = 20

// Condition compiles a condition; at is the position of its first rune.
func (e *Engine) Condition(src string, at source.Pos) (*Condition, error) {
	c := &Condition{engine: e, at: at}
	var err error
	if hasTemplate(src) {
		c.tmpl, err = e.String(strings.TrimSpace(src), at)
	} else {
		c.expr, err = e.env.Compile(src, at, expr.Escaped)
	}
	return c, err
}

// Holds evaluates the condition. A list as the result of {{ }} is true when it is not empty.
func (c *Condition) Holds(ctx context.Context, s expr.Scope) (bool, error) {
	return c.holds(evaluation{e: c.engine, ctx: ctx, scope: s, at: c.at})
}

// AllHold is Holds, but a list as the result of {{ }} is a list of conditions, which must all hold.
func (c *Condition) AllHold(ctx context.Context, s expr.Scope) (bool, error) {
	return c.holds(evaluation{e: c.engine, ctx: ctx, scope: s, at: c.at, lists: true})
}

// DataHolds evaluates data as a condition: a text must be a literal, and all elements of a list must hold.
func (e *Engine) DataHolds(v any, at source.Pos) (bool, error) {
	return evaluation{e: e, at: at, lists: true}.data(v)
}

// evaluation is the state of one evaluation of a condition, including the conditions that it names.
type evaluation struct {
	e     *Engine
	ctx   context.Context
	scope expr.Scope
	at    source.Pos
	lists bool // a list is a list of conditions
	depth int
}

func (c *Condition) holds(v evaluation) (bool, error) {
	switch {
	case v.depth > maxConditions:
		return false, fmt.Errorf("conditions name each other more than %d deep", maxConditions)
	case c.expr != nil:
		return c.expr.Bool(v.ctx, v.scope)
	case c.tmpl.pure == nil:
		return c.rendered(v)
	}
	if node, ok := c.tmpl.pure.Authored(v.ctx, v.scope); ok {
		if ok, known, err := v.authored(node); known {
			return ok, err
		}
	}
	val, err := c.tmpl.evaluate(v.ctx, v.scope)
	if err == nil {
		val, err = value.Force(val)
	}
	if err != nil {
		return false, err
	}
	return v.data(val)
}

// rendered evaluates a condition that has text outside of {{ }}.
func (c *Condition) rendered(v evaluation) (bool, error) {
	text, err := c.tmpl.render(v.ctx, v.scope, &output{guard: &guard{engine: v.e, at: c.at}})
	if err != nil || strings.TrimSpace(text) == "" {
		return false, err
	}
	x, err := v.e.env.Compile(text, c.at, expr.Escaped)
	if err != nil {
		return false, err
	}
	return x.Bool(v.ctx, v.scope)
}

// authored evaluates the authored text of a variable; known is false when that text is not a condition.
func (v evaluation) authored(node any) (ok, known bool, err error) {
	text, isTemplate, isText := authoredText(node)
	switch {
	case isText && hasTemplate(text) && !isTemplate: // tagged !unsafe
		return false, false, nil
	case isText && strings.TrimSpace(text) == "":
		return false, true, nil
	case isText:
		c, err := v.e.Condition(text, v.at)
		if err != nil {
			return false, true, err
		}
		v.depth++
		ok, err := c.holds(v)
		return ok, true, err
	}
	d, isData := node.(*Data)
	if !isData || !v.lists {
		return false, false, nil
	}
	members, isList := d.Elements()
	for _, member := range members {
		if ok, err := v.member(member); err != nil || !ok {
			return false, true, err
		}
	}
	return true, isList, nil
}

// member evaluates an element of a list of conditions.
func (v evaluation) member(d *Data) (bool, error) {
	if ok, known, err := v.authored(d); known {
		return ok, err
	}
	val, err := d.Value(v.ctx, v.scope)
	if err != nil {
		return false, err
	}
	return v.data(val)
}

// data evaluates a value that was not written as a condition.
func (v evaluation) data(val any) (bool, error) {
	switch val := val.(type) {
	case string:
		if strings.TrimSpace(val) == "" {
			return false, nil
		}
		lit, ok := v.e.literal(val)
		if !ok {
			return false, isData(val, v.at)
		}
		return value.Truth(lit), nil
	case []any:
		if !v.lists {
			break
		}
		for _, each := range val {
			if ok, err := v.data(each); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	}
	return value.Truth(val), nil
}

// literal parses data as true, 5 or another literal of the language. It rejects a leading parenthesis: after a
// name, that would be the arguments of a call.
func (e *Engine) literal(text string) (any, bool) {
	if len(text) > maxLiteral || strings.HasPrefix(strings.TrimSpace(text), "(") {
		return nil, false
	}
	x, err := e.env.Compile(text, source.Pos{}, expr.Escaped)
	if err != nil {
		return nil, false
	}
	return x.Const()
}

// maxLiteral is the maximum size, in bytes, of data that is parsed as a literal.
const maxLiteral = 64 << 10

const writeCondition = "write the condition itself, without {{ }}: when: result.stdout == 'ok'"

func isData(text string, at source.Pos) error {
	const shown = 60
	if r := []rune(text); len(r) > shown {
		text = string(r[:shown]) + "…"
	}
	return source.Errorf(at, "%s is data: only true, false, a number or a quoted text can be part of a condition",
		value.Repr(text)).WithHelp(writeCondition)
}

// Authored returns the authored data that the data refers to: the data itself or, where it is a single {{ name }},
// the authored data of that name.
func (d *Data) Authored(ctx context.Context, s expr.Scope) *Data {
	for range maxConditions {
		if d.tmpl == nil || d.tmpl.pure == nil {
			return d
		}
		node, ok := d.tmpl.pure.Authored(ctx, s)
		next, isData := node.(*Data)
		if !ok || !isData {
			return d
		}
		d = next
	}
	return d
}

// Elements returns the elements of data that is written as a list.
func (d *Data) Elements() (elements []*Data, isList bool) {
	if d.kind == list {
		return d.list, true
	}
	all, isList := d.lit.([]any)
	if d.kind != static || !isList {
		return nil, false
	}
	for _, v := range all {
		elements = append(elements, Literal(v))
	}
	return elements, true
}

// authoredText returns the text of a result of expr.Author, and whether {{ in it begins a template.
func authoredText(node any) (text string, isTemplate, isText bool) {
	switch node := node.(type) {
	case string:
		return node, false, true
	case *Data:
		text, isText = node.lit.(string)
		return text, node.tmpl != nil, isText && node.vault == nil
	}
	return "", false, false
}

// authored returns the authored text of an expression in a condition.
func (f *frame) authored(x *expr.Expr) (string, bool) {
	if f.out.guard == nil {
		return "", false
	}
	node, ok := x.Authored(f.ctx, f.scope)
	if !ok {
		return "", false
	}
	text, _, isText := authoredText(node)
	return text, isText && !hasTemplate(text)
}

// guard checks a text that becomes a condition. Data can enter it as a literal, or inside quotes when it cannot
// close them.
type guard struct {
	engine  *Engine
	at      source.Pos
	quote   byte // the quote that is open, 0 for none
	escaped bool // the last byte was a backslash inside of quotes
}

// admit checks whether a piece can become part of the text; own marks authored text.
func (g *guard) admit(piece string, own bool) error {
	switch {
	case own:
		g.follow(piece)
		return nil
	case g.quote != 0:
		if g.escaped || strings.ContainsAny(piece, "\\\n\r"+string(g.quote)) {
			return source.Errorf(g.at, "data has a quote, a backslash or a line end inside of quotes").WithHelp(writeCondition)
		}
		return nil
	case strings.TrimSpace(piece) == "":
		return nil
	}
	if _, ok := g.engine.literal(piece); !ok {
		return isData(piece, g.at)
	}
	return nil
}

// follow keeps track of the quotes in authored text.
func (g *guard) follow(text string) {
	for i := range len(text) {
		c := text[i]
		switch {
		case g.escaped:
			g.escaped = false
		case g.quote == 0 && (c == '\'' || c == '"'):
			g.quote = c
		case g.quote != 0 && c == '\\':
			g.escaped = true
		case c == g.quote:
			g.quote = 0
		}
	}
}
