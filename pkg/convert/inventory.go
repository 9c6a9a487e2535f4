package convert

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// Groups that every cluster has.
const (
	all          = "all"
	cluster      = "k8s_cluster"
	controlPlane = "kube_control_plane"
	worker       = "kube_worker"
	localhost    = "localhost"
)

// machines is an inventory during its conversion.
type machines struct {
	*job
	hosts  *yaml.Node // variables by name
	groups *yaml.Node
	notes  []string
}

// inventory converts the inventory in a file.
func (j *job) inventory() (string, source.Diagnostics) {
	m := &machines{job: j, hosts: mapping(), groups: mapping()}
	is, top := j.table.Inventory, mapping()
	known := slices.DeleteFunc([]string{is.Hosts, is.Groups, is.Vars}, func(k string) bool { return k == "" })
	for i := 0; i+1 < len(j.spec.Content); i += 2 {
		switch k := j.spec.Content[i]; {
		case !slices.Contains(known, k.Value) && !slices.Contains(is.Skip, k.Value):
			j.fail(k, orElse(source.DidYouMean(k.Value, append(known, is.Skip...)), "it has "+strings.Join(known, ", ")),
				"%s has no key %q", j.table.From, k.Value)
		case k.Value == is.Hosts:
			m.readHosts(j.spec.Content[i+1])
		}
	}
	if groups := child(j.spec, is.Groups); groups != nil {
		m.readGroups(groups)
	}
	if vars := child(j.spec, is.Vars); vars != nil && !isNull(vars) {
		m.readVars(vars, top)
	}
	if j.ds.Err() != nil {
		return "", j.ds.Sort()
	}
	m.addCluster()
	out := mapping()
	set(out, []string{all, "hosts"}, m.hosts, nil)
	for i := 0; i+1 < len(top.Content); i += 2 {
		set(out, []string{all, "vars", top.Content[i].Value}, top.Content[i+1], nil)
	}
	set(out, []string{all, "children"}, m.groups, nil)
	text, err := encode(m.head(), out)
	if err != nil {
		return "", source.DiagnosticsOf(err)
	}
	return text, nil
}

// readHosts reads a list or a mapping of hosts.
func (m *machines) readHosts(n *yaml.Node) {
	named := m.table.Inventory.Name
	switch {
	case isNull(n):
	case named != "" && n.Kind == yaml.SequenceNode:
		for _, e := range n.Content {
			name := child(e, named)
			if name == nil || name.Kind != yaml.ScalarNode || name.Value == "" {
				m.fail(e, "write "+named+": node1", "a host has no %s", named)
				continue
			}
			m.readHost(name, e)
		}
	case named == "" && n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			m.readHost(n.Content[i], n.Content[i+1])
		}
	default:
		form := "list"
		if named == "" {
			form = "mapping"
		}
		m.fail(n, "", "%s must be a %s", m.table.Inventory.Hosts, form)
	}
}

func (m *machines) readHost(name, n *yaml.Node) {
	if child(m.hosts, name.Value) != nil {
		m.fail(name, "give each machine its own name", "the host %s is listed twice", name.Value)
		return
	}
	vars := mapping()
	m.hosts.Content = append(m.hosts.Content, scalar(name.Value), vars)
	if isNull(n) {
		n = mapping()
	}
	if n.Kind != yaml.MappingNode {
		m.fail(n, "", "host %s must be a mapping", name.Value)
		return
	}
	if name.Value == localhost && child(n, "connector") == nil {
		set(vars, []string{"ansible_connection"}, scalar("local"), nil)
	}
	m.walkHost(n, vars, "")
	if child(vars, "ansible_connection") != nil {
		return
	}
	for _, rs := range m.table.Inventory.inOrder() {
		for _, r := range rs {
			if r.Default.IsZero() || child(vars, r.To) != nil {
				continue
			}
			if v, err := m.evaluate(&r.Default, nil); err == nil && v != nil {
				set(vars, []string{r.To}, v, nil)
			}
		}
	}
}

// inOrder returns the rows by path, so that the result does not depend on the order of a map.
func (h hosts) inOrder() []rows {
	var out []rows
	for _, path := range slices.Sorted(maps.Keys(h.Keys)) {
		out = append(out, h.Keys[path])
	}
	return out
}

// walkHost applies the rows to the keys of a host.
func (m *machines) walkHost(n, vars *yaml.Node, prefix string) {
	is := m.table.Inventory
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		path := prefix + k.Value
		rs, described := is.Keys[path]
		switch {
		case path == is.Name:
		case described:
			for _, r := range rs {
				if to, note := m.applied(r, k, v, path); to != nil {
					set(vars, strings.Split(r.To, "."), to, nil)
					m.note(note)
				}
			}
		case isGroup(is.Keys, path):
			if v.Kind == yaml.MappingNode {
				m.walkHost(v, vars, path+".")
			} else if !isNull(v) {
				m.fail(v, "", "%s must be a mapping", path)
			}
		case is.Keep && prefix == "":
			if t := goTemplate(v); t != nil {
				m.fail(t, "write the value itself: kk's templates are Jinja's, and have other variables",
					"%s contains a template of %s", path, m.table.From)
				continue
			}
			set(vars, []string{k.Value}, v, nil)
		default:
			m.unknown(is.Keys, k, prefix)
		}
	}
}

func (m *machines) note(lines []string) {
	for _, line := range lines {
		if !slices.Contains(m.notes, line) {
			m.notes = append(m.notes, line)
		}
	}
}

// readVars reads the variables of all hosts. Those that belong to the config are converted as a config.
func (m *machines) readVars(n, top *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		m.fail(n, "", "%s must be a mapping", m.table.Inventory.Vars)
		return
	}
	set := mapping()
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, to := n.Content[i], top
		if _, row := m.table.Config[k.Value]; row || m.table.isGroup(k.Value) {
			to = set
		}
		to.Content = append(to.Content, k, n.Content[i+1])
	}
	given, err := paths(set, m.file.Name)
	if err != nil {
		m.ds.Add(source.DiagnosticsOf(err)...)
		return
	}
	inner := *m.job
	inner.given = given
	inner.walk(inner.table.Config, set, "")
	inner.check()
	m.ds = inner.ds
	top.Content = append(top.Content, inner.out.Content...)
}

// readGroups reads a mapping of groups.
func (m *machines) readGroups(n *yaml.Node) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		m.fail(n, "", "%s must be a mapping", m.table.Inventory.Groups)
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		is := m.table.Inventory
		name, known := is.Names[k.Value]
		if !known {
			if name = k.Value; is.Other != "" {
				known := slices.Sorted(maps.Keys(is.Names))
				m.fail(k, orElse(source.DidYouMean(k.Value, known), is.Other), "the group %s has no equivalent in kk", k.Value)
				continue
			}
		}
		group := child(m.groups, name)
		if group == nil {
			group = mapping()
			m.groups.Content = append(m.groups.Content, scalar(name), group)
		}
		m.readGroup(group, k, v)
	}
}

// readGroup reads a list of hosts, or a mapping with hosts, groups and vars.
func (m *machines) readGroup(group, k, n *yaml.Node) {
	switch {
	case isNull(n):
	case n.Kind == yaml.SequenceNode:
		m.members(group, k.Value, n)
	case n.Kind == yaml.MappingNode && m.table.Inventory.Other == "":
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, v := n.Content[i], n.Content[i+1]
			switch {
			case isNull(v):
			case key.Value == "hosts" && v.Kind == yaml.SequenceNode:
				m.members(group, k.Value, v)
			case key.Value == "groups" && v.Kind == yaml.SequenceNode:
				for _, e := range v.Content {
					set(group, []string{"children", e.Value}, mapping(), nil)
				}
			case key.Value == "vars" && v.Kind == yaml.MappingNode:
				set(group, []string{"vars"}, v, nil)
			default:
				m.fail(key, "a group has lists of hosts and groups, and vars", "unexpected %s of group %s", key.Value, k.Value)
			}
		}
	default:
		m.fail(n, "write [node1, node2]", "the group %s must be a list of hosts", k.Value)
	}
}

// members adds hosts to a group. A name can be a range: node[1:3].
func (m *machines) members(group *yaml.Node, name string, list *yaml.Node) {
	for _, e := range list.Content {
		names, err := expand(e.Value)
		if err != nil {
			m.fail(e, "write it as node[1:3]", "%v", err)
			continue
		}
		for _, host := range names {
			if child(m.hosts, host) == nil && host == localhost {
				m.readHost(scalar(localhost), mapping())
			}
			if child(m.hosts, host) == nil {
				m.fail(e, orElse(source.DidYouMean(host, m.names()), "add it to "+m.table.Inventory.Hosts),
					"the group %s contains %s, which is no host", name, host)
				break
			}
			set(group, []string{"hosts", host}, mapping(), nil)
		}
	}
}

func (m *machines) names() []string {
	var out []string
	for i := 0; i < len(m.hosts.Content); i += 2 {
		out = append(out, m.hosts.Content[i].Value)
	}
	return out
}

// maxRange is the maximum number of hosts in a range.
const maxRange = 10_000

var hostRange = regexp.MustCompile(`^(.*)\[(\d+):(\d+)\]$`)

// expand expands a range of hosts.
func expand(text string) ([]string, error) {
	parts := hostRange.FindStringSubmatch(text)
	if parts == nil {
		if text == "" || strings.ContainsAny(text, "[]") {
			return nil, fmt.Errorf("%q is no name or range of hosts", text)
		}
		return []string{text}, nil
	}
	first, err1 := strconv.Atoi(parts[2])
	last, err2 := strconv.Atoi(parts[3])
	if err1 != nil || err2 != nil || last < first || last-first >= maxRange {
		return nil, fmt.Errorf("%q is no range of at most %d hosts", text, maxRange)
	}
	var out []string
	for i := first; i <= last; i++ {
		out = append(out, parts[1]+strconv.Itoa(i))
	}
	return out, nil
}

// addCluster adds the group of all nodes if the file does not define it.
func (m *machines) addCluster() {
	if child(m.groups, cluster) != nil {
		return
	}
	for _, name := range []string{controlPlane, worker} {
		if child(m.groups, name) != nil {
			set(m.groups, []string{cluster, "children", name}, mapping(), nil)
		}
	}
}

// head returns the comment at the top of an inventory.
func (m *machines) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Converted from a file of %s. Look at it with: kk inventory graph -i FILE\n", m.table.From)
	for _, note := range m.notes {
		for _, line := range wrap(note) {
			b.WriteString("# " + line + "\n")
		}
	}
	return b.String()
}
