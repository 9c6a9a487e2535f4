package service

import (
	"context"
	_ "embed"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

//go:embed service.sh
var serviceScript string

// Service is the module service.
type Service struct {
	Name      string  `kk:"name,required" doc:"name of the service"`
	State     string  `kk:"state" choices:"started,stopped,restarted,reloaded" doc:"started and stopped act only if needed; restarted and reloaded always act, and start a stopped service"`
	Enabled   *bool   `kk:"enabled" doc:"whether the service starts at boot"`
	Use       string  `kk:"use" default:"auto" choices:"auto,systemd,openrc,sysv,sysvinit,service" doc:"service manager; auto is systemd if it is running, otherwise OpenRC, otherwise init scripts"`
	Pattern   string  `kk:"pattern" doc:"without systemd: the service counts as running if a command line in ps contains this text; its init script is not asked"`
	Sleep     float64 `kk:"sleep" default:"0" doc:"without systemd: seconds between stopping and starting in a restart"`
	Arguments string  `kk:"arguments,alias=args" doc:"without systemd: further arguments of the init script"`
	Runlevel  string  `kk:"runlevel" default:"default" doc:"OpenRC: runlevel that enabled applies to"`
}

func serviceSpec() module.Spec {
	return module.Spec{
		Name:    "service",
		Summary: "Starts, stops and enables services with the service manager of the host.",
		Notes: []string{"A service that does not exist fails the task, also for state: stopped; in check mode it is a " +
			"warning, since an earlier task may create it."},
		Examples: []string{
			"- name: Start and enable chrony\n  service:\n    name: chrony\n    state: started\n    enabled: true",
		},
		Returns: serviceReturns(),
		New:     func() module.Runner { return new(Service) },
	}
}

// Rules implements schema.Ruled.
func (*Service) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Parses("the name of a service", isService, "name"),
	}
}

// Run implements module.Runner.
func (m *Service) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(systemdScript, serviceScript, "service_main").Args(m).Set("unit", unitName(m.Name))
	if m.Sleep <= 0 {
		s.Set("sleep", "") // the script's own restart
	}
	r, a, err := c.Do(ctx, s, "name", m.Name)
	if err != nil {
		return r, err
	}
	return serviceResult(c, r, a, m.State, m.Enabled), nil
}
