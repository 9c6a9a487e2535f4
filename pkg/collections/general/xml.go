package general

import (
	"context"
	"fmt"
	"strings"

	"github.com/antchfx/xmlquery"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/module/file"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// XML is the module xml.
type XML struct {
	file.Attributes
	Path         string            `kk:"path,path,alias=dest|file" doc:"file on the host"`
	Text         string            `kk:"xmlstring" doc:"a document to work on instead of a file; the new document is in the result"`
	XPath        string            `kk:"xpath" doc:"XPath 1.0 expression for the nodes to work on"`
	Namespaces   map[string]string `kk:"namespaces" doc:"prefixes that xpath and the names of children use, and their URIs"`
	State        string            `kk:"state,alias=ensure" default:"present" choices:"absent,present" doc:"absent removes the nodes"`
	Attribute    string            `kk:"attribute" doc:"attribute to set to value. Default: value is the text of the nodes"`
	Value        *string           `kk:"value" doc:"text of the nodes, or of attribute. If xpath finds nothing and is simple (names, @name, [name='text'], [@name='text']), the nodes are created"`
	AddChildren  []any             `kk:"add_children" doc:"elements to add to the nodes, each time that the task runs: a name, or a dict of the name and its text, or of the name and a dict of attributes, in which _ is a list of children and +value is text; with input_type: xml, texts"`
	SetChildren  []any             `kk:"set_children" doc:"elements to replace all children of the nodes, as in add_children"`
	InputType    string            `kk:"input_type" default:"yaml" choices:"xml,yaml" doc:"how children are described"`
	InsertBefore bool              `kk:"insertbefore" default:"no" doc:"put add_children before the first of the nodes instead of into them"`
	InsertAfter  bool              `kk:"insertafter" default:"no" doc:"put add_children after the last of the nodes instead of into them"`
	Content      string            `kk:"content" choices:"attribute,text" doc:"return the attributes or the text of the nodes"`
	Count        bool              `kk:"count" default:"no" doc:"return the number of nodes"`
	PrintMatch   bool              `kk:"print_match" default:"no" doc:"return the paths of the nodes"`
	Pretty       bool              `kk:"pretty_print" default:"no" doc:"indent the document"`
	StripCDATA   bool              `kk:"strip_cdata_tags" default:"no" doc:"turn CDATA sections into plain text"`
	Backup       bool              `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
}

func xmlSpec() module.Spec {
	return module.Spec{
		Name: "xml", Collection: "community.general",
		Summary: "Changes parts of an XML file, or returns them.",
		Notes: []string{
			"The file is read and changed on the control node, so hosts need no library. It is written only if something " +
				"changed, with UTF-8 in the XML declaration and, unless it is indented, without a final line break; comments, " +
				"blanks, CDATA and the order of attributes are preserved.",
			"Entities that a document type declares are not expanded: such a document is rejected.",
		},
		Examples: []string{
			"- name: Set the port\n  xml:\n    path: /etc/app/server.xml\n" +
				"    xpath: /Server/Connector[@protocol='HTTP/1.1']\n    attribute: port\n    value: 8080",
			"- name: Set the list of users\n  xml:\n    path: /etc/app/users.xml\n    xpath: /users\n    set_children:\n" +
				"      - user: {name: ada, _: [{role: admin}]}\n      - user: {name: bob}\n    pretty_print: true",
			"- name: Read the version\n  xml:\n    path: /srv/app/pom.xml\n    xpath: /m:project/m:version\n" +
				"    namespaces: {m: http://maven.apache.org/POM/4.0.0}\n    content: text\n  register: version",
		},
		Returns: append([]module.Return{
			{Key: "actions", Type: "dict", Doc: "xpath, namespaces and state as they were given"},
			{Key: "count", Type: "int", Doc: "number of nodes that xpath found, with count"},
			{Key: "matches", Type: "list", Doc: "requested by content or print_match: for each node a dict of its name and " +
				"its text or attributes, or its path"},
			{Key: "xmlstring", Type: "str", Doc: "the document, if it was given as xmlstring"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup"},
		}, file.FileReturns()...),
		New: func() module.Runner { return new(XML) },
	}
}

// Rules implements schema.Ruled.
func (*XML) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("path", "xmlstring"),
		schema.AtLeastOne("path", "xmlstring"),
		schema.AtMostOne("add_children", "content", "count", "print_match", "set_children", "value"),
		schema.AtMostOne("insertbefore", "insertafter"),
		schema.Needs("value").With("attribute").If("state",
			"present").Says("missing parameter(s) required by 'attribute': value"),
		schema.Needs("xpath").If("state", "absent"),
		schema.Needs("xpath").With("add_children", "content", "count", "print_match", "set_children", "value"),
	}
}

// Run implements module.Runner.
func (m *XML) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	text := m.Text
	var e *file.Edit
	if m.Path != "" {
		var err error
		if e, err = file.OpenEdit(ctx, c, m.Path, &m.Attributes, false); err != nil {
			return module.Result{}, err
		}
		text = e.Text
	}
	doc, err := parseXML(text)
	if err != nil {
		return module.Result{}, fmt.Errorf("read %s: %w", m.name(), err)
	}
	before := printXML(doc, m.Pretty)
	data := value.NewDict("actions",
		value.NewDict("xpath", m.XPath, "namespaces", value.Of(m.Namespaces), "state", m.State))
	if err := m.work(doc, data); err != nil {
		return module.Result{}, err
	}
	if m.asks() {
		return module.Result{Data: data}, nil
	}
	after := printXML(doc, m.Pretty)
	if after == before {
		after = text // only the formatting differs
	}
	if e != nil {
		return e.Save(ctx, c, &m.Attributes, file.Edited{Text: after, Touched: true, Backup: m.Backup, Data: data})
	}
	data.Set("xmlstring", after)
	r := module.Result{Changed: after != text, Data: data}
	if c.Diff && r.Changed {
		r.Diff = []event.Diff{file.TextDiff(file.Side{Exists: true, Text: []byte(text)}, file.Side{Text: []byte(after)})}
	}
	return r, nil
}

func (m *XML) name() string {
	if m.Path == "" {
		return "xmlstring"
	}
	return m.Path
}

// asks reports whether the task is read-only.
func (m *XML) asks() bool { return m.Count || m.PrintMatch || m.Content != "" }

// work applies the task to the document.
func (m *XML) work(doc *xmlquery.Node, data *value.Dict) error {
	if m.StripCDATA {
		stripCDATA(doc)
	}
	if m.XPath != "" {
		if err := m.change(&xmlDoc{doc, m.Namespaces}, data); err != nil {
			return err
		}
	}
	if m.Pretty {
		indentXML(doc)
	}
	return nil
}

func (m *XML) change(x *xmlDoc, data *value.Dict) error {
	nodes, err := x.find(m.XPath)
	if err != nil {
		return err
	}
	switch {
	case m.asks():
		return m.tell(nodes, data)
	case m.State == "absent":
		m.remove(nodes)
		return nil
	case m.Value != nil:
		return m.setValue(x, nodes)
	case m.SetChildren == nil && len(m.AddChildren) == 0:
		if len(nodes) == 0 && !m.Pretty {
			_, err = x.make(m.XPath)
		}
		return err
	}
	if len(nodes) == 0 {
		return fmt.Errorf("xpath %s finds no node in %s", m.XPath, m.name())
	}
	if len(m.AddChildren) > 0 {
		return m.addChildren(x, nodes)
	}
	return m.setChildren(x, nodes)
}

func (m *XML) tell(nodes []*xmlquery.Node, data *value.Dict) error {
	matches := []any{}
	for _, n := range nodes {
		switch {
		case m.PrintMatch:
			matches = append(matches, xmlPath(n))
		case m.Content == "attribute":
			attrs := value.NewDict()
			for _, a := range n.Attr {
				attrs.Set(attrName(a), a.Value)
			}
			matches = append(matches, value.NewDict(tagOf(n), attrs))
		case m.Content == "text":
			matches = append(matches, value.NewDict(tagOf(n), n.InnerText()))
		}
	}
	data.Set("count", len(nodes))
	if !m.Count {
		data.Set("matches", matches)
	}
	return nil
}

func (m *XML) remove(nodes []*xmlquery.Node) {
	for _, n := range nodes {
		switch {
		case n.Type == xmlquery.AttributeNode:
			n.Parent.RemoveAttr(attributeOf(n))
		case m.Attribute != "":
			n.RemoveAttr(m.Attribute)
		default:
			removeTail(n)
			xmlquery.RemoveFromTree(n)
		}
	}
}

func (m *XML) setValue(x *xmlDoc, nodes []*xmlquery.Node) error {
	if len(nodes) == 0 {
		var err error
		if nodes, err = x.make(m.XPath); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		switch {
		case n.Type == xmlquery.AttributeNode:
			n.Parent.SetAttr(attributeOf(n), *m.Value)
		case m.Attribute != "":
			n.SetAttr(m.Attribute, *m.Value)
		case n.Type == xmlquery.TextNode || n.Type == xmlquery.CharDataNode:
			n.Data = *m.Value
		default:
			setText(n, *m.Value)
		}
	}
	return nil
}

func (m *XML) addChildren(x *xmlDoc, nodes []*xmlquery.Node) error {
	switch {
	case m.InsertBefore:
		nodes = nodes[:1]
	case m.InsertAfter:
		nodes = nodes[len(nodes)-1:]
	}
	for _, n := range nodes {
		children, err := m.build(x, m.AddChildren)
		if err != nil {
			return err
		}
		last := n
		if m.InsertAfter && n.NextSibling != nil && n.NextSibling.Type == xmlquery.TextNode {
			last = n.NextSibling
		}
		for _, child := range children {
			switch {
			case m.InsertBefore:
				insertBefore(n, child)
			case m.InsertAfter:
				xmlquery.AddImmediateSibling(last, child)
				last = child
			default:
				xmlquery.AddChild(n, child)
			}
		}
	}
	return nil
}

// setChildren replaces the child elements of each node, unless they are equal.
func (m *XML) setChildren(x *xmlDoc, nodes []*xmlquery.Node) error {
	for _, n := range nodes {
		children, err := m.build(x, m.SetChildren)
		if err != nil {
			return err
		}
		if sameElements(elements(n), children) {
			continue
		}
		for _, child := range elements(n) {
			removeTail(child)
			xmlquery.RemoveFromTree(child)
		}
		for _, child := range children {
			xmlquery.AddChild(n, child)
		}
	}
	return nil
}

// build creates elements from their descriptions.
func (m *XML) build(x *xmlDoc, described []any) ([]*xmlquery.Node, error) {
	var all []*xmlquery.Node
	for _, d := range described {
		if m.InputType == "xml" {
			text, ok := d.(string)
			doc, err := parseXML(text)
			if !ok || err != nil {
				return nil, fmt.Errorf("a child must be an XML element, got %s", value.Repr(d))
			}
			for _, n := range elements(doc) {
				xmlquery.RemoveFromTree(n)
				all = append(all, n)
			}
			continue
		}
		n, err := x.element(d)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// sameElements compares elements as they would be printed.
func sameElements(a, b []*xmlquery.Node) bool {
	var left, right strings.Builder
	for _, n := range a {
		writeXML(&left, n, true)
	}
	for _, n := range b {
		writeXML(&right, n, true)
	}
	return left.String() == right.String()
}
