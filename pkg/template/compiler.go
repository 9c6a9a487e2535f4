package template

import (
	"errors"
	"strings"

	"github.com/flosch/pongo2/v6"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
)

// unit is a compiled document. It is immutable: many goroutines can run it at once.
type unit struct {
	name   string // as shown to users
	dir    string // the first folder that its includes are searched in; "" for none
	syn    syntax // the syntax of the document, which its includes use as well
	tpl    *pongo2.Template
	flat   []node // nodes of a document without tags, which needs no pongo2
	blocks map[string]*blockNode
	size   int // bytes of the source, an estimate of the size of the result

	trailing int  // number of newlines at the end of the source
	marked   bool // the source begins with a tag, an output or a comment
}

// compiler turns the segments of one document into nodes. It collects all problems.
type compiler struct {
	env      *expr.Env
	lit      expr.Literals // for output; tags always read escapes
	o        *origin
	unit     *unit
	segs     []segment
	problems []error
	bound    func(name string) // can be nil
}

// compile builds a document. src has "\n" line ends; from is the offset where its text begins.
func (e *Engine) compile(u *unit, o *origin, segs []segment, lit expr.Literals) (*unit, error) {
	if e.setErr != nil {
		return nil, e.setErr
	}
	c := &compiler{env: e.env, lit: lit, o: o, unit: u, segs: segs, bound: e.bound}
	if u.flat = c.flat(); u.flat != nil {
		if err := c.err(); err != nil {
			return nil, err
		}
		return u, nil
	}
	text, d := skeleton(segs, o, e.rules)
	if d != nil {
		return nil, d
	}
	u.blocks = map[string]*blockNode{}
	tpl, err := pongo.parse(c, e.set, text)
	if err := c.err(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, locate(unwrapPongo(err), o.pos(0), nil)
	}
	u.tpl = tpl
	return u, nil
}

// err returns the problems as one error.
func (c *compiler) err() error {
	if len(c.problems) == 1 {
		return c.problems[0]
	}
	return errors.Join(c.problems...)
}

func (c *compiler) fail(d error) { c.problems = append(c.problems, d) }

func (c *compiler) failf(off int, format string, args ...any) *source.Diagnostic {
	d := source.Errorf(c.o.pos(off), format, args...)
	c.fail(d)
	return d
}

// noNode stands for a tag that did not compile.
type noNode struct{}

func (noNode) run(*frame) error { return nil }

// expr compiles an expression at an offset of the source. It returns nil after a problem.
func (c *compiler) expr(text string, off int) *expr.Expr {
	return c.compiled(text, off, c.env.Compile)
}

// tuple is expr for places where `1, 2` is a list.
func (c *compiler) tuple(text string, off int) *expr.Expr {
	return c.compiled(text, off, c.env.CompileTuple)
}

type compileFunc func(string, source.Pos, expr.Literals) (*expr.Expr, error)

func (c *compiler) compiled(text string, off int, compile compileFunc) *expr.Expr {
	if strings.TrimSpace(text) == "" {
		c.failf(off, "an expression is missing here")
		return nil
	}
	x, err := compile(text, c.o.pos(off), expr.Escaped)
	if err != nil {
		c.fail(err)
		return nil
	}
	return x
}

// words splits the arguments of a tag into words.
func (c *compiler) words(seg segment) []word { return splitWords(seg.text) }

// between returns the text that the words cover and its offset in the source. Without words the offset is that of
// the tag.
func between(seg segment, words []word) (string, int) {
	if len(words) == 0 {
		return "", seg.at
	}
	from, to := words[0].from, words[len(words)-1].to
	return seg.text[from:to], seg.off + from
}

// exprOf compiles the expression that the words cover.
func (c *compiler) exprOf(seg segment, words []word) *expr.Expr {
	text, off := between(seg, words)
	return c.expr(text, off)
}

func (c *compiler) tupleOf(seg segment, words []word) *expr.Expr {
	text, off := between(seg, words)
	return c.tuple(text, off)
}

// nameOf reads the words as a single name.
func (c *compiler) nameOf(seg segment, words []word, what string) string {
	if len(words) == 1 && words[0].name {
		if c.bound != nil {
			c.bound(words[0].text)
		}
		return words[0].text
	}
	text, off := between(seg, words)
	if text == "" {
		c.failf(off, "%s is missing", what)
		return ""
	}
	c.failf(off, "%q is not %s", text, what)
	return ""
}

// filterName is the variable to which filter chains without an operand are applied.
const filterName = "__kk_text__"

// filters compiles `upper | indent(2)` to an expression over filterName. The column of filterName lies before the
// chain, possibly before the line, so that positions in the chain are correct.
func (c *compiler) filters(text string, off int) *expr.Expr {
	at := c.o.pos(off)
	at.Col -= len(filterName) + 1
	x, err := c.env.Compile(filterName+"|"+text, at, expr.Escaped)
	if err != nil {
		c.fail(err)
		return nil
	}
	return x
}

// flat compiles a document that consists of text and outputs only, as most strings of playbooks do. It returns nil
// for other documents.
func (c *compiler) flat() []node {
	for _, seg := range c.segs {
		if seg.kind != segText && seg.kind != segOutput {
			return nil
		}
	}
	nodes := make([]node, len(c.segs))
	for i, seg := range c.segs {
		if seg.kind == segText {
			nodes[i] = c.text(seg)
		} else {
			nodes[i] = c.output(seg)
		}
	}
	return nodes
}

func (c *compiler) text(seg segment) node { return &textNode{seg.text} }

func (c *compiler) output(seg segment) node {
	x, err := c.env.Compile(seg.text, c.o.pos(seg.off), c.lit)
	if err != nil {
		c.fail(err)
	}
	return &outputNode{x, c.o.pos(seg.at)}
}

func (c *compiler) do(seg segment) node {
	return &doNode{c.tuple(seg.text, seg.offOrAt()), c.o.pos(seg.at)}
}

// offOrAt returns the position for errors about missing arguments.
func (s *segment) offOrAt() int {
	if s.text == "" {
		return s.at
	}
	return s.off
}

func (c *compiler) jump(seg segment) node {
	if seg.text != "" {
		c.failf(seg.off, "unexpected %q in {%% %s %%}", seg.text, seg.name)
	}
	return &jumpNode{&control{seg.name}}
}

func (c *compiler) branch(seg segment, b body) branch {
	return branch{c.expr(seg.text, seg.offOrAt()), c.o.pos(seg.at), b}
}

func (c *compiler) loop(seg segment, inside, otherwise body) node {
	n := &forNode{at: c.o.pos(seg.at), body: inside, orElse: otherwise}
	words := c.words(seg)
	in := find(words, "in")
	if in < 0 {
		c.failf(seg.offOrAt(), "`in` is missing").WithHelp("write {%% for item in list %%}")
		return noNode{}
	}
	n.target = c.target(seg, words[:in])
	words = words[in+1:]
	if rest, ok := ends(words, "recursive"); ok && len(rest) > 0 {
		words, n.recursive = rest, true
	}
	if i := find(words, "if"); i > 0 {
		n.cond = c.exprOf(seg, words[i+1:])
		words = words[:i]
	}
	n.iter = c.tupleOf(seg, words)
	return n
}

func (c *compiler) set(seg segment) node {
	words := c.words(seg)
	eq := find(words, "=")
	n := &setNode{at: c.o.pos(seg.at)}
	n.target = c.target(seg, words[:eq])
	n.value = c.tupleOf(seg, words[eq+1:])
	return n
}

func (c *compiler) setBlock(seg segment, b body) node {
	words := c.words(seg)
	n := &setBlockNode{at: c.o.pos(seg.at), body: b}
	if i := find(words, "|"); i >= 0 {
		text, off := between(seg, words[i+1:])
		n.filters = c.filters(text, off)
		words = words[:i]
	}
	n.target = c.target(seg, words)
	return n
}

// target parses the target of an assignment: a name, ns.attribute, or several with commas.
func (c *compiler) target(seg segment, words []word) target {
	if len(words) > 1 && words[0].text == "(" && words[len(words)-1].text == ")" && closes(words) {
		inside := make([]word, 0, len(words)-2)
		for _, w := range words[1 : len(words)-1] {
			w.depth--
			inside = append(inside, w)
		}
		words = inside
	}
	if find(words, ",") >= 0 {
		t := target{}
		for _, part := range splitCommas(words) {
			t.parts = append(t.parts, c.target(seg, part))
		}
		return t
	}
	if len(words) == 3 && words[0].name && words[1].text == "." && words[2].name {
		return target{name: words[0].text, attr: words[2].text}
	}
	name := c.nameOf(seg, words, "a name to assign to")
	switch name {
	case "true", "false", "none", "True", "False", "None":
		c.failf(seg.off, "%q cannot be assigned to", name)
	}
	return target{name: name}
}

// closes reports whether the first bracket is closed by the last.
func closes(words []word) bool {
	for _, w := range words[1 : len(words)-1] {
		if w.depth == words[0].depth {
			return false
		}
	}
	return true
}

func (c *compiler) with(seg segment, b body) node {
	n := &withNode{at: c.o.pos(seg.at), body: b}
	for _, part := range splitCommas(c.words(seg)) {
		eq := find(part, "=")
		if eq < 0 {
			_, off := between(seg, part)
			c.failf(off, "`=` is missing").WithHelp("write {%% with name = value %%}")
			continue
		}
		n.targets = append(n.targets, c.target(seg, part[:eq]))
		n.values = append(n.values, c.exprOf(seg, part[eq+1:]))
	}
	return n
}

func (c *compiler) filter(seg segment, b body) node {
	if seg.text == "" {
		c.failf(seg.at, "the name of a filter is missing")
		return noNode{}
	}
	return &filterNode{c.filters(seg.text, seg.off), c.o.pos(seg.at), b}
}

func (c *compiler) include(seg segment) node {
	n := &includeNode{at: c.o.pos(seg.at), from: c.unit}
	words, with := trimContext(c.words(seg), true)
	n.context = with
	words, n.ignoreMissing = ends(words, "ignore", "missing")
	n.name = c.tupleOf(seg, words)
	return n
}

func (c *compiler) imports(seg segment) node {
	n := &importNode{at: c.o.pos(seg.at), from: c.unit}
	words, with := trimContext(c.words(seg), false)
	n.context = with
	as := find(words, "as")
	if as < 0 {
		c.failf(seg.offOrAt(), "`as` is missing").WithHelp("write {%% import 'file.j2' as name %%}")
		return noNode{}
	}
	n.name = c.exprOf(seg, words[:as])
	n.as = c.nameOf(seg, words[as+1:], "a name")
	return n
}

func (c *compiler) from(seg segment) node {
	n := &importNode{at: c.o.pos(seg.at), from: c.unit}
	words, with := trimContext(c.words(seg), false)
	n.context = with
	at := find(words, "import")
	if at < 0 {
		c.failf(seg.offOrAt(), "`import` is missing").WithHelp("write {%% from 'file.j2' import name %%}")
		return noNode{}
	}
	n.name = c.exprOf(seg, words[:at])
	for _, part := range splitCommas(words[at+1:]) {
		n.members = append(n.members, c.member(seg, part))
	}
	if len(n.members) == 0 {
		c.failf(seg.offOrAt(), "a name to import is missing")
	}
	return n
}

func (c *compiler) member(seg segment, words []word) member {
	as := find(words, "as")
	if as < 0 {
		name := c.nameOf(seg, words, "a name to import")
		return member{name, name}
	}
	return member{c.nameOf(seg, words[:as], "a name to import"), c.nameOf(seg, words[as+1:], "a name")}
}

func (c *compiler) extends(seg segment) node {
	return &extendsNode{c.expr(seg.text, seg.offOrAt()), c.o.pos(seg.at), c.unit}
}

func (c *compiler) block(seg segment, b body) node {
	words := c.words(seg)
	n := &blockNode{at: c.o.pos(seg.at), body: b}
	for {
		if rest, ok := ends(words, "scoped"); ok && len(rest) > 0 {
			words, n.scoped = rest, true
		} else if rest, ok := ends(words, "required"); ok && len(rest) > 0 {
			words, n.required = rest, true
		} else {
			break
		}
	}
	n.name = c.nameOf(seg, words, "the name of a block")
	if c.unit.blocks[n.name] != nil {
		c.failf(seg.at, "block %q is defined twice", n.name).WithHelp("the other is at %s", c.unit.blocks[n.name].at)
	}
	c.unit.blocks[n.name] = n
	return n
}
