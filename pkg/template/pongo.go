package template

import (
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/flosch/pongo2/v6"
)

// pongoTags is the only process-wide state of the package. pongo2's tags are process-wide: a map without a lock,
// and parsers that get no data from their caller. The tags are therefore registered once, under private names, and
// a compilation is passed to their parsers under the lock.
type pongoTags struct {
	once    sync.Once
	err     error
	mu      sync.Mutex
	current *compiler
}

var pongo pongoTags

// frameKey is the only key of every pongo2 context: our frame.
const frameKey = "kk"

func (p *pongoTags) register() error {
	p.once.Do(func() {
		for name, parse := range tagParsers() {
			if p.err = pongo2.RegisterTag("kk_"+name, parse); p.err != nil {
				return
			}
		}
	})
	return p.err
}

func tagParsers() map[string]pongo2.TagParser {
	return map[string]pongo2.TagParser{
		"root":     parseRoot,
		"text":     simple((*compiler).text),
		"output":   simple((*compiler).output),
		"set":      simple((*compiler).set),
		"do":       simple((*compiler).do),
		"include":  simple((*compiler).include),
		"import":   simple((*compiler).imports),
		"from":     simple((*compiler).from),
		"extends":  simple((*compiler).extends),
		"break":    simple((*compiler).jump),
		"continue": simple((*compiler).jump),
		"setblock": block("kk_endset", (*compiler).setBlock),
		"macro":    block("kk_endmacro", (*compiler).macro),
		"call":     block("kk_endcall", (*compiler).call),
		"filter":   block("kk_endfilter", (*compiler).filter),
		"with":     block("kk_endwith", (*compiler).with),
		"block":    block("kk_endblock", (*compiler).block),
		"if":       parseIf,
		"for":      parseFor,
	}
}

// stockTags are pongo2's own tags. Templates cannot use them, since we write the source that pongo2 parses. They
// are banned as a second safeguard.
func stockTags() []string {
	return []string{
		"autoescape", "block", "comment", "cycle", "extends", "filter", "firstof", "for", "if", "ifchanged",
		"ifequal", "ifnotequal", "import", "include", "lorem", "macro", "now", "set", "spaceless", "ssi",
		"templatetag", "widthratio", "with",
	}
}

// noLoader is the template loader for pongo2. It finds no templates.
type noLoader struct{}

func (noLoader) Abs(_, name string) string { return name }

func (noLoader) Get(path string) (io.Reader, error) {
	return nil, fmt.Errorf("pongo2 asked for %q", path)
}

func newSet() (*pongo2.TemplateSet, error) {
	if err := pongo.register(); err != nil {
		return nil, fmt.Errorf("register template tags: %w", err)
	}
	set := pongo2.NewSet("kk", noLoader{})
	for _, name := range stockTags() {
		if err := set.BanTag(name); err != nil {
			return nil, fmt.Errorf("ban template tags: %w", err)
		}
	}
	return set, nil
}

// parse has pongo2 build the tree of a skeleton whose tags c compiles. Only one call runs at a time in the process.
func (p *pongoTags) parse(c *compiler, set *pongo2.TemplateSet, skeleton string) (tpl *pongo2.Template, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = c
	defer func() {
		p.current = nil
		if r := recover(); r != nil {
			tpl, err = nil, fmt.Errorf("compile template: internal error: %v", r)
		}
	}()
	return set.FromString(skeleton)
}

// rootNode is a whole document.
type rootNode struct{ body *pongo2.NodeWrapper }

// Execute runs the document on our frame, which is also its writer.
func (n *rootNode) Execute(ctx *pongo2.ExecutionContext, _ pongo2.TemplateWriter) *pongo2.Error {
	f, ok := ctx.Public[frameKey].(*frame)
	if !ok {
		return ctx.Error("there is no frame", nil)
	}
	f.pongo = ctx
	return n.body.Execute(ctx, f)
}

func parseRoot(doc *pongo2.Parser, _ *pongo2.Token, _ *pongo2.Parser) (pongo2.INodeTag, *pongo2.Error) {
	body, _, err := doc.WrapUntilTag("kk_endroot")
	return &rootNode{body}, err
}

// node is one of our tags. It only uses our frame.
type node interface {
	run(f *frame) error
}

// tagNode makes a node a pongo2 tag.
type tagNode struct{ node }

// Execute implements pongo2.INode. The writer is our frame wherever our tags run, because rootNode and captures set
// it.
func (n tagNode) Execute(ctx *pongo2.ExecutionContext, w pongo2.TemplateWriter) *pongo2.Error {
	f, ok := w.(*frame)
	if !ok {
		return ctx.Error("a tag is written to a foreign writer", nil)
	}
	if err := n.run(f); err != nil {
		return &pongo2.Error{Sender: "kk", OrigError: err}
	}
	return nil
}

// body is the content of a block.
type body struct{ nodes *pongo2.NodeWrapper }

func (b body) run(f *frame) error {
	if b.nodes == nil {
		return nil
	}
	if err := b.nodes.Execute(f.pongo, f); err != nil {
		return err.OrigError
	}
	return nil
}

// number reads the number of a segment.
func number(args *pongo2.Parser) (int, *pongo2.Error) {
	t := args.MatchType(pongo2.TokenNumber)
	if t == nil {
		return 0, args.Error("a segment number is missing", nil)
	}
	n, err := strconv.Atoi(t.Val)
	if err != nil || n >= len(pongo.current.segs) {
		return 0, args.Error("bad segment number "+t.Val, t)
	}
	return n, nil
}

// simple is the parser of a tag without an end tag.
func simple(compile func(*compiler, segment) node) pongo2.TagParser {
	return func(_ *pongo2.Parser, _ *pongo2.Token, args *pongo2.Parser) (pongo2.INodeTag, *pongo2.Error) {
		i, err := number(args)
		if err != nil {
			return nil, err
		}
		return tagNode{compile(pongo.current, pongo.current.segs[i])}, nil
	}
}

// block is the parser of a tag with one body.
func block(end string, compile func(*compiler, segment, body) node) pongo2.TagParser {
	return func(doc *pongo2.Parser, _ *pongo2.Token, args *pongo2.Parser) (pongo2.INodeTag, *pongo2.Error) {
		i, err := number(args)
		if err != nil {
			return nil, err
		}
		inside, _, err := doc.WrapUntilTag(end)
		if err != nil {
			return nil, err
		}
		return tagNode{compile(pongo.current, pongo.current.segs[i], body{inside})}, nil
	}
}

func parseIf(doc *pongo2.Parser, _ *pongo2.Token, args *pongo2.Parser) (pongo2.INodeTag, *pongo2.Error) {
	n := &ifNode{}
	for {
		i, err := number(args)
		if err != nil {
			return nil, err
		}
		var inside *pongo2.NodeWrapper
		if inside, args, err = doc.WrapUntilTag("kk_elif", "kk_else", "kk_endif"); err != nil {
			return nil, err
		}
		seg := pongo.current.segs[i]
		if seg.name == "else" {
			n.orElse = body{inside}
		} else {
			n.branches = append(n.branches, pongo.current.branch(seg, body{inside}))
		}
		if inside.Endtag == "kk_endif" {
			return tagNode{n}, nil
		}
	}
}

func parseFor(doc *pongo2.Parser, _ *pongo2.Token, args *pongo2.Parser) (pongo2.INodeTag, *pongo2.Error) {
	i, err := number(args)
	if err != nil {
		return nil, err
	}
	inside, _, err := doc.WrapUntilTag("kk_else", "kk_endfor")
	if err != nil {
		return nil, err
	}
	var otherwise *pongo2.NodeWrapper
	if inside.Endtag == "kk_else" {
		if otherwise, _, err = doc.WrapUntilTag("kk_endfor"); err != nil {
			return nil, err
		}
	}
	return tagNode{pongo.current.loop(pongo.current.segs[i], body{inside}, body{otherwise})}, nil
}
