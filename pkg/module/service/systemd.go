package service

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed systemd.sh
var systemdScript string

// Systemd is the module systemd.
type Systemd struct {
	Name         string `kk:"name,alias=service|unit" doc:"name of the unit; .service is added to a name without a type"`
	State        string `kk:"state" choices:"started,stopped,restarted,reloaded" doc:"started and stopped act only if needed; restarted and reloaded always act, and start a stopped unit"`
	Enabled      *bool  `kk:"enabled" doc:"whether the unit starts at boot"`
	Masked       *bool  `kk:"masked" doc:"whether the unit is masked, so that nothing can start it"`
	DaemonReload bool   `kk:"daemon_reload,alias=daemon-reload" default:"no" doc:"run daemon-reload first; on its own this does not count as a change"`
	DaemonReexec bool   `kk:"daemon_reexec,alias=daemon-reexec" default:"no" doc:"run daemon-reexec first"`
	Scope        string `kk:"scope" default:"system" choices:"system,user,global" doc:"service manager: of the system, of the user who logs in, or of all users (enabled and masked only)"`
	NoBlock      bool   `kk:"no_block" default:"no" doc:"do not wait until the state is reached"`
	Force        bool   `kk:"force" default:"no" doc:"let enabled overwrite existing symlinks"`
}

func systemdSpec() module.Spec {
	return module.Spec{
		Name: "systemd", Aliases: []string{"systemd_service"},
		Summary: "Starts, stops, enables and masks systemd units.",
		Notes: []string{
			"A unit that does not exist fails the task, also for state: stopped; in check mode it is a warning, since an " +
				"earlier task may create it. Only masked works without the unit.",
			"status is the state of the unit before the task.",
			"Enabling a unit makes systemd reload all units. In a row of tasks with state: started and enabled: yes this " +
				"is done once after the last of them: before the next task that touches the host, at the latest at the end of " +
				"the play.",
		},
		Examples: []string{
			"- name: Start and enable containerd\n  systemd:\n    name: containerd\n    state: started\n    enabled: true\n" +
				"    daemon_reload: true",
			"- name: Reload the unit files\n  systemd:\n    daemon_reload: true",
		},
		Returns: serviceReturns(),
		New:     func() module.Runner { return new(Systemd) },
	}
}

func serviceReturns() []module.Return {
	return []module.Return{
		{Key: "name", Type: "str", Doc: "name of the service, as given"},
		{Key: "state", Type: "str", Doc: "started or stopped, if state was given"},
		{Key: "enabled", Type: "bool", Doc: "whether it starts at boot, if enabled was given"},
		{Key: "status", Type: "dict", Doc: "the properties of the unit (systemctl show), before the task: ActiveState, " +
			"SubState, LoadState, UnitFileState, ..."},
	}
}

// Rules implements schema.Ruled.
func (*Systemd) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name").With("state", "enabled", "masked").
			Says("name is required with state, enabled and masked"),
		schema.AtLeastOne("name", "daemon_reload", "daemon_reexec").
			Says("one of the following is required: state, enabled, masked, daemon_reload, daemon_reexec"),
		schema.Refuses("state").If("scope", "global").
			Says("state has no meaning with scope: global, where no manager runs: use enabled or masked"),
		schema.Parses("the name of a service", isService, "name"),
	}
}

// Run implements module.Runner.
func (m *Systemd) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(systemdScript, "systemd_main").Args(m).Set("unit", unitName(m.Name)).Flag("late", m.mayWait())
	s.IgnoresDeferred = m.mayWait() || m.Name == "" && !m.DaemonReexec
	r, a, err := c.Do(ctx, s, "name", m.Name)
	if late := m.reload(ctx, c, a, err); err == nil {
		err = late
	}
	if err != nil {
		return module.Result{}, err
	}
	return serviceResult(c, r, a, m.State, m.Enabled), nil
}

// readUnits has the PATH that scripts have.
const readUnits = "PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin; systemctl daemon-reload"

// mayWait reports whether the reload can be deferred: the unit is started here, so
// nothing depends on when systemd learns that it is enabled.
func (m *Systemd) mayWait() bool {
	return m.Name != "" && m.Scope == "system" && m.State == "started" && m.Enabled != nil && *m.Enabled &&
		m.Masked == nil && !m.DaemonReexec
}

// reload reports whether systemd has reloaded its units or still has to. One reload
// serves several enabled units, since each reads all of them. A script that was
// killed may have enabled the unit.
func (m *Systemd) reload(ctx context.Context, c *module.Call, a hostscript.Answer, ended error) error {
	cmd := connector.Command{Line: ":", Deferral: connector.DeferredDone}
	cut := m.mayWait() && (errors.Is(ended, context.DeadlineExceeded) || errors.Is(ended, context.Canceled))
	switch {
	case c.Check || m.Scope != "system":
		return nil
	case a.Has("due"), cut:
		cmd.Line, cmd.Deferral = readUnits, connector.Deferred
	case !a.Has("reloaded"):
		return nil
	}
	out, err := connector.Collect(ctx, c.Conn, cmd, connector.MaxAnswer)
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("failure during daemon-reload: %s", strings.TrimSpace(out.Stderr))
	}
	return err
}

func isService(name string) error {
	if i := strings.IndexAny(name, "*?["); i >= 0 {
		return fmt.Errorf("this module does not support patterns: remove %q from the service name %q", name[i], name)
	}
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, "\n\x00") {
		return fmt.Errorf("%q is not the name of a service", name)
	}
	return nil
}

// unitName adds .service to a name that has no type of unit.
func unitName(name string) string {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer", "slice", "scope":
		return name
	}
	if name == "" {
		return ""
	}
	return name + ".service"
}

// serviceResult adds the new state of the service and its status to a result.
func serviceResult(c *module.Call, r module.Result, a hostscript.Answer, state string, enabled *bool) module.Result {
	if state == "restarted" || state == "reloaded" {
		state = "started"
	}
	if state != "" {
		r.Data.Set("state", state)
	}
	if enabled != nil {
		r.Data.Set("enabled", *enabled)
	}
	r.Data.Set("status", properties(a.Get("status")))
	name, _ := r.Data.Get("name")
	c.ShowStates(&r, value.Str(name), "state", stateOf(a.Get("active")), state, "enabled", a.Has("enabled"), enabled)
	return r
}

// stateOf names the ActiveState of a unit as the argument state does.
func stateOf(active string) string {
	active, _, _ = strings.Cut(active, "/")
	switch active {
	case "active", "activating", "reloading":
		return "started"
	}
	return "stopped"
}

// properties reads the lines of systemctl show. A value of several lines continues
// until a line that begins with a name and "=".
func properties(text string) *value.Dict {
	d := value.NewDict()
	last := ""
	for _, line := range module.Lines(text) {
		key, v, ok := strings.Cut(line, "=")
		if ok && key != "" && !strings.ContainsAny(key, " \t{};") {
			d.Set(key, v)
			last = key
			continue
		}
		if old, had := d.Get(last); had {
			d.Set(last, value.Str(old)+"\n"+line)
		}
	}
	return d
}
