package expr

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

// items parses expressions with commas up to a closing bracket.
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

// postfix parses .name, [index] and (call) after x.
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

// limitChain limits the length of a.b.c and x | f | g. These look flat but nest.
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
