// Package inventory knows the hosts of a run: which there are, in which
// groups, with which variables, and which of them a pattern means.
//
// Sources are Ansible's INI and YAML inventories, the KubeKey kind, folders of
// these, executables that print JSON, and host lists ("a,b,"). What a source
// is, its content tells.
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

// VarSet is variables of one origin. It does not change once it is part of an
// inventory, and every host that it applies to shares it.
type VarSet struct {
	Name   string      // where they come from, for people: "group_vars/all.yml"
	Values *value.Dict // may be shared: never change it

	// Data says that nothing in it is a template: a run found it out, and a host may have said it.
	Data bool

	at     []keyPos
	unsafe []string
}

type keyPos struct {
	key string
	pos source.Pos
}

// NewVarSet returns a set of variables that no file holds.
func NewVarSet(name string, values *value.Dict) *VarSet {
	return &VarSet{Name: name, Values: values}
}

// At is where a variable stands; the zero Pos when it is not in a file.
func (s *VarSet) At(key string) source.Pos {
	for _, a := range s.at {
		if a.key == key {
			return a.pos
		}
	}
	return source.Pos{}
}

// Unsafe reports whether the variable is, or holds, a value tagged !unsafe:
// none of it is a template.
func (s *VarSet) Unsafe(key string) bool { return slices.Contains(s.unsafe, key) }

// Host is what the inventory says of one host, at the time of asking.
type Host struct {
	Name   string
	File   string    // absolute path of the source that named it last; "" when none did
	Dir    string    // folder of File
	Groups []string  // all groups that it is in, sorted, without "all"
	Vars   []*VarSet // host variables of the sources, later wins; host_vars/ is not among them
}

// Group is what the inventory says of one group, at the time of asking.
type Group struct {
	Name     string
	Hosts    []string // its own, not its children's
	Children []string
	Parents  []string
	Vars     []*VarSet // variables of the sources, later wins; group_vars/ is not among them
	Depth    int       // the longest way down from "all"
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

// Inventory is the hosts and groups of a run. It may be used by many
// goroutines at once; AddHost and AddToGroup change it while it is in use.
type Inventory struct {
	mu         sync.RWMutex
	hosts      map[string]*host
	groups     map[string]*group
	groupOrder []*group
	sources    []string   // as given
	dirs       []*VarsDir // beside the sources, in their order
	tree       source.Tree
	wd         string
	secrets    secretSink

	playbookDirs map[string]*VarsDir
	playbookBad  map[string]source.Diagnostics
	sets         map[string]*groupSet
	members      map[string][]*host  // cache: all hosts of a group with its descendants
	names        map[string][]string // cache: their names
	local        *VarSet             // of a localhost that no source names

	reload  func(context.Context) (*Inventory, source.Diagnostics) // reads the sources again
	changes []func(*Inventory) error                               // what the run did to it, in order
}

func newInventory(o Options) *Inventory {
	inv := &Inventory{
		hosts: map[string]*host{}, groups: map[string]*group{}, tree: o.Tree, wd: o.Dir, secrets: secretSink{o.Secrets},
		playbookDirs: map[string]*VarsDir{}, playbookBad: map[string]source.Diagnostics{}, local: implicitLocal(),
	}
	inv.forget()
	inv.group(All, source.Pos{})
	inv.group(Ungrouped, source.Pos{})
	return inv
}

// forget drops what was worked out from hosts and groups.
func (inv *Inventory) forget() {
	inv.sets, inv.members, inv.names = map[string]*groupSet{}, map[string][]*host{}, map[string][]string{}
}

// Sources returns the sources that were loaded, as given.
func (inv *Inventory) Sources() []string { return slices.Clone(inv.sources) }

// Hosts returns every host in inventory order. The slice is shared: do not change it.
func (inv *Inventory) Hosts() []string { return inv.HostsIn(All) }

// Has reports whether the inventory names the host.
func (inv *Inventory) Has(name string) bool {
	inv.mu.RLock()
	defer inv.mu.RUnlock()
	return inv.hosts[name] != nil
}

// Says reports whether the host's own variables hold all of vars.
func (inv *Inventory) Says(name string, vars *value.Dict) bool {
	inv.mu.RLock()
	defer inv.mu.RUnlock()
	h := inv.hosts[name]
	return h != nil && h.says(vars)
}

// Host returns a host; ok is false when the inventory does not name it.
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

// Groups returns the names of all groups: "all", "ungrouped", then as they
// were first named.
func (inv *Inventory) Groups() []string {
	inv.mu.RLock()
	defer inv.mu.RUnlock()
	return groupNames(inv.groupOrder)
}

// Group returns a group; ok is false when there is none of the name.
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

// GroupsOf returns all groups of a host, those above its own included,
// sorted, without "all". It is shared: do not change it.
func (inv *Inventory) GroupsOf(name string) []string {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if h := inv.hosts[name]; h != nil {
		return inv.setOf(h).names
	}
	return nil
}

// HostsIn returns the hosts of a group and of those below it, in inventory
// order; nothing for an unknown group. The slice is shared: do not change it.
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

// membersOf goes down level by level: a group's own hosts come before those
// of its children, these before those of theirs.
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
