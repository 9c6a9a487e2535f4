package module

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Registry finds modules by name. It does not change once made.
type Registry struct {
	byName      map[string]*Spec
	specs       []*Spec
	collections map[string]bool // those that modules are of, by their names of today and before
}

// NewRegistry makes a registry of groups of modules. A name that is taken
// twice is an error.
func NewRegistry(groups ...[]Spec) (*Registry, error) {
	r := &Registry{byName: map[string]*Spec{}, collections: map[string]bool{Builtin: true, legacy: true, own: true}}
	for _, group := range groups {
		for _, s := range group {
			spec := s
			if err := spec.prepare(); err != nil {
				return nil, err
			}
			r.specs = append(r.specs, &spec)
			for _, c := range []string{s.Collection, s.Former} {
				if c != "" {
					r.collections[c] = true
				}
			}
			for _, name := range append([]string{s.Name}, s.Aliases...) {
				if r.byName[name] != nil {
					return nil, fmt.Errorf("two modules are named %q", name)
				}
				r.byName[name] = &spec
			}
		}
	}
	sort.Slice(r.specs, func(i, j int) bool { return r.specs[i].Name < r.specs[j].Name })
	return r, nil
}

// Builtin is Ansible's own collection, in which modules are that do not name another one.
const Builtin = "ansible.builtin"

// legacy is the collection of Ansible that means ansible.builtin, and a project's own modules.
const legacy = "ansible.legacy"

// own is the collection that every module of kk is in.
const own = "kk"

// HasCollection reports whether a module is of a collection of Ansible.
func (r *Registry) HasCollection(name string) bool { return name != own && r.collections[name] }

// PlainName strips the collection of a name, if a module is of it.
func (r *Registry) PlainName(name string) string {
	_, plain := r.split(name)
	return plain
}

// split splits a name: "ansible.builtin.copy" is copy of ansible.builtin.
// A name without a collection that a module is of is plain: its collection is "".
func (r *Registry) split(name string) (collection, plain string) {
	if i := strings.LastIndexByte(name, '.'); i > 0 && r.collections[name[:i]] {
		return name[:i], name[i+1:]
	}
	return "", name
}

// Find returns the module of a plain or full name, nil when there is none: a
// full name must be of a collection that has the module.
func (r *Registry) Find(name string) *Spec {
	collection, plain := r.split(name)
	s := r.byName[plain]
	if s == nil || !s.in(collection) {
		return nil
	}
	return s
}

// in reports whether the module answers to names of the collection. Names of
// ansible.builtin lead to modules that Ansible moved to other collections too,
// as they do in Ansible.
func (s *Spec) in(collection string) bool {
	switch collection {
	case "", own, s.Collection:
		return true
	case Builtin, legacy:
		return s.Collection != own
	}
	return collection == s.Former
}

// Specs lists the modules, sorted by name.
func (r *Registry) Specs() []*Spec { return r.specs }

// Names lists all names and aliases, sorted.
func (r *Registry) Names() []string {
	names := make([]string, 0, len(r.byName))
	for n := range r.byName {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// FullName is a name of the module with its collection before it.
func (s *Spec) FullName(plain string) string {
	if s.Collection == "" {
		return Builtin + "." + plain
	}
	return s.Collection + "." + plain
}

// Is reports whether the module answers to a plain or full name.
func (s *Spec) Is(name string) bool {
	collection, plain := "", name
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		collection, plain = name[:i], name[i+1:]
	}
	return s.in(collection) && (s.Name == plain || slices.Contains(s.Aliases, plain))
}

// InGroup reports whether module_defaults of a name that begins with group/ are for the module.
func (s *Spec) InGroup(name string) bool {
	group, ok := strings.CutPrefix(name, "group/")
	return ok && slices.Contains(s.Groups, group[strings.LastIndex(group, ".")+1:])
}

// prepare reads the tags of the module's struct, once for all of its calls.
func (s *Spec) prepare() error {
	if s.New == nil {
		return nil
	}
	plan, err := schema.PlanFor(s.New())
	if err != nil {
		return fmt.Errorf("module %s: %w", s.Name, err)
	}
	s.plan = plan
	return nil
}

// Decode makes a Runner with these arguments; the set hides the secrets among
// them. The error of arguments that are wrong is schema.Errors.
func (s *Spec) Decode(args *value.Dict, secrets *redact.Set) (Runner, error) {
	r := s.New()
	if s.plan == nil {
		return r, schema.Decode(r, args, secrets)
	}
	return r, s.plan.Decode(r, args, secrets)
}
