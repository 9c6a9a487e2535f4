package module

import (
	"fmt"
	"sort"
	"strings"

	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Registry finds modules by name. It does not change once made.
type Registry struct {
	byName map[string]*Spec
	specs  []*Spec
}

// NewRegistry makes a registry of groups of modules. A name that is taken
// twice is an error.
func NewRegistry(groups ...[]Spec) (*Registry, error) {
	r := &Registry{byName: map[string]*Spec{}}
	for _, group := range groups {
		for _, s := range group {
			spec := s
			if err := spec.prepare(); err != nil {
				return nil, err
			}
			r.specs = append(r.specs, &spec)
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

// prefixes are the collections whose modules kk has under their plain names.
var prefixes = []string{"ansible.builtin.", "ansible.legacy.", "ansible.posix.", "community.general.", "kubernetes.core.", "kk."}

// PlainName strips the collection of a name that kk knows under its plain name.
func PlainName(name string) string {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(name, p); ok {
			return rest
		}
	}
	return name
}

// Find returns the module of a plain or full name, nil when there is none.
func (r *Registry) Find(name string) *Spec { return r.byName[PlainName(name)] }

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

// Is reports whether the module answers to a plain or full name.
func (s *Spec) Is(name string) bool {
	name = PlainName(name)
	if s.Name == name {
		return true
	}
	for _, a := range s.Aliases {
		if a == name {
			return true
		}
	}
	return false
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

// Decode makes a Runner with these arguments. The error of arguments that are
// wrong is schema.Errors.
func (s *Spec) Decode(args *value.Dict) (Runner, error) {
	r := s.New()
	if s.plan == nil {
		return r, schema.Decode(r, args)
	}
	return r, s.plan.Decode(r, args)
}
