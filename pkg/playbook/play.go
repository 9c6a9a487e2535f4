package playbook

import (
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func (p *file) item(n *yaml.Node) Item {
	if n.Kind != yaml.MappingNode {
		p.errorf(n, "a play must be a mapping, not %s", shown(n)).WithHelp("start each play with `- hosts: ...`")
		return nil
	}
	v := p.value(n)
	for _, name := range []string{"import_playbook", "ansible.builtin.import_playbook"} {
		if path := v.Get(name); path.IsSet() {
			return p.importPlaybook(n, name)
		}
	}
	return p.play(n)
}

func (p *file) importPlaybook(n *yaml.Node, key string) Item {
	imp := &ImportPlaybook{At: source.NodePos(p.f, n)}
	p.each(n, func(k, v *yaml.Node) {
		switch k.Value {
		case key:
			imp.Path = p.value(v)
			if imp.Path.Text() == "" {
				p.errorf(v, "import_playbook needs the path of a playbook")
			}
		case "name":
		case "when":
			imp.When = p.conditions(v, "when")
		case "tags":
			imp.Tags = p.tags(v)
		case "vars":
			imp.Vars = p.vars(v, "vars")
		default:
			p.errorf(k, "'%s' is not a valid attribute for a PlaybookInclude", k.Value).
				WithHelp("import_playbook accepts name, vars, when and tags")
		}
	})
	return imp
}

func (p *file) play(n *yaml.Node) *Play {
	pl := &Play{At: source.NodePos(p.f, n)}
	fields := map[string]*Value{
		"gather_facts": &pl.GatherFacts, "gather_subset": &pl.GatherSubset,
		"gather_timeout": &pl.GatherTimeout, "fact_path": &pl.FactPath,
		"vars_files": &pl.VarsFiles, "serial": &pl.Serial, "order": &pl.Order,
		"strategy": &pl.Strategy, "max_fail_percentage": &pl.MaxFailPercentage,
		"force_handlers": &pl.ForceHandlers, "serial_continue_on_batch_failure": &pl.SerialContinue,
		"hosts": &pl.Hosts,
	}
	sections := map[string]*[]Step{
		"pre_tasks": &pl.PreTasks, "tasks": &pl.Tasks, "post_tasks": &pl.PostTasks, "handlers": &pl.Handlers,
	}
	p.each(n, func(k, v *yaml.Node) {
		if field := fields[k.Value]; field != nil {
			p.checkKeyword(k.Value, v)
			*field = p.value(v)
			return
		}
		if steps := sections[k.Value]; steps != nil {
			*steps = p.steps(v, k.Value == "handlers")
			return
		}
		switch {
		case k.Value == "name":
			pl.Name = p.text(v, "name")
		case k.Value == "roles":
			pl.Roles = p.roles(v)
		case k.Value == "vars_prompt":
			pl.VarsPrompt = p.prompts(v)
		case p.attr(&pl.Attrs, OnPlay, k, v):
		default:
			p.unknown(k, OnPlay, "Play")
		}
	})
	p.checkPlay(n, pl)
	return pl
}

func (p *file) prompts(n *yaml.Node) []*Prompt {
	var out []*Prompt
	for _, v := range (Value{n, p.f}).Elements() {
		if v.Kind() != yaml.MappingNode {
			p.errorf(v.Node, "an element of vars_prompt must be a mapping").WithHelp("write `- name: VARIABLE`")
			continue
		}
		pr := &Prompt{At: v.At(), Name: v.Get("name").Text()}
		fields := map[string]*Value{
			"name": new(Value), "prompt": &pr.Text, "default": &pr.Default, "private": &pr.Private, "confirm": &pr.Confirm,
			"encrypt": &pr.Encrypt, "salt": &pr.Salt, "salt_size": &pr.Size, "unsafe": &pr.Unsafe,
		}
		types := map[string]Type{
			"prompt": Text, "private": Bool, "confirm": Bool, "encrypt": Text, "salt": Text, "salt_size": Count, "unsafe": Bool,
		}
		p.each(source.Resolve(v.Node), func(k, val *yaml.Node) {
			field := fields[k.Value]
			if field == nil {
				p.errorf(k, "vars_prompt has no key %q", k.Value).
					WithHelp("%s", source.DidYouMean(k.Value, slices.Sorted(maps.Keys(fields))))
				return
			}
			p.check(k.Value, types[k.Value], val)
			*field = p.value(val)
		})
		switch {
		case pr.Name == "":
			p.errorf(v.Node, "an element of vars_prompt has no name").WithHelp("add `name: VARIABLE`")
		case !IsIdentifier(pr.Name):
			p.errorf(v.Get("name").Node, "%q cannot be the name of a variable", pr.Name)
		}
		out = append(out, pr)
	}
	return out
}

func (p *file) checkPlay(n *yaml.Node, pl *Play) {
	if !pl.Hosts.IsSet() {
		p.errorf(n, "the play has no hosts").WithHelp("add `hosts: all`, or the group to run on")
	} else if pl.Hosts.IsNull() || len(pl.Hosts.Elements()) == 0 ||
		(pl.Hosts.Kind() == yaml.ScalarNode && strings.TrimSpace(pl.Hosts.Text()) == "") {
		p.errorf(pl.Hosts.Node, "Hosts list cannot be empty. Please check your playbook")
	}
}

func (p *file) text(n *yaml.Node, what string) string {
	n = source.Resolve(n)
	if n.Kind != yaml.ScalarNode {
		p.errorf(n, "%s must be a string, not %s", what, shown(n))
		return ""
	}
	if value.IsSealed(n) {
		p.errorf(n, "%s cannot be encrypted", what).WithHelp("it is read before a host is known: write it in plain text")
		return ""
	}
	if n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

func (p *file) roles(n *yaml.Node) []*RoleEntry {
	var out []*RoleEntry
	for _, e := range p.list(n, "roles") {
		if r := p.role(e); r != nil {
			out = append(out, r)
		}
	}
	return out
}

func (p *file) role(n *yaml.Node) *RoleEntry {
	r := &RoleEntry{At: source.NodePos(p.f, n), Params: &Vars{}}
	switch n.Kind {
	case yaml.ScalarNode:
		r.Name = p.value(n)
	case yaml.MappingNode:
		p.each(n, func(k, v *yaml.Node) { p.roleKey(r, k, v) })
	default:
		p.errorf(n, "a role must be a name or a mapping with role: NAME")
		return nil
	}
	name := r.Name.Text()
	switch {
	case name == "":
		p.errorf(n, "the role has no name").WithHelp("write `- role: NAME`")
		return nil
	case strings.Contains(name, ",") && !isTemplate(name):
		p.errorf(r.Name.Node, "the comma form of roles is not supported").
			WithHelp("write a mapping: {role: NAME, key: value}")
		return nil
	}
	return r
}

func (p *file) roleKey(r *RoleEntry, k, v *yaml.Node) {
	switch k.Value {
	case "role", "name":
		r.Name = p.value(v)
	case "src", "scm", "version": // from requirements files: where a role was fetched from
	case "tasks_from":
		r.From.Tasks = p.value(v)
	case "vars_from":
		r.From.Vars = p.value(v)
	case "defaults_from":
		r.From.Defaults = p.value(v)
	case "handlers_from":
		r.From.Handlers = p.value(v)
	case "allow_duplicates":
		p.check(k.Value, Bool, v)
		r.Dup = p.value(v)
	default:
		if p.attr(&r.Attrs, OnRole, k, v) {
			return
		}
		if why, ok := unsupported()[k.Value]; ok {
			p.errorf(k, "keyword %q is not supported", k.Value).WithHelp("%s", why)
			return
		}
		if !IsIdentifier(k.Value) {
			p.errorf(k, "%q is not a valid role parameter", k.Value)
			return
		}
		if near := source.Nearest(k.Value, p.names(OnRole)); near != "" && len(k.Value) > 3 {
			p.warnf(k, "%q is used as a parameter of the role", k.Value).WithHelp("did you mean the keyword %q?", near)
		}
		r.Params.set(k.Value, p.value(v))
	}
}
