package account

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed group.sh
var groupScript string

// Group is the module group.
type Group struct {
	Name      string `kk:"name,required" doc:"name of the group"`
	GID       *int   `kk:"gid" doc:"numeric ID. Default: chosen by the host"`
	State     string `kk:"state" default:"present" choices:"absent,present" doc:"whether the group should exist"`
	System    bool   `kk:"system" default:"no" doc:"create a system group, with a GID from the system range"`
	Local     bool   `kk:"local" default:"no" doc:"use /etc/group only, not directory services"`
	Force     bool   `kk:"force" default:"no" doc:"with state: absent, remove the group even if it is the primary group of a user"`
	GIDMin    *int   `kk:"gid_min" doc:"lowest ID that the host may choose"`
	GIDMax    *int   `kk:"gid_max" doc:"highest ID that the host may choose"`
	NonUnique bool   `kk:"non_unique" default:"no" doc:"allow a gid that another group already uses"`
}

func groupSpec() module.Spec {
	return module.Spec{
		Name:     "group",
		Summary:  "Creates, changes and removes groups.",
		Examples: []string{"- name: Create a group for etcd\n  group:\n    name: etcd\n    system: true"},
		Returns: []module.Return{
			{Key: "name", Type: "str", Doc: "name of the group"},
			{Key: "state", Type: "str", Doc: "present or absent"},
			{Key: "gid", Type: "int", Doc: "numeric ID, if the group exists"},
			{Key: "system", Type: "bool", Doc: "the argument"},
		},
		New: func() module.Runner { return new(Group) },
	}
}

// accountName is the accepted form of user and group names. Machine accounts end in a
// dollar sign. The tools of the host may be stricter.
var accountName = regexp.MustCompile(`^[^-:,\s/][^:,\s/]*$`)

// IsAccount is the rule for arguments that name a user or a group.
func IsAccount(what, arg string) schema.Rule {
	return schema.Parses("the name of a "+what, func(name string) error {
		if !accountName.MatchString(name) {
			return fmt.Errorf("%q is not the name of a %s: it must not begin with a dash or contain blanks, colons, commas "+
				"or slashes", name, what)
		}
		return nil
	}, arg)
}

// Rules implements schema.Ruled.
func (*Group) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		IsAccount("group", "name"),
	}
}

// Run implements module.Runner.
func (m *Group) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(AccountScript, groupScript, "group_main").Args(m)
	s.Renews = true
	r, a, err := c.Do(ctx, s, "name", m.Name, "state", m.State, "system", m.System)
	if err != nil {
		return r, err
	}
	before, after := value.NewDict("name", m.Name, "state", "absent"), value.NewDict("name", m.Name, "state", m.State)
	if a.Has("was") {
		before = value.NewDict("name", m.Name, "state", "present", "gid", a.Number("was"))
	}
	if a.Get("gid") != "" {
		r.Data.Set("gid", a.Number("gid"))
		after.Set("gid", a.Number("gid"))
	}
	c.Show(&r, "group "+m.Name, before, after)
	return r, nil
}
