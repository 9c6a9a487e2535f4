package template

import (
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/source"
)

// maxBlocks limits the nesting of tags in one document, because pongo2 parses and runs them recursively.
const maxBlocks = 100

// tagRule describes the structure of a tag.
type tagRule struct {
	name    string
	end     string   // end tag of a block; "" for a tag without one
	middles []string // tags that can divide the block
}

// rules returns the rules for the tags of the language. It is a function because package variables must not change.
func rules() []tagRule {
	return []tagRule{
		{"if", "endif", []string{"elif", "else"}},
		{"for", "endfor", []string{"else"}},
		{"set", "endset", nil}, // a block only without "="
		{"macro", "endmacro", nil},
		{"call", "endcall", nil},
		{"filter", "endfilter", nil},
		{"with", "endwith", nil},
		{"block", "endblock", nil},
		{"include", "", nil},
		{"import", "", nil},
		{"from", "", nil},
		{"extends", "", nil},
		{"do", "", nil},
		{"break", "", nil},
		{"continue", "", nil},
	}
}

// tagRules finds a tag's rule. Each engine makes it once.
type tagRules struct {
	opening map[string]tagRule
	names   []string // every name that a tag can have
}

func newTagRules() *tagRules {
	t := &tagRules{opening: map[string]tagRule{}, names: []string{"raw", "endraw"}}
	for _, r := range rules() {
		t.opening[r.name] = r
		t.names = append(t.names, r.name)
		t.names = append(t.names, r.middles...)
		if r.end != "" {
			t.names = append(t.names, r.end)
		}
	}
	return t
}

// openBlockTag is a block without its end tag so far.
type openBlockTag struct {
	rule tagRule
	seg  segment
	last bool // after `else`: only the end tag is allowed
}

// structurer checks the nesting of tags and writes the document's skeleton for pongo2: private tags that contain
// the number of their segment and nothing else. No byte of a template reaches pongo2's lexer, so that its different
// rules for text, comments and strings (a "{" before a tag, {% verbatim %}) cannot apply.
type structurer struct {
	rules *tagRules
	o     *origin
	open  []openBlockTag
	out   strings.Builder
}

// skeleton returns the pongo2 source of a document.
func skeleton(segs []segment, o *origin, rules *tagRules) (string, *source.Diagnostic) {
	s := &structurer{rules: rules, o: o}
	s.out.WriteString("{% kk_root %}")
	for i, seg := range segs {
		if d := s.add(i, seg); d != nil {
			return "", d
		}
	}
	if n := len(s.open); n > 0 {
		b := s.open[n-1]
		return "", source.Errorf(o.pos(b.seg.at), "this {%% %s %%} is not closed", b.seg.name).
			WithHelp("add {%% %s %%}", b.rule.end)
	}
	s.out.WriteString("{% kk_endroot %}")
	return s.out.String(), nil
}

func (s *structurer) write(name string, i int) {
	fmt.Fprintf(&s.out, "{%% kk_%s %d %%}", name, i)
}

func (s *structurer) add(i int, seg segment) *source.Diagnostic {
	switch seg.kind {
	case segText:
		s.write("text", i)
		return nil
	case segOutput:
		s.write("output", i)
		return nil
	}
	if n := len(s.open); n > 0 && seg.name == s.open[n-1].rule.end {
		return s.close(i, seg)
	}
	if rule, ok := s.rules.opening[seg.name]; ok {
		return s.begin(i, seg, rule)
	}
	return s.divide(i, seg)
}

func (s *structurer) begin(i int, seg segment, rule tagRule) *source.Diagnostic {
	name := seg.name
	switch {
	case name == "set" && find(splitWords(seg.text), "=") >= 0:
		rule.end = ""
	case name == "set":
		name = "setblock"
	case (name == "break" || name == "continue") && !s.inLoop():
		return source.Errorf(s.o.pos(seg.at), "{%% %s %%} stands outside a for loop", name)
	}
	s.write(name, i)
	if rule.end == "" {
		return nil
	}
	if len(s.open) == maxBlocks {
		return source.Errorf(s.o.pos(seg.at), "blocks nest deeper than %d", maxBlocks)
	}
	s.open = append(s.open, openBlockTag{rule: rule, seg: seg})
	return nil
}

func (s *structurer) inLoop() bool {
	for _, b := range slices.Backward(s.open) {
		switch b.rule.name {
		case "for":
			return !b.last
		case "macro", "call", "block":
			return false
		}
	}
	return false
}

func (s *structurer) close(i int, seg segment) *source.Diagnostic {
	b := s.open[len(s.open)-1]
	if seg.text != "" && (b.rule.name != "block" || seg.text != b.blockName()) {
		return source.Errorf(s.o.pos(seg.off), "unexpected %q in {%% %s %%}", seg.text, seg.name)
	}
	s.write(seg.name, i)
	s.open = s.open[:len(s.open)-1]
	return nil
}

func (b *openBlockTag) blockName() string { return b.seg.text[:nameLen(b.seg.text)] }

func (s *structurer) divide(i int, seg segment) *source.Diagnostic {
	at := s.o.pos(seg.at)
	if !slices.Contains(s.rules.names, seg.name) {
		d := source.Errorf(at, "there is no tag %q", seg.name)
		return d.WithHelp("%s", source.DidYouMean(seg.name, s.rules.names))
	}
	if len(s.open) == 0 {
		return source.Errorf(at, "unexpected {%% %s %%}: no block is open here", seg.name)
	}
	b := &s.open[len(s.open)-1]
	if !slices.Contains(b.rule.middles, seg.name) || b.last {
		return source.Errorf(at, "unexpected {%% %s %%} in {%% %s %%}", seg.name, b.seg.name).
			WithHelp("the block at %s ends with {%% %s %%}", s.o.pos(b.seg.at), b.rule.end)
	}
	if b.last = seg.name == "else"; b.last && seg.text != "" {
		return source.Errorf(s.o.pos(seg.off), "unexpected %q in {%% else %%}", seg.text)
	}
	s.write(seg.name, i)
	return nil
}
