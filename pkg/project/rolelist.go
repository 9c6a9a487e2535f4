package project

import (
	"slices"
	"sync"
)

// RoleList contains the names of the roles of a play. A public include_role adds to it while the play runs.
type RoleList struct {
	mu                           sync.RWMutex
	entries, imported, dependent []string
}

// add adds a role: an entry of the play's list, an imported role, or a dependency.
func (r *RoleList) add(name string, imported, dependency bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !dependency && imported:
		r.imported = append(r.imported, name)
	case !dependency:
		r.entries = append(r.entries, name)
	case !slices.Contains(r.dependent, name):
		r.dependent = append(r.dependent, name)
	}
}

// Direct returns the roles in the play's list, then the imported ones.
func (r *RoleList) Direct() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Concat(r.entries, r.imported)
}

// Dependent returns the roles that others depend on, each once.
func (r *RoleList) Dependent() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.dependent)
}

// All returns the direct and the dependent roles, each once.
func (r *RoleList) All() []string {
	var out []string
	for _, name := range slices.Concat(r.Direct(), r.Dependent()) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Includers returns the roles whose tasks include or import r, the nearest first. Roles that depend on r do not
// count.
func (r *Role) Includers() []*Role {
	var out []*Role
	for ; r != nil && r.Parent != nil; r = r.Parent {
		if !r.dependency {
			out = append(out, r.Parent)
		}
	}
	return out
}
