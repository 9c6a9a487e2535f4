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

// here is the place in a playbook that a view belongs to. The magic variables describe it.
type here struct {
	e    *Engine
	play *playState
	task *project.Task

	keyword bool // a keyword is being evaluated: see forKeywords
}

// magic computes the values of the magic variables.
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

// magicValue returns the value of a magic variable for a view at the place h; ok is false if it has no value.
type magicValue func(e *Engine, h *here, v *vars.View) (val any, ok bool)

// magicValues are the functions for the variables of playbook.MagicNames.
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

// inView creates the row of a variable that every view has.
func inView[T any](get func(e *Engine, v *vars.View) T) magicValue {
	return func(e *Engine, _ *here, v *vars.View) (any, bool) { return value.Of(get(e, v)), true }
}

// inRun creates the row of a variable that is the same for all hosts.
func inRun[T any](get func(e *Engine) T) magicValue {
	return inView(func(e *Engine, _ *vars.View) T { return get(e) })
}

// inPlay creates the row of a variable that exists in views of a play.
func inPlay[T any](get func(e *Engine, ps *playState) T) magicValue {
	return func(e *Engine, h *here, _ *vars.View) (any, bool) {
		if h.play.play == nil {
			return nil, false
		}
		return value.Of(get(e, h.play)), true
	}
}

// unlessEmpty creates the row of a text variable that has no value if it is empty.
func unlessEmpty(get func(e *Engine, h *here, v *vars.View) string) magicValue {
	return func(e *Engine, h *here, v *vars.View) (any, bool) {
		text := get(e, h, v)
		return text, text != ""
	}
}

func ofHost() map[string]magicValue {
	return map[string]magicValue{
		"inventory_hostname":       inView(func(_ *Engine, v *vars.View) string { return v.Host() }),
		"inventory_hostname_short": inView(func(_ *Engine, v *vars.View) string { return short(v.Host()) }),
		"inventory_file":           unlessEmpty(func(e *Engine, _ *here, v *vars.View) string { return e.inventoryFile(v.Host()) }),
		"inventory_dir": unlessEmpty(func(e *Engine, _ *here, v *vars.View) string {
			file := e.inventoryFile(v.Host())
			if file == "" {
				return ""
			}
			return source.Dir(file)
		}),
		"group_names": inView(func(e *Engine, v *vars.View) []string { return e.Inventory.GroupsOf(v.Host()) }),
		"vars":        inView(func(_ *Engine, v *vars.View) *allVars { return &allVars{v: v} }),
		"ansible_facts": inView(func(_ *Engine, v *vars.View) *value.Dict {
			if facts := v.Facts(); facts != nil {
				return facts
			}
			return value.NewDict()
		}),
	}
}

// inventoryFile returns the inventory file that contains a host, or "".
func (e *Engine) inventoryFile(host string) string {
	if h, ok := e.Inventory.Host(host); ok {
		return h.File
	}
	return ""
}

func ofRun() map[string]magicValue {
	return map[string]magicValue{
		"groups":                    inRun(func(e *Engine) groups { return groups{e.Inventory} }),
		"hostvars":                  inView(func(e *Engine, v *vars.View) hostvars { return hostvars{e, v} }),
		"omit":                      inRun(func(e *Engine) string { return e.omit }),
		"kk_work_dir":               inRun(func(e *Engine) string { return e.WorkDir }),
		"ansible_check_mode":        inRun(func(e *Engine) bool { return e.Check }),
		"ansible_diff_mode":         inRun(func(e *Engine) bool { return e.Diff }),
		"ansible_verbosity":         inRun(func(e *Engine) int { return e.Verbosity }),
		"ansible_forks":             inRun(func(e *Engine) int { return e.Forks }),
		"ansible_limit":             unlessEmpty(func(e *Engine, _ *here, _ *vars.View) string { return e.LimitText }),
		"ansible_run_tags":          inRun((*Engine).runTags),
		"ansible_skip_tags":         inRun(func(e *Engine) []string { return e.SkipTags }),
		"ansible_inventory_sources": inRun(func(e *Engine) []string { return e.Inventory.Sources() }),
		"ansible_version":           inRun(func(*Engine) *value.Dict { return ansibleVersion() }),
		"ansible_playbook_python":   inRun(func(*Engine) string { return "/usr/bin/python3" }),
		"ansible_config_file": func(e *Engine, _ *here, _ *vars.View) (any, bool) {
			if e.ConfigFile == "" {
				return nil, true
			}
			return e.ConfigFile, true
		},
	}
}

func (e *Engine) runTags() []string {
	if len(e.Tags) == 0 {
		return []string{"all"}
	}
	return e.Tags
}

func ofPlay() map[string]magicValue {
	return map[string]magicValue{
		"playbook_dir":           unlessEmpty(func(_ *Engine, h *here, _ *vars.View) string { return h.play.dir }),
		"ansible_play_name":      inPlay(func(_ *Engine, ps *playState) string { return ps.name }),
		"ansible_play_hosts":     inPlay(func(e *Engine, ps *playState) []string { return e.alive(ps.hosts) }),
		"ansible_play_hosts_all": inPlay(func(_ *Engine, ps *playState) []string { return ps.hosts }),
		"ansible_play_batch":     inPlay(func(e *Engine, ps *playState) []string { return e.alive(ps.batch) }),
		"ansible_failed_hosts":   inPlay(func(e *Engine, ps *playState) []string { return e.standing.failedOf(ps.batch) }),

		"ansible_role_names":           inPlay(func(_ *Engine, ps *playState) []string { return ps.play.Roles.All() }),
		"ansible_play_role_names":      inPlay(func(_ *Engine, ps *playState) []string { return ps.play.Roles.Direct() }),
		"ansible_dependent_role_names": inPlay(func(_ *Engine, ps *playState) []string { return ps.play.Roles.Dependent() }),
	}
}

// ofTask returns the variables of the task and of its role.
func ofTask() map[string]magicValue {
	out := map[string]magicValue{
		"ansible_search_path": func(_ *Engine, h *here, _ *vars.View) (any, bool) {
			if h.task == nil {
				return nil, false
			}
			return value.Of(h.task.SearchPath), true
		},
		"ansible_delegated_vars": func(e *Engine, h *here, v *vars.View) (any, bool) {
			if h.task == nil || h.keyword {
				return nil, false
			}
			return e.delegated(h.task, v)
		},
	}
	for _, row := range playbook.MagicVariables() {
		if row.Of == playbook.OfRole {
			out[row.Name] = func(_ *Engine, h *here, _ *vars.View) (any, bool) {
				if h.task == nil {
					return nil, false
				}
				return h.task.Role.Variable(row.Name)
			}
		}
	}
	return out
}

// delegated returns the variables of the host that a task is delegated to. If the task is not delegated, there is no
// value.
func (e *Engine) delegated(t *project.Task, v *vars.View) (any, bool) {
	d := t.Attrs.Value[project.DelegateTo]
	if d == nil {
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

// forKeywords returns a view of the same place for the evaluation of keywords. In it, variables that derive from
// keywords have no value, because a keyword can use the variable that it sets: remote_user: "{{ ansible_user |
// default('root') }}".
func forKeywords(v *vars.View) *vars.View {
	out := v.Fork()
	h := *at(v)
	h.keyword = true
	out.Task = &h
	return out
}

// ansibleVersion is the version of ansible-core whose language kk implements. Playbooks compare it.
func ansibleVersion() *value.Dict {
	return value.NewDict("full", "2.17.0", "major", 2, "minor", 17, "revision", 0, "string", "2.17.0")
}

// groups is the variable groups. It maps group names to lists of hosts.
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

// hostvars is the variable hostvars. It maps host names to their variables.
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

// other returns the view of another host, as seen from the play of v.
func (e *Engine) other(v *vars.View, host string) *vars.View {
	static := vars.Static{}
	if p := at(v).play.play; p != nil {
		static = p.Static
	}
	return e.seenFrom(v, host, static)
}

// seenFrom returns the view of another host with the given variables of a place.
func (e *Engine) seenFrom(v *vars.View, host string, static vars.Static) *vars.View {
	h := at(v)
	out := e.scope.New(v.Context(), host, e.host(host), e.inventoryLayers(host, h.play.dir), static, h.play.play)
	out.Task = &here{e: e, play: h.play}
	return out.Beneath(v)
}

// allVars is a mapping of all variables of a view: hostvars[h] or vars. If a variable of a play or role refers to
// itself through hostvars, it gets the host's value without the play and role, from outside. For vars, outside is
// nil.
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

// Force implements value.Lazy. It skips names whose templates fail: one broken variable must not make the others
// unreadable.
func (a *allVars) Force() (any, error) {
	out := value.NewDict()
	names := a.v.Held()
	sort.Strings(names)
	for _, n := range names {
		if n == "vars" || n == "hostvars" || n == "ansible_delegated_vars" {
			continue // they contain all variables themselves
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

// String prevents fmt from printing the internals of the lazy mapping.
func (a *allVars) String() string { return fmt.Sprintf("variables of %s", a.v.Host()) }
