package general

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/antchfx/xmlquery"
	"github.com/antchfx/xpath"

	"kubekey/pkg/value"
)

// xmlDoc is a document with the prefixes that expressions use.
type xmlDoc struct {
	root       *xmlquery.Node
	namespaces map[string]string
}

// byteOrderMark is at the beginning of some documents.
const byteOrderMark = "\ufeff"

// declaration is added to a document without one: otherwise the library loses the document type.
const declaration = `<?xml version="1.0"?>` + "\n"

func parseXML(text string) (*xmlquery.Node, error) {
	text = strings.TrimPrefix(text, byteOrderMark)
	declared := strings.HasPrefix(text, "<?xml")
	if !declared {
		text = declaration + text
	}
	doc, err := xmlquery.Parse(strings.NewReader(text))
	switch {
	case err != nil:
		return nil, err
	case len(elements(doc)) == 0:
		return nil, errors.New("it holds no XML element")
	case deeper(doc, maxXMLDepth):
		return nil, fmt.Errorf("its elements nest deeper than %d", maxXMLDepth)
	case !declared:
		xmlquery.RemoveFromTree(doc.FirstChild)
		return doc, nil
	}
	if e := doc.FirstChild.SelectAttr("encoding"); e != "" && !strings.EqualFold(e, "utf-8") &&
		!strings.EqualFold(e, "us-ascii") {
		return nil, fmt.Errorf("it is encoded as %s: only UTF-8 is read", e)
	}
	return doc, nil
}

// maxXMLDepth is the maximum depth of elements, as in libxml2. The tree is processed recursively, and a stack
// overflow would crash kk.
const maxXMLDepth = 256

func deeper(doc *xmlquery.Node, limit int) bool {
	for n, depth := doc, 0; n != nil; {
		switch {
		case depth > limit:
			return true
		case n.FirstChild != nil:
			n, depth = n.FirstChild, depth+1
			continue
		}
		for n != nil && n != doc && n.NextSibling == nil {
			n, depth = n.Parent, depth-1
		}
		if n == nil || n == doc {
			return false
		}
		n = n.NextSibling
	}
	return false
}

// find returns the nodes that an expression selects.
func (x *xmlDoc) find(expression string) ([]*xmlquery.Node, error) {
	e, err := xpath.CompileWithNS(expression, x.namespaces)
	if err != nil {
		return nil, fmt.Errorf("xpath %s: %w", expression, err)
	}
	if _, nodes := e.Evaluate(xmlquery.CreateXPathNavigator(x.root)).(*xpath.NodeIterator); !nodes {
		return nil, fmt.Errorf("xpath %s names no nodes", expression)
	}
	return xmlquery.QuerySelectorAll(x.root, e), nil
}

// The last steps that make supports. Their groups are the preceding expression, a name, and a text.
var (
	stepElement  = regexp.MustCompile(`^(.*)/([\pL_][\w.:-]*)$`)
	stepAttr     = regexp.MustCompile(`^(.*)/@([\pL_][\w.:-]*)$`)
	stepText     = regexp.MustCompile(`^(.*)/text\(\)$`)
	whereElement = regexp.MustCompile(`^(.*)\[\s*([\pL_][\w.:-]*)\s*=\s*(?:'([^']*)'|"([^"]*)")\s*\]$`)
	whereAttr    = regexp.MustCompile(`^(.*)\[\s*@([\pL_][\w.:-]*)\s*=\s*(?:'([^']*)'|"([^"]*)")\s*\]$`)
)

// make adds to the document the nodes that an expression of simple steps describes, and returns them.
func (x *xmlDoc) make(expression string) ([]*xmlquery.Node, error) {
	nodes, err := x.find(expression)
	if err != nil || len(nodes) > 0 {
		return nodes, err
	}
	impossible := fmt.Errorf("xpath %s finds no node, and is not simple enough to make one", expression)
	parents := func(before string) ([]*xmlquery.Node, error) {
		if strings.Trim(before, "/") == "" {
			return nil, impossible
		}
		return x.make(before)
	}
	var add func(n *xmlquery.Node) error
	var base string
	if g := stepElement.FindStringSubmatch(expression); g != nil {
		base, add = g[1], func(n *xmlquery.Node) error { return x.add(n, g[2], "") }
	} else if g := stepAttr.FindStringSubmatch(expression); g != nil {
		base, add = g[1], func(n *xmlquery.Node) error { n.SetAttr(g[2], ""); return nil }
	} else if g := stepText.FindStringSubmatch(expression); g != nil {
		base, add = g[1], func(n *xmlquery.Node) error {
			xmlquery.AddChild(n, &xmlquery.Node{Type: xmlquery.TextNode})
			return nil
		}
	} else if g := whereElement.FindStringSubmatch(expression); g != nil {
		base, add = g[1], func(n *xmlquery.Node) error { return x.add(n, g[2], g[3]+g[4]) }
	} else if g := whereAttr.FindStringSubmatch(expression); g != nil {
		return x.makeWith(g[1], g[2], g[3]+g[4], expression, parents)
	} else {
		return nil, impossible
	}
	above, err := parents(base)
	if err != nil {
		return nil, err
	}
	for _, n := range above {
		if n.Type != xmlquery.ElementNode {
			return nil, impossible
		}
		if err := add(n); err != nil {
			return nil, err
		}
	}
	return x.find(expression)
}

// makeWith creates an element with an attribute. An existing element without the attribute gets it; otherwise
// another element is added next to the existing one.
func (x *xmlDoc) makeWith(base, attr, text, expression string,
	parents func(string) ([]*xmlquery.Node, error)) ([]*xmlquery.Node, error) {
	nodes, err := parents(base)
	if err != nil {
		return nil, err
	}
	last := nodes[len(nodes)-1]
	for _, n := range nodes {
		if !n.HasAttr(attr) {
			n.SetAttr(attr, text)
			return x.find(expression)
		}
	}
	n := &xmlquery.Node{Type: xmlquery.ElementNode, Data: last.Data, Prefix: last.Prefix, NamespaceURI: last.NamespaceURI}
	n.SetAttr(attr, text)
	if last.Parent == nil || last.Parent.Type == xmlquery.DocumentNode {
		return nil, fmt.Errorf("xpath %s: a document has one element at its top", expression)
	}
	xmlquery.AddImmediateSibling(last, n)
	return x.find(expression)
}

// add appends an element to a node.
func (x *xmlDoc) add(to *xmlquery.Node, name, text string) error {
	n, err := x.named(name)
	if err != nil {
		return err
	}
	if n.Prefix == "" {
		n.NamespaceURI = to.NamespaceURI
	}
	if uri := n.NamespaceURI; uri != "" && uri == to.NamespaceURI {
		n.Prefix = to.Prefix // the document's prefix for the namespace, which may differ from the task's
	} else if uri != "" {
		n.SetAttr("xmlns:"+n.Prefix, uri)
	}
	if text != "" {
		setText(n, text)
	}
	xmlquery.AddChild(to, n)
	return nil
}

var xmlName = regexp.MustCompile(`^[\pL_][\w.\pL-]*(:[\pL_][\w.\pL-]*)?$`)

func (x *xmlDoc) named(name string) (*xmlquery.Node, error) {
	if !xmlName.MatchString(name) {
		return nil, fmt.Errorf("%q is not a name of an XML element", name)
	}
	n := &xmlquery.Node{Type: xmlquery.ElementNode, Data: name}
	if prefix, local, ok := strings.Cut(name, ":"); ok {
		n.Prefix, n.Data, n.NamespaceURI = prefix, local, x.namespaces[prefix]
		if n.NamespaceURI == "" {
			return nil, fmt.Errorf("namespaces has no prefix %q", prefix)
		}
	}
	return n, nil
}

// element creates an element from its description: its name, or a dict.
func (x *xmlDoc) element(d any) (*xmlquery.Node, error) {
	dict, ok := d.(*value.Dict)
	if !ok {
		return x.named(value.Str(d))
	}
	if dict.Len() != 1 {
		return nil, fmt.Errorf("a child must be a name, or a dict of one name, got %s", value.Repr(d))
	}
	name := dict.Keys()[0]
	n, err := x.named(value.Str(name))
	if err != nil {
		return nil, err
	}
	content, _ := dict.Get(name)
	inner, ok := content.(*value.Dict)
	if !ok {
		if content != nil && value.Str(content) != "" {
			setText(n, value.Str(content))
		}
		return n, nil
	}
	return n, x.fill(n, inner)
}

// fill sets the attributes, the text (+value) and the children (_) of an element.
func (x *xmlDoc) fill(n *xmlquery.Node, inner *value.Dict) error {
	for key, v := range inner.All() {
		switch name := value.Str(key); name {
		case "+value":
			setText(n, value.Str(v))
		case "_":
			children, ok := v.([]any)
			if !ok {
				return fmt.Errorf("_ of %s must be a list of children", n.Data)
			}
			for _, c := range children {
				child, err := x.element(c)
				if err != nil {
					return err
				}
				xmlquery.AddChild(n, child)
			}
		default:
			if !xmlName.MatchString(name) {
				return fmt.Errorf("%q is not a name of an XML attribute", name)
			}
			n.SetAttr(name, value.Str(v))
		}
	}
	return nil
}

// setText sets the text of an element. If the element has child elements, they are kept, and only the text before
// the first one is replaced.
func setText(n *xmlquery.Node, text string) {
	for _, child := range n.ChildNodes() {
		if child.Type == xmlquery.TextNode || child.Type == xmlquery.CharDataNode {
			if len(elements(n)) == 0 || child == n.FirstChild {
				xmlquery.RemoveFromTree(child)
			}
		}
	}
	if text == "" {
		return
	}
	node := &xmlquery.Node{Type: xmlquery.TextNode, Data: text}
	if n.FirstChild == nil {
		xmlquery.AddChild(n, node)
		return
	}
	insertBefore(n.FirstChild, node)
}

// insertBefore inserts a node before another.
func insertBefore(n, added *xmlquery.Node) {
	added.Parent, added.NextSibling, added.PrevSibling = n.Parent, n, n.PrevSibling
	if n.PrevSibling != nil {
		n.PrevSibling.NextSibling = added
	} else if n.Parent != nil {
		n.Parent.FirstChild = added
	}
	n.PrevSibling = added
}

func elements(n *xmlquery.Node) []*xmlquery.Node {
	var all []*xmlquery.Node
	for _, child := range n.ChildNodes() {
		if child.Type == xmlquery.ElementNode {
			all = append(all, child)
		}
	}
	return all
}

func blank(n *xmlquery.Node) bool {
	return n != nil && n.Type == xmlquery.TextNode && strings.TrimSpace(n.Data) == ""
}

func stripCDATA(n *xmlquery.Node) {
	if n.Type == xmlquery.CharDataNode {
		n.Type = xmlquery.TextNode
	}
	for _, child := range n.ChildNodes() {
		stripCDATA(child)
	}
}

// attributeOf returns the name of an attribute that an expression found, in the format of SetAttr.
func attributeOf(n *xmlquery.Node) string {
	if n.Prefix != "" {
		return n.Prefix + ":" + n.Data
	}
	return n.Data
}

func attrName(a xmlquery.Attr) string {
	switch {
	case a.NamespaceURI != "":
		return "{" + a.NamespaceURI + "}" + a.Name.Local
	case a.Name.Space != "":
		return a.Name.Space + ":" + a.Name.Local
	}
	return a.Name.Local
}

// tagOf returns the name of a node in the format of results: {URI}name in a namespace.
func tagOf(n *xmlquery.Node) string {
	if n.NamespaceURI != "" {
		return "{" + n.NamespaceURI + "}" + n.Data
	}
	return n.Data
}

// xmlPath returns the path of a node: /a/b[2]/@c.
func xmlPath(n *xmlquery.Node) string {
	if n == nil || n.Type == xmlquery.DocumentNode {
		return ""
	}
	switch n.Type {
	case xmlquery.AttributeNode:
		return xmlPath(n.Parent) + "/@" + attributeOf(n)
	case xmlquery.TextNode, xmlquery.CharDataNode:
		return xmlPath(n.Parent) + "/text()"
	}
	at, count := 0, 0
	if n.Parent != nil {
		for _, e := range elements(n.Parent) {
			if e.Data == n.Data && e.Prefix == n.Prefix {
				if count++; e == n {
					at = count
				}
			}
		}
	}
	step := "/" + attributeOf(n)
	if count > 1 {
		step += fmt.Sprintf("[%d]", at)
	}
	return xmlPath(n.Parent) + step
}
