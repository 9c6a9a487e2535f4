package engine

import (
	"fmt"
	"sort"

	"kubekey/pkg/inventory"
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
	switch name {
	case "inventory_hostname":
		return v.Host(), true, nil
	case "inventory_hostname_short":
		return short(v.Host()), true, nil
	case "group_names":
		return value.Of(m.e.Inventory.GroupsOf(v.Host())), true, nil
	case "groups":
		return groups{m.e.Inventory}, true, nil
	case "hostvars":
		return hostvars{m.e, v}, true, nil
	case "vars":
		return &allVars{v: v}, true, nil
	case "omit":
		return m.e.omit, true, nil
	case "ansible_facts":
		if facts := v.Facts(); facts != nil {
			return facts, true, nil
		}
		return value.NewDict(), true, nil
	}
	if val, ok := m.ofPlace(name, v); ok {
		return val, true, nil
	}
	val, ok := m.ofRun(name, v)
	return val, ok, nil
}

// ofPlace are the variables of the play and the task.
func (m magic) ofPlace(name string, v *vars.View) (any, bool) {
	h := at(v)
	switch name {
	case "playbook_dir":
		return h.play.dir, h.play.dir != ""
	case "ansible_play_name":
		return h.play.name, h.play.play != nil
	case "ansible_play_hosts", "play_hosts":
		return value.Of(m.e.alive(h.play.hosts)), h.play.play != nil
	case "ansible_play_hosts_all":
		return value.Of(h.play.hosts), h.play.play != nil
	case "ansible_play_batch":
		return value.Of(m.e.alive(h.play.batch)), h.play.play != nil
	case "ansible_current_hosts":
		return value.Of(m.e.alive(h.play.batch)), h.play.play != nil
	case "ansible_failed_hosts":
		return value.Of(m.e.standing.failedOf(h.play.batch)), h.play.play != nil
	case "ansible_play_role_names", "role_names", "ansible_role_names", "ansible_dependent_role_names":
		return roleNames(name, h.play.play)
	}
	if h.task == nil {
		return nil, false
	}
	switch name {
	case "ansible_delegated_vars":
		return m.delegated(h.task, v)
	case "ansible_search_path":
		return value.Of(h.task.SearchPath), true
	}
	return h.task.Role.Variable(name)
}

// delegated is the host that a task is delegated to with its variables; without
// one there is no such variable.
func (m magic) delegated(t *project.Task, v *vars.View) (any, bool) {
	d := t.Attrs.Value[project.DelegateTo]
	if d == nil {
		return nil, false
	}
	name, err := d.Value(v.Context(), v)
	if err != nil || name == m.e.omit {
		return nil, false
	}
	host := value.Str(name)
	return value.NewDict(host, &allVars{v: m.e.other(v, host)}), true
}

// roleNames are the variables with the names of a play's roles.
func roleNames(variable string, p *project.Play) (any, bool) {
	if p == nil {
		return nil, false
	}
	switch variable {
	case "ansible_role_names":
		return value.Of(p.Roles.All()), true
	case "ansible_dependent_role_names":
		return value.Of(p.Roles.Dependent()), true
	}
	return value.Of(p.Roles.Direct()), true
}

// ofRun are the variables of the whole run.
func (m magic) ofRun(name string, v *vars.View) (any, bool) {
	e := m.e
	switch name {
	case "kk_work_dir":
		return e.WorkDir, true
	case "ansible_check_mode":
		return e.Check, true
	case "ansible_diff_mode":
		return e.Diff, true
	case "ansible_verbosity":
		return e.Verbosity, true
	case "ansible_forks":
		return e.Forks, true
	case "ansible_limit":
		return e.LimitText, e.LimitText != ""
	case "ansible_run_tags":
		if len(e.Tags) == 0 {
			return []any{"all"}, true
		}
		return value.Of(e.Tags), true
	case "ansible_skip_tags":
		return value.Of(e.SkipTags), true
	case "ansible_version":
		return ansibleVersion(), true
	case "ansible_inventory_sources":
		return value.Of(e.Inventory.Sources()), true
	case "inventory_dir", "inventory_file":
		h, ok := e.Inventory.Host(v.Host())
		if !ok || h.File == "" {
			return nil, false
		}
		if name == "inventory_dir" {
			return source.Dir(h.File), true
		}
		return h.File, true
	case "ansible_playbook_python":
		return "/usr/bin/python3", true
	case "ansible_config_file":
		if e.ConfigFile == "" {
			return nil, true
		}
		return e.ConfigFile, true
	}
	return nil, false
}

// ansibleVersion is the version of ansible-core whose language kk speaks;
// playbooks compare with it.
func ansibleVersion() *value.Dict {
	return value.NewDict("full", "2.17.0", "major", 2, "minor", 17, "revision", 0, "string", "2.17.0")
}

// MagicNames implements vars.Magic.
func (m magic) MagicNames() []string {
	return []string{
		"ansible_check_mode", "ansible_diff_mode", "ansible_facts", "ansible_forks", "ansible_inventory_sources",
		"ansible_dependent_role_names", "ansible_collection_name",
		"ansible_role_name", "ansible_role_names", "ansible_play_role_names", "ansible_play_batch", "ansible_play_hosts", "ansible_play_hosts_all", "ansible_play_name",
		"ansible_run_tags", "ansible_skip_tags", "ansible_verbosity", "ansible_version",
		"group_names", "groups", "inventory_dir", "inventory_file", "inventory_hostname",
		"inventory_hostname_short", "kk_work_dir", "omit", "play_hosts", "playbook_dir", "role_name", "role_names", "role_path",
	}
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
	names := a.v.Names()
	sort.Strings(names)
	for _, n := range names {
		if n == "vars" || n == "hostvars" {
			continue
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
