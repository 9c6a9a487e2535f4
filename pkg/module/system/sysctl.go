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
	Name   string `kk:"name,required,alias=key" doc:"the setting, such as net.ipv4.ip_forward"`
	Value  any    `kk:"value,alias=val" doc:"its value; blanks between words do not count"`
	State  string `kk:"state" default:"present" choices:"present,absent" doc:"whether the setting is in the file"`
	Reload bool   `kk:"reload" default:"yes" doc:"apply the file (sysctl -p) after a change of it, or when the kernel has another value"`
	Set    bool   `kk:"sysctl_set" default:"no" doc:"compare the kernel's value too, and set it (sysctl -w)"`
	File   string `kk:"sysctl_file,path" default:"/etc/sysctl.conf" doc:"the file"`
	Wide   bool   `kk:"system_wide" default:"no" doc:"apply all files of settings (sysctl --system), and not this one alone"`
	Ignore bool   `kk:"ignoreerrors" default:"no" doc:"go on if the kernel refuses a setting"`
}

func sysctlSpec() module.Spec {
	return module.Spec{
		Name: "sysctl", Collection: "ansible.posix",
		Summary: "Keeps kernel settings in a file of sysctl, and applies them.",
		Notes:   []string{"Other lines of the file stay as they are; further lines for the same setting are removed."},
		Examples: []string{
			"- name: Forward packets\n  sysctl:\n    name: net.ipv4.ip_forward\n    value: \"1\"\n    sysctl_set: true\n    sysctl_file: /etc/sysctl.d/90-kubernetes.conf",
		},
		Returns: []module.Return{{Key: "changed", Type: "bool", Doc: "whether the file or the kernel's value was changed"}},
		New:     func() module.Runner { return new(Sysctl) },
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
		schema.Looks("the name of a kernel setting", isSetting, "name"),
		schema.Needs("value").If("state", "present").Says("value cannot be None"),
		schema.Looks("one line", schema.OneLine, "value").If("state", "present"),
	}
}

// Run implements module.Runner.
func (m *Sysctl) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	want, err := m.wanted()
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
	// What the kernel does not have, or hides, cannot be compared.
	reload := m.Reload && (write || differs && a.Has("live"))
	r := module.Result{Changed: write || set || reload, Data: value.NewDict()}
	if write {
		c.Show(&r, m.File, before, after)
	}
	act := hostscript.New(sysctlScript, "sysctl_act").Args(m)
	act.Flag("write", write).Flag("set", set).Flag("apply", reload).Set("value", want)
	return c.Act(ctx, r, act, after)
}

// wanted is the value as the kernel writes it: bools are 0 and 1, words stand
// one blank apart.
func (m *Sysctl) wanted() (string, error) {
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

// blanks puts words one blank apart.
func blanks(s string) string { return strings.Join(strings.Fields(s), " ") }

// edit makes the file's text say what is wanted: the first line that has the
// setting gets the value, further ones go.
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

// match returns the value of a line that has the setting.
func (m *Sysctl) match(line string) (string, bool) {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";") {
		return "", false
	}
	key, v, ok := strings.Cut(line, "=")
	key = strings.TrimSpace(strings.TrimPrefix(key, "-"))
	return v, ok && key == m.Name
}
