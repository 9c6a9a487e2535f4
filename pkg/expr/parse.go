package expr

import (
	"fmt"

	"kubekey/pkg/source"
)

// maxDepth is how many levels an expression may nest. Chains (a or b or c)
// and lists are flat and do not count.
const maxDepth = 200

// parser is a recursive descent over the precedence levels of Jinja2.
type parser struct {
	env    *Env
	src    string
	tokens []token
	i      int
	depth  int
}

// fail unwinds the parser; parse turns it into the error it carries.
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

// close takes the bracket that ends what open began.
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

// from is the span from a start to the last token taken.
func (p *parser) from(pos int) span { return span{pos, p.tokens[max(0, p.i-1)].end} }

func (p *parser) enter() {
	if p.depth++; p.depth > maxDepth {
		p.fail(p.peek(), "set a part of it as a variable", "the expression is nested deeper than %d levels", maxDepth)
	}
}

func (p *parser) leave() { p.depth-- }

// tuple is an expression, or a list of them with commas.
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

// expression is an inline if: a if c else b.
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

// foldSets makes a constant of the list in `x in ['a', 'b']`, which nothing can change.
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

// chain is a left-associative level of the operators from low to high.
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

// unary is a sign or a primary with what follows it. As in Jinja2 a sign binds
// tighter than ** and than a filter: -1 | abs is 1.
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

func (p *parser) primary() node {
	t := p.next()
	switch t.kind {
	case tokName:
		return p.name(t)
	case tokNumber:
		return &constNode{span{t.pos, t.end}, t.value}
	case tokString:
		return p.strings(t)
	case tokOp:
		switch t.text {
		case "(":
			return p.paren(t)
		case "[":
			return p.list(t)
		case "{":
			return p.dict(t)
		}
	}
	if t.kind == tokEnd && p.i == 0 {
		p.fail(t, "", "the expression is empty")
	}
	p.fail(t, "", "unexpected %s, expected a value", t.describe())
	return nil
}

func (p *parser) name(t token) node {
	at := span{t.pos, t.end}
	switch t.text {
	case "true", "True":
		return &constNode{at, true}
	case "false", "False":
		return &constNode{at, false}
	case "none", "None":
		return &constNode{at, nil}
	}
	if isKeyword(t.text) {
		p.fail(t, "", "unexpected '%s', expected a value", t.text)
	}
	return &nameNode{at, t.text}
}

func isKeyword(word string) bool {
	switch word {
	case "and", "or", "not", "if", "else", "in", "is":
		return true
	}
	return false
}

// strings joins adjacent literals: 'a' 'b' is 'ab'.
func (p *parser) strings(t token) node {
	text := t.value.(string)
	for p.peek().kind == tokString {
		text += p.next().value.(string)
	}
	return &constNode{p.from(t.pos), text}
}

func (p *parser) paren(open token) node {
	if p.acceptOp(")") {
		return &listNode{p.from(open.pos), nil, true}
	}
	x := p.tuple()
	p.close(open, ")")
	return x
}

func (p *parser) list(open token) node {
	items := p.items(open, "]")
	return &listNode{p.from(open.pos), items, false}
}

// items are expressions with commas up to a closing bracket.
func (p *parser) items(open token, closing string) []node {
	var items []node
	for !p.isOp(closing) {
		items = append(items, p.expression())
		if !p.acceptOp(",") {
			break
		}
	}
	p.close(open, closing)
	return items
}

func (p *parser) dict(open token) node {
	d := &dictNode{}
	for !p.isOp("}") {
		d.keys = append(d.keys, p.expression())
		if t := p.peek(); !p.acceptOp(":") {
			p.fail(t, "", "unexpected %s, expected ':' after a key", t.describe())
		}
		d.values = append(d.values, p.expression())
		if !p.acceptOp(",") {
			break
		}
	}
	p.close(open, "}")
	d.span = p.from(open.pos)
	return d
}

// postfix takes .name, [index] and (call) after x.
func (p *parser) postfix(x node, pos int) node {
	for links := 0; ; links++ {
		p.limitChain(links)
		switch {
		case p.isOp("."):
			x = p.attribute(x, pos)
		case p.isOp("["):
			x = p.subscript(x, pos)
		case p.isOp("("):
			x = p.call(x, pos)
		default:
			return x
		}
	}
}

// limitChain bounds a.b.c and x | f | g, which nest though they read flat.
func (p *parser) limitChain(links int) {
	if links > maxDepth {
		p.fail(p.peek(), "set a part of it as a variable", "more than %d accesses or filters in one chain", maxDepth)
	}
}

func (p *parser) attribute(x node, pos int) node {
	p.next()
	t := p.next()
	switch key := t.value.(type) {
	case nil:
		if t.kind == tokName {
			return &attrNode{p.from(pos), x, t.text, false}
		}
	case int:
		return &attrNode{p.from(pos), x, key, true}
	}
	p.fail(t, "a key that is no name is written a['key']", "unexpected %s after '.'", t.describe())
	return nil
}

func (p *parser) subscript(x node, pos int) node {
	open := p.next()
	var parts [3]node
	n, slice := 0, false
	for {
		if !p.isOp(":") && !p.isOp("]") && !p.isOp(",") {
			parts[n] = p.expression()
		}
		if n == 2 || !p.acceptOp(":") {
			break
		}
		n++
		slice = true
	}
	if !slice && parts[0] == nil {
		p.fail(p.peek(), "", "unexpected %s, expected an index", p.peek().describe())
	}
	p.close(open, "]")
	at := p.from(pos)
	if slice {
		return &sliceNode{at, x, parts[0], parts[1], parts[2]}
	}
	if c, ok := constant(parts[0]); ok {
		switch c.(type) {
		case string, int:
			return &attrNode{at, x, c, true}
		}
	}
	return &indexNode{at, x, parts[0]}
}

func (p *parser) call(fn node, pos int) node {
	args := p.arguments()
	n := &callNode{p.from(pos), fn, args}
	p.checkLookup(n)
	return n
}

func (p *parser) arguments() arguments {
	open := p.next()
	var args arguments
	for !p.isOp(")") {
		args = append(args, p.argument())
		if !p.acceptOp(",") {
			break
		}
	}
	p.close(open, ")")
	p.checkOrder(args)
	return args
}

func (p *parser) argument() argument {
	t := p.peek()
	switch {
	case p.acceptOp("*"):
		return argument{x: p.expression(), spread: spreadList}
	case p.acceptOp("**"):
		return argument{x: p.expression(), spread: spreadDict}
	case t.kind == tokName && p.tokens[p.i+1].kind == tokOp && p.tokens[p.i+1].text == "=":
		p.i += 2
		return argument{name: t.text, x: p.expression()}
	}
	return argument{x: p.expression()}
}

func (p *parser) checkOrder(args arguments) {
	named := map[string]bool{}
	for _, a := range args {
		at := a.x.where()
		t := token{pos: at.pos, end: at.end}
		switch {
		case a.name != "" && named[a.name]:
			p.fail(t, "", "the argument '%s' is given twice", a.name)
		case a.name != "":
			named[a.name] = true
		case len(named) > 0 && a.spread == single:
			p.fail(t, "", "an argument without a name follows one with a name")
		}
	}
}

// filters takes | filter and `is test` after x, and calls of their results.
func (p *parser) filters(x node, pos int) node {
	for links := 0; ; links++ {
		p.limitChain(links)
		switch {
		case p.isOp("|"):
			x = p.filter(x, pos)
		case p.isWord("is"):
			x = p.test(x, pos)
		case p.isOp("("):
			x = p.call(x, pos)
		default:
			return x
		}
	}
}

// dotted is the name of a filter or test: combine, ansible.builtin.combine.
func (p *parser) dotted(what string) token {
	t := p.next()
	if t.kind != tokName {
		if t.kind == tokOp && t.text == "|" {
			p.fail(t, "write 'or'", "unexpected '|', expected a %s name", what)
		}
		p.fail(t, "", "unexpected %s, expected a %s name", t.describe(), what)
	}
	for p.isOp(".") {
		p.next()
		part := p.next()
		if part.kind != tokName {
			p.fail(part, "", "unexpected %s in the name of a %s", part.describe(), what)
		}
		t.end = part.end
		t.text += "." + part.text
	}
	return t
}

func (p *parser) filter(x node, pos int) node {
	p.next()
	name := p.dotted("filter")
	fn, err := p.env.filter(name.text)
	p.known(name, err)
	n := &filterNode{in: x, name: name.text, fn: fn}
	if p.isOp("(") {
		n.args = p.arguments()
	}
	n.span = p.from(pos)
	n.lazy = takesLazy(n)
	p.checkNested(n)
	return n
}

// takesLazy reports whether a filter only picks from its arguments, or passes
// them on: map('extract', hostvars, 'ip') must not work out all of hostvars.
func takesLazy(n *filterNode) bool {
	switch ShortName(n.name) {
	case "extract", "default", "d":
		return true
	case "map":
		if len(n.args) > 0 {
			c, ok := n.args[0].x.(*constNode)
			return ok && (c.v == "extract" || c.v == "ansible.builtin.extract")
		}
	}
	return false
}

func (p *parser) test(x node, pos int) node {
	p.next()
	n := &testNode{in: x, negated: p.acceptWord("not")}
	name := p.dotted("test")
	fn, err := p.env.test(name.text)
	p.known(name, err)
	n.name = ShortName(name.text)
	if n.fn = fn; n.name == "defined" || n.name == "undefined" {
		n.fn = nil
	}
	switch {
	case p.isOp("("):
		n.args = p.arguments()
	case p.startsArgument():
		t := p.peek()
		p.enter()
		n.args = arguments{{x: p.postfix(p.primary(), t.pos)}}
		p.leave()
	}
	n.span = p.from(pos)
	if n.fn == nil && n.args != nil {
		p.fail(name, "", "the test '%s' takes no arguments", n.name)
	}
	return n
}

// startsArgument reports whether the one bare argument of a test follows: x is divisibleby 3.
func (p *parser) startsArgument() bool {
	t := p.peek()
	switch t.kind {
	case tokName:
		return !isKeyword(t.text)
	case tokNumber, tokString:
		return true
	case tokOp:
		return t.text == "[" || t.text == "{"
	}
	return false
}

// known fails at a name that does not exist.
func (p *parser) known(t token, err error) {
	if u, ok := err.(*unknownName); ok {
		bare := *u
		bare.hint = ""
		p.fail(t, u.hint, "%s", bare.Error())
	}
}

// checkLookup finds an unknown lookup when its name is a literal.
func (p *parser) checkLookup(n *callNode) {
	fn, ok := n.fn.(*nameNode)
	if !ok || len(n.args) == 0 || fn.name != "lookup" && fn.name != "query" && fn.name != "q" {
		return
	}
	p.checkLiteral(n.args, 0, func(name string) error {
		_, err := p.env.lookup(name)
		return err
	})
}

// checkNested finds unknown filters and tests that map, select and their kin
// are given by literal name.
func (p *parser) checkNested(n *filterNode) {
	switch ShortName(n.name) {
	case "map":
		p.checkLiteral(n.args, 0, func(name string) error {
			_, err := p.env.filter(name)
			return err
		})
	case "select", "reject":
		p.checkLiteral(n.args, 0, p.testExists)
	case "selectattr", "rejectattr":
		p.checkLiteral(n.args, 1, p.testExists)
	}
}

func (p *parser) testExists(name string) error {
	_, err := p.env.test(name)
	return err
}

func (p *parser) checkLiteral(args arguments, i int, find func(string) error) {
	if i >= len(args) {
		return
	}
	for _, a := range args[:i+1] {
		if a.name != "" || a.spread != single {
			return
		}
	}
	c, ok := args[i].x.(*constNode)
	if !ok {
		return
	}
	name, ok := c.v.(string)
	if !ok {
		return
	}
	p.known(token{pos: c.pos, end: c.end}, find(name))
}

// diagnostic places a syntax error in the file.
func (e *syntaxError) diagnostic(src string, at source.Pos) *source.Diagnostic {
	d := source.Errorf(advance(at, src, e.pos), "%s", e.msg)
	d.Width, d.Help = e.width, e.help
	return d
}
