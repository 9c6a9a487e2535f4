package expr

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

// filters parses | filter and `is test` after x, and calls of their results.
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

// dotted parses the name of a filter or test: combine, ansible.builtin.combine.
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
	n := &filterNode{in: x, name: p.env.ShortName(name.text), fn: fn}
	if p.isOp("(") {
		n.args = p.arguments()
	}
	n.span = p.from(pos)
	n.lazy = takesLazy(n)
	p.checkNested(n)
	return n
}

// takesLazy reports whether a filter only picks from its arguments, or passes them on: map('extract', hostvars,
// 'ip') must not evaluate all of hostvars.
func takesLazy(n *filterNode) bool {
	switch n.name {
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
	n.name = p.env.ShortName(name.text)
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

// startsArgument reports whether a test is followed by an argument without parentheses: x is divisibleby 3.
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

// known fails for a name that does not exist.
func (p *parser) known(t token, err error) {
	if u, ok := err.(*unknownName); ok {
		bare := *u
		bare.hint = ""
		p.fail(t, u.hint, "%s", bare.Error())
	}
}

// checkLookup detects an unknown lookup when its name is a literal.
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

// checkNested detects unknown filters and tests among the literal names given to map, select and similar filters.
func (p *parser) checkNested(n *filterNode) {
	switch n.name {
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
