package inventory

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// section is a collection of hosts: the hosts of a group, or spec.hosts of a KubeKey inventory.
type section struct {
	group      string
	key        *yaml.Node // of the group, or of the collection where the file has no group for it
	body       *yaml.Node // the mapping of the group; nil if there is none
	hostsKey   *yaml.Node // "hosts"; nil if the group has no such key
	hosts      *yaml.Node // as in the file: an alias is not resolved
	step       int        // indentation of a level, in columns
	definesAll bool       // spec.hosts: where all hosts of the file have their variables
	names      bool       // a list of names
	jsonLike   bool       // keys are in double quotes
	padded     bool       // braces of hosts have blanks inside: { a: 1 }
}

// entry is a host in a section.
type entry struct {
	section   section
	key, vars *yaml.Node // vars is nil in lists of names
	index     int        // of key in the content of the collection
}

// layout is a parsed file: its sections in order, and where the text of each node ends.
type layout struct {
	file     *source.File
	offsets  []int // of the lines
	sections []section
	kubekey  bool
	bounds   map[*yaml.Node]int // the line of the next node behind a key or an item; 0 is the end of the file
	parents  map[string][]string
	groups   map[string]*yaml.Node // the mapping that has a group as a key, by the group's name
	anchors  map[*yaml.Node]bool   // nodes that aliases refer to
}

func (e *yamlEditor) layout() (*layout, error) {
	docs, ds := source.ParseYAML(e.file)
	if ds.Err() != nil {
		return nil, ds[0]
	}
	l := &layout{file: e.file, bounds: map[*yaml.Node]int{}, parents: map[string][]string{},
		groups: map[string]*yaml.Node{}, anchors: map[*yaml.Node]bool{}}
	l.offsets = append(l.offsets, 0)
	for i, b := range e.file.Text {
		if b == '\n' {
			l.offsets = append(l.offsets, i+1)
		}
	}
	if bytes.ContainsRune(e.file.Text, '\r') || bytes.ContainsAny(e.file.Text, "\u0085\u2028\u2029") {
		return nil, fmt.Errorf("the file has line ends of several kinds")
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 || docs[0].Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("the file has no groups")
	}
	root := docs[0].Content[0]
	l.bound(root, l.endOfDocument())
	if child(root, "kind") != nil && child(root, "spec") != nil {
		l.kubekey = true
		l.readSpec(root)
	} else {
		l.readGroups(root, "", 2)
	}
	return l, nil
}

// endOfDocument returns the line of the mark that ends the document, 0 if there is none.
func (l *layout) endOfDocument() int {
	for n := range l.offsets {
		if line := l.file.Line(n + 1); line == "..." || strings.HasPrefix(line, "... ") {
			return n + 1
		}
	}
	return 0
}

func (l *layout) bound(n *yaml.Node, end int) {
	if n.Kind == yaml.AliasNode {
		l.anchors[n.Alias] = true
		return
	}
	width := 1
	if n.Kind == yaml.MappingNode {
		width = 2
	}
	for i := 0; i+width <= len(n.Content); i += width {
		next := end
		if i+width < len(n.Content) {
			next = n.Content[i+width].Line
		}
		l.bounds[n.Content[i]] = next
		l.bound(n.Content[i], next)
		if width == 2 {
			l.bound(n.Content[i+1], next)
		}
	}
}

// valueOf returns the key of a mapping and its value as they are in the file.
func valueOf(n *yaml.Node, name string) (k, v *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func (l *layout) readGroups(n *yaml.Node, parent string, step int) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			continue
		}
		if parent != "" {
			l.parents[k.Value] = append(l.parents[k.Value], parent)
		}
		if l.groups[k.Value] == nil || v.Kind == yaml.MappingNode {
			l.groups[k.Value] = n
		}
		s := section{group: k.Value, key: k, step: step, jsonLike: k.Style == yaml.DoubleQuotedStyle}
		if v.Kind == yaml.MappingNode {
			s.body = v
			s.hostsKey, s.hosts = valueOf(v, "hosts")
			if len(v.Content) > 0 && v.Style&yaml.FlowStyle == 0 {
				s.step = max(1, v.Content[0].Column-k.Column)
			}
		}
		l.sections = append(l.sections, s)
		if _, children := valueOf(v, "children"); children != nil && children.Kind == yaml.MappingNode {
			l.readGroups(children, k.Value, s.step)
		}
	}
}

func (l *layout) readSpec(root *yaml.Node) {
	specKey, spec := valueOf(root, "spec")
	s := section{group: All, key: specKey, body: spec, step: 2, definesAll: true}
	s.hostsKey, s.hosts = valueOf(spec, "hosts")
	if spec.Kind == yaml.MappingNode && len(spec.Content) > 0 && spec.Style&yaml.FlowStyle == 0 {
		s.step = max(1, spec.Content[0].Column-specKey.Column)
	}
	s.jsonLike = specKey.Style == yaml.DoubleQuotedStyle
	l.sections = append(l.sections, s)
	_, groups := valueOf(spec, "groups")
	if groups == nil || groups.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(groups.Content); i += 2 {
		k, v := groups.Content[i], groups.Content[i+1]
		g := section{group: k.Value, key: k, step: s.step, names: true, jsonLike: s.jsonLike}
		if v.Kind == yaml.MappingNode {
			g.body = v
			g.hostsKey, g.hosts = valueOf(v, "hosts")
		}
		l.groups[k.Value] = groups
		l.sections = append(l.sections, g)
	}
}

// entries returns the hosts of a section. Those that it has by an alias or a merge are not among them.
func (s section) entries() []entry {
	if s.hosts == nil {
		return nil
	}
	var out []entry
	switch s.hosts.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(s.hosts.Content); i += 2 {
			if k := s.hosts.Content[i]; k.ShortTag() != "!!merge" {
				out = append(out, entry{s, k, s.hosts.Content[i+1], i})
			}
		}
	case yaml.SequenceNode:
		for i, k := range s.hosts.Content {
			out = append(out, entry{s, k, nil, i})
		}
	case yaml.ScalarNode:
		if !isNull(s.hosts) {
			out = append(out, entry{s, s.hosts, nil, -1})
		}
	}
	return out
}

func (l *layout) entries() []entry {
	var out []entry
	for _, s := range l.sections {
		out = append(out, s.entries()...)
	}
	return out
}

// section returns the section of a group that a host is added to: the one with hosts where the group is in several
// places.
func (l *layout) section(group string) (section, bool) {
	best, found := section{}, false
	rank := func(s section) int {
		switch {
		case len(s.entries()) > 0:
			return 3
		case s.hostsKey != nil:
			return 2
		case s.body != nil:
			return 1
		}
		return 0
	}
	for _, s := range l.sections {
		if s.group == group && !s.definesAll && (!found || rank(s) > rank(best)) {
			best, found = s, true
		}
	}
	return best, found
}

// within reports whether group is name or below it.
func (l *layout) within(group, name string) bool {
	return l.below(group, name, map[string]bool{})
}

func (l *layout) below(group, name string, seen map[string]bool) bool {
	if group == name || name == All {
		return true
	}
	seen[group] = true
	return slices.ContainsFunc(l.parents[group], func(p string) bool { return !seen[p] && l.below(p, name, seen) })
}

// definition returns the entry with the variables of a host, or its first one.
func (l *layout) definition(name string) (entry, bool) {
	var first entry
	found := false
	for _, e := range l.entries() {
		if e.key.Value != name || e.section.names {
			continue
		}
		if v := source.Resolve(e.vars); v != nil && v.Kind == yaml.MappingNode && len(v.Content) > 0 {
			return e, true
		}
		if !found {
			first, found = e, true
		}
	}
	return first, found
}

// neighbors returns the definitions of the hosts of a group and the groups below it; of all hosts if it has none.
func (l *layout) neighbors(group string) []entry {
	var own, all []entry
	seen := map[string]bool{}
	for _, e := range l.entries() {
		d, ok := l.definition(e.key.Value)
		if !ok {
			continue
		}
		if l.within(e.section.group, group) && !slices.ContainsFunc(own, func(o entry) bool { return o.key == d.key }) {
			own = append(own, d)
		}
		if !seen[e.key.Value] {
			seen[e.key.Value] = true
			all = append(all, d)
		}
	}
	if len(own) > 0 {
		return own
	}
	return all
}

// padded reports whether the variables of the last host in braces have blanks inside of them.
func (l *layout) padded(s section) bool {
	out := false
	for _, e := range s.entries() {
		if e.vars == nil || e.vars.Kind != yaml.MappingNode || len(e.vars.Content) == 0 {
			continue
		}
		if at := l.offset(e.vars); at+1 < len(l.file.Text) && l.file.Text[at] == '{' {
			out = l.file.Text[at+1] == ' '
		}
	}
	return out
}

// block reports whether a key is the first thing in its line: it is in a block mapping.
func (l *layout) block(key *yaml.Node) bool {
	before := l.lineText(key.Line)[:l.offset(key)-l.offsets[key.Line-1]]
	return strings.Trim(before, " ") == ""
}

// anchored returns a node below others whose anchor has aliases, nil if there is none.
func (l *layout) anchored(nodes ...*yaml.Node) *yaml.Node {
	for _, n := range nodes {
		if n == nil || n.Kind == yaml.AliasNode {
			continue
		}
		if n.Anchor != "" && l.anchors[n] {
			return n
		}
		if found := l.anchored(n.Content...); found != nil {
			return found
		}
	}
	return nil
}

func (l *layout) offset(n *yaml.Node) int {
	i := l.offsets[n.Line-1]
	for col := 1; col < n.Column && i < len(l.file.Text); col++ {
		_, size := utf8.DecodeRune(l.file.Text[i:])
		i += size
	}
	return i
}

// lineStart returns the offset of a line, the length of the text for the one behind the last.
func (l *layout) lineStart(n int) int {
	if n > len(l.offsets) {
		return len(l.file.Text)
	}
	return l.offsets[n-1]
}

// lineText returns a line without its end.
func (l *layout) lineText(n int) string {
	return strings.TrimSuffix(string(l.file.Text[l.lineStart(n):l.lineStart(n+1)]), "\n")
}

func (l *layout) lines(from, to int) []string {
	var out []string
	for n := from; n < to; n++ {
		out = append(out, l.lineText(n))
	}
	return out
}

// end returns the last line of an entry of a block mapping or list: comments that are indented deeper are part of it.
func (l *layout) end(key *yaml.Node) int {
	last := l.bounds[key] - 1
	if last < 0 {
		last = len(l.offsets)
	}
	for ; last > key.Line; last-- {
		line := l.lineText(last)
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !isComment(line) || len(blanks.FindString(line)) >= key.Column {
			break
		}
	}
	return last
}

func (l *layout) failAt(n *yaml.Node, format string, args ...any) error {
	d := source.Errorf(source.NodePos(l.file, n), format, args...)
	d.Width = utf8.RuneCountInString(n.Value)
	return d
}

// opening returns the offset of the brace or bracket that opens a collection, which is behind its anchor.
func (l *layout) opening(n *yaml.Node) int {
	at := l.offset(n)
	for at < len(l.file.Text) && l.file.Text[at] != '{' && l.file.Text[at] != '[' {
		at++
	}
	return at
}

func isComment(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") }
