package inventory

import (
	"fmt"
	"slices"
	"strconv"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// group returns the group with the name, creating it if necessary.
func (inv *Inventory) group(name string, at source.Pos) *group {
	if g := inv.groups[name]; g != nil {
		return g
	}
	g := &group{name: name, member: map[string]bool{}, priority: 1, at: at}
	inv.groups[name] = g
	inv.groupOrder = append(inv.groupOrder, g)
	return g
}

// hostAt is host, for one that a file names at a position.
func (inv *Inventory) hostAt(name, file string, at source.Pos) *host {
	if _, ok := inv.places[name]; !ok {
		inv.places[name] = at
	}
	return inv.host(name, file)
}

// host returns the host with the name, creating it if necessary.
func (inv *Inventory) host(name, file string) *host {
	h := inv.hosts[name]
	if h == nil {
		h = &host{name: name}
		inv.hosts[name] = h
	}
	if file != "" {
		h.file = file
	}
	return h
}

// join makes h a direct member of g.
func (g *group) join(h *host) {
	if g.member[h.name] {
		return
	}
	g.member[h.name] = true
	g.hosts = append(g.hosts, h)
	if g.name != All {
		h.groups = append(h.groups, g)
		h.set = nil
	}
}

func (g *group) leave(h *host) {
	if !g.member[h.name] {
		return
	}
	delete(g.member, h.name)
	g.hosts = slices.DeleteFunc(g.hosts, func(o *host) bool { return o == h })
	h.groups = slices.DeleteFunc(h.groups, func(o *group) bool { return o == g })
	h.set = nil
}

// addChild makes child a child of g, unless g is below child: that would be a cycle.
func (g *group) addChild(child *group) error {
	if slices.Contains(g.children, child) {
		return nil
	}
	if child.name == All {
		return fmt.Errorf("group \"all\" cannot be a child of %q: it is above every group", g.name)
	}
	if child == g {
		return fmt.Errorf("group %q cannot be its own child", g.name)
	}
	if child.reaches(g, map[*group]bool{}) {
		return fmt.Errorf("group %q cannot be a child of %q: that would be a cycle, %[2]q is below %[1]q", child.name, g.name)
	}
	g.children = append(g.children, child)
	child.parents = append(child.parents, g)
	return nil
}

func (g *group) reaches(target *group, seen map[*group]bool) bool {
	for _, c := range g.children {
		if c == target {
			return true
		}
		if !seen[c] {
			seen[c] = true
			if c.reaches(target, seen) {
				return true
			}
		}
	}
	return false
}

// setVars adds variables to g; ansible_group_priority among them sets its priority.
func (g *group) setVars(s *VarSet) {
	if s == nil || s.Values.Len() == 0 {
		return
	}
	g.vars = append(g.vars, s)
	if v, ok := s.Values.Get("ansible_group_priority"); ok {
		if n, err := strconv.Atoi(value.Str(v)); err == nil {
			g.priority = n
		}
	}
}

// finalize completes the tree after sources were read: every group is below "all", every host
// is in a group, depths are computed.
func (inv *Inventory) finalize() {
	all, ungrouped := inv.groups[All], inv.groups[Ungrouped]
	for _, g := range inv.groupOrder {
		if g != all && len(g.parents) == 0 {
			_ = all.addChild(g) // never a cycle: "all" is nobody's child
		}
	}
	for _, h := range inv.hosts {
		if len(h.groups) > 1 && ungrouped.member[h.name] {
			ungrouped.leave(h)
		}
	}
	for _, h := range inv.ungrouped() {
		ungrouped.join(h)
	}
	inv.sinkDepths()
	inv.invalidate()
	for _, h := range inv.hosts {
		h.set = nil
	}
}

// ungrouped returns the hosts that are only in "all", in its order.
func (inv *Inventory) ungrouped() []*host {
	var out []*host
	for _, h := range inv.groups[All].hosts {
		if len(h.groups) == 0 {
			out = append(out, h)
		}
	}
	return out
}

func (inv *Inventory) sinkDepths() {
	for _, g := range inv.groupOrder {
		g.depth = 0
	}
	// The tree has no cycle, so depths are stable after at most as many rounds as it is deep.
	for changed := true; changed; {
		changed = false
		for _, g := range inv.groupOrder {
			for _, p := range g.parents {
				if g.depth <= p.depth {
					g.depth = p.depth + 1
					changed = true
				}
			}
		}
	}
}

// clashes warns about groups with the name of a host.
func (inv *Inventory) clashes() source.Diagnostics {
	var ds source.Diagnostics
	for _, g := range inv.groupOrder {
		if inv.hosts[g.name] != nil {
			ds.Add(source.Warningf(g.at, "%q is a group and a host", g.name).
				WithHelp("the pattern %q selects the group: rename one of them", g.name))
		}
	}
	return ds
}
