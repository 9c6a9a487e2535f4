package inventory

import (
	"context"
	"fmt"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// AddHost adds a host during the run, or adds groups and variables to an existing one. Missing
// groups are created. The name may include a port. It reports whether the inventory changed.
func (inv *Inventory) AddHost(name string, groups []string, vars *value.Dict) (changed bool, err error) {
	name, port, err := splitPort(name)
	if err != nil || name == "" {
		return false, fmt.Errorf("add host %q: %w", name, orEmpty(err))
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	vars = withPort(vars, port)
	if changed = inv.addHost(name, groups, vars); changed {
		inv.recordChange(func(inv *Inventory) error { inv.addHost(name, groups, vars); return nil })
	}
	return changed, nil
}

func (inv *Inventory) addHost(name string, groups []string, vars *value.Dict) (changed bool) {
	changed = inv.hosts[name] == nil
	h := inv.host(name, "")
	inv.groups[All].join(h)
	for _, g := range groups {
		changed = inv.joinAtRun(h, g) || changed
	}
	if vars.Len() > 0 && !h.hasVars(vars) {
		h.vars = append(h.vars, &VarSet{Name: "add_host", Values: vars, Data: true})
		changed = true
	}
	if changed {
		inv.finalize()
	}
	return changed
}

// recordChange stores a change of the run for Refresh.
func (inv *Inventory) recordChange(change func(*Inventory) error) {
	inv.changes = append(inv.changes, change)
}

// Refresh reads the sources again, and repeats the changes of the run (add_host, group_by).
// If the sources have errors the inventory remains unchanged.
func (inv *Inventory) Refresh(ctx context.Context) source.Diagnostics {
	fresh, ds := inv.reload(ctx)
	if ds.Err() != nil {
		return ds
	}
	ds = nil // its warnings were shown when the run began
	inv.mu.Lock()
	defer inv.mu.Unlock()
	for _, change := range inv.changes {
		if err := change(fresh); err != nil { // the host no longer exists
			ds.Add(source.Warningf(source.Pos{}, "%s", err))
		}
	}
	inv.hosts, inv.groups, inv.groupOrder = fresh.hosts, fresh.groups, fresh.groupOrder
	inv.dirs, inv.playbookDirs, inv.playbookBad = fresh.dirs, fresh.playbookDirs, fresh.playbookBad
	inv.sets, inv.members, inv.names, inv.local = fresh.sets, fresh.members, fresh.names, fresh.local
	return ds
}

func orEmpty(err error) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("the name is empty")
}

func withPort(vars *value.Dict, port int) *value.Dict {
	vars = vars.Copy()
	if port > 0 {
		vars.Set("ansible_port", port)
	}
	return vars
}

// hasVars reports whether the host's variables already contain all of vars.
func (h *host) hasVars(vars *value.Dict) bool {
	for k, want := range vars.All() {
		if have, ok := h.value(k); !ok || !value.Equal(have, want) {
			return false
		}
	}
	return true
}

// value is the value of a key in the last of the host's own sets that has it.
func (h *host) value(key any) (v any, ok bool) {
	for i := len(h.vars) - 1; i >= 0; i-- {
		if v, ok = h.vars[i].Values.Get(key); ok {
			return v, true
		}
	}
	return nil, false
}

func (inv *Inventory) joinAtRun(h *host, name string) bool {
	g := inv.group(name, source.Pos{})
	if g.name == All || g.member[h.name] {
		return false
	}
	g.join(h)
	return true
}

// AddGroup adds a group without hosts, unless it exists: a pattern with an optional group then
// matches nothing, instead of being unknown.
func (inv *Inventory) AddGroup(name string) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	known := len(inv.groupOrder)
	if inv.group(name, source.Pos{}); len(inv.groupOrder) != known {
		inv.finalize()
		inv.recordChange(func(inv *Inventory) error { inv.AddGroup(name); return nil })
	}
}

// AddToGroup puts a host of the inventory into a group during the run (group_by), below
// parents. Missing groups are created. It reports whether the inventory changed.
func (inv *Inventory) AddToGroup(hostName, groupName string, parents []string) (changed bool, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if changed, err = inv.addToGroup(hostName, groupName, parents); changed {
		inv.recordChange(func(inv *Inventory) error { _, err := inv.addToGroup(hostName, groupName, parents); return err })
	}
	return changed, err
}

func (inv *Inventory) addToGroup(hostName, groupName string, parents []string) (changed bool, err error) {
	h := inv.hosts[hostName]
	if h == nil {
		return false, fmt.Errorf("add to group %q: the inventory has no host %q", groupName, hostName)
	}
	known := len(inv.groupOrder)
	changed = inv.joinAtRun(h, groupName)
	g := inv.groups[groupName]
	for _, p := range parents {
		parent := inv.group(p, source.Pos{})
		before := len(parent.children)
		if err := parent.addChild(g); err != nil {
			return changed, err
		}
		changed = changed || len(parent.children) != before
	}
	if changed = changed || len(inv.groupOrder) != known; changed {
		inv.finalize()
	}
	return changed, nil
}
