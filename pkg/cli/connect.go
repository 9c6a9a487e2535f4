package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/shlex"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/connector/ssh"
	"kubekey/pkg/engine"
	"kubekey/pkg/event"
	"kubekey/pkg/source"
)

// connect opens the connection to a target. An SSH connection is opened on first use. For unknown host keys, policy
// takes precedence over the host's variables, and these over setting; "" means not set.
func connect(policy, setting string, knownHosts []string, warn func(string)) connectFunc {
	shared := ssh.NewShared()
	shared.Warn = warn
	return func(_ context.Context, t engine.Target) (connector.Connector, error) {
		switch t.Connection {
		case "local":
			return connector.Guarded(local.New()), nil
		case "ssh", "smart", "paramiko", "ansible.builtin.ssh":
		default:
			return nil, fmt.Errorf("connection %q is not supported: use ssh or local", t.Connection)
		}
		o := ssh.Options{
			Host: t.Host, Address: t.Address, Port: t.Port, User: t.User, Password: t.Password,
			PrivateKey: t.KeyContent, Passphrase: t.Passphrase, ProxyJump: t.ProxyJump,
			HostKey: ssh.HostKeyPolicy(policy), KnownHosts: knownHosts, ConnectTimeout: t.Timeout,
		}
		if t.KeyFile != "" {
			o.PrivateKeyFiles = []string{t.KeyFile}
		}
		if err := sshArgs(&o, t.SSHArgs); err != nil {
			return nil, err
		}
		switch {
		case o.HostKey != "":
		case falseWord(t.HostKeyChecking):
			o.HostKey = ssh.Insecure
		case t.HostKeyChecking == "":
			o.HostKey = ssh.HostKeyPolicy(setting)
		}
		host, err := shared.New(o)
		if err != nil {
			return nil, err
		}
		return connector.PersistentShell(connector.Guarded(host)), nil
	}
}

func falseWord(s string) bool {
	switch strings.ToLower(s) {
	case "false", "no", "off", "0":
		return true
	}
	return false
}

// sshArgs applies ansible_ssh_common_args and ansible_ssh_extra_args. Options for the connection sharing of the ssh
// program have no effect: kk always uses one connection per host.
func sshArgs(o *ssh.Options, args string) error {
	words, err := shlex.Split(args)
	if err != nil {
		return fmt.Errorf("ansible_ssh_common_args: %w", err)
	}
	for i := 0; i < len(words); i++ {
		flag, arg := words[i], ""
		if len(flag) > 2 {
			flag, arg = flag[:2], flag[2:]
		} else if i+1 < len(words) && strings.ContainsAny(flag, "oJpilF") {
			i++
			arg = words[i]
		}
		if err := sshArg(o, flag, arg); err != nil {
			return fmt.Errorf("ansible_ssh_common_args: %w", err)
		}
	}
	return nil
}

func sshArg(o *ssh.Options, flag, arg string) error {
	switch flag {
	case "-o":
		key, v, ok := strings.Cut(arg, "=")
		if !ok {
			key, v, _ = strings.Cut(arg, " ")
		}
		return sshOption(o, strings.TrimSpace(key), strings.TrimSpace(v))
	case "-J":
		o.ProxyJump = arg
	case "-i":
		o.PrivateKeyFiles = append(o.PrivateKeyFiles, arg)
	case "-l":
		o.User = arg
	case "-F":
		o.ConfigFile = arg
	case "-p":
		return sshOption(o, "port", arg)
	case "-C", "-q", "-4", "-6", "-v", "-n", "-x", "-T":
	default:
		return fmt.Errorf("the ssh argument %s is not supported", flag)
	}
	return nil
}

func sshOption(o *ssh.Options, key, v string) error {
	switch strings.ToLower(key) {
	case "userknownhostsfile":
		o.KnownHosts = append(o.KnownHosts, strings.Fields(v)...)
	case "stricthostkeychecking":
		switch strings.ToLower(v) {
		case "no", "off":
			o.HostKey = ssh.Insecure
		case "accept-new":
			o.HostKey = ssh.AcceptNew
		}
	case "proxyjump":
		o.ProxyJump = v
	case "user":
		o.User = v
	case "identityfile":
		o.PrivateKeyFiles = append(o.PrivateKeyFiles, v)
	case "identityagent":
		o.AgentSocket = v
	case "port", "connecttimeout", "serveraliveinterval":
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("%s must be a number, not %q", key, v)
		}
		switch strings.ToLower(key) {
		case "port":
			o.Port = n
		case "connecttimeout":
			o.ConnectTimeout = time.Duration(n) * time.Second
		default:
			o.KeepAlive = time.Duration(n) * time.Second
		}
	case "controlmaster", "controlpersist", "controlpath", "serveralivecountmax", "compression", "identitiesonly",
		"preferredauthentications", "forwardagent", "loglevel", "passwordauthentication", "pubkeyauthentication",
		"tcpkeepalive", "batchmode", "gssapiauthentication", "connectionattempts":
	default:
		return fmt.Errorf("the ssh option %s is not supported: set it in ~/.ssh/config, or use ProxyJump for jump hosts", key)
	}
	return nil
}

// connect returns a function that opens connections according to the flags and the settings.
func (a *app) connect(c *connectFlags) connectFunc {
	setting := ""
	if v := a.settings.Get("ssh_host_key"); v.Changed() {
		setting = a.settings.SSHHostKey
	}
	return connect(c.hostKey, setting, c.knownHosts, func(text string) {
		if c.sink != nil {
			c.sink.Emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "%s", text)})
		}
	})
}
