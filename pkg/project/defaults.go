package project

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
)

// checkDefaults reports errors in module_defaults: unknown modules and arguments. Modules of collections that kk
// does not have, and unknown groups, are only warnings: the tasks that they apply to cannot run in kk anyway.
func (l *Linker) checkDefaults(values []playbook.Value, where place, ds *source.Diagnostics) {
	for _, v := range values {
		if v.Kind() != yaml.MappingNode {
			continue
		}
		n := v.Scalar()
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, args := playbook.Value{Node: n.Content[i], File: v.File}, playbook.Value{Node: n.Content[i+1], File: v.File}
			if n.Content[i].ShortTag() != "!!merge" && !strings.Contains(name.Text(), "{{") {
				l.checkDefault(name, args, where, ds)
			}
		}
	}
}

func (l *Linker) checkDefault(key, args playbook.Value, where place, ds *source.Diagnostics) {
	name, at := key.Text(), key.At()
	if strings.HasPrefix(name, "group/") {
		if !slices.ContainsFunc(l.Modules.Specs(), func(s *module.Spec) bool { return s.InGroup(name) }) {
			ds.Add(withTrace(source.Warningf(at, "module_defaults: kk has no module of %s", name), where))
		}
		return
	}
	spec := l.Modules.Find(name)
	if own, err := l.own(name, where); err == nil && own != nil {
		spec = own
	}
	switch {
	case spec == nil && strings.Count(name, ".") > 1 && l.Modules.PlainName(name) == name:
		ds.Add(withTrace(source.Warningf(at, "module_defaults: kk has no module of the collection of %s", name), where))
	case spec == nil:
		ds.Add(withTrace(l.noModule(name, at), where))
	case args.Kind() == yaml.MappingNode:
		var ignored source.Diagnostics // errors of templates are reported where they are compiled
		problems, places := l.problems(spec, l.mappingArgs(args, spec, &ignored), true)
		for _, p := range problems {
			if p.Kind != schema.Missing {
				ds.Add(withTrace(argumentError(&playbook.Task{Module: name, ModuleAt: at}, spec, p, places), where))
			}
		}
	case !args.IsNull() && !strings.Contains(args.Text(), "{{"):
		ds.Add(withTrace(source.Errorf(args.At(), "module_defaults: the arguments of %s must be a mapping", name), where))
	}
}
