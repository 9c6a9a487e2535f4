// Package inventory has the hosts of a run, their groups and variables, and resolves host
// patterns.
//
// Sources are Ansible's INI and YAML inventories, the KubeKey kind, folders of these,
// executables that print JSON, and host lists ("a,b,"). The content of a source determines
// its format.
package inventory

import (
	"context"
	"path/filepath"
	"slices"
	"sort"
	"sync"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// All and Ungrouped are the groups that every inventory has.
const (
	All       = "all"
	Ungrouped = "ungrouped"
)

// VarSet is variables of one origin. It does not change once it is part of an inventory, and
// is shared by every host that it applies to.
type VarSet struct {
	Name   string      // origin for messages: "group_vars/all.yml"
	Values *value.Dict // may be shared: never change it

	// Data means that nothing in it is a template: it was gathered during the run, possibly from a host.
	Data bool

	at     []keyPos
	unsafe []string
}

type keyPos struct {
	key string
	pos source.Pos
}

// NewVarSet returns a set of variables that are not from a file.
func NewVarSet(name string, values *value.Dict) *VarSet {
	return &VarSet{Name: name, Values: values}
}

// At is the position of a variable; the zero Pos if it is not in a file.
func (s *VarSet) At(key string) source.Pos {
	for _, a := range s.at {
		if a.key == key {
			return a.pos
		}
	}
	return source.Pos{}
}

// Unsafe reports whether the variable is, or contains, a value tagged !unsafe, in which
// templates are not evaluated.
func (s *VarSet) Unsafe(key string) bool { return slices.Contains(s.unsafe, key) }

// Host is the inventory's current data about one host.
type Host struct {
	Name   string
	File   string    // absolute path of the source that named it last; "" if none did
	Dir    string    // folder of File
	Groups []string  // all groups that it is in, sorted, without "all"
	Vars   []*VarSet // host variables of the sources without host_vars/; later ones win
}

// Group is the inventory's current data about one group.
type Group struct {
	Name     string
	Hosts    []string // its own, not its children's
	Children []string
	Parents  []string
	Vars     []*VarSet // variables of the sources without group_vars/; later ones win
	Depth    int       // the longest path from "all"
	Priority int       // ansible_group_priority, 1 unless set
}

type host struct {
	name, file string
	groups     []*group // direct ones, without all
	vars       []*VarSet
	set        *groupSet // cache: all groups, ordered, with their layers
}

type group struct {
	name              string
	hosts             []*host
	member            map[string]bool
	children, parents []*group
	vars              []*VarSet
	depth, priority   int
	at                source.Pos
}

// Inventory is the hosts and groups of a run. It is safe for concurrent use; AddHost and
// AddToGroup change it while it is in use.
type Inventory struct {
	mu         sync.RWMutex
	hosts      map[string]*host
	groups     map[string]*group
	groupOrder []*group
	sources    []string              // as given
	files      []string              // static files that were read, absolute
	places     map[string]source.Pos // of the lines that name the hosts, the first of each
	options    Options
	dirs       []*VarsDir // next to the sources, in their order
	tree       source.Tree
	wd         string
	secrets    secretSink

	playbookDirs map[string]*VarsDir
	playbookBad  map[string]source.Diagnostics
	sets         map[string]*groupSet
	members      map[string][]*host  // cache: all hosts of a group with its descendants
	names        map[string][]string // cache: their names
	local        *VarSet             // of a localhost that is in no source

	reload  func(context.Context) (*Inventory, source.Diagnostics) // reads the sources again
	changes []func(*Inventory) error                               // changes by the run, in order
}

func newInventory(o Options) *Inventory {
	inv := &Inventory{
		hosts: map[string]*host{}, groups: map[string]*group{}, tree: o.Tree, wd: o.Dir, secrets: secretSink{o.Secrets},
		playbookDirs: map[string]*VarsDir{}, playbookBad: map[string]source.Diagnostics{}, local: implicitLocal(),
		options: o, places: map[string]source.Pos{},
	}
	inv.invalidate()
	inv.group(All, source.Pos{})
	inv.group(Ungrouped, source.Pos{})
	return inv
}

// invalidate drops the caches that depend on hosts and groups.
func (inv *Inventory) invalidate() {
	inv.sets, inv.members, inv.names = map[string]*groupSet{}, map[string][]*host{}, map[string][]string{}
}

// Sources returns the sources that were loaded, as given.
func (inv *Inventory) Sources() []string { return slices.Clone(inv.sources) }

// Hosts returns every host in inventory order. The slice is shared: do not modify it.
func (inv *Inventory) Hosts() []string { return inv.HostsIn(All) }

// Has reports whether the host is in the inventory.
func (inv *Inventory) Has(name string) bool {
	inv.mu.RLock()
	defer inv.mu.RUnlock()
	return inv.hosts[name] != nil
}

// HasVars reports whether the host's own variables contain all of vars.
func (inv *Inventory) HasVars(name string, vars *value.Dict) bool {
	inv.mu.RLock()
	defer inv.mu.RUnlock()
	h := inv.hosts[name]
	return h != nil && h.hasVars(vars)
}

// Host returns a host; ok is false if it is not in the inventory.
func (inv *Inventory) Host(name string) (h Host, ok bool) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	found := inv.hosts[name]
	if found == nil {
		return Host{}, false
	}
	h = Host{Name: name, File: found.file, Vars: slices.Clone(found.vars), Groups: slices.Clone(inv.setOf(found).names)}
	if h.File != "" {
		h.Dir = filepath.Dir(h.File)
	}
	return h, true
}

// Groups returns the names of all groups: "all", "ungrouped", then in the order of first
// mention.
func (inv *Inventory) Groups() []string {
	inv.mu.RLock()
	defer inv.mu.RUnlock()
	return groupNames(inv.groupOrder)
}

// Group returns a group; ok is false if there is no such group.
func (inv *Inventory) Group(name string) (g Group, ok bool) {
	inv.mu.RLock()
	defer inv.mu.RUnlock()
	found := inv.groups[name]
	if found == nil {
		return Group{}, false
	}
	return Group{
		Name: name, Hosts: hostNames(found.hosts), Children: groupNames(found.children), Parents: groupNames(found.parents),
		Vars: slices.Clone(found.vars), Depth: found.depth, Priority: found.priority,
	}, true
}

// GroupsOf returns all groups of a host including the ancestors of its own, sorted, without
// "all". The slice is shared: do not modify it.
func (inv *Inventory) GroupsOf(name string) []string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if h := inv.hosts[name]; h != nil {
		return inv.setOf(h).names
	}
	return nil
}

// HostsIn returns the hosts of a group and of its descendants, in inventory order; nothing for
// an unknown group. The slice is shared: do not modify it.
func (inv *Inventory) HostsIn(name string) []string {
	inv.mu.RLock()
	names, ok := inv.names[name]
	inv.mu.RUnlock()
	if ok {
		return names
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	names = hostNames(inv.membersOf(name))
	if inv.groups[name] != nil {
		inv.names[name] = names
	}
	return names
}

// membersOf works level by level: a group's own hosts come before those of its children, and
// these before those of their children.
func (inv *Inventory) membersOf(name string) []*host {
	top := inv.groups[name]
	if top == nil {
		return nil
	}
	if cached, ok := inv.members[name]; ok {
		return cached
	}
	var out []*host
	seen, taken := map[*group]bool{top: true}, map[*host]bool{}
	for level := []*group{top}; len(level) > 0; {
		var next []*group
		for _, g := range level {
			for _, h := range g.hosts {
				if !taken[h] {
					taken[h] = true
					out = append(out, h)
				}
			}
			for _, c := range g.children {
				if !seen[c] {
					seen[c] = true
					next = append(next, c)
				}
			}
		}
		level = next
	}
	inv.members[name] = out
	return out
}

func hostNames(hosts []*host) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = h.name
	}
	return out
}

func groupNames(groups []*group) []string {
	out := make([]string, len(groups))
	for i, g := range groups {
		out[i] = g.name
	}
	return out
}

func sortedGroupNames(groups []*group) []string {
	out := groupNames(groups)
	sort.Strings(out)
	return out
}
