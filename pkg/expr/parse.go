package expr

import (
	"fmt"

	"kubekey/pkg/source"
)

// maxDepth limits the nesting of an expression. Chains (a or b or c) and lists are flat and do not count.
const maxDepth = 200

// parser is a recursive descent parser over the precedence levels of Jinja2.
type parser struct {
	env    *Env
	src    string
	tokens []token
	i      int
	depth  int
}

// fail unwinds the parser by a panic. parse converts it to the error that it contains.
type fail struct{ err *syntaxError }

// parse runs one grammar rule over the whole source.
func (e *Env) parse(src string, lit Literals, rule func(*parser) node) (n node, err *syntaxError) {
	tokens, err := lex(src, lit)
	if err != nil {
		return nil, err
	}
	p := &parser{env: e, src: src, tokens: tokens}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fail:
			n, err = nil, r.err
		default:
			panic(r)
		}
	}()
	n = rule(p)
	if t := p.peek(); t.kind != tokEnd {
		p.fail(t, leftoverHelp(t), "unexpected %s after the expression", t.describe())
	}
	return n, nil
}

func leftoverHelp(t token) string {
	switch {
	case t.kind == tokOp && t.text == "=":
		return "a comparison is =="
	case t.kind == tokName:
		return "an operator is missing, or quotes around a string"
	}
	return ""
}

func (p *parser) fail(t token, help, format string, args ...any) {
	panic(fail{&syntaxError{t.pos, t.end - t.pos, fmt.Sprintf(format, args...), help}})
}

func (p *parser) peek() token { return p.tokens[p.i] }

func (p *parser) next() token {
	t := p.tokens[p.i]
	if t.kind != tokEnd {
		p.i++
	}
	return t
}

func (p *parser) isOp(text string) bool {
	t := &p.tokens[p.i]
	return t.kind == tokOp && t.text == text
}

func (p *parser) isWord(word string) bool {
	t := &p.tokens[p.i]
	return t.kind == tokName && t.text == word
}

func (p *parser) acceptOp(text string) bool {
	if p.isOp(text) {
		p.i++
		return true
	}
	return false
}

func (p *parser) acceptWord(word string) bool {
	if p.isWord(word) {
		p.i++
		return true
	}
	return false
}

// close reads the closing bracket for open.
func (p *parser) close(open token, text string) token {
	t := p.peek()
	if !p.acceptOp(text) {
		if t.kind == tokEnd {
			p.fail(open, "add a '"+text+"'", "'%s' is not closed", open.text)
		}
		p.fail(t, "", "unexpected %s, expected '%s'", t.describe(), text)
	}
	return t
}

// from returns the span from a start to the last token read.
func (p *parser) from(pos int) span { return span{pos, p.tokens[max(0, p.i-1)].end} }

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek(), "set a part of it as a variable", "the expression is nested deeper than %d levels", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// tuple parses an expression, or a list of expressions with commas.
func (p *parser) tuple() node {
	pos := p.peek().pos
	first := p.expression()
	if !p.isOp(",") {
		return first
	}
	items := []node{first}
	for p.acceptOp(",") && p.startsExpression() {
		items = append(items, p.expression())
	}
	return &listNode{p.from(pos), items, true}
}

func (p *parser) startsExpression() bool {
	t := p.peek()
	return t.kind != tokEnd && !(t.kind == tokOp && (t.text == ")" || t.text == "]" || t.text == "}"))
}

// expression parses an inline if: a if c else b.
func (p *parser) expression() node {
	p.enter()
	defer p.leave()
	pos := p.peek().pos
	x := p.or()
	for p.acceptWord("if") {
		cond := p.or()
		var els node
		if p.acceptWord("else") {
			els = p.expression()
		}
		x = &condNode{p.from(pos), cond, x, els}
	}
	return x
}

func (p *parser) or() node { return p.logic("or", (*parser).and) }

func (p *parser) and() node { return p.logic("and", (*parser).not) }

func (p *parser) logic(word string, below func(*parser) node) node {
	pos := p.peek().pos
	first := below(p)
	if !p.isWord(word) {
		return first
	}
	terms := []node{first}
	for p.acceptWord(word) {
		terms = append(terms, below(p))
	}
	return &logicNode{p.from(pos), word == "or", terms}
}

func (p *parser) not() node {
	pos := p.peek().pos
	if !p.acceptWord("not") {
		return p.compare()
	}
	p.enter()
	defer p.leave()
	x := p.not()
	return &notNode{p.from(pos), x}
}

func (p *parser) compare() node {
	pos := p.peek().pos
	first := p.sum()
	var rest []operation
	for {
		op, ok := p.comparison()
		if !ok {
			break
		}
		rest = append(rest, operation{op, p.sum()})
	}
	if rest == nil {
		return first
	}
	return &compareNode{p.from(pos), first, foldSets(rest)}
}

// foldSets makes the list in `x in ['a', 'b']` a constant, which is safe because nothing can change it.
func foldSets(ops []operation) []operation {
	for i, o := range ops {
		if o.op != opIn && o.op != opNotIn {
			continue
		}
		if v, ok := constant(o.x); ok {
			ops[i].x = &constNode{o.x.where(), v}
		}
	}
	return ops
}

func (p *parser) comparison() (operator, bool) {
	t := p.peek()
	switch {
	case p.acceptWord("in"):
		return opIn, true
	case p.isWord("not") && p.tokens[p.i+1].kind == tokName && p.tokens[p.i+1].text == "in":
		p.i += 2
		return opNotIn, true
	case t.kind != tokOp:
		return 0, false
	}
	for op := opEq; op <= opGe; op++ {
		if p.acceptOp(op.String()) {
			return op, true
		}
	}
	return 0, false
}

func (p *parser) sum() node { return p.chain((*parser).concat, opAdd, opSub) }

func (p *parser) concat() node {
	pos := p.peek().pos
	first := p.product()
	if !p.isOp("~") {
		return first
	}
	parts := []node{first}
	for p.acceptOp("~") {
		parts = append(parts, p.product())
	}
	return &concatNode{p.from(pos), parts}
}

func (p *parser) product() node { return p.chain((*parser).power, opMul, opMod) }

// chain parses a left-associative chain of the operators from low to high.
func (p *parser) chain(below func(*parser) node, low, high operator) node {
	pos := p.peek().pos
	first := below(p)
	var rest []operation
	for op := low; op <= high; op++ {
		if p.acceptOp(op.String()) {
			rest = append(rest, operation{op, below(p)})
			op = low - 1
		}
	}
	if rest == nil {
		return first
	}
	return &mathNode{p.from(pos), first, rest}
}

func (p *parser) power() node {
	pos := p.peek().pos
	x := p.unary(true)
	if !p.acceptOp("**") {
		return x
	}
	p.enter()
	defer p.leave()
	right := p.power()
	return &mathNode{p.from(pos), x, []operation{{opPow, right}}}
}

// unary parses a sign or a primary with its postfixes. As in Jinja2, a sign binds tighter than ** and than a
// filter: -1 | abs is 1.
func (p *parser) unary(filters bool) node {
	t := p.peek()
	var x node
	if p.isOp("-") || p.isOp("+") {
		p.next()
		p.enter()
		inner := p.unary(false)
		p.leave()
		x = &negNode{p.from(t.pos), inner, t.text == "+"}
	} else {
		x = p.postfix(p.primary(), t.pos)
	}
	if filters {
		x = p.filters(x, t.pos)
	}
	return x
}

// diagnostic adds the position in the file to a syntax error.
func (e *syntaxError) diagnostic(src string, at source.Pos) *source.Diagnostic {
	d := source.Errorf(advance(at, src, e.pos), "%s", e.msg)
	d.Width, d.Help = e.width, e.help
	return d
}
