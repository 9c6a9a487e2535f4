package general

import (
	"strings"

	"github.com/antchfx/xmlquery"
)

// The library's own printer escapes quotes in texts and drops the text between top-level nodes. This one preserves
// the document.

// xmlHead precedes every document that is written.
const xmlHead = "<?xml version='1.0' encoding='UTF-8'?>\n"

// printXML returns a whole document, with a line break at the end if it is indented.
func printXML(doc *xmlquery.Node, indented bool) string {
	var b strings.Builder
	b.WriteString(xmlHead)
	first := true
	for _, n := range doc.ChildNodes() {
		if n.Type == xmlquery.TextNode || n.Type == xmlquery.DeclarationNode {
			continue // there are only blanks between top-level nodes
		}
		if !first {
			b.WriteByte('\n')
		}
		first = false
		writeXML(&b, n, false)
	}
	if indented {
		b.WriteByte('\n')
	}
	return b.String()
}

var (
	escapeText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	escapeAttr = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "\n", "&#10;", "\t", "&#9;", "\r", "&#13;")
)

// writeXML prints a node. bare skips the blanks between elements.
func writeXML(b *strings.Builder, n *xmlquery.Node, bare bool) {
	switch n.Type {
	case xmlquery.TextNode:
		if !bare || !blank(n) {
			b.WriteString(escapeText.Replace(n.Data))
		}
	case xmlquery.CharDataNode:
		b.WriteString("<![CDATA[" + n.Data + "]]>")
	case xmlquery.CommentNode:
		b.WriteString("<!--" + n.Data + "-->")
	case xmlquery.NotationNode:
		b.WriteString("<!" + n.Data + ">")
	case xmlquery.ProcessingInstruction:
		b.WriteString("<?" + strings.TrimSpace(n.ProcInst.Target+" "+n.ProcInst.Inst) + "?>")
	case xmlquery.ElementNode:
		writeElement(b, n, bare)
	}
}

func writeElement(b *strings.Builder, n *xmlquery.Node, bare bool) {
	name := attributeOf(n)
	b.WriteString("<" + name)
	writeAttrs(b, n)
	if n.FirstChild == nil {
		b.WriteString("/>")
		return
	}
	b.WriteByte('>')
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		writeXML(b, child, bare)
	}
	b.WriteString("</" + name + ">")
}

func writeAttrs(b *strings.Builder, n *xmlquery.Node) {
	for _, a := range n.Attr {
		b.WriteByte(' ')
		if a.Name.Space != "" {
			b.WriteString(a.Name.Space + ":")
		}
		b.WriteString(a.Name.Local + `="` + escapeAttr.Replace(a.Value) + `"`)
	}
}

// removeTail removes the text between an element and the next.
func removeTail(n *xmlquery.Node) {
	for t := n.NextSibling; t != nil &&
		(t.Type == xmlquery.TextNode || t.Type == xmlquery.CharDataNode); t = n.NextSibling {
		xmlquery.RemoveFromTree(t)
	}
}

// indentXML puts each element on its own line, unless there is text next to it.
func indentXML(doc *xmlquery.Node) {
	for _, n := range elements(doc) {
		indentBelow(n, "\n")
	}
}

func indentBelow(n *xmlquery.Node, line string) {
	for _, child := range n.ChildNodes() {
		if child.Type == xmlquery.CharDataNode || child.Type == xmlquery.TextNode && !blank(child) {
			return
		}
	}
	if len(elements(n)) == 0 {
		return
	}
	for _, child := range n.ChildNodes() {
		if blank(child) {
			xmlquery.RemoveFromTree(child)
		}
	}
	for _, child := range n.ChildNodes() {
		insertBefore(child, &xmlquery.Node{Type: xmlquery.TextNode, Data: line + "  "})
		indentBelow(child, line+"  ")
	}
	xmlquery.AddChild(n, &xmlquery.Node{Type: xmlquery.TextNode, Data: line})
}
