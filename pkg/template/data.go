package template

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Data is a value of a playbook with the templates in its strings compiled. It is immutable and can be shared.
type Data struct {
	lit  any       // a static value
	tmpl *Template // a string with a template in it
	list []*Data
	keys []*Data // of a mapping
	vals []*Data
	kind kind

	vault source.Decrypter // decrypts the encrypted text in lit
	at    source.Pos       // of an encrypted text
}

type kind int

const (
	static kind = iota
	text
	list
	mapping
	sealed
)

// Literal wraps a value that has no templates, or whose templates must not be evaluated.
func Literal(v any) *Data { return &Data{lit: v} }

// Node compiles a YAML node. Strings tagged !unsafe are not templates.
func (e *Engine) Node(f *source.File, n *yaml.Node) (*Data, source.Diagnostics) {
	c := nodeCompiler{e: e, f: f, left: maxNodes}
	d := c.compile(n, 0)
	return d, c.ds
}

// maxNodes and maxDepth limit the size and depth of a file after its aliases are expanded.
const (
	maxNodes = 2_000_000
	maxDepth = 100
)

type nodeCompiler struct {
	e    *Engine
	f    *source.File
	ds   source.Diagnostics
	left int
}

func (c *nodeCompiler) fail(n *yaml.Node, err error) *Data {
	var d *source.Diagnostic
	var ye *value.YAMLError
	switch {
	case errors.As(err, &d):
		c.ds.Add(d)
	case errors.As(err, &ye):
		c.ds.Add(source.Errorf(source.Pos{File: c.f, Line: ye.Line, Col: ye.Col}, "%s", ye.Msg))
	default:
		c.ds.Add(source.Errorf(source.NodePos(c.f, n), "%s", err))
	}
	return Literal(nil)
}

func (c *nodeCompiler) compile(n *yaml.Node, depth int) *Data {
	if c.left--; c.left == 0 {
		return c.fail(n, errors.New("aliases expand to too much data"))
	}
	if c.left < 0 {
		return Literal(nil)
	}
	if depth > maxDepth {
		return c.fail(n, value.ErrTooDeep)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return c.compile(n.Content[0], depth)
	case yaml.AliasNode:
		return c.compile(n.Alias, depth+1)
	case yaml.SequenceNode:
		return c.sequence(n, depth)
	case yaml.MappingNode:
		return c.mapping(n, depth)
	}
	return c.scalar(n)
}

func (c *nodeCompiler) scalar(n *yaml.Node) *Data {
	switch {
	case n.Tag == "!unsafe":
		return Literal(n.Value)
	case value.IsSealed(n):
		return c.e.sealed(value.Sealed{Text: n.Value}, source.NodePos(c.f, n))
	}
	v, err := value.Scalar(n)
	if err != nil {
		return c.fail(n, err)
	}
	s, ok := v.(string)
	if !ok || !hasTemplate(s) {
		return Literal(v)
	}
	t, err := c.e.String(s, source.TextPos(c.f, n))
	if err != nil {
		return c.fail(n, err)
	}
	return &Data{kind: text, tmpl: t, lit: s}
}

// sealed wraps an encrypted text. The text is decrypted only when it is used, so that unused texts need no
// password. The decrypted text is never a template.
func (e *Engine) sealed(s value.Sealed, at source.Pos) *Data {
	return &Data{kind: sealed, lit: s, vault: e.tree.Vault, at: at}
}

// sealedAt returns the position of an encrypted text that was decoded earlier.
func sealedAt(s value.Sealed, at source.Pos) source.Pos {
	switch {
	case s.Line == 0:
		return at
	case at.File == nil && s.File != "":
		at.File = source.NewFile(s.File, nil)
	}
	return source.Pos{File: at.File, Line: s.Line, Col: s.Col}
}

// Mapping makes a mapping of compiled values.
func Mapping(keys []string, vals []*Data) *Data {
	d := &Data{kind: mapping, vals: vals}
	for _, k := range keys {
		d.keys = append(d.keys, Literal(k))
	}
	return d.fold()
}

// hasTemplate reports whether a string can contain a template.
func hasTemplate(s string) bool {
	return strings.Contains(s, "{{") || strings.Contains(s, "{%") || strings.Contains(s, "{#")
}

func (c *nodeCompiler) sequence(n *yaml.Node, depth int) *Data {
	out := &Data{kind: list, list: make([]*Data, len(n.Content))}
	for i, e := range n.Content {
		out.list[i] = c.compile(e, depth+1)
	}
	return out.fold()
}

func (c *nodeCompiler) mapping(n *yaml.Node, depth int) *Data {
	out := &Data{kind: mapping}
	var merges []*Data
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.ShortTag() == "!!merge" {
			merges = append(merges, c.compile(v, depth+1))
			continue
		}
		if k.Kind == yaml.MappingNode || k.Kind == yaml.SequenceNode {
			c.fail(k, errors.New("a list or mapping cannot be a key; a value that starts with {{ needs quotes"))
			continue
		}
		out.keys = append(out.keys, c.compile(k, depth+1))
		out.vals = append(out.vals, c.compile(v, depth+1))
	}
	for _, m := range merges {
		out.merge(m)
	}
	return out.fold()
}

// merge adds those keys of a merge key's mapping that do not exist yet.
func (d *Data) merge(from *Data) {
	switch {
	case from.kind == list:
		for _, m := range from.list {
			d.merge(m)
		}
	case from.kind == static:
		for _, m := range listOf(from.lit) {
			dict, _ := m.(*value.Dict)
			for k, v := range dict.All() {
				d.add(Literal(k), Literal(v))
			}
		}
	case from.kind == mapping:
		for i, k := range from.keys {
			d.add(k, from.vals[i])
		}
	}
}

func listOf(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

func (d *Data) add(k, v *Data) {
	for _, have := range d.keys {
		if value.Equal(have.lit, k.lit) {
			return
		}
	}
	d.keys = append(d.keys, k)
	d.vals = append(d.vals, v)
}

// fold turns a container without templates into one static value.
func (d *Data) fold() *Data {
	for _, group := range [][]*Data{d.list, d.keys, d.vals} {
		for _, e := range group {
			if e.kind != static {
				return d
			}
		}
	}
	if d.kind == list {
		out := make([]any, len(d.list))
		for i, e := range d.list {
			out[i] = e.lit
		}
		return Literal(out)
	}
	out := value.NewDict()
	for i, k := range d.keys {
		out.Set(k.lit, d.vals[i].lit)
	}
	return Literal(out)
}

// Data compiles a value that was already decoded; at is its position.
func (e *Engine) Data(v any, at source.Pos) (*Data, error) { return e.DataExcept(v, at, nil) }

// DataExcept is Data with a function that reports which strings are not templates. It gets the path of a string:
// the keys and indexes that lead to it. The function must not keep the slice.
func (e *Engine) DataExcept(v any, at source.Pos, unsafe func(path []string) bool) (*Data, error) {
	return e.data(v, at, unsafe, nil)
}

func (e *Engine) data(v any, at source.Pos, unsafe func([]string) bool, path []string) (*Data, error) {
	switch v := v.(type) {
	case value.Sealed:
		return e.sealed(v, sealedAt(v, at)), nil
	case string:
		if !hasTemplate(v) || unsafe != nil && unsafe(path) {
			return Literal(v), nil
		}
		t, err := e.String(v, at)
		if err != nil {
			return nil, err
		}
		return &Data{kind: text, tmpl: t, lit: v}, nil
	case []any:
		out := &Data{kind: list, list: make([]*Data, len(v))}
		for i, el := range v {
			d, err := e.data(el, at, unsafe, append(path, strconv.Itoa(i)))
			if err != nil {
				return nil, err
			}
			out.list[i] = d
		}
		return out.fold(), nil
	case *value.Dict:
		out := &Data{kind: mapping}
		for k, el := range v.All() {
			d, err := e.data(el, at, unsafe, append(path, value.Str(k)))
			if err != nil {
				return nil, err
			}
			out.keys = append(out.keys, Literal(k))
			out.vals = append(out.vals, d)
		}
		return out.fold(), nil
	}
	return Literal(v), nil
}

// Static returns the value if it contains no template; the bool is false otherwise.
func (d *Data) Static() (any, bool) { return d.lit, d.kind == static }

// Raw returns the value as written, without evaluating templates.
func (d *Data) Raw() any {
	switch d.kind {
	case list:
		out := make([]any, len(d.list))
		for i, e := range d.list {
			out[i] = e.Raw()
		}
		return out
	case mapping:
		out := value.NewDict()
		for i, k := range d.keys {
			out.Set(k.Raw(), d.vals[i].Raw())
		}
		return out
	}
	return d.lit
}

// IsContainer reports whether the data is a list or mapping with templates inside, whose members can be evaluated
// one at a time.
func (d *Data) IsContainer() bool { return d.kind == list || d.kind == mapping }

// IsMapping reports whether the data is written as a mapping.
func (d *Data) IsMapping() bool {
	_, is := d.lit.(*value.Dict)
	return d.kind == mapping || d.kind == static && is
}

// Member returns one member of a container.
func (d *Data) Member(key any) (*Data, bool) {
	if d.kind == static {
		switch c := d.lit.(type) {
		case *value.Dict:
			v, ok := c.Get(key)
			return Literal(v), ok
		case []any:
			if i, ok := index(key, len(c)); ok {
				return Literal(c[i]), true
			}
		}
		return nil, false
	}
	for i, k := range d.keys {
		if k.kind == static && value.Equal(k.lit, key) {
			return d.vals[i], true
		}
	}
	if i, ok := index(key, len(d.list)); ok && d.kind == list {
		return d.list[i], true
	}
	return nil, false
}

func index(key any, n int) (int, bool) {
	i, ok := key.(int)
	if !ok {
		return 0, false
	}
	if i < 0 {
		i += n
	}
	return i, i >= 0 && i < n
}

// Value evaluates all templates.
func (d *Data) Value(ctx context.Context, s expr.Scope) (any, error) {
	switch d.kind {
	case text:
		v, err := d.tmpl.Value(ctx, s)
		if err != nil {
			return nil, err
		}
		return value.Force(v)
	case list:
		out := make([]any, len(d.list))
		for i, e := range d.list {
			v, err := e.Value(ctx, s)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case mapping:
		return d.dict(ctx, s)
	case sealed:
		plain, err := source.Decrypt(d.vault, d.at, []byte(d.lit.(value.Sealed).Text))
		return string(plain), err
	}
	return d.lit, nil
}

func (d *Data) dict(ctx context.Context, s expr.Scope) (any, error) {
	out := value.NewDict()
	for i, k := range d.keys {
		key, err := k.Value(ctx, s)
		if err != nil {
			return nil, err
		}
		if !isKey(key) {
			return nil, fmt.Errorf("a %s cannot be a key", value.TypeName(key))
		}
		v, err := d.vals[i].Value(ctx, s)
		if err != nil {
			return nil, err
		}
		out.Set(key, v)
	}
	return out, nil
}

func isKey(v any) bool {
	switch v.(type) {
	case nil, bool, int, float64, string:
		return true
	}
	return false
}

// TemplatedKeys reports whether a key of the mapping is a template.
func (d *Data) TemplatedKeys() bool {
	for _, k := range d.keys {
		if k.kind != static {
			return true
		}
	}
	return false
}
