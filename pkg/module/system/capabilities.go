package system

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed capabilities.sh
var capabilitiesScript string

// Capabilities is the module capabilities.
type Capabilities struct {
	Path       string `kk:"path,required,alias=key" doc:"path of the executable on the host"`
	Capability string `kk:"capability,required,alias=cap" doc:"capability with its flags, such as cap_net_bind_service+ep; the flags are optional with state: absent"`
	State      string `kk:"state" default:"present" choices:"absent,present" doc:"whether the file should have the capability"`
}

func capabilitiesSpec() module.Spec {
	return module.Spec{
		Name: "capabilities", Collection: "community.general",
		Summary: "Sets or removes a Linux capability of an executable.",
		Notes: []string{
			"The host needs getcap and setcap (package libcap2-bin). Other capabilities of the file are unchanged; this " +
				"one gets exactly the given flags.",
		},
		Examples: []string{
			"- name: Let the server listen on port 80 without root privileges\n  capabilities:\n" +
				"    path: /usr/local/bin/server\n    capability: cap_net_bind_service+ep",
		},
		Returns: []module.Return{
			{Key: "state", Type: "str", Doc: "the argument"},
			{Key: "msg", Type: "str", Doc: "capabilities changed, if it changed something"},
			{Key: "stdout", Type: "str", Doc: "output of setcap; on failure with stderr"},
		},
		New: func() module.Runner { return new(Capabilities) },
	}
}

// Rules implements schema.Ruled.
func (*Capabilities) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("path", "capability"),
		schema.Parses("a capability with flags, such as cap_net_raw+ep", isCapability, "capability"),
		schema.Parses("a capability with flags, such as cap_net_raw+ep", hasFlags, "capability").If("state", "present"),
	}
}

// Run implements module.Runner.
func (m *Capabilities) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	m.Path = strings.TrimSpace(m.Path)
	want, err := parseCapability(m.Capability)
	if err != nil {
		return module.Result{}, err
	}
	a, err := c.Probe(ctx, hostscript.New(capabilitiesScript, "capabilities_look").Args(m))
	if err != nil {
		return module.Result{Data: capabilityOutput(a)}, err
	}
	now, err := readCapabilities(strings.TrimPrefix(a.Get("caps"), m.Path))
	if err != nil {
		return module.Result{}, fmt.Errorf("getcap %s: %w", m.Path, err)
	}
	same := func(have capability) bool { return have.name == want.name }
	at := slices.IndexFunc(now, same)
	r := module.ResultOf(a, "state", m.State)
	if m.State == "present" && at >= 0 && now[at] == want || m.State == "absent" && at < 0 {
		return r, nil
	}
	r.Changed, r.Msg = true, "capabilities changed"
	after := slices.DeleteFunc(slices.Clone(now), same)
	if m.State == "present" {
		after = append(after, want)
	}
	c.Show(&r, m.Path, lineOf(now), lineOf(after))
	if c.Check {
		return r, nil
	}
	set := hostscript.New(capabilitiesScript, "capabilities_set").Args(m).Set("caps", strings.TrimSpace(lineOf(after)))
	if a, err = set.Run(ctx, c.Conn, c.Check); err != nil {
		return module.Result{Data: capabilityOutput(a)}, err
	}
	r.Data.Set("stdout", module.Printed(a.Get("stdout")))
	return r, nil
}

// capabilityOutput is the output of a failed tool.
func capabilityOutput(a hostscript.Answer) *value.Dict {
	if !a.Has("stderr") {
		return nil
	}
	return value.NewDict("stdout", module.Printed(a.Get("stdout")), "stderr", module.Printed(a.Get("stderr")))
}

// capability is a capability of a file: its name, and its flags out of e, i and p, in
// this order.
type capability struct{ name, flags string }

func isCapability(text string) error {
	_, err := parseCapability(text)
	return err
}

func hasFlags(text string) error {
	c, err := parseCapability(text)
	if err == nil && c.flags == "" {
		return fmt.Errorf("capability %q has no flags: write one such as %s+ep", text, c.name)
	}
	return nil
}

func parseCapability(text string) (capability, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	name, flags := text, ""
	if i := strings.IndexAny(text, "=+"); i >= 0 {
		name, flags = text[:i], text[i+1:]
	}
	if strings.Trim(flags, "eip") != "" || name == "" ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return capability{}, fmt.Errorf("%q is not a capability with flags, such as cap_net_raw+ep", text)
	}
	out := capability{name: name}
	for _, flag := range "eip" {
		if strings.ContainsRune(flags, flag) {
			out.flags += string(flag)
		}
	}
	return out, nil
}

// readCapabilities reads the output of getcap after the name of a file: names
// separated by commas share their flags. Older ones put " =" before.
func readCapabilities(text string) ([]capability, error) {
	var out []capability
	for _, word := range strings.Fields(strings.TrimPrefix(text, " =")) {
		names := strings.Split(word, ",")
		last, err := parseCapability(names[len(names)-1])
		if err != nil {
			return nil, err
		}
		for _, name := range names[:len(names)-1] {
			out = append(out, capability{name, last.flags})
		}
		out = append(out, last)
	}
	return out, nil
}

// lineOf is capabilities in the form of setcap.
func lineOf(all []capability) string {
	words := make([]string, len(all))
	for i, one := range all {
		words[i] = one.name + "+" + one.flags
	}
	return module.JoinLines([]string{strings.Join(words, " ")})
}
