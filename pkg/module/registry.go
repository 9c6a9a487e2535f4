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

// Registry finds modules by name. It is immutable.
type Registry struct {
	byName      map[string]*Spec
	specs       []*Spec
	collections map[string]bool // all collections of modules, with current and former names
}

// NewRegistry returns a registry of groups of modules. Duplicate names are an error.
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

// Builtin is Ansible's own collection, the default for modules.
const Builtin = "ansible.builtin"

// legacy is the Ansible collection that stands for ansible.builtin and a project's own modules.
const legacy = "ansible.legacy"

// own is the collection that contains every module of kk.
const own = "kk"

// HasCollection reports whether any module belongs to an Ansible collection.
func (r *Registry) HasCollection(name string) bool { return name != own && r.collections[name] }

// PlainName removes the collection from a name, if a module belongs to it.
func (r *Registry) PlainName(name string) string {
	_, plain := r.split(name)
	return plain
}

// split splits a name: "ansible.builtin.copy" is copy in ansible.builtin. A name is plain if no module belongs to
// its prefix as a collection; collection is "" then.
func (r *Registry) split(name string) (collection, plain string) {
	if i := strings.LastIndexByte(name, '.'); i > 0 && r.collections[name[:i]] {
		return name[:i], name[i+1:]
	}
	return "", name
}

// Find returns the module with a plain or full name, or nil. The collection of a full name must contain the module.
func (r *Registry) Find(name string) *Spec {
	collection, plain := r.split(name)
	s := r.byName[plain]
	if s == nil || !s.in(collection) {
		return nil
	}
	return s
}

// in reports whether the module can be called by names in the collection. As in Ansible, names in ansible.builtin
// also refer to modules that Ansible moved to other collections.
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

// FullName returns a name of the module, prefixed with its collection.
func (s *Spec) FullName(plain string) string {
	if s.Collection == "" {
		return Builtin + "." + plain
	}
	return s.Collection + "." + plain
}

// Is reports whether a plain or full name refers to the module.
func (s *Spec) Is(name string) bool {
	collection, plain := "", name
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		collection, plain = name[:i], name[i+1:]
	}
	return s.in(collection) && (s.Name == plain || slices.Contains(s.Aliases, plain))
}

// InGroup reports whether module_defaults for a name with the prefix group/ apply to the module.
func (s *Spec) InGroup(name string) bool {
	group, ok := strings.CutPrefix(name, "group/")
	return ok && slices.Contains(s.Groups, group[strings.LastIndex(group, ".")+1:])
}

// prepare reads the struct tags of the module once for all calls.
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

// Decode returns a Runner with these arguments. Secrets among them are registered in the set. Invalid arguments
// return an error of type schema.Errors.
func (s *Spec) Decode(args *value.Dict, secrets *redact.Set) (Runner, error) {
	r := s.New()
	if s.plan == nil {
		return r, schema.Decode(r, args, secrets)
	}
	return r, s.plan.Decode(r, args, secrets)
}
