package flow

import (
	"context"
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

type addHost struct {
	Name   string      `kk:"name,required,alias=hostname,alias=host" doc:"name of the host; name:port sets ansible_port"`
	Groups []string    `kk:"groups,alias=group,alias=groupname" doc:"groups to add the host to; they are created if necessary"`
	Vars   *value.Dict `kk:",rest"`
}

// Run implements module.Runner.
func (m *addHost) Run(_ context.Context, c *module.Call) (module.Result, error) {
	vars := value.NewDict()
	name := m.Name
	if host, port, ok := strings.Cut(name, ":"); ok && port != "" && strings.Trim(port, "0123456789") == "" {
		name = host
		vars.Set("ansible_port", port)
	}
	vars.Merge(m.Vars)
	changed := !isMember(c, "all", name)
	for _, g := range m.Groups {
		changed = changed || !isMember(c, g, name)
	}
	return module.Result{
		Changed: changed,
		Data:    value.NewDict("add_host", value.NewDict("host_name", name, "groups", strs(m.Groups), "host_vars", vars)),
		Effect:  module.AddHost{Name: name, Groups: m.Groups, Vars: vars},
	}, nil
}

// isMember reports whether a group of the inventory contains a host.
func isMember(c *module.Call, group, host string) bool {
	v, ok, err := c.Scope.Lookup("groups")
	if err != nil || !ok {
		return false
	}
	if lazy, isLazy := v.(value.Lazy); isLazy {
		if v, err = lazy.Force(); err != nil {
			return false
		}
	}
	groups, _ := v.(*value.Dict)
	members, _ := groups.Get(group)
	list, _ := members.([]any)
	return slices.Contains(list, any(host))
}

type addHostVars struct {
	Hosts []string    `kk:"hosts,required" doc:"hosts and groups to set the variables on"`
	Vars  *value.Dict `kk:"vars,required" doc:"variables to set"`
}

// Run implements module.Runner.
func (m *addHostVars) Run(context.Context, *module.Call) (module.Result, error) {
	return module.Result{Data: value.NewDict("hosts", strs(m.Hosts)),
		Effect: module.AddHostVars{Hosts: m.Hosts, Vars: m.Vars}}, nil
}

type groupBy struct {
	Key     string   `kk:"key,required" doc:"name of the group to add the host to; blanks become dashes"`
	Parents []string `kk:"parents" default:"all" doc:"parent groups of the group"`
}

// Run implements module.Runner.
func (m *groupBy) Run(_ context.Context, c *module.Call) (module.Result, error) {
	group := strings.ReplaceAll(m.Key, " ", "-")
	parents := make([]string, len(m.Parents))
	for i, p := range m.Parents {
		parents[i] = strings.ReplaceAll(p, " ", "-")
	}
	return module.Result{
		Changed: !isMember(c, group, c.Host),
		Data:    value.NewDict("add_group", group, "parent_groups", strs(parents)),
		Effect:  module.GroupBy{Group: group, Parents: parents},
	}, nil
}

type result struct {
	Values *value.Dict `kk:",rest"`
}

// Run implements module.Runner.
func (m *result) Run(context.Context, *module.Call) (module.Result, error) {
	return module.Result{Data: m.Values, Effect: module.RunResult{Values: m.Values}}, nil
}
