package template

import (
	"strings"

	"kubekey/pkg/expr"
)

// signature describes the parameters of a macro or a call block.
type signature struct {
	name     string
	params   []string
	defaults []*expr.Expr // nil for a parameter without default
	varargs  bool         // its body uses varargs
	kwargs   bool         // its body uses kwargs
	caller   bool         // its body uses caller
}

func (c *compiler) macro(seg segment, b body) node {
	words := c.words(seg)
	if len(words) < 3 || !words[0].name || words[1].text != "(" || words[len(words)-1].text != ")" {
		c.failf(seg.offOrAt(), "a macro needs a name and parameters").WithHelp("write {%% macro name(a, b=1) %%}")
		return noNode{}
	}
	n := &macroNode{at: c.o.pos(seg.at), body: b}
	n.sig = c.signature(seg, words[2:len(words)-1])
	n.sig.name = c.nameOf(seg, words[:1], "the name of a macro")
	return n
}

// signature parses parameters, and finds which special names the body of the block uses.
func (c *compiler) signature(seg segment, words []word) signature {
	var sig signature
	for i := range words {
		words[i].depth--
	}
	for _, part := range splitCommas(words) {
		var fallback *expr.Expr
		if eq := find(part, "="); eq >= 0 {
			fallback = c.exprOf(seg, part[eq+1:])
			part = part[:eq]
		}
		sig.params = append(sig.params, c.nameOf(seg, part, "a parameter name"))
		sig.defaults = append(sig.defaults, fallback)
	}
	for _, inside := range c.inside(seg) {
		for _, w := range splitWords(inside.text) {
			sig.varargs = sig.varargs || w.text == "varargs"
			sig.kwargs = sig.kwargs || w.text == "kwargs"
			sig.caller = sig.caller || w.text == "caller"
		}
	}
	return sig
}

// inside returns the segments between a block tag and its end, without text.
func (c *compiler) inside(seg segment) []segment {
	var out []segment
	depth := 0
	for _, s := range c.segs {
		if s.at < seg.at || s.kind == segText {
			continue
		}
		if s.kind == segTag && s.name == seg.name {
			depth++
		}
		if s.kind == segTag && s.name == "end"+seg.name {
			if depth--; depth == 0 {
				return out
			}
		}
		out = append(out, s)
	}
	return out
}

// callerName is the name to which the body of a call block is bound during its call.
const callerName = "__kk_caller__"

// call compiles {% call(user) render(list) %}: the macro gets the body as `caller`.
func (c *compiler) call(seg segment, b body) node {
	n := &callNode{at: c.o.pos(seg.at), body: b}
	words := c.words(seg)
	if len(words) > 0 && words[0].text == "(" {
		end := 1
		for end < len(words) && (words[end].depth > 0 || words[end].text != ")") {
			end++
		}
		n.sig = c.signature(seg, words[1:min(end, len(words))])
		words = words[min(end+1, len(words)):]
	} else {
		n.sig = c.signature(seg, nil)
	}
	n.sig.name = "caller"
	text, off := between(seg, words)
	passed, ok := passCaller(text, words)
	if !ok {
		c.failf(off, "{%% call %%} needs a call of a macro").WithHelp("write {%% call name() %%}")
		return noNode{}
	}
	n.expr = c.expr(passed, off)
	return n
}

// passCaller adds caller=… to the arguments of the call at the end of text.
func passCaller(text string, words []word) (string, bool) {
	if len(words) < 3 || words[len(words)-1].text != ")" {
		return "", false
	}
	before := strings.TrimSuffix(text, ")")
	sep := ", "
	if last := words[len(words)-2].text; last == "(" || last == "," {
		sep = " "
	}
	return before + sep + "caller=" + callerName + ")", true
}
