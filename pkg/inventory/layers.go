package inventory

import (
	"sort"
	"strings"

	"kubekey/pkg/value"
)

// groupSet is the groups of hosts that are directly in the same groups: computed once and
// shared by them all.
type groupSet struct {
	ordered []*group             // without all; later ones win
	names   []string             // of ordered, sorted
	layers  map[string][]*VarSet // group variables, by playbook folder
}

// setOf returns the groups of a host. The caller holds the write lock.
func (inv *Inventory) setOf(h *host) *groupSet {
	if h.set == nil {
		h.set = inv.groupsAbove(h.groups)
	}
	return h.set
}

func (inv *Inventory) groupsAbove(direct []*group) *groupSet {
	key := strings.Join(sortedGroupNames(direct), "\x00")
	if s := inv.sets[key]; s != nil {
		return s
	}
	seen := map[*group]bool{inv.groups[All]: true}
	s := &groupSet{layers: map[string][]*VarSet{}}
	var climb func(gs []*group)
	climb = func(gs []*group) {
		for _, g := range gs {
			if !seen[g] {
				seen[g] = true
				s.ordered = append(s.ordered, g)
				climb(g.parents)
			}
		}
	}
	climb(direct)
	sort.Slice(s.ordered, func(i, j int) bool { return s.ordered[i].ranksBelow(s.ordered[j]) })
	s.names = sortedGroupNames(s.ordered)
	inv.sets[key] = s
	return s
}

// ranksBelow orders groups so that the later one's variables win.
func (g *group) ranksBelow(o *group) bool {
	switch {
	case g.depth != o.depth:
		return g.depth < o.depth
	case g.priority != o.priority:
		return g.priority < o.priority
	}
	return g.name < o.name
}

// VarLayers returns the inventory's variables for a host; later sets win. The order is: group
// variables of the sources, group_vars/all next to the sources and next to the playbook,
// group_vars of the other groups likewise, host variables of the sources, host_vars next to the
// sources and next to the playbook. playbookDir is the playbook's folder, "" for none. Sets are
// shared between hosts: do not modify them. A host that is not in the inventory gets the
// variables of all hosts; localhost is then reached without ssh.
func (inv *Inventory) VarLayers(name, playbookDir string) []*VarSet {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	h := inv.hosts[name]
	if h == nil {
		h = &host{name: name}
		if isLocal(name) {
			h.vars = []*VarSet{inv.local}
		}
	}
	set := inv.setOf(h)
	layers, ok := set.layers[playbookDir]
	if !ok {
		layers = inv.groupLayers(set, playbookDir)
		set.layers[playbookDir] = layers
	}
	layers = append(layers[:len(layers):len(layers)], h.vars...)
	for _, d := range inv.dirs {
		layers = append(layers, d.hosts[name]...)
	}
	if d := inv.varsOf(playbookDir); d != nil {
		layers = append(layers, d.hosts[name]...)
	}
	return layers
}

func (inv *Inventory) groupLayers(set *groupSet, playbookDir string) []*VarSet {
	out := append([]*VarSet(nil), inv.groups[All].vars...)
	for _, g := range set.ordered {
		out = append(out, g.vars...)
	}
	dirs, playbook := inv.dirs, inv.varsOf(playbookDir)
	if playbook != nil {
		dirs = append(dirs[:len(dirs):len(dirs)], playbook)
	}
	for _, d := range dirs {
		out = append(out, d.groups[All]...)
	}
	for _, d := range dirs {
		for _, g := range set.ordered {
			out = append(out, d.groups[g.name]...)
		}
	}
	return out
}

// isLocal reports whether the name is that of the control node, in the inventory or not.
func isLocal(name string) bool { return name == "localhost" || name == "127.0.0.1" || name == "::1" }

func implicitLocal() *VarSet {
	return NewVarSet("implicit localhost", value.NewDict("ansible_connection", "local"))
}
