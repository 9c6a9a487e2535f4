package service

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

//go:embed service_facts.sh
var serviceFactsScript string

// ServiceFacts is the module service_facts.
type ServiceFacts struct{}

func serviceFactsSpec() module.Spec {
	return module.Spec{
		Name:     "service_facts",
		Summary:  "Returns the services of the host as facts, with their state and whether they start at boot.",
		Notes:    []string{"Supports systemd, OpenRC, and System V where the command service exists."},
		Examples: []string{"- name: Gather the services\n  service_facts:"},
		Returns: []module.Return{
			{Key: "ansible_facts", Type: "dict", Doc: "services: by name (with .service for systemd), each with name, " +
				"state (running, stopped, ...), status (enabled, disabled, static, masked, not-found, failed, ...) and source"},
		},
		Check: module.Harmless,
		New:   func() module.Runner { return new(ServiceFacts) },
	}
}

// Run implements module.Runner.
func (m *ServiceFacts) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	a, err := c.Probe(ctx, hostscript.New(serviceFactsScript, "service_facts_main"))
	if err != nil {
		return module.Result{}, err
	}
	services := value.NewDict()
	systemdServices(services, a)
	openrcServices(services, a)
	sysvServices(services, a)
	if services.Len() == 0 {
		return module.Result{Skipped: true, Msg: "Failed to find any services. This can be due to privileges or some " +
			"other configuration issue."}, nil
	}
	return module.Result{Facts: value.NewDict("services", services)}, nil
}

func addService(to *value.Dict, name, state, source string) *value.Dict {
	s := value.NewDict("name", name, "state", state, "source", source)
	to.Set(name, s)
	return s
}

// systemdServices reads the units that are loaded (UNIT LOAD ACTIVE SUB), and
// the unit files, which show what is enabled.
func systemdServices(to *value.Dict, a hostscript.Answer) {
	bad := []string{"not-found", "masked", "failed"}
	states := unitStates(a)
	for _, line := range module.Lines(a.Get("units")) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		state, status := "stopped", f[2]
		if f[3] == "running" {
			state = "running"
		}
		for _, b := range bad {
			if slices.Contains(f[1:4], b) {
				status = b
				break
			}
		}
		addService(to, f[0], state, "systemd").Set("status", status)
	}
	for _, line := range module.Lines(a.Get("files")) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		had, _ := to.Get(f[0])
		service, loaded := had.(*value.Dict)
		if !loaded {
			state := states[f[0]]
			if state == "" {
				state = "unknown"
			}
			service = addService(to, f[0], state, "systemd")
		}
		if status, _ := service.Get("status"); !loaded || !slices.Contains(bad, value.Str(status)) {
			service.Set("status", f[1])
		}
	}
}

// unitStates are the answers ActiveState=STATE of systemctl show, by the names
// that it was asked for.
func unitStates(a hostscript.Answer) map[string]string {
	var all []string
	for _, line := range module.Lines(a.Get("states")) {
		if state, ok := strings.CutPrefix(line, "ActiveState="); ok {
			all = append(all, state)
		}
	}
	states := map[string]string{}
	if names := strings.Fields(a.Get("named")); len(names) == len(all) {
		for i, name := range names {
			states[name] = all[i]
		}
	}
	return states
}

// openrcServices reads lines " NAME [  STATE  ]", and "NAME | RUNLEVEL ...".
func openrcServices(to *value.Dict, a hostscript.Answer) {
	for _, line := range module.Lines(a.Get("openrc")) {
		name, state, ok := strings.Cut(line, "[")
		if name = strings.TrimSpace(name); !ok || name == "" {
			continue
		}
		addService(to, name, strings.Trim(state, " ]\t"), "openrc").Set("runlevels", nil)
	}
	for _, line := range module.Lines(a.Get("runlevels")) {
		name, text, _ := strings.Cut(line, "|")
		s, ok := to.Get(strings.TrimSpace(name))
		if levels := strings.Fields(text); ok && len(levels) > 0 {
			s.(*value.Dict).Set("runlevels", value.List(levels))
		}
	}
}

// sysvServices reads lines " [ + ]  NAME" of service --status-all.
func sysvServices(to *value.Dict, a hostscript.Answer) {
	for _, line := range module.Lines(a.Get("sysv")) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != "[" {
			continue
		}
		state := "stopped"
		if f[1] == "+" {
			state = "running"
		}
		addService(to, f[3], state, "sysv")
	}
}
