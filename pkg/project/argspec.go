package project

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/argspec"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

const validator = "validate_argument_spec"

// validation returns the task that validates the arguments of a role, if the role declares them for the entry point
// in use.
func (l *Linker) validation(use roleUse, meta *playbook.Meta, where place, ds *source.Diagnostics) []Step {
	spec := l.Modules.Find(validator)
	specs := l.argumentSpecs(meta, where, ds)
	if use.unchecked || spec == nil || specs.Kind() != yaml.MappingNode {
		return nil
	}
	point := strings.TrimSuffix(use.from.tasks, path.Ext(use.from.tasks))
	if point == "" {
		point = "main"
	}
	at := specs.Get(point)
	if at.Kind() != yaml.MappingNode {
		return nil
	}
	raw, err := value.FromYAML(at.Scalar())
	entry, _ := raw.(*value.Dict)
	if err != nil {
		ds.Add(withTrace(source.Errorf(at.At(), "%s", err), where))
		return nil
	}
	attrs := where.attrs.inherit(Attrs{Tags: []string{"always"}})
	if !l.Selection.Runs(attrs.Tags) {
		return nil
	}
	title := fmt.Sprintf("Validating arguments against arg spec '%s'", point)
	if about := entry.String("short_description"); about != "" {
		title += " - " + about
	}
	return []Step{&Task{
		Syntax: &playbook.Task{Pos: at.At(), Name: title, Module: validator}, At: at.At(), Name: template.Literal(title),
		Action: validator, Spec: spec, Attrs: attrs, Args: l.validatorArgs(use, point, entry, where, ds),
		Play: where.play, Role: where.role, Static: where.static, SearchPath: where.searchPath(), Trace: where.trace,
		place: where,
	}}
}

// validatorArgs returns the arguments of the task: the spec as written, and the parameters of the role.
func (l *Linker) validatorArgs(use roleUse, point string, entry *value.Dict, where place,
	ds *source.Diagnostics) *template.Data {
	var given []string
	var vals []*template.Data
	for _, layer := range use.params {
		for _, name := range layer.Names() {
			d, err := l.Engine.Data("{{ "+name+" }}", layer.At(name))
			if err != nil {
				ds.Add(diagnostic(err, layer.At(name)))
				continue
			}
			given, vals = append(given, name), append(vals, d)
		}
	}
	options, rules := value.NewDict(), value.NewDict()
	for k, v := range entry.All() {
		switch key := value.Str(k); {
		case key == "options":
			if d, ok := v.(*value.Dict); ok {
				options = d
			}
		case slices.Contains(argumentRules(), key):
			rules.Set(key, v)
		}
	}
	context := value.NewDict("type", "role", "name", where.role.Name, "argument_spec_name", point, "path", where.role.Path)
	return template.Mapping([]string{"argument_spec", "rules", "provided_arguments", "validate_args_context"},
		[]*template.Data{template.Literal(options), template.Literal(rules), template.Mapping(given, vals),
			template.Literal(context)})
}

func argumentRules() []string {
	return []string{"mutually_exclusive", "required_together", "required_one_of", "required_if", "required_by"}
}

// argumentSpecs returns the specs of a role by entry point: those of meta/argument_specs.yml if it exists, else those
// of meta/main.yml.
func (l *Linker) argumentSpecs(meta *playbook.Meta, where place, ds *source.Diagnostics) playbook.Value {
	specs := meta.ArgumentSpecs
	if p, ok := l.mainFile(where.role.Path+"/meta", "argument_specs"); ok {
		f, err := l.read(p)
		if err != nil {
			ds.Add(withTrace(source.Errorf(source.Pos{}, "read %s: %s", source.Shown(p), err), where))
			return playbook.Value{}
		}
		var more source.Diagnostics
		specs, more = l.parser.ArgumentSpecs(f)
		*ds = append(*ds, more...)
	}
	l.members(specs, func(_ string, point playbook.Value) { l.checkOptions(point, where, ds) })
	return specs
}

// members calls f for each key of a mapping.
func (l *Linker) members(v playbook.Value, f func(key string, v playbook.Value)) {
	if v.Kind() != yaml.MappingNode {
		return
	}
	n := v.Scalar()
	for i := 0; i+1 < len(n.Content); i += 2 {
		f(n.Content[i].Value, playbook.Value{Node: n.Content[i+1], File: v.File})
	}
}

// checkOptions reports unknown types.
func (l *Linker) checkOptions(of playbook.Value, where place, ds *source.Diagnostics) {
	l.members(of.Get("options"), func(name string, o playbook.Value) {
		for _, key := range []string{"type", "elements"} {
			v := o.Get(key)
			if v.IsSet() && !slices.Contains(argspec.Types(), v.Text()) {
				d := source.Errorf(v.At(), "argument %s: there is no type %q", name, v.Text())
				ds.Add(withTrace(d.WithHelp("choose one of: %s", strings.Join(argspec.Types(), ", ")), where))
			}
		}
		l.checkOptions(o, where, ds)
	})
}
