// Package convert converts the config and the inventory of other tools to those of kk. Tables of the builtin project
// describe what each key becomes; the package applies them and reports every problem with its position.
package convert

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/config"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// What a file is converted to.
const (
	ToConfig    = "config"
	ToInventory = "inventory"
)

// Converter converts files with the tables of a project.
type Converter struct {
	tables    []*table
	schema    *config.Schema
	templates *template.Engine
}

// New reads the tables in a folder. The schema describes the config to convert to.
func New(tree source.Tree, dir string, schema *config.Schema) (*Converter, error) {
	c := &Converter{schema: schema, templates: template.New(expr.New(expr.Options{}, library.Standard()), tree)}
	entries, err := tree.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		t, err := readTable(tree, source.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		c.tables = append(c.tables, t)
	}
	return c, nil
}

// Config converts a config. Without errors, the result is valid for the schema.
func (c *Converter) Config(f *source.File) (string, source.Diagnostics) {
	j, ds := c.open(f, ToConfig)
	if ds.Err() != nil {
		return "", ds
	}
	return j.config()
}

// Inventory converts an inventory.
func (c *Converter) Inventory(f *source.File) (string, source.Diagnostics) {
	j, ds := c.open(f, ToInventory)
	if ds.Err() != nil {
		return "", ds
	}
	return j.inventory()
}

// job is the conversion of one file.
type job struct {
	*Converter
	table *table
	file  *source.File
	spec  *yaml.Node // without aliases and merges
	ds    source.Diagnostics

	given   *value.Dict // what the file sets, by path, for expressions
	out     *yaml.Node
	notes   []defaulted
	ignored *value.Dict // reasons with the list of keys
}

// defaulted is a key that the file does not set, and whose default differs.
type defaulted struct{ path, value, own string }

// open parses a file and finds its table.
func (c *Converter) open(f *source.File, to string) (*job, source.Diagnostics) {
	docs, ds := source.ParseYAML(f)
	if ds.Err() != nil {
		return nil, ds
	}
	var fits []*table
	var doc *yaml.Node
	for _, d := range docs {
		n := source.Resolve(d)
		if t := c.tableOf(n, to); t != nil {
			fits, doc = append(fits, t), n
		}
	}
	switch {
	case len(fits) == 0:
		return nil, source.Diagnostics{c.notForeign(f, docs, to)}
	case len(fits) > 1:
		return nil, source.Diagnostics{source.Errorf(source.NodePos(f, doc), "a second document of kind %s",
			text(doc, "kind")).WithHelp("convert one cluster at a time: put each into its own file")}
	}
	j := &job{Converter: c, table: fits[0], file: f, out: mapping(), ignored: value.NewDict()}
	copier := copier{file: f, left: maxNodes}
	j.spec = copier.copy(child(doc, "spec"), 0)
	if copier.problem != nil {
		return nil, source.Diagnostics{copier.problem}
	}
	if j.spec == nil || isNull(j.spec) {
		j.spec = mapping()
	}
	if j.spec.Kind != yaml.MappingNode {
		return nil, source.Diagnostics{source.Errorf(source.NodePos(f, j.spec), "spec must be a mapping")}
	}
	var err error
	if j.given, err = paths(j.spec, f.Name); err != nil {
		return nil, source.DiagnosticsOf(err)
	}
	return j, nil
}

// paths returns the values in a mapping by their paths: a, a.b, a.b.c. Those that are empty are not set.
func paths(n *yaml.Node, file string) (*value.Dict, error) {
	v, err := value.FromYAMLFile(n, file)
	if err != nil {
		return nil, err
	}
	out := value.NewDict()
	var collect func(n *yaml.Node, d *value.Dict, prefix string)
	collect = func(n *yaml.Node, d *value.Dict, prefix string) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i].Value
			v, ok := d.Get(key)
			if !ok || isEmpty(n.Content[i+1]) {
				continue
			}
			out.Set(prefix+key, v)
			if inner, isDict := v.(*value.Dict); isDict {
				collect(n.Content[i+1], inner, prefix+key+".")
			}
		}
	}
	if d, isDict := v.(*value.Dict); isDict {
		collect(n, d, "")
	}
	return out, nil
}

// tableOf returns the table for a document, or nil if there is none.
func (c *Converter) tableOf(doc *yaml.Node, to string) *table {
	kind, version := text(doc, "kind"), text(doc, "apiVersion")
	for _, t := range c.tables {
		d := t.Documents[to]
		if d.Kind != "" && d.Kind == kind && slices.Contains(d.Versions, version) {
			return t
		}
	}
	return nil
}

// notForeign returns the error for a file that no table is for.
func (c *Converter) notForeign(f *source.File, docs []*yaml.Node, to string) *source.Diagnostic {
	at := source.Pos{File: f, Line: 1, Col: 1}
	var kinds []string
	for _, t := range c.tables {
		if d := t.Documents[to]; d.Kind != "" {
			kinds = append(kinds, "kind: "+d.Kind+" of "+t.From)
		}
	}
	for _, d := range docs {
		n := source.Resolve(d)
		if k := child(n, "kind"); k != nil {
			at = source.NodePos(f, k)
			if other := c.otherCommand(n, to); other != "" {
				return source.Errorf(at, "kind %s has no %s to convert", k.Value, to).
					WithHelp("run: kk convert %s %s", other, f.Name)
			}
		}
	}
	return source.Errorf(at, "no %s that can be converted", to).WithHelp("kk converts %s", strings.Join(kinds, ", and "))
}

// otherCommand returns what else a document can be converted to.
func (c *Converter) otherCommand(doc *yaml.Node, to string) string {
	for _, other := range []string{ToConfig, ToInventory} {
		if other != to && c.tableOf(doc, other) != nil {
			return other
		}
	}
	return ""
}

// Foreign returns the error for a config of another tool, or nil if the document is none: if it sets no key of the
// other tool that kk does not have. whole is false if there is only one such key: then it may be a mistake in a config
// of kk.
func (c *Converter) Foreign(f *source.File) (d *source.Diagnostic, whole bool) {
	docs, ds := source.ParseYAML(f)
	if ds.Err() != nil || len(docs) == 0 {
		return nil, false
	}
	doc := source.Resolve(docs[0])
	t := c.tableOf(doc, ToConfig)
	if t == nil {
		return nil, false
	}
	keys := c.foreignKeys(t, source.Resolve(child(doc, "spec")), "")
	if len(keys) == 0 {
		return nil, false
	}
	first := keys[0]
	d = source.Errorf(source.NodePos(f, first.node), "%s is a key of %s: kk has no such key", first.path, t.From).
		WithHelp("if the file was written for %s, convert it: kk convert config %s -o NEW", t.From, f.Name)
	d.Width = utf8.RuneCountInString(first.node.Value)
	return d, len(keys) > 1
}

// Unused returns warnings for keys of an inventory of another tool that kk reads as variables, and does not use. Each
// key is reported once.
func (c *Converter) Unused(f *source.File) source.Diagnostics {
	docs, ds := source.ParseYAML(f)
	if ds.Err() != nil || len(docs) != 1 {
		return nil
	}
	doc := source.Resolve(docs[0])
	t := c.tableOf(doc, ToInventory)
	if t == nil || !t.Inventory.Keep {
		return nil
	}
	u := &unused{table: t, file: f, seen: map[string]bool{}}
	spec := source.Resolve(child(doc, "spec"))
	if hosts := source.Resolve(child(spec, t.Inventory.Hosts)); hosts != nil && hosts.Kind == yaml.MappingNode {
		for i := 1; i < len(hosts.Content); i += 2 {
			u.host(source.Resolve(hosts.Content[i]), "")
		}
	}
	if keys := c.foreignKeys(t, source.Resolve(child(spec, t.Inventory.Vars)), ""); len(keys) > 0 {
		u.warn(keys[0].node, keys[0].path, "kk has no such key")
	}
	return u.ds
}

// unused collects warnings.
type unused struct {
	table *table
	file  *source.File
	seen  map[string]bool
	ds    source.Diagnostics
}

func (u *unused) host(n *yaml.Node, prefix string) {
	if n.Kind != yaml.MappingNode || strings.Count(prefix, ".") > maxDepth {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], source.Resolve(n.Content[i+1])
		path := prefix + k.Value
		for _, r := range u.table.Inventory.Keys[path] {
			switch {
			case r.None != "":
				u.warn(k, path, r.None)
			case r.To != "" && prefix != "connector.":
				u.warn(k, path, "kk has "+r.To)
			}
		}
		if isGroup(u.table.Inventory.Keys, path) {
			u.host(v, path+".")
		}
	}
}

func (u *unused) warn(k *yaml.Node, path, why string) {
	if u.seen[path] {
		return
	}
	u.seen[path] = true
	d := source.Warningf(source.NodePos(u.file, k), "%s of %s is not used: %s", path, u.table.From, why).
		WithHelp("convert the inventory: kk convert inventory %s -o NEW", u.file.Name)
	d.Width = utf8.RuneCountInString(k.Value)
	u.ds.Add(d)
}

// foreignKey is a key of another tool that kk's config does not have.
type foreignKey struct {
	node *yaml.Node
	path string
}

func (c *Converter) foreignKeys(t *table, n *yaml.Node, prefix string) []foreignKey {
	if n == nil || n.Kind != yaml.MappingNode || strings.Count(prefix, ".") > maxDepth {
		return nil
	}
	var keys []foreignKey
	for i := 0; i+1 < len(n.Content); i += 2 {
		path := prefix + n.Content[i].Value
		v := source.Resolve(n.Content[i+1])
		known := c.schema.Describes(strings.Split(path, ".")...)
		_, row := t.Config[path]
		group := t.isGroup(path)
		switch {
		case !known && (row || group && v.Kind == yaml.MappingNode && len(v.Content) > 0):
			keys = append(keys, foreignKey{n.Content[i], path})
		case group:
			keys = append(keys, c.foreignKeys(t, v, path+".")...)
		}
	}
	return keys
}

// fail reports a problem at a node.
func (j *job) fail(n *yaml.Node, help, format string, args ...any) {
	d := source.Errorf(source.NodePos(j.file, n), format, args...)
	d.Help = help
	if n.Kind == yaml.ScalarNode {
		d.Width = utf8.RuneCountInString(n.Value)
	}
	j.ds.Add(d)
}

// scope has the variables of the expressions in tables: value and given.
type scope struct{ vars *value.Dict }

// Lookup implements expr.Scope.
func (s scope) Lookup(name string) (any, bool, error) {
	v, ok := s.vars.Get(name)
	return v, ok, nil
}

// evaluate returns the value of a node of a table as a node. A node without templates is itself.
func (j *job) evaluate(n, of *yaml.Node) (*yaml.Node, error) {
	data, ds := j.templates.Node(j.table.file, n)
	if err := ds.Err(); err != nil {
		return nil, err
	}
	vars := value.NewDict("given", j.given)
	if of != nil {
		v, err := value.FromYAMLFile(of, j.file.Name)
		if err != nil {
			return nil, err
		}
		vars.Set("value", v)
	}
	v, err := data.Value(context.Background(), scope{vars})
	if err != nil {
		return nil, err
	}
	if v == "" && strings.Contains(n.Value, "{%") {
		v = nil // none as the result of a template with statements
	}
	return nodeOf(v, of)
}

// evaluateText evaluates a template of a table to lines of text. Empty lines are skipped.
func (j *job) evaluateText(template string, of *yaml.Node) ([]string, error) {
	n, err := j.evaluate(scalar(template), of)
	if err != nil || n == nil {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(n.Value) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out, nil
}

// encode formats a mapping as YAML, below a comment.
func encode(head string, n *yaml.Node) (string, error) {
	var b bytes.Buffer
	b.WriteString(head)
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return "", err
	}
	return b.String(), enc.Close()
}
