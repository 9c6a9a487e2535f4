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
	Name      string `kk:"name,required" doc:"the group"`
	GID       *int   `kk:"gid" doc:"its number. Default: the host chooses"`
	State     string `kk:"state" default:"present" choices:"absent,present" doc:"whether the group is there"`
	System    bool   `kk:"system" default:"no" doc:"take the number of a new group from those for the system"`
	Local     bool   `kk:"local" default:"no" doc:"look at /etc/group only, not at directory services"`
	Force     bool   `kk:"force" default:"no" doc:"with state: absent, remove the group even if it is a user's first one"`
	GIDMin    *int   `kk:"gid_min" doc:"the lowest number that the host may choose"`
	GIDMax    *int   `kk:"gid_max" doc:"the highest number that it may choose"`
	NonUnique bool   `kk:"non_unique" default:"no" doc:"gid may be one that another group has"`
}

func groupSpec() module.Spec {
	return module.Spec{
		Name:     "group",
		Summary:  "Makes, changes and removes groups.",
		Examples: []string{"- name: Have a group for etcd\n  group:\n    name: etcd\n    system: true"},
		Returns: []module.Return{
			{Key: "name", Type: "str", Doc: "the group"},
			{Key: "state", Type: "str", Doc: "present or absent"},
			{Key: "gid", Type: "int", Doc: "its number, if it is there"},
			{Key: "system", Type: "bool", Doc: "the argument"},
		},
		New: func() module.Runner { return new(Group) },
	}
}

// accountName is what names of users and groups may look like, dollar at the
// end for machine accounts. The tools of the host may be stricter.
var accountName = regexp.MustCompile(`^[^-:,\s/][^:,\s/]*$`)

// IsAccount is the rule for arguments that name a user or a group.
func IsAccount(what, arg string) schema.Rule {
	return schema.Parses("the name of a "+what, func(name string) error {
		if !accountName.MatchString(name) {
			return fmt.Errorf("%q is not the name of a %s: it must not begin with a dash or have blanks, colons, commas or slashes", name, what)
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
