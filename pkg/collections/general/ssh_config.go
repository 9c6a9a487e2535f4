package general

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/module/account"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed ssh_config.sh
var sshConfigScript string

// SSHConfig is the module ssh_config.
type SSHConfig struct {
	Host        string      `kk:"host,required" doc:"value of Host: a name or patterns"`
	State       string      `kk:"state" default:"present" choices:"present,absent" doc:"whether the entry should exist"`
	User        string      `kk:"user" doc:"whose file: .ssh/config in the home folder"`
	Group       string      `kk:"group" doc:"group of the file. Default: that of the user"`
	File        string      `kk:"ssh_config_file,path" doc:"the file. Default: /etc/ssh/ssh_config, or that of the user"`
	HostName    *string     `kk:"hostname" doc:"the name or address to connect to"`
	Port        *string     `kk:"port" doc:"its port"`
	RemoteUser  *string     `kk:"remote_user" doc:"the user to log in as"`
	Identity    *string     `kk:"identity_file,path" doc:"private key, which must exist; a relative path starts at the folder of the file"`
	Strict      *string     `kk:"strict_host_key_checking" choices:"yes,no,ask,accept-new" doc:"how to handle a server with an unknown key"`
	KnownHosts  *string     `kk:"user_known_hosts_file" doc:"known_hosts file"`
	ProxyCmd    *string     `kk:"proxycommand" doc:"command to connect to the server with"`
	ProxyJump   *string     `kk:"proxyjump" doc:"jump hosts"`
	Forward     *bool       `kk:"forward_agent" doc:"forward the SSH agent"`
	AddKeys     *bool       `kk:"add_keys_to_agent" doc:"add used keys to the agent"`
	Algorithms  *string     `kk:"host_key_algorithms" doc:"allowed host key algorithms"`
	Identities  *bool       `kk:"identities_only" doc:"use only the configured keys"`
	Master      *string     `kk:"controlmaster" choices:"yes,no,ask,auto,autoask" doc:"share one connection"`
	ControlPath *string     `kk:"controlpath" doc:"socket of the shared connection"`
	Persist     *string     `kk:"controlpersist" doc:"keep the shared connection open: yes, no, or how long"`
	Dynamic     *string     `kk:"dynamicforward" doc:"local port of a SOCKS proxy through the server"`
	Other       *value.Dict `kk:"other_options" doc:"further options, by their names in lower case"`
}

func sshConfigSpec() module.Spec {
	return module.Spec{
		Name: "ssh_config", Collection: "community.general",
		Summary: "Manages an entry in an ssh config file.",
		Notes: []string{
			"Other options of an entry and comments are preserved. A new entry is appended to the file.",
			"A changed file gets mode 0600, and /etc/ssh/ssh_config 0644.",
		},
		Examples: []string{"- name: Reach the repositories with a key of their own\n  ssh_config:\n    user: root\n" +
			"    host: git.example.org\n    port: \"2222\"\n    remote_user: git\n" +
			"    strict_host_key_checking: accept-new\n    other_options:\n      serveraliveinterval: \"30\""},
		Returns: []module.Return{
			{Key: "hosts_added, hosts_changed, hosts_removed", Type: "list",
				Doc: "the entry, in one of them if something changed"},
			{Key: "hosts_change_diff", Type: "list", Doc: "by entry, its options: old and new"},
		},
		New: func() module.Runner { return new(SSHConfig) },
	}
}

// Rules implements schema.Ruled.
func (*SSHConfig) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("user", "ssh_config_file"),
		schema.AtMostOne("proxycommand", "proxyjump"),
		schema.Needs("host"),
		schema.Looks("names or patterns in one line", isHostLine, "host"),
		account.IsAccount("user", "user"),
	}
}

// Run implements module.Runner.
func (m *SSHConfig) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	want, err := m.options()
	if err != nil {
		return module.Result{}, err
	}
	read := m.script("ssh_config_read")
	if m.State == "present" {
		read.Set("identity", schema.Text(m.Identity))
	}
	a, err := c.Probe(ctx, read)
	if err != nil {
		return module.Result{}, err
	}
	before := strings.TrimSuffix(a.Get("text"), "x")
	edit := sshFile{lines: module.Lines(before)}
	if m.State == "absent" {
		edit.remove(m.Host)
	} else {
		edit.keep(m.Host, want)
	}
	r := edit.result(m.Host)
	r.Warnings = a["warn"]
	if !r.Changed {
		return r, nil
	}
	after := module.JoinLines(edit.lines)
	c.Show(&r, a.Get("path"), before, after)
	act := m.script("ssh_config_write").Flag("write", true).Set("group", m.Group)
	return c.Act(ctx, r, act, after)
}

func (m *SSHConfig) script(what string) *hostscript.Script {
	return hostscript.New(account.AccountScript, module.TextFileScript(), sshConfigScript, what).Set("user",
		m.User).Set("path", m.File)
}

// sshOption is a line of an entry. Names are in lower case.
type sshOption struct{ name, value string }

func isHostLine(host string) bool {
	return strings.TrimSpace(host) != "" && !strings.ContainsAny(host, "#\r\n\x00")
}

// options returns the desired lines of the entry, in the order of the arguments.
func (m *SSHConfig) options() ([]sshOption, error) {
	var out []sshOption
	add := func(name string, text *string) {
		if text != nil && *text != "" {
			out = append(out, sshOption{name, *text})
		}
	}
	add("hostname", m.HostName)
	add("port", m.Port)
	add("identityfile", m.Identity)
	add("user", m.RemoteUser)
	add("stricthostkeychecking", m.Strict)
	add("userknownhostsfile", m.KnownHosts)
	add("proxycommand", m.ProxyCmd)
	add("proxyjump", m.ProxyJump)
	add("hostkeyalgorithms", m.Algorithms)
	add("forwardagent", yesNo(m.Forward))
	add("addkeystoagent", yesNo(m.AddKeys))
	add("identitiesonly", yesNo(m.Identities))
	add("controlmaster", m.Master)
	add("controlpath", m.ControlPath)
	add("controlpersist", wordOfBool(m.Persist))
	add("dynamicforward", m.Dynamic)
	return m.other(out)
}

// other adds the options that have no separate argument.
func (m *SSHConfig) other(out []sshOption) ([]sshOption, error) {
	for key, v := range m.Other.All() {
		name := value.Str(key)
		if name != strings.ToLower(name) || name == "" || strings.ContainsAny(name, " \t=\"#\r\n\x00") || name == "host" ||
			name == "match" {
			return nil, fmt.Errorf("other_options: %q is not the name of an option in lower case", name)
		}
		for _, o := range out {
			if o.name == name {
				return nil, fmt.Errorf("other_options: %s has an argument of its own, which is given too", name)
			}
		}
		text := value.Str(v)
		out = append(out, sshOption{name, *wordOfBool(&text)})
	}
	for _, o := range out {
		if strings.ContainsAny(o.value, "\r\n\x00") {
			return nil, fmt.Errorf("the value of %s must be one line, got %q", o.name, o.value)
		}
	}
	return out, nil
}

func yesNo(on *bool) *string {
	if on == nil {
		return nil
	}
	text := "no"
	if *on {
		text = "yes"
	}
	return &text
}

// wordOfBool converts a text that was a bool in YAML to ssh's spelling.
func wordOfBool(text *string) *string {
	if text != nil && (*text == "True" || *text == "False") {
		on := *text == "True"
		return yesNo(&on)
	}
	return text
}
