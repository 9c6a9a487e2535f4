package posix

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed selinux.sh
var selinuxScript string

// Selinux is the module selinux.
type Selinux struct {
	State      string `kk:"state,required" choices:"disabled,enforcing,permissive" doc:"mode of SELinux, now and after a reboot"`
	Policy     string `kk:"policy" doc:"the policy, such as targeted. Needed unless state is disabled"`
	ConfigFile string `kk:"configfile,alias=conf|file" default:"/etc/selinux/config" doc:"its file"`
	Kernel     bool   `kk:"update_kernel_param" default:"no" doc:"also set or remove selinux=0 on the kernel's command line, with grubby"`
}

func selinuxSpec() module.Spec {
	return module.Spec{
		Name: "selinux", Collection: "ansible.posix",
		Summary:  "Sets the state and the policy of SELinux.",
		Notes:    []string{"Changes that need a reboot are applied at the next boot: see reboot_required."},
		Examples: []string{"- name: Watch, and forbid nothing\n  selinux:\n    state: permissive\n    policy: default"},
		Returns: []module.Return{
			{Key: "msg", Type: "str", Doc: "what was changed"},
			{Key: "reboot_required", Type: "bool", Doc: "whether the state needs a reboot"},
			{Key: "configfile, policy, state", Type: "str", Doc: "the arguments"},
		},
		New: func() module.Runner { return new(Selinux) },
	}
}

var selinuxLine = regexp.MustCompile(`^(SELINUX|SELINUXTYPE)=(.*)$`)

func isPolicy(name string) bool { return !strings.ContainsAny(name, "/\r\n\x00") }

// Rules implements schema.Ruled.
func (*Selinux) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("policy").Unless("state", "disabled").Says("Policy is required if state is not 'disabled'"),
		schema.Looks("the name of a policy", isPolicy, "policy"),
	}
}

// Run implements module.Runner.
func (m *Selinux) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	f, err := module.ReadText(ctx, c, m.ConfigFile)
	if err != nil {
		return module.Result{}, err
	}
	if !f.Exists() {
		//nolint:staticcheck // the text users know
		return module.Result{}, fmt.Errorf("Unable to find file %s: install SELinux's policy", m.ConfigFile)
	}
	a, err := c.Probe(ctx, hostscript.New(selinuxScript, "selinux_read").Args(m))
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Data: value.NewDict("configfile", m.ConfigFile, "state", m.State)}
	said, err := m.config(f, a)
	if err != nil {
		return r, err
	}
	act := hostscript.New(selinuxScript, "selinux_act")
	said = append(said, m.runtime(a.Get("now"), act, &r)...)
	said = append(said, m.kernel(a.Get("kernel"), act)...)
	r.Data.Set("policy", m.Policy)
	if err := f.Save(ctx, c, module.FileAttrs{}, &r); err != nil {
		return r, err
	}
	r.Msg, r.Changed = strings.Join(said, ", "), len(said) > 0
	if !act.HasParams() || c.Check {
		return r, nil
	}
	_, err = act.Run(ctx, c.Conn, c.Check)
	return r, err
}

// config writes the desired state to the config file, and returns the changes.
func (m *Selinux) config(f *module.TextFile, a hostscript.Answer) (said []string, err error) {
	had := map[string]string{}
	for _, line := range module.Lines(f.Before) {
		if l := selinuxLine.FindStringSubmatch(line); l != nil {
			had[l[1]] = strings.TrimSpace(l[2])
		}
	}
	if m.Policy == "" {
		m.Policy = had["SELINUXTYPE"]
	}
	if m.Policy != had["SELINUXTYPE"] {
		if !a.Has("policy") {
			//nolint:staticcheck // the text users know
			return nil, fmt.Errorf("Policy %s does not exist in /etc/selinux/", m.Policy)
		}
		said = append(said, fmt.Sprintf("SELinux policy configuration in '%s' changed from '%s' to '%s'", m.ConfigFile,
			had["SELINUXTYPE"], m.Policy))
		f.After = setSelinux(f.After, "SELINUXTYPE", m.Policy)
	}
	if m.State != had["SELINUX"] {
		said = append(said, fmt.Sprintf("Config SELinux state changed from '%s' to '%s'", had["SELINUX"], m.State))
		f.After = setSelinux(f.After, "SELINUX", m.State)
	}
	return said, nil
}

func setSelinux(text, key, want string) string {
	all, found := module.Lines(text), false
	for i, line := range all {
		if l := selinuxLine.FindStringSubmatch(line); l != nil && l[1] == key {
			all[i], found = key+"="+want, true
		}
	}
	if !found {
		all = append(all, key+"="+want)
	}
	return module.JoinLines(all)
}

// runtime changes the state of a kernel with SELinux enabled. Disabling it, and enabling a disabled one, requires a
// reboot.
func (m *Selinux) runtime(now string, act *hostscript.Script, r *module.Result) (said []string) {
	r.Data.Set("reboot_required", false)
	switch {
	case m.State == now:
	case now == "disabled":
		r.Data.Set("reboot_required", true)
		r.Warnings = append(r.Warnings, fmt.Sprintf("Reboot is required to set SELinux state to '%s'", m.State))
	case m.State == "disabled":
		r.Data.Set("reboot_required", true)
		if now == "permissive" {
			r.Warnings = append(r.Warnings, "SELinux state change will take effect next reboot")
			break
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("SELinux state temporarily changed from '%s' to 'permissive'. State "+
			"change will take effect next reboot.", now))
		said = append(said, fmt.Sprintf("SELinux state changed from '%s' to 'permissive'", now))
		act.Set("enforce", "0")
	default:
		said = append(said, fmt.Sprintf("SELinux state changed from '%s' to '%s'", now, m.State))
		act.Set("enforce", map[string]string{"enforcing": "1", "permissive": "0"}[m.State])
	}
	return said
}

// kernel parses grubby's lines args="...", one per kernel.
func (m *Selinux) kernel(args string, act *hostscript.Script) []string {
	if !m.Kernel {
		return nil
	}
	off, all := 0, module.Lines(args)
	for _, line := range all {
		if strings.Contains(" "+strings.Trim(strings.TrimPrefix(line, "args="), `"`)+" ", " selinux=0 ") {
			off++
		}
	}
	want, now := "on", "on"
	if m.State == "disabled" {
		want = "off"
	}
	switch off {
	case 0:
	case len(all):
		now = "off"
	default:
		now = "inconsistent"
	}
	if want == now {
		return nil
	}
	act.Set("kernel", want)
	return []string{fmt.Sprintf("Kernel SELinux state changed from '%s' to '%s'", now, want)}
}

// Seboolean is the module seboolean.
type Seboolean struct {
	Name       string `kk:"name,required" doc:"the boolean of SELinux"`
	State      bool   `kk:"state,required" doc:"whether it is on"`
	Persistent bool   `kk:"persistent" default:"no" doc:"also after a boot"`
	Ignore     bool   `kk:"ignore_selinux_state" default:"no" doc:"set it even if SELinux is disabled, as in a chroot"`
}

func sebooleanSpec() module.Spec {
	return module.Spec{
		Name: "seboolean", Collection: "ansible.posix",
		Summary: "Sets SELinux booleans.",
		Notes: []string{"With ignore_selinux_state on a host where SELinux is disabled, a boolean cannot be read: it " +
			"is set in each run."},
		Examples: []string{"- name: Let web servers connect\n  seboolean:\n    name: httpd_can_network_connect\n" +
			"    state: true\n    persistent: true"},
		Returns: []module.Return{{Key: "name, state, persistent", Type: "any", Doc: "the arguments"}},
		New:     func() module.Runner { return new(Seboolean) },
	}
}

var selinuxName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Rules implements schema.Ruled.
func (*Seboolean) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name"),
		schema.Looks("the name of a boolean", selinuxName.MatchString, "name"),
	}
}

// Run implements module.Runner.
func (m *Seboolean) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	s := hostscript.New(selinuxScript, "seboolean_main").Args(m)
	s.Set("state", map[bool]string{true: "on", false: "off"}[m.State])
	r, _, err := c.Do(ctx, s, "name", m.Name, "state", m.State, "persistent", m.Persistent)
	return r, err
}
