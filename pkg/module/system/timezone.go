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
	Name    string `kk:"name" doc:"time zone, such as Europe/Berlin"`
	HWClock string `kk:"hwclock,alias=rtc" choices:"local,UTC" doc:"whether the hardware clock is in UTC or in local time"`
}

func timezoneSpec() module.Spec {
	return module.Spec{
		Name: "timezone", Collection: "community.general",
		Summary: "Sets the time zone, and the mode of the hardware clock.",
		Notes: []string{
			"The zone is set with the link /etc/localtime, and on Debian the file /etc/timezone. Running services use the " +
				"new zone after a restart.",
			"The hardware clock is set with timedatectl or hwclock.",
		},
		Examples: []string{"- name: Use UTC\n  timezone:\n    name: Etc/UTC"},
		Returns:  []module.Return{{Key: "diff", Type: "dict", Doc: "before and after, each with name and hwclock, if given"}},
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
