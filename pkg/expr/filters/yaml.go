package filters

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// yamlLayout has the layout options of to_yaml and to_nice_yaml. The output is that of PyYAML with libyaml, whose
// emitter differs slightly from PyYAML's own.
type yamlLayout struct {
	indent, width    int
	sortKeys         bool
	flow             *bool // nil: only collections of scalars are in flow style
	unicode          bool
	start, end       bool // write --- and ...
	resolvesToOthers *regexp.Regexp
}

func toYAML(indent int, flow any) func(*expr.Call, any, *expr.Bound) (any, error) {
	// A plain text that matches would be parsed as another type.
	others := regexp.MustCompile(`^(?:` + strings.Join([]string{
		`yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF`,
		`[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?`,
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)`,
		`[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+`,
		`<<|=|~|null|Null|NULL|`,
		`[0-9]{4}-[0-9]{2}-[0-9]{2}`,
		`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?`,
	}, "|") + `)$`)
	return func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
		l := yamlLayout{
			indent: p.Int("indent", indent), width: 80, sortKeys: p.Flag("sort_keys", true),
			unicode: p.Flag("allow_unicode", true), start: p.Flag("explicit_start", false),
			end: p.Flag("explicit_end", false), resolvesToOthers: others,
		}
		if l.indent < 2 || l.indent > 9 {
			l.indent = 2
		}
		if w, ok := expr.FloatOf(p.Value("width", nil)); ok && w > float64(2*l.indent) {
			l.width = int(math.Min(w, math.MaxInt32))
		}
		if v := p.Value("default_flow_style", flow); v != nil {
			b := value.Truth(v)
			l.flow = &b
		}
		if p.Has("default_style") && p.Value("default_style", nil) != nil {
			return nil, fmt.Errorf("argument default_style is not supported")
		}
		return l.document(in)
	}
}

func (l yamlLayout) document(v any) (string, error) {
	w := &yamlWriter{yamlLayout: l, level: -1, blank: true, fresh: true}
	if l.start {
		w.indicator("---", true, false, false)
	}
	root, err := l.node(v, 0)
	if err != nil {
		return "", err
	}
	w.node(root, inRoot)
	w.newline()
	if l.end {
		w.indicator("...", true, false, false)
		w.newline()
	}
	return w.out.String(), nil
}

// yamlNode is a value prepared for writing: a scalar, a list, or alternating keys and values.
type yamlNode struct {
	kind  yamlKind
	text  []rune
	str   bool // a text, which must not be parsed as another type in plain style
	flow  bool
	nodes []*yamlNode
}

type yamlKind int

const (
	yamlScalar yamlKind = iota
	yamlList
	yamlDict
)

func (l yamlLayout) node(v any, depth int) (*yamlNode, error) {
	if depth > expr.MaxDepth {
		return nil, value.ErrTooDeep
	}
	v, err := expr.Defined(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case []any:
		return l.collection(yamlList, v, depth)
	case *value.Dict:
		return l.collection(yamlDict, l.pairs(v), depth)
	}
	return scalarNode(v)
}

func scalarNode(v any) (*yamlNode, error) {
	switch v := v.(type) {
	case nil:
		return &yamlNode{text: []rune("null")}, nil
	case bool:
		return &yamlNode{text: []rune(strconv.FormatBool(v))}, nil
	case int:
		return &yamlNode{text: []rune(strconv.Itoa(v))}, nil
	case float64:
		return &yamlNode{text: []rune(yamlFloat(v))}, nil
	case time.Time:
		return &yamlNode{text: []rune(value.Str(v))}, nil
	case string:
		return &yamlNode{text: []rune(v), str: true}, nil
	}
	return nil, fmt.Errorf("%s cannot be written as YAML", expr.DescribeType(v))
}

func yamlFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return ".nan"
	case math.IsInf(f, 1):
		return ".inf"
	case math.IsInf(f, -1):
		return "-.inf"
	}
	s := value.Float(f)
	if !strings.Contains(s, ".") {
		s = strings.Replace(s, "e", ".0e", 1)
	}
	return s
}

// pairs returns alternating keys and values. Keys that cannot be sorted keep their order.
func (l yamlLayout) pairs(d *value.Dict) []any {
	keys := d.Keys()
	if l.sortKeys {
		sorted := make([]keyed, len(keys))
		for i, k := range keys {
			sorted[i] = keyed{k, k}
		}
		if sortKeyed(sorted, false) == nil {
			keys = unkey(sorted)
		}
	}
	out := make([]any, 0, 2*len(keys))
	for _, k := range keys {
		v, _ := d.Get(k)
		out = append(out, k, v)
	}
	return out
}

func (l yamlLayout) collection(kind yamlKind, parts []any, depth int) (*yamlNode, error) {
	n := &yamlNode{kind: kind, flow: true}
	for _, part := range parts {
		sub, err := l.node(part, depth+1)
		if err != nil {
			return nil, err
		}
		n.flow = n.flow && sub.kind == yamlScalar
		n.nodes = append(n.nodes, sub)
	}
	if l.flow != nil {
		n.flow = *l.flow
	}
	return n, nil
}

// yamlPlace is the position of a node in its parent.
type yamlPlace int

const (
	inRoot yamlPlace = iota
	inList
	inDict // a value, or a key of more than one line
	asKey
)

// yamlWriter writes nodes and tracks the current position on the line.
type yamlWriter struct {
	yamlLayout
	out       strings.Builder
	column    int
	level     int  // blanks before a line of the current collection; -1 outside of any
	flowLevel int  // number of open flow collections
	blank     bool // the last output was a blank or the start of a line
	fresh     bool // the line contains only blanks and indicators so far
}

func (w *yamlWriter) put(s string) {
	w.out.WriteString(s)
	w.column += len([]rune(s))
}

func (w *yamlWriter) indicator(s string, needBlank, blankAfter, fresh bool) {
	if needBlank && !w.blank {
		w.put(" ")
	}
	w.put(s)
	w.blank = blankAfter
	w.fresh = w.fresh && fresh
}

func (w *yamlWriter) lineBreak(r rune) {
	w.out.WriteRune(r)
	w.blank, w.fresh, w.column = true, true, 0
}

// newline moves to the indentation of the current level, on a new line unless the current line is still empty up to
// there.
func (w *yamlWriter) newline() {
	indent := max(w.level, 0)
	if !w.fresh || w.column > indent || w.column == indent && !w.blank {
		w.lineBreak('\n')
	}
	if w.column < indent {
		w.blank = true
		w.put(strings.Repeat(" ", indent-w.column))
	}
}

// deeper returns the indentation of the next level. A list in a dict is not indented.
func (w *yamlWriter) deeper(flow, same bool) int {
	switch {
	case w.level < 0 && flow:
		return w.indent
	case w.level < 0:
		return 0
	case same:
		return w.level
	}
	return w.level + w.indent
}

func (w *yamlWriter) node(n *yamlNode, at yamlPlace) {
	outer := w.level
	defer func() { w.level = outer }()
	switch {
	case n.kind == yamlScalar:
		w.level = w.deeper(true, false)
		w.scalar(n, at)
	case w.flowLevel > 0 || n.flow || len(n.nodes) == 0:
		w.level = w.deeper(true, false)
		w.flowCollection(n)
	case n.kind == yamlList:
		w.level = w.deeper(false, at == inDict && !w.fresh)
		w.blockList(n)
	default:
		w.level = w.deeper(false, false)
		w.blockDict(n)
	}
}

func (w *yamlWriter) blockList(n *yamlNode) {
	for _, item := range n.nodes {
		w.newline()
		w.indicator("-", true, false, true)
		w.node(item, inList)
	}
}

func (w *yamlWriter) blockDict(n *yamlNode) {
	for i := 0; i < len(n.nodes); i += 2 {
		w.newline()
		if isSimpleKey(n.nodes[i]) {
			w.node(n.nodes[i], asKey)
			w.indicator(":", false, false, false)
		} else {
			w.indicator("?", true, false, true)
			w.node(n.nodes[i], inDict)
			w.newline()
			w.indicator(":", true, false, true)
		}
		w.node(n.nodes[i+1], inDict)
	}
}

// maxSimpleKey is the maximum size, in bytes, of a key that is written without a question mark.
const maxSimpleKey = 128

func isSimpleKey(n *yamlNode) bool {
	return len(string(n.text)) <= maxSimpleKey && !slices.ContainsFunc(n.text, isBreak)
}

func (w *yamlWriter) flowCollection(n *yamlNode) {
	open, end, step := "[", "]", 1
	if n.kind == yamlDict {
		open, end, step = "{", "}", 2
	}
	w.indicator(open, true, true, false)
	w.flowLevel++
	for i := 0; i < len(n.nodes); i += step {
		if i > 0 {
			w.indicator(",", false, false, false)
		}
		if w.column > w.width {
			w.newline()
		}
		if n.kind == yamlDict {
			w.flowPair(n.nodes[i], n.nodes[i+1])
		} else {
			w.node(n.nodes[i], inList)
		}
	}
	w.flowLevel--
	w.indicator(end, false, false, false)
}

func (w *yamlWriter) flowPair(key, v *yamlNode) {
	if isSimpleKey(key) {
		w.node(key, asKey)
		w.indicator(":", false, false, false)
	} else {
		w.indicator("?", true, false, false)
		w.node(key, inDict)
		if w.column > w.width {
			w.newline()
		}
		w.indicator(":", true, false, false)
	}
	w.node(v, inDict)
}
