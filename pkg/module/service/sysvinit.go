package service

import (
	"context"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

// Sysvinit is the module sysvinit.
type Sysvinit struct {
	Name      string   `kk:"name,required,alias=service" doc:"name of the script in /etc/init.d"`
	State     string   `kk:"state" choices:"started,stopped,restarted,reloaded" doc:"desired state; restarted and reloaded always act"`
	Enabled   *bool    `kk:"enabled" doc:"whether the service starts at boot"`
	Runlevels []string `kk:"runlevels" doc:"runlevels that enabled applies to. Default: those that the script lists"`
	Sleep     int      `kk:"sleep" default:"1" doc:"seconds between stopping and starting in a restart"`
	Pattern   string   `kk:"pattern" doc:"the service counts as running if a command line in ps contains this text; the script is not asked"`
	Arguments string   `kk:"arguments,alias=args" doc:"further arguments of the script"`
	Daemonize bool     `kk:"daemonize" default:"no" doc:"without effect: processes of the script never block the task"`
}

func sysvinitSpec() module.Spec {
	return module.Spec{
		Name:    "sysvinit",
		Summary: "Starts, stops and enables System V services by their scripts in /etc/init.d.",
		Notes:   []string{"The script itself is run, even where systemd manages the host."},
		Examples: []string{"- name: Run the old daemon\n  sysvinit:\n    name: kk-example\n    state: started\n" +
			"    enabled: true"},
		Returns: serviceReturns(),
		New:     func() module.Runner { return new(Sysvinit) },
	}
}

// Rules implements schema.Ruled.
func (*Sysvinit) Rules() schema.Rules {
	return schema.Rules{
		schema.AtLeastOne("enabled", "state"),
		schema.Needs("name"),
		schema.Parses("the name of a service", isService, "name"),
		schema.Looks("a runlevel (0 to 6, or S)", isRunlevel, "runlevels"),
	}
}

// Run implements module.Runner.
func (m *Sysvinit) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(systemdScript, serviceScript, "service_main").Args(m).Set("use", "sysvinit")
	r, a, err := c.Do(ctx, s, "name", m.Name)
	if err != nil && a.Has("rc") {
		r.Data = module.Printouts(a)
	}
	if err != nil {
		return r, err
	}
	return serviceResult(c, r, a, m.State, m.Enabled), nil
}

func isRunlevel(level string) bool { return len(level) == 1 && strings.Contains("0123456S", level) }
