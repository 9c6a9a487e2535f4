package inventory

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// yamlEditor edits YAML and JSON inventories, and those of KubeKey. It finds the places in the tree of nodes and
// changes the text there, so that all other lines stay byte by byte.
type yamlEditor struct{ file *source.File }

func (e *yamlEditor) text() *source.File { return e.file }

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
	text, err := s.hostsBlock(key, vars)
	if err != nil {
		return err
	}
	if s.body != nil && len(s.body.Content) > 0 && s.body.Style&yaml.FlowStyle == 0 {
		first := s.body.Content[0]
		if !l.block(first) {
			return l.failAt(first, "this line has more than its key in front of the colon")
		}
		last := s.body.Content[len(s.body.Content)-2]
		return e.insertLines(l, l.end(last), shift(text, strings.Repeat(" ", first.Column-1)))
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
	return e.insertLines(l, l.end(s.key), shift(text, strings.Repeat(" ", s.key.Column-1+s.step)))
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

// hostsBlock returns the key hosts with one host, as lines.
func (s section) hostsBlock(key, vars *yaml.Node) (string, error) {
	step := strings.Repeat(" ", s.step)
	if s.names {
		return "hosts:\n" + step + "- " + key.Value + "\n", nil
	}
	text, err := s.blockItem(key, vars, "")
	return "hosts:\n" + shift(text, step), err
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
