package system

import (
	"context"
	_ "embed"
	"regexp"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed timezone.sh
var timezoneScript string

// Timezone is the module timezone.
type Timezone struct {
	Name    string `kk:"name" doc:"the zone, such as Europe/Berlin"`
	HWClock string `kk:"hwclock,alias=rtc" choices:"local,UTC" doc:"what the clock of the hardware shows"`
}

func timezoneSpec() module.Spec {
	return module.Spec{
		Name: "timezone", Collection: "community.general",
		Summary: "Sets the time zone, and what the clock of the hardware shows.",
		Notes: []string{
			"The zone is the link /etc/localtime, and on Debian the file /etc/timezone. Services see the new zone when they are started again.",
			"A clock of the hardware that shows local time is set by timedatectl or hwclock.",
		},
		Examples: []string{"- name: Logs in universal time\n  timezone:\n    name: Etc/UTC"},
		Returns:  []module.Return{{Key: "diff", Type: "dict", Doc: "before and after, each with name and hwclock as they were given"}},
		New:      func() module.Runner { return new(Timezone) },
	}
}

var zoneName = regexp.MustCompile(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`)

// Rules implements schema.Ruled.
func (*Timezone) Rules() schema.Rules {
	return schema.Rules{
		schema.AtLeastOne("hwclock", "name"),
		schema.Looks("the name of a time zone", zoneName.MatchString, "name"),
	}
}

// Run implements module.Runner.
func (m *Timezone) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	r, a, err := c.Do(ctx, hostscript.New(timezoneScript, "timezone_main").Args(m))
	c.ShowStates(&r, "timezone", "name", a.Get("zone"), m.Name, "hwclock", a.Get("clock"), m.HWClock)
	return r, err
}
