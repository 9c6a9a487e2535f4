package general

import (
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

const bookshop = `<?xml version="1.0" encoding="UTF-8"?>
<!-- it's a shop & more -->
<shop name="a &quot;b&quot;">
  <book id="1" lang='de'><title>It's "one" &amp; only</title></book>
  <book id="2"/>
  <note><![CDATA[<raw>]]></note>
</shop>
`

// withShop returns the test document with one part replaced.
func withShop(old, replaced string) string {
	text := strings.Replace(bookshop, `lang='de'`, `lang="de"`, 1)
	return strings.Replace(text, old, replaced, 1)
}

func TestXML(t *testing.T) {
	cases := []editCase{
		{"the same", bookshop, value.NewDict("xpath", "/shop/book[@id='1']", "attribute", "lang", "value", "de"), bookshop,
			""},
		{"attribute", bookshop, value.NewDict("xpath", "/shop/book[@id='2']", "attribute", "lang", "value", `a"b<c`),
			withShop(`id="2"/`, `id="2" lang="a&quot;b&lt;c"/`), ""},
		{"attribute by its path", bookshop, value.NewDict("xpath", "/shop/book[2]/@id", "value", 7),
			withShop(`id="2"`, `id="7"`), ""},
		{"text", bookshop, value.NewDict("xpath", "//title", "value", "<Two> it's"),
			withShop(`It's "one" &amp; only`, "&lt;Two&gt; it's"), ""},
		{"text in the place of CDATA", bookshop, value.NewDict("xpath", "/shop/note", "value", "x"),
			withShop("<![CDATA[<raw>]]>", "x"), ""},
		{"remove elements", bookshop, value.NewDict("xpath", "/shop/book[title]", "state", "absent"),
			withShop(`<book id="1" lang="de"><title>It's "one" &amp; only</title></book>`+"\n  ", ""), ""},
		{"remove attributes", bookshop, value.NewDict("xpath", "//book/@id", "state", "absent"),
			strings.Replace(withShop(` id="1"`, ""), ` id="2"`, "", 1), ""},
		{"remove nothing", bookshop, value.NewDict("xpath", "/shop/magazine", "state", "absent"), bookshop, ""},
		{"make an element", "<a><b/></a>\n", value.NewDict("xpath", "/a/b/c", "value", "x"), "<a><b><c>x</c></b></a>\n", ""},
		{"make a way", "<a/>\n", value.NewDict("xpath", "/a/b/c/@d", "value", "x"), "<a><b><c d=\"x\"/></b></a>\n", ""},
		{"make with an attribute", "<a><b k=\"1\"/></a>\n", value.NewDict("xpath", "/a/b[@k='2']", "value", "x"),
			"<a><b k=\"1\"/><b k=\"2\">x</b></a>\n", ""},
		{"make with a child", "<a/>\n", value.NewDict("xpath", "/a/b[k='2']"), "<a><b><k>2</k></b></a>\n", ""},
		{"add", "<a>\n  <b/>\n</a>\n", value.NewDict("xpath", "/a", "add_children",
			[]any{"c", value.NewDict("d", 1), value.NewDict("e", value.NewDict("k", "v", "_", []any{"f"}))}, "pretty_print",
			true),
			"<a>\n  <b/>\n  <c/>\n  <d>1</d>\n  <e k=\"v\">\n    <f/>\n  </e>\n</a>\n", ""},
		{"add before", "<a><b/><b/></a>\n", value.NewDict("xpath", "/a/b", "add_children", []any{"c", "d"}, "insertbefore",
			true), "<a><c/><d/><b/><b/></a>\n", ""},
		{"add after", "<a><b/><b/><e/></a>\n", value.NewDict("xpath", "/a/b", "add_children", []any{"c", "d"}, "insertafter",
			true), "<a><b/><b/><c/><d/><e/></a>\n", ""},
		{"set", "<a>\n  <b/>\n  <c/>\n</a>\n", value.NewDict("xpath", "/a", "set_children",
			[]any{value.NewDict("x", value.NewDict("k", "v", "+value", "t"))}, "pretty_print", true),
			"<a>\n  <x k=\"v\">t</x>\n</a>\n", ""},
		{"set the same", "<a>\n  <b>1</b>\n</a>\n",
			value.NewDict("xpath", "/a", "set_children", []any{value.NewDict("b", 1)}), "<a>\n  <b>1</b>\n</a>\n", ""},
		{"set from XML", "<a/>\n", value.NewDict("xpath", "/a", "set_children", []any{"<b k='1'><c/></b>"}, "input_type",
			"xml"), "<a><b k=\"1\"><c/></b></a>\n", ""},
		{"namespace", "<p:a xmlns:p=\"urn:x\"><p:b>1</p:b></p:a>\n",
			value.NewDict("xpath", "/q:a/q:b", "value", "2", "namespaces", value.NewDict("q", "urn:x")),
			"<p:a xmlns:p=\"urn:x\"><p:b>2</p:b></p:a>\n", ""},
		{"make in a namespace", "<a xmlns=\"urn:x\"><b/></a>\n",
			value.NewDict("xpath", "/q:a/q:c", "value", "2", "namespaces", value.NewDict("q", "urn:x")),
			"<a xmlns=\"urn:x\"><b/><c>2</c></a>\n", ""},
		{"doctype", "<!DOCTYPE a SYSTEM \"a.dtd\">\n<a><b/></a>\n", value.NewDict("xpath", "/a/b", "value", "1"),
			"<!DOCTYPE a SYSTEM \"a.dtd\">\n<a><b>1</b></a>\n", ""},
		{"CDATA", "<a><![CDATA[x<y]]></a>\n", value.NewDict("strip_cdata_tags", true), "<a>x&lt;y</a>\n", ""},
		{"pretty", "<a><b><c/></b>text</a>\n", value.NewDict("pretty_print", true), "<a><b><c/></b>text</a>\n", ""},
		{"remove with the text after it", "<a>\n  <b/>\n  <c/>\n</a>\n", value.NewDict("xpath", "/a/b", "state", "absent"),
			"<a>\n  <c/>\n</a>\n", ""},
		{"set where the first was", "<a>\n  <b/>\n  <c/>\n</a>\n",
			value.NewDict("xpath", "/a", "set_children", []any{"x", "y"}), "<a>\n  <x/><y/></a>\n", ""},
		{"add after the text that follows", "<a>\n  <b/>\n  <c/>\n</a>\n",
			value.NewDict("xpath", "/a/b", "add_children", []any{"x"}, "insertafter", true), "<a>\n  <b/>\n  <x/><c/>\n</a>\n",
			""},
	}
	for i, c := range cases {
		if c.Before != c.After {
			cases[i].After = asWritten(c.After, c.Args.Has("pretty_print"))
		}
	}
	moduletest.Edits(t, spec(t, "xml"), cases)
}

// asWritten returns a document as it is written: with a declaration, and with a line break at the end if it is
// indented.
func asWritten(text string, indented bool) string {
	if strings.HasPrefix(text, "<?xml") {
		_, text, _ = strings.Cut(text, "\n")
	}
	if !indented {
		text = strings.TrimSuffix(text, "\n")
	}
	return "<?xml version='1.0' encoding='UTF-8'?>\n" + text
}

func TestXMLTells(t *testing.T) {
	p := write(t, t.TempDir()+"/f", bookshop)
	r := moduletest.Run(t, spec(t, "xml"), value.NewDict("path", p, "xpath", "//book", "count", true),
		moduletest.Options{})
	moduletest.Want(t, r, "count", 2)
	r = moduletest.Run(t, spec(t, "xml"), value.NewDict("path", p, "xpath", "//book|//@lang", "print_match", true),
		moduletest.Options{})
	moduletest.Want(t, r, "matches", []any{"/shop/book[1]", "/shop/book[2]", "/shop/book[1]/@lang"})
	r = moduletest.Run(t, spec(t, "xml"), value.NewDict("path", p, "xpath", "//book", "content", "attribute"),
		moduletest.Options{})
	moduletest.Want(t, r, "matches", []any{value.NewDict("book", value.NewDict("id", "1", "lang", "de")),
		value.NewDict("book", value.NewDict("id", "2"))})
	r = moduletest.Run(t, spec(t, "xml"), value.NewDict("xmlstring", `<a xmlns="urn:x"><b>it</b></a>`, "xpath", "//q:b",
		"content", "text", "namespaces", value.NewDict("q", "urn:x")), moduletest.Options{})
	moduletest.Want(t, r, "matches", []any{value.NewDict("{urn:x}b", "it")})
	r = moduletest.Run(t, spec(t, "xml"), value.NewDict("xmlstring", "<a/>", "xpath", "/a", "value", "x"),
		moduletest.Options{Diff: true})
	moduletest.Want(t, r, "xmlstring", "<?xml version='1.0' encoding='UTF-8'?>\n<a>x</a>")
	if !r.Changed || len(r.Diff) != 1 {
		t.Errorf("result is %+v", r)
	}
}

func TestXMLErrors(t *testing.T) {
	p := write(t, t.TempDir()+"/f", bookshop)
	for text, a := range map[string]*value.Dict{
		"required: path, xmlstring":     value.NewDict("xpath", "/a", "value", "x"),
		"mutually exclusive: add_child": value.NewDict("path", p, "xpath", "/a", "value", "x", "count", true),
		"required by 'value': xpath":    value.NewDict("path", p, "value", "x"),
		"xpath /a[: ":                   value.NewDict("path", p, "xpath", "/a[", "value", "x"),
		"names no nodes":                value.NewDict("path", p, "xpath", "count(/a)", "value", "x"),
		"is not simple enough":          value.NewDict("path", p, "xpath", "/shop/book[last()]/x[9]", "value", "x"),
		"finds no node":                 value.NewDict("path", p, "xpath", "/nope", "add_children", []any{"x"}),
		"is not a name of an XML elem":  value.NewDict("path", p, "xpath", "/shop", "add_children", []any{"a b"}),
		"is not a name of an XML attrib": value.NewDict("path", p, "xpath", "/shop", "add_children",
			[]any{value.NewDict("a", value.NewDict("b c", "d"))}),
		"has no prefix":        value.NewDict("path", p, "xpath", "/shop", "add_children", []any{"p:x"}),
		"read xmlstring":       value.NewDict("xmlstring", "<a><b></a>", "xpath", "/a", "value", "x"),
		"invalid XML document": value.NewDict("xmlstring", "plain", "pretty_print", true),
		"nest deeper than 256": value.NewDict("xmlstring", strings.Repeat("<a>", 300)+strings.Repeat("</a>", 300),
			"xpath", "/a"),
		"only UTF-8 is read": value.NewDict("xmlstring", `<?xml version="1.0" encoding="iso-8859-1"?><a/>`,
			"pretty_print", true),
		"invalid character entity": value.NewDict("xmlstring", `<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>`, "xpath",
			"/a", "value", "x"),
	} {
		moduletest.Fails(t, text, spec(t, "xml"), a, moduletest.Options{})
	}
}

// A document may be nested as deep as libxml2 allows, and may have any number of siblings.
func TestXMLDepth(t *testing.T) {
	inner := strings.Repeat("<b><c/></b>", 1000)
	text := strings.Repeat("<a>", 254) + inner + strings.Repeat("</a>", 254)
	r := moduletest.Run(t, spec(t, "xml"), value.NewDict("xmlstring", text, "xpath", "//c", "count", true),
		moduletest.Options{})
	if n, _ := r.Data.Get("count"); n != 1000 {
		t.Errorf("counted %v", n)
	}
}
