package ssh_test

import (
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/ssh"
)

func options(d *connectortest.SSHD) ssh.Options {
	return ssh.Options{
		Host: "node1", Address: "127.0.0.1", Port: d.Port, User: d.User,
		PrivateKeyFiles: []string{d.KeyFile}, KnownHosts: []string{d.KnownHosts}, ConfigFile: "none", AgentSocket: "none",
	}
}

func connect(t testing.TB, o ssh.Options) *ssh.Host {
	t.Helper()
	h, err := ssh.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestContract(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	connectortest.Contract(t, func(t *testing.T) connector.Connector { return connect(t, options(d)) })
}
