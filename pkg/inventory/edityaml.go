package inventory

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// yamlEditor edits YAML and JSON inventories, and those of KubeKey. It finds the places in the tree of nodes and
// changes the text there, so that all other lines stay byte by byte.
type yamlEditor struct{ file *source.File }

func (e *yamlEditor) text() *source.File { return e.file }

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

func (e *yamlEditor) define(a Addition) error {
	l, err := e.layout()
	if err != nil {
		return err
	}
	near := l.neighbors(a.Group)
	var like *entry
	if len(near) > 0 {
		like = &near[len(near)-1]
	}
	target, ok := l.section(a.Group)
	if ok && !l.kubekey && like != nil && l.within(a.Group, like.section.group) && like.section.group != a.Group {
		target = like.section
	}
	all, hasAll := l.section(All)
	switch {
	case l.kubekey:
		target, ok = l.sections[0], true
	case like == nil && hasAll && all.hostsKey != nil:
		target, ok = all, true
	}
	if !ok {
		if err := e.addGroup(l, a); err != nil {
			return err
		}
		return e.define(a)
	}
	if err := e.insert(l, target, a.Name, l.vars(a, near)); err != nil {
		return err
	}
	if target.group == a.Group && !target.definesAll {
		return nil
	}
	return e.join(a)
}

func (e *yamlEditor) join(a Addition) error {
	l, err := e.layout()
	if err != nil {
		return err
	}
	target, ok := l.section(a.Group)
	if !ok {
		if err := e.addGroup(l, a); err != nil {
			return err
		}
		return e.join(a)
	}
	return e.insert(l, target, a.Name, nil)
}

// insert adds a host to a section. vars is nil for a host without variables.
func (e *yamlEditor) insert(l *layout, s section, name string, vars *yaml.Node) error {
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
	if s.jsonLike {
		key.Style = yaml.DoubleQuotedStyle
	}
	s.padded = l.padded(s)
	hosts := s.hosts
	switch {
	case s.hostsKey == nil:
		return e.insertHosts(l, s, key, vars)
	case hosts.Kind == yaml.AliasNode, hosts.Kind == yaml.ScalarNode && !isNull(hosts),
		hosts.Anchor != "" && l.anchors[hosts]:
		return l.failAt(s.hostsKey, "the hosts of the group %q are an alias, shared by an anchor, or a single name", s.group)
	case hosts.Style&yaml.FlowStyle != 0 && len(hosts.Content) == 0 && s.hostsKey.Line == hosts.Line && !s.names &&
		l.block(s.hostsKey):
		return e.fillEmpty(l, s, key, vars)
	case hosts.Style&yaml.FlowStyle != 0:
		return e.insertFlow(l, hosts, s.flowItem(key, vars))
	case isNull(hosts) || len(hosts.Content) == 0:
		return e.fillEmpty(l, s, key, vars)
	}
	last := hosts.Content[len(hosts.Content)-1]
	if hosts.Kind == yaml.MappingNode {
		last = hosts.Content[len(hosts.Content)-2]
	}
	before := l.lineText(last.Line)[:l.offset(last)-l.offsets[last.Line-1]]
	text, err := s.blockItem(key, vars, nullLike(s))
	if err != nil {
		return err
	}
	indent := blanks.FindString(before)
	if s.names {
		if !dash.MatchString(before) {
			return l.failAt(last, "this list is not written one item a line")
		}
		text, indent = strings.TrimLeft(before, " ")+name+"\n", blanks.FindString(before)
	} else if indent != before {
		return l.failAt(last, "this line has more than the host in front of its colon")
	}
	return e.insertLines(l, l.end(last), shift(text, indent))
}

var (
	blanks = regexp.MustCompile(`^ *`)
	dash   = regexp.MustCompile(`^ *- +$`)
)

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

// fillEmpty adds the first host below a hosts key without any.
func (e *yamlEditor) fillEmpty(l *layout, s section, key, vars *yaml.Node) error {
	if !l.block(s.hostsKey) {
		return l.failAt(s.hostsKey, "hosts is neither a mapping in braces nor on a line of its own")
	}
	at := s.hostsKey
	if isNull(s.hosts) && (s.hosts.Value != "" || s.hosts.Anchor != "" || s.hosts.Style&yaml.TaggedStyle != 0) {
		return l.failAt(s.hosts, "the hosts of the group %q are written as %s", s.group, s.hosts.Value)
	}
	indent := strings.Repeat(" ", at.Column-1+s.step)
	if s.names {
		return e.insertLines(l, l.end(at), indent+"- "+key.Value+"\n")
	}
	text, err := s.blockItem(key, vars, "")
	if err != nil {
		return err
	}
	end := l.end(at)
	if err := e.insertLines(l, end, shift(text, indent)); err != nil {
		return err
	}
	if isNull(s.hosts) {
		return nil
	}
	start := l.offset(s.hosts)
	_, closed, err := flowItems(e.file.Text, start)
	if err != nil {
		return err
	}
	for start > 0 && e.file.Text[start-1] == ' ' {
		start--
	}
	return e.splice(start, closed+1, "")
}

// insertHosts adds the key hosts to a group without it.
func (e *yamlEditor) insertHosts(l *layout, s section, key, vars *yaml.Node) error {
	if s.body != nil && len(s.body.Content) > 0 && s.body.Style&yaml.FlowStyle == 0 {
		first := s.body.Content[0]
		if !l.block(first) {
			return l.failAt(first, "this line has more than its key in front of the colon")
		}
		return e.insertLines(l, l.end(s.body.Content[len(s.body.Content)-2]),
			shift(hostsBlock(key, vars, s), strings.Repeat(" ", first.Column-1)))
	}
	if s.body != nil {
		return e.insertFlow(l, s.body, s.quoted("hosts")+": "+s.bracketed(s.flowItem(key, vars)))
	}
	if !l.block(s.key) {
		return l.failAt(s.key, "the group %q has no hosts", s.group)
	}
	if line := strings.TrimSpace(l.lineText(s.key.Line)); !bareKey.MatchString(line) {
		return l.failAt(s.key, "the group %q is written as %s", s.group, line)
	}
	return e.insertLines(l, l.end(s.key), shift(hostsBlock(key, vars, s), strings.Repeat(" ", s.key.Column-1+s.step)))
}

// bareKey is a line with a key that has no value.
var bareKey = regexp.MustCompile(`^[^#{}\[\]]+:\s*(#.*)?$`)

func (s section) quoted(word string) string {
	if s.jsonLike {
		return `"` + word + `"`
	}
	return word
}

func (s section) bracketed(item string) string {
	if s.names {
		return "[" + item + "]"
	}
	return "{" + item + "}"
}

func hostsBlock(key, vars *yaml.Node, s section) string {
	if s.names {
		return "hosts:\n" + strings.Repeat(" ", s.step) + "- " + key.Value + "\n"
	}
	text, err := s.blockItem(key, vars, "")
	if err != nil {
		return ""
	}
	return "hosts:\n" + shift(text, strings.Repeat(" ", s.step))
}

// addGroup adds the group of a host next to another group.
func (e *yamlEditor) addGroup(l *layout, a Addition) error {
	in := l.groups[a.Near]
	k, _ := valueOf(in, a.Near)
	if k == nil {
		return fmt.Errorf("the inventory has neither the group %q nor %q", a.Group, a.Near)
	}
	name := a.Group
	if k.Style == yaml.DoubleQuotedStyle {
		name = `"` + name + `"`
	}
	if in.Style&yaml.FlowStyle != 0 {
		hosts := "{}"
		if l.kubekey {
			hosts = "[]"
		}
		word := "hosts"
		if k.Style == yaml.DoubleQuotedStyle {
			word = `"hosts"`
		}
		return e.insertFlow(l, in, name+": {"+word+": "+hosts+"}")
	}
	if !l.block(k) {
		return l.failAt(k, "this line has more than its key in front of the colon")
	}
	s, _ := l.section(a.Near)
	indent := strings.Repeat(" ", k.Column-1)
	return e.insertLines(l, l.end(k), indent+name+":\n"+indent+strings.Repeat(" ", s.step)+"hosts:\n")
}

// insertFlow adds an item at the end of a mapping or list in braces or brackets.
func (e *yamlEditor) insertFlow(l *layout, n *yaml.Node, item string) error {
	open := l.offset(n)
	for open < len(e.file.Text) && e.file.Text[open] != '{' && e.file.Text[open] != '[' {
		open++ // past the anchor
	}
	items, closed, err := flowItems(e.file.Text, open)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return e.splice(open+1, closed, item)
	}
	last := items[len(items)-1]
	lineStart := bytes.LastIndexByte(e.file.Text[:last.start], '\n') + 1
	before := string(e.file.Text[lineStart:last.start])
	if strings.Trim(before, " \t") != "" || lineStart <= open {
		switch {
		case last.comma >= 0:
			return e.splice(last.comma+1, last.comma+1, " "+item)
		case e.file.Text[last.end-1] == ':': // a colon before a comma would be part of the name
			return e.splice(last.end, last.end, " , "+item)
		}
		return e.splice(last.end, last.end, ", "+item)
	}
	// One item a line: the new one gets its own, below the comment behind the last one.
	at := last.end
	if last.comma >= 0 {
		at = last.comma + 1
		item += ","
	}
	newline := bytes.IndexByte(e.file.Text[at:], '\n')
	rest := ""
	if newline >= 0 {
		rest = strings.TrimLeft(string(e.file.Text[at:at+newline]), " \t")
	}
	if newline < 0 || rest != "" && rest[0] != '#' {
		newline = 0
	}
	if err := e.splice(at+newline, at+newline, "\n"+before+item); err != nil || last.comma >= 0 {
		return err
	}
	comma := ","
	if e.file.Text[last.end-1] == ':' {
		comma = " ,"
	}
	return e.splice(last.end, last.end, comma)
}

func (e *yamlEditor) remove(name string, groups []string) error {
	for {
		l, err := e.layout()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(l.entries(), func(en entry) bool {
			return en.names(name) && (groups == nil || slices.Contains(groups, en.section.group) && !en.section.definesAll)
		})
		if i < 0 {
			return nil
		}
		size := len(e.file.Text)
		if err := e.removeEntry(l, l.entries()[i], name); err != nil {
			return err
		}
		if len(e.file.Text) >= size {
			return fmt.Errorf("host %q cannot be removed", name)
		}
	}
}

// names reports whether an entry is about a host, maybe with others.
func (en entry) names(name string) bool {
	key := source.Resolve(en.key)
	if key.Value == name {
		return true
	}
	names, _, err := expandHosts(key.Value)
	return err == nil && slices.Contains(names, name)
}

func (e *yamlEditor) removeEntry(l *layout, en entry, name string) error {
	if names, _, err := expandHosts(en.key.Value); err == nil && len(names) > 1 {
		return l.failAt(en.key, "%s stands for %d hosts", en.key.Value, len(names))
	}
	if en.index < 0 || en.key.Kind != yaml.ScalarNode {
		return l.failAt(en.key, "%s is not an entry of a mapping or list", name)
	}
	if used := l.anchored(en.key, en.vars); used != nil {
		return l.failAt(used, "the anchor &%s of host %q is used by other entries", used.Anchor, name)
	}
	if en.section.hosts.Style&yaml.FlowStyle != 0 {
		return e.removeFlow(l, en)
	}
	first := en.index == 0
	begin := en.key.Line
	before := l.lineText(begin)[:l.offset(en.key)-l.offsets[begin-1]]
	if dashed := dash.MatchString(before); strings.Trim(before, " ") != "" && (!dashed || !en.section.names) {
		return l.failAt(en.key, "this line has more than host %q", name)
	}
	end := l.end(en.key)
	indent := len(blanks.FindString(before))
	above := begin
	for above > 1 && isComment(l.lineText(above-1)) && len(blanks.FindString(l.lineText(above-1))) == indent {
		above--
	}
	if first && above-1 == en.section.hostsKey.Line && len(en.section.entries()) > 1 {
		above += ofAll(l.lines(above, begin), name)
	}
	return e.splice(l.lineStart(above), l.lineStart(end+1), "")
}

// ofAll returns how many lines of a comment at the head of a section are about all its hosts: those before the first
// that names the host below it.
func ofAll(comment []string, name string) int {
	for i, line := range comment {
		if wordIn(line, name) {
			return i
		}
	}
	return len(comment)
}

// wordIn reports whether a text has a name as a word of its own.
func wordIn(text, name string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("-_.", r) && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z')
	}), name)
}

func isComment(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "#") }

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

func (e *yamlEditor) removeFlow(l *layout, en entry) error {
	open := l.offset(en.section.hosts)
	for open < len(e.file.Text) && e.file.Text[open] != '{' && e.file.Text[open] != '[' {
		open++
	}
	items, _, err := flowItems(e.file.Text, open)
	if err != nil {
		return err
	}
	key := l.offset(en.key)
	i := slices.IndexFunc(items, func(it flowSpan) bool { return it.start <= key && key < it.end })
	if i < 0 {
		return l.failAt(en.key, "the entry is not found in its braces")
	}
	it := items[i]
	start, end := it.start, it.end
	if it.comma >= 0 {
		end = it.comma + 1
	}
	text := e.file.Text
	lineStart := bytes.LastIndexByte(text[:start], '\n') + 1
	lineEnd := len(text)
	if n := bytes.IndexByte(text[end:], '\n'); n >= 0 {
		lineEnd = end + n + 1
	}
	rest := strings.TrimSpace(string(text[end:lineEnd]))
	if strings.TrimSpace(string(text[lineStart:start])) == "" && (rest == "" || rest[0] == '#') && lineStart > open {
		for lineStart > 0 { // comments directly above
			prev := bytes.LastIndexByte(text[:lineStart-1], '\n') + 1
			if prev <= open || !isComment(string(text[prev:lineStart])) {
				break
			}
			lineStart = prev
		}
		start, end = lineStart, lineEnd
	} else {
		for end < len(text) && text[end] == ' ' && it.comma >= 0 {
			end++
		}
	}
	if err := e.splice(start, end, ""); err != nil {
		return err
	}
	if it.comma < 0 && i > 0 { // the last one: no comma remains before it
		prev := items[i-1]
		stop := prev.comma + 1
		if start == it.start {
			for stop < start && e.file.Text[stop] == ' ' {
				stop++
			}
		}
		return e.splice(prev.comma, stop, "")
	}
	return nil
}

// Positions and lines.

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

// insertLines adds lines below a line.
func (e *yamlEditor) insertLines(l *layout, below int, text string) error {
	at := l.lineStart(below + 1)
	if at > 0 && e.file.Text[at-1] != '\n' {
		text = "\n" + strings.TrimSuffix(text, "\n")
	}
	return e.splice(at, at, text)
}

// splice replaces a part of the text.
func (e *yamlEditor) splice(start, end int, text string) error {
	if start < 0 || end < start || end > len(e.file.Text) {
		return fmt.Errorf("the place to edit is not found")
	}
	e.file = source.NewFile(e.file.Name, slices.Concat(e.file.Text[:start], []byte(text), e.file.Text[end:]))
	return nil
}

func shift(text, indent string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			lines[i] = indent + line
		}
	}
	return strings.Join(lines, "")
}

// flowSpan is an item in braces or brackets: its text without blanks and comments around, and the comma behind it, -1
// if there is none.
type flowSpan struct{ start, end, comma int }

// flowItems returns the items of the collection that opens at an offset, and the offset of its end.
func flowItems(text []byte, open int) ([]flowSpan, int, error) {
	var items []flowSpan
	it := flowSpan{-1, -1, -1}
	depth := 0
	before := byte(' ')
	for i := open; i < len(text); i++ {
		c := text[i]
		begins := before == ' ' || strings.IndexByte("{[,:", before) >= 0
		switch {
		case c == '#' && (before == ' ' || i == open+1):
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
			continue
		case (c == '"' || c == '\'') && begins:
			end := quoteEnd(text, i)
			if end < 0 {
				return nil, 0, fmt.Errorf("a quote is not closed")
			}
			if it.start < 0 {
				it.start = i
			}
			i, it.end = end, end+1
		case c == '{' || c == '[':
			if depth++; depth > 1 {
				if it.start < 0 {
					it.start = i
				}
				it.end = i + 1
			}
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				if it.start >= 0 {
					items = append(items, it)
				}
				return items, i, nil
			}
			it.end = i + 1
		case c == ',' && depth == 1:
			if it.start < 0 {
				return nil, 0, fmt.Errorf("a comma without an item")
			}
			it.comma = i
			items = append(items, it)
			it = flowSpan{-1, -1, -1}
		case c == ' ' || c == '\t' || c == '\n':
			before = ' '
			continue
		default:
			if it.start < 0 {
				it.start = i
			}
			it.end = i + 1
		}
		before = text[i]
	}
	return nil, 0, fmt.Errorf("a brace or bracket is not closed")
}

// quoteEnd returns the offset of the quote that closes the one at i, -1 if there is none.
func quoteEnd(text []byte, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i
		}
	}
	return -1
}
