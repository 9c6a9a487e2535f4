package system

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed sysctl.sh
var sysctlScript string

// Sysctl is the module sysctl.
type Sysctl struct {
	Name   string `kk:"name,required,alias=key" doc:"name of the parameter, such as net.ipv4.ip_forward"`
	Value  any    `kk:"value,alias=val" doc:"desired value; the amount of whitespace between fields is ignored"`
	State  string `kk:"state" default:"present" choices:"present,absent" doc:"whether the parameter should be in the file"`
	Reload bool   `kk:"reload" default:"yes" doc:"apply the file (sysctl -p) if it was changed, or if the value in the kernel differs"`
	Set    bool   `kk:"sysctl_set" default:"no" doc:"also compare the value in the kernel, and set it (sysctl -w)"`
	File   string `kk:"sysctl_file,path" default:"/etc/sysctl.conf" doc:"path of the file"`
	Wide   bool   `kk:"system_wide" default:"no" doc:"apply all sysctl files (sysctl --system) instead of this one only"`
	Ignore bool   `kk:"ignoreerrors" default:"no" doc:"continue if the kernel rejects a parameter"`
}

func sysctlSpec() module.Spec {
	return module.Spec{
		Name: "sysctl", Collection: "ansible.posix",
		Summary: "Manages kernel parameters in a sysctl file, and applies them.",
		Notes:   []string{"Other lines of the file are unchanged; duplicate lines for the same parameter are removed."},
		Examples: []string{
			"- name: Enable IP forwarding\n  sysctl:\n    name: net.ipv4.ip_forward\n    value: \"1\"\n" +
				"    sysctl_set: true\n    sysctl_file: /etc/sysctl.d/90-kubernetes.conf",
		},
		Returns: []module.Return{{Key: "changed", Type: "bool",
			Doc: "whether the file or the value in the kernel was changed"}},
		New: func() module.Runner { return new(Sysctl) },
	}
}

var sysctlName = regexp.MustCompile(`^[A-Za-z0-9_][^\s=#;]*$`)

func isSetting(name string) bool {
	return sysctlName.MatchString(name) && !strings.Contains(name, "..")
}

// Rules implements schema.Ruled.
func (*Sysctl) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("name").Says("name cannot be blank"),
		schema.Looks("the name of a kernel parameter", isSetting, "name"),
		schema.Needs("value").If("state", "present").Says("value cannot be None"),
		schema.Looks("one line", schema.OneLine, "value").If("state", "present"),
	}
}

// Run implements module.Runner.
func (m *Sysctl) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	want, err := m.desired()
	if err != nil {
		return module.Result{}, err
	}
	a, err := c.Probe(ctx, hostscript.New(sysctlScript, "sysctl_read").Args(m))
	if err != nil {
		return module.Result{}, err
	}
	before := strings.TrimSuffix(a.Get("text"), "x")
	after := m.edit(before, want)
	write := after != before || m.State == "present" && !a.Has("exists")
	differs := m.State == "present" && blanks(a.Get("live")) != want
	set := m.Set && differs
	// A parameter that the kernel does not have, or hides, cannot be compared.
	reload := m.Reload && (write || differs && a.Has("live"))
	r := module.Result{Changed: write || set || reload, Data: value.NewDict()}
	if write {
		c.Show(&r, m.File, before, after)
	}
	act := hostscript.New(sysctlScript, "sysctl_act").Args(m)
	act.Flag("write", write).Flag("set", set).Flag("apply", reload).Set("value", want)
	return c.Act(ctx, r, act, after)
}

// desired is the value in the kernel's form: bools are 0 and 1, fields are separated by
// one blank.
func (m *Sysctl) desired() (string, error) {
	if m.State == "absent" {
		return "", nil
	}
	switch v := m.Value.(type) {
	case bool:
		if v {
			return "1", nil
		}
		return "0", nil
	case []any, *value.Dict:
		return "", fmt.Errorf("value of value must be a string, got %s", value.TypeName(v))
	}
	text := value.Str(m.Value)
	switch strings.ToLower(text) {
	case "yes", "on", "true", "y", "t":
		return "1", nil
	case "no", "off", "false", "n", "f":
		return "0", nil
	}
	if text = blanks(text); text == "" {
		return "", errors.New("value cannot be blank")
	}
	return text, nil
}

// blanks separates fields by one blank.
func blanks(s string) string { return strings.Join(strings.Fields(s), " ") }

// edit applies the desired value to the text: the first line of the parameter gets the
// value, duplicates are removed.
func (m *Sysctl) edit(text, want string) string {
	var out []string
	found := false
	for _, line := range module.Lines(text) {
		old, mine := m.match(line)
		switch {
		case !mine:
			out = append(out, line)
		case m.State == "absent" || found:
		case blanks(old) == want:
			out, found = append(out, line), true
		default:
			out, found = append(out, m.Name+"="+want), true
		}
	}
	if !found && m.State == "present" {
		out = append(out, m.Name+"="+want)
	}
	if after := module.JoinLines(out); after != text+"\n" {
		return after
	}
	return text
}

// match returns the value of a line that sets the parameter.
func (m *Sysctl) match(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
		return "", false
	}
	key, v, ok := strings.Cut(line, "=")
	key = strings.TrimSpace(strings.TrimPrefix(key, "-"))
	return v, ok && key == m.Name
}
