package inventory

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// vars returns the variables of a new host as those of its neighbors: their connection variables, as far as all of
// them have the same, and the new address wherever the last neighbor has its own.
func (l *layout) vars(a Addition, near []entry) *yaml.Node {
	var all []*yaml.Node
	for _, n := range near {
		if v := source.Resolve(n.vars); v != nil && v.Kind == yaml.MappingNode {
			all = append(all, v)
		}
	}
	out := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	b := varsBuilder{address: a.Address}
	if len(all) > 0 {
		like := all[len(all)-1]
		out.Style = like.Style
		b.old = addressOf(like)
		out.Content = b.pairs(like, all, false)
	}
	if b.placed || a.Name == a.Address {
		return out
	}
	key, val := scalar("ansible_host"), b.scalar(nil)
	if _, c := valueOf(out, "connector"); c != nil {
		c.Content = slices.Insert(c.Content, 0, scalar("host"), val)
		return out
	}
	if l.kubekey && len(all) == 0 {
		connector := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle,
			Content: []*yaml.Node{scalar("type"), scalar("ssh"), scalar("host"), val}}
		out.Content = []*yaml.Node{scalar("connector"), connector}
		return out
	}
	if len(l.sections) > 0 && l.sections[0].jsonLike {
		key.Style, val.Style = yaml.DoubleQuotedStyle, yaml.DoubleQuotedStyle
	}
	out.Content = slices.Insert(out.Content, 0, key, val)
	return out
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// addressOf returns the text of the address that a host's variables set, "" if they set none.
func addressOf(vars *yaml.Node) string {
	if _, v := valueOf(vars, "ansible_host"); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	_, c := valueOf(vars, "connector")
	if _, v := valueOf(source.Resolve(c), "host"); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// varsBuilder makes the variables of a new host from those of another.
type varsBuilder struct {
	address, old string
	placed       bool // the new host has its address
}

// pairs returns the keys and values that a new host gets from like, one of all.
func (b *varsBuilder) pairs(like *yaml.Node, all []*yaml.Node, connector bool) []*yaml.Node {
	var out []*yaml.Node
	for i := 0; i+1 < len(like.Content); i += 2 {
		k, v := like.Content[i], like.Content[i+1]
		switch {
		case v.Kind == yaml.ScalarNode && v.Value != "" && v.Value == b.old:
			if key := b.familyKey(k); key != nil {
				out = append(out, key, b.scalar(v))
				b.placed = b.placed || k.Value == "ansible_host" || connector && k.Value == "host"
			}
		case k.Value == "connector" && !connector && v.Kind == yaml.MappingNode:
			var theirs []*yaml.Node
			for _, n := range all {
				_, c := valueOf(n, "connector")
				theirs = append(theirs, source.Resolve(c))
			}
			out = append(out, copied(k), &yaml.Node{Kind: yaml.MappingNode, Style: v.Style, Content: b.pairs(v, theirs, true)})
		case (connector || k.ShortTag() == "!!merge" || strings.HasPrefix(k.Value, "ansible_")) && v.Value != "local" &&
			k.Value != "ansible_host" && shared(k, v, all):
			out = append(out, copied(k), copied(v))
		}
	}
	return out
}

// shared reports whether a key has the same value in all mappings.
func shared(k, v *yaml.Node, all []*yaml.Node) bool {
	return !slices.ContainsFunc(all, func(n *yaml.Node) bool {
		_, theirs := valueOf(n, k.Value)
		return !sameNode(v, theirs)
	})
}

func sameNode(a, b *yaml.Node) bool {
	a, b = source.Resolve(a), source.Resolve(b)
	if a == nil || b == nil || a == b {
		return a == b
	}
	return a.Kind == b.Kind && a.Value == b.Value && a.ShortTag() == b.ShortTag() &&
		slices.EqualFunc(a.Content, b.Content, sameNode)
}

// copied returns a node for another place: without anchors, which must be unique, and without comments.
func copied(n *yaml.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Alias: n.Alias}
	if n.ShortTag() == "!!merge" {
		c.Tag = ""
	}
	for _, o := range n.Content {
		c.Content = append(c.Content, copied(o))
	}
	return c
}

// scalar returns the new address, quoted as like is.
func (b *varsBuilder) scalar(like *yaml.Node) *yaml.Node {
	n := scalar(b.address)
	if like != nil {
		n.Style = like.Style & (yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle)
	}
	if n.Style == 0 && strings.Contains(b.address, ":") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// familyKey returns a key for the new address. One that names the family of addresses, as internal_ipv4, is nil for a
// DNS name, and names the other family for an address of that.
func (b *varsBuilder) familyKey(k *yaml.Node) *yaml.Node {
	base, four := strings.CutSuffix(k.Value, "ipv4")
	if !four {
		var six bool
		if base, six = strings.CutSuffix(k.Value, "ipv6"); !six {
			return copied(k)
		}
	}
	ip, err := netip.ParseAddr(b.address)
	if err != nil {
		return nil
	}
	key := copied(k)
	if key.Value = base + "ipv6"; ip.Is4() {
		key.Value = base + "ipv4"
	}
	return key
}

// nullLike returns how the hosts of a section without variables are written: "", "{}" or "null".
func nullLike(s section) string {
	text := ""
	for _, e := range s.entries() {
		switch {
		case e.vars == nil:
		case e.vars.Kind == yaml.MappingNode && len(e.vars.Content) == 0:
			text = "{}"
		case isNull(e.vars):
			text = e.vars.Value
		}
	}
	if text == "" && (s.jsonLike || s.hosts != nil && s.hosts.Style&yaml.FlowStyle != 0 && len(s.hosts.Content) == 0) {
		return "{}"
	}
	return text
}

// blockItem returns the lines of a host in a block mapping.
func (s section) blockItem(key, vars *yaml.Node, null string) (string, error) {
	name, err := marshal(key, s.step)
	if err != nil || s.names {
		return name + "\n", err
	}
	if vars == nil || len(vars.Content) == 0 {
		return strings.TrimRight(name+": "+null, " ") + "\n", nil
	}
	if vars.Style&yaml.FlowStyle != 0 {
		return name + ": " + s.braces(vars) + "\n", nil
	}
	text, err := marshal(vars, s.step)
	return name + ":\n" + shift(text+"\n", strings.Repeat(" ", s.step)), err
}

// flowItem returns a host in a mapping in braces or a list in brackets.
func (s section) flowItem(key, vars *yaml.Node) string {
	name := flowText(key)
	switch {
	case s.names:
		return name
	case vars == nil || len(vars.Content) == 0:
		return strings.TrimRight(name+": "+nullLike(s), " ")
	}
	return name + ": " + s.braces(vars)
}

// braces returns the variables of a host in one line.
func (s section) braces(vars *yaml.Node) string {
	text := flowText(vars)
	if s.padded && len(text) > 2 {
		text = "{ " + text[1:len(text)-1] + " }"
	}
	return text
}

// flowText returns a node in one line.
func flowText(n *yaml.Node) string {
	c := copied(n)
	oneLine(c)
	text, _ := marshal(c, 2)
	return strings.ReplaceAll(text, "\n", " ")
}

// oneLine gives a node and those below it a style that fits in a line.
func oneLine(n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		n.Style |= yaml.FlowStyle
	case yaml.ScalarNode:
		if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			n.Style = n.Style&yaml.TaggedStyle | yaml.DoubleQuotedStyle
		}
	}
	for _, c := range n.Content {
		oneLine(c)
	}
}

func marshal(n *yaml.Node, step int) (string, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(max(2, step))
	if err := enc.Encode(n); err != nil {
		return "", err
	}
	return strings.TrimSuffix(b.String(), "\n"), enc.Close()
}
