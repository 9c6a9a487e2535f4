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
	Name      string  `kk:"name,required" doc:"the service"`
	State     string  `kk:"state" choices:"started,stopped,restarted,reloaded" doc:"started and stopped act only if needed; restarted and reloaded always do, and start a service that does not run"`
	Enabled   *bool   `kk:"enabled" doc:"whether the service starts at boot"`
	Use       string  `kk:"use" default:"auto" choices:"auto,systemd,openrc,sysv,sysvinit,service" doc:"what manages services; auto is systemd if it runs, else OpenRC, else init scripts"`
	Pattern   string  `kk:"pattern" doc:"without systemd: the service runs if a command line in ps has this text, instead of asking its init script"`
	Sleep     float64 `kk:"sleep" default:"0" doc:"without systemd: seconds between stop and start of a restart"`
	Arguments string  `kk:"arguments,alias=args" doc:"without systemd: words that are given to the init script"`
	Runlevel  string  `kk:"runlevel" default:"default" doc:"OpenRC: the runlevel that enabled is about"`
}

func serviceSpec() module.Spec {
	return module.Spec{
		Name:    "service",
		Summary: "Starts, stops and enables services, with whatever manages them on the host.",
		Notes:   []string{"A service that does not exist fails the task, also for state: stopped; in check mode it is a warning, since a task before may make it."},
		Examples: []string{
			"- name: Run chrony, now and at boot\n  service:\n    name: chrony\n    state: started\n    enabled: true",
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
