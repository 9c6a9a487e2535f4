package engine

import (
	"fmt"
	"maps"
	"sort"
	"sync"

	"kubekey/pkg/inventory"
	"kubekey/pkg/playbook"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// here is the place that a view is of: what the magic variables tell about.
type here struct {
	e    *Engine
	play *playState
	task *project.Task

	keyword bool // a keyword is evaluated: see forKeywords
}

// magic gives the magic variables their values.
type magic struct{ e *Engine }

func at(v *vars.View) *here {
	h, _ := v.Task.(*here)
	if h == nil {
		return &here{play: &playState{}}
	}
	return h
}

func short(host string) string {
	for i, c := range host {
		if c == '.' && i > 0 {
			return host[:i]
		}
	}
	return host
}

// Magic implements vars.Magic.
func (m magic) Magic(name string, v *vars.View) (any, bool, error) {
	of := magicValues()[name]
	if of == nil {
		return nil, false, nil
	}
	val, ok := of(m.e, at(v), v)
	return val, ok, nil
}

// MagicNames implements vars.Magic.
func (m magic) MagicNames() []string { return playbook.MagicNames() }

// magicValue is a magic variable of a view, which is of the place h; ok is
// false where it has no value.
type magicValue func(e *Engine, h *here, v *vars.View) (val any, ok bool)

// magicValues are the values of playbook.MagicNames.
var magicValues = sync.OnceValue(func() map[string]magicValue {
	out := map[string]magicValue{}
	maps.Copy(out, ofHost())
	maps.Copy(out, ofRun())
	maps.Copy(out, ofPlay())
	maps.Copy(out, ofTask())
	for _, row := range playbook.MagicVariables() {
		for _, alias := range row.Aliases {
			out[alias] = out[row.Name]
		}
	}
	return out
})

func ofHost() map[string]magicValue {
	return map[string]magicValue{
		"inventory_hostname":       func(_ *Engine, _ *here, v *vars.View) (any, bool) { return v.Host(), true },
		"inventory_hostname_short": func(_ *Engine, _ *here, v *vars.View) (any, bool) { return short(v.Host()), true },
		"inventory_file":           func(e *Engine, _ *here, v *vars.View) (any, bool) { return e.inventoryFile(v.Host()) },
		"inventory_dir": func(e *Engine, _ *here, v *vars.View) (any, bool) {
			file, ok := e.inventoryFile(v.Host())
			return source.Dir(file), ok
		},
		"group_names": func(e *Engine, _ *here, v *vars.View) (any, bool) {
			return value.Of(e.Inventory.GroupsOf(v.Host())), true
		},
		"vars": func(_ *Engine, _ *here, v *vars.View) (any, bool) { return &allVars{v: v}, true },
		"ansible_facts": func(_ *Engine, _ *here, v *vars.View) (any, bool) {
			if facts := v.Facts(); facts != nil {
				return facts, true
			}
			return value.NewDict(), true
		},
	}
}

// inventoryFile is the inventory file that has a host.
func (e *Engine) inventoryFile(host string) (string, bool) {
	h, ok := e.Inventory.Host(host)
	if !ok || h.File == "" {
		return "", false
	}
	return h.File, true
}

func ofRun() map[string]magicValue {
	of := func(value func(e *Engine) any) magicValue {
		return func(e *Engine, _ *here, _ *vars.View) (any, bool) { return value(e), true }
	}
	return map[string]magicValue{
		"groups":                    of(func(e *Engine) any { return groups{e.Inventory} }),
		"hostvars":                  func(e *Engine, _ *here, v *vars.View) (any, bool) { return hostvars{e, v}, true },
		"omit":                      of(func(e *Engine) any { return e.omit }),
		"kk_work_dir":               of(func(e *Engine) any { return e.WorkDir }),
		"ansible_check_mode":        of(func(e *Engine) any { return e.Check }),
		"ansible_diff_mode":         of(func(e *Engine) any { return e.Diff }),
		"ansible_verbosity":         of(func(e *Engine) any { return e.Verbosity }),
		"ansible_forks":             of(func(e *Engine) any { return e.Forks }),
		"ansible_limit":             func(e *Engine, _ *here, _ *vars.View) (any, bool) { return e.LimitText, e.LimitText != "" },
		"ansible_run_tags":          of(func(e *Engine) any { return value.Of(e.runTags()) }),
		"ansible_skip_tags":         of(func(e *Engine) any { return value.Of(e.SkipTags) }),
		"ansible_inventory_sources": of(func(e *Engine) any { return value.Of(e.Inventory.Sources()) }),
		"ansible_version":           of(func(*Engine) any { return ansibleVersion() }),
		"ansible_playbook_python":   of(func(*Engine) any { return "/usr/bin/python3" }),
		"ansible_config_file": of(func(e *Engine) any {
			if e.ConfigFile == "" {
				return nil
			}
			return e.ConfigFile
		}),
	}
}

func (e *Engine) runTags() []string {
	if len(e.Tags) == 0 {
		return []string{"all"}
	}
	return e.Tags
}

func ofPlay() map[string]magicValue {
	of := func(value func(e *Engine, ps *playState) any) magicValue {
		return func(e *Engine, h *here, _ *vars.View) (any, bool) {
			if h.play.play == nil {
				return nil, false
			}
			return value(e, h.play), true
		}
	}
	return map[string]magicValue{
		"playbook_dir":           func(_ *Engine, h *here, _ *vars.View) (any, bool) { return h.play.dir, h.play.dir != "" },
		"ansible_play_name":      of(func(_ *Engine, ps *playState) any { return ps.name }),
		"ansible_play_hosts":     of(func(e *Engine, ps *playState) any { return value.Of(e.alive(ps.hosts)) }),
		"ansible_play_hosts_all": of(func(_ *Engine, ps *playState) any { return value.Of(ps.hosts) }),
		"ansible_play_batch":     of(func(e *Engine, ps *playState) any { return value.Of(e.alive(ps.batch)) }),
		"ansible_failed_hosts":   of(func(e *Engine, ps *playState) any { return value.Of(e.standing.failedOf(ps.batch)) }),

		"ansible_role_names":           of(func(_ *Engine, ps *playState) any { return value.Of(ps.play.Roles.All()) }),
		"ansible_play_role_names":      of(func(_ *Engine, ps *playState) any { return value.Of(ps.play.Roles.Direct()) }),
		"ansible_dependent_role_names": of(func(_ *Engine, ps *playState) any { return value.Of(ps.play.Roles.Dependent()) }),
	}
}

// ofTask are the variables of the task and of its role.
func ofTask() map[string]magicValue {
	of := func(value func(e *Engine, t *project.Task, v *vars.View) (any, bool)) magicValue {
		return func(e *Engine, h *here, v *vars.View) (any, bool) {
			if h.task == nil {
				return nil, false
			}
			return value(e, h.task, v)
		}
	}
	out := map[string]magicValue{
		"ansible_search_path": of(func(_ *Engine, t *project.Task, _ *vars.View) (any, bool) {
			return value.Of(t.SearchPath), true
		}),
		"ansible_delegated_vars": of((*Engine).delegated),
	}
	for _, row := range playbook.MagicVariables() {
		if row.Of == playbook.OfRole {
			out[row.Name] = of(func(_ *Engine, t *project.Task, _ *vars.View) (any, bool) { return t.Role.Variable(row.Name) })
		}
	}
	return out
}

// delegated is the host that a task is delegated to with its variables; without
// one there is no such variable.
func (e *Engine) delegated(t *project.Task, v *vars.View) (any, bool) {
	d := t.Attrs.Value[project.DelegateTo]
	if d == nil || at(v).keyword {
		return nil, false
	}
	outer := forKeywords(v)
	name, err := d.Value(outer.Context(), outer)
	if err != nil || name == e.omit {
		return nil, false
	}
	host := value.Str(name)
	return value.NewDict(host, &allVars{v: e.other(v, host)}), true
}

// forKeywords is a view of the same place to evaluate keywords with: there,
// variables that follow from keywords have no value, as a keyword may use the very
// variable that it sets: remote_user: "{{ ansible_user | default('root') }}".
func forKeywords(v *vars.View) *vars.View {
	out := v.Fork()
	h := *at(v)
	h.keyword = true
	out.Task = &h
	return out
}

// ansibleVersion is the version of ansible-core whose language kk speaks;
// playbooks compare with it.
func ansibleVersion() *value.Dict {
	return value.NewDict("full", "2.17.0", "major", 2, "minor", 17, "revision", 0, "string", "2.17.0")
}

// groups is the variable groups: group names to lists of hosts.
type groups struct{ inv *inventory.Inventory }

// At implements value.Lazy.
func (g groups) At(key any) (any, bool, error) {
	name, _ := key.(string)
	if _, ok := g.inv.Group(name); !ok && name != "all" && name != "ungrouped" {
		return nil, false, nil
	}
	return value.Of(g.inv.HostsIn(name)), true, nil
}

// Contains implements expr.Container.
func (g groups) Contains(key any) (bool, error) {
	_, ok, err := g.At(key)
	return ok, err
}

// Force implements value.Lazy.
func (g groups) Force() (any, error) {
	out := value.NewDict()
	names := g.inv.Groups()
	for _, n := range names {
		out.Set(n, value.Of(g.inv.HostsIn(n)))
	}
	for _, n := range []string{"all", "ungrouped"} {
		if !out.Has(n) {
			out.Set(n, value.Of(g.inv.HostsIn(n)))
		}
	}
	return out, nil
}

// hostvars is the variable hostvars: host names to their variables.
type hostvars struct {
	e *Engine
	v *vars.View
}

// At implements value.Lazy.
func (h hostvars) At(key any) (any, bool, error) {
	name, _ := key.(string)
	if !h.e.Inventory.Has(name) && name != "localhost" {
		return nil, false, nil
	}
	return h.of(name), true, nil
}

// Contains implements expr.Container.
func (h hostvars) Contains(key any) (bool, error) {
	name, _ := key.(string)
	return h.e.Inventory.Has(name), nil
}

// Force implements value.Lazy.
func (h hostvars) Force() (any, error) {
	out := value.NewDict()
	for _, name := range h.e.Inventory.Hosts() {
		out.Set(name, h.of(name))
	}
	return out, nil
}

func (h hostvars) of(host string) *allVars {
	return &allVars{h.e.other(h.v, host), func() *vars.View { return h.e.seenFrom(h.v, host, vars.Static{}) }}
}

// other makes the view of another host, as the play of v sees it.
func (e *Engine) other(v *vars.View, host string) *vars.View {
	static := vars.Static{}
	if p := at(v).play.play; p != nil {
		static = p.Static
	}
	return e.seenFrom(v, host, static)
}

// seenFrom makes the view of another host with the given variables of a place.
func (e *Engine) seenFrom(v *vars.View, host string, static vars.Static) *vars.View {
	h := at(v)
	out := e.scope.New(v.Context(), host, e.host(host), e.inventoryLayers(host, h.play.dir), static, h.play.play)
	out.Task = &here{e: e, play: h.play}
	return out.Beneath(v)
}

// allVars is all variables of a view as one mapping: hostvars[h], vars.
// A variable of a play or role that asks for itself in hostvars gets what the
// host has without them: outside, which is nil for vars.
type allVars struct {
	v       *vars.View
	outside func() *vars.View
}

// At implements value.Lazy.
func (a *allVars) At(key any) (any, bool, error) {
	name, ok := key.(string)
	if !ok {
		return nil, false, nil
	}
	if a.outside != nil && a.v.WorksOut(name) {
		return a.outside().Lookup(name)
	}
	return a.v.Lookup(name)
}

// Contains implements expr.Container.
func (a *allVars) Contains(key any) (bool, error) {
	v, ok, err := a.At(key)
	return ok && !value.IsUndefined(v), err
}

// Force implements value.Lazy: names whose templates fail are left out, as
// one broken variable must not make the others unreadable.
func (a *allVars) Force() (any, error) {
	out := value.NewDict()
	names := a.v.Held()
	sort.Strings(names)
	for _, n := range names {
		if n == "vars" || n == "hostvars" || n == "ansible_delegated_vars" {
			continue // they have all variables in them
		}
		v, ok, err := a.v.Lookup(n)
		if err != nil || !ok || value.IsUndefined(v) {
			continue
		}
		if v, err = value.Force(v); err != nil || value.IsUndefined(v) {
			continue
		}
		out.Set(n, v)
	}
	return out, nil
}

// String keeps printing of a lazy mapping from showing its insides.
func (a *allVars) String() string { return fmt.Sprintf("variables of %s", a.v.Host()) }
