package cli

import (
	"context"
	"fmt"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/connector/ssh"
	"kubekey/pkg/engine"
)

// connect makes the connection to a target. An SSH connection is opened when
// it is first used.
func connect(policy string, knownHosts []string) func(context.Context, engine.Target) (connector.Connector, error) {
	return func(_ context.Context, t engine.Target) (connector.Connector, error) {
		switch t.Connection {
		case "local":
			return local.New(), nil
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
		return ssh.New(o)
	}
}
