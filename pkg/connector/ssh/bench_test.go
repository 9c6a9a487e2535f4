package ssh_test

import (
	"context"
	"os"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
)

// BenchmarkTrue is the cost of a command, to be held against BenchmarkBareTrue.
func BenchmarkTrue(b *testing.B) {
	h := connect(b, options(connectortest.StartSSHD(b)))
	run := func() {
		if exit, err := h.Run(context.Background(), connector.Command{Line: "/bin/true"}); err != nil || exit.Code != 0 {
			b.Fatal(exit, err)
		}
	}
	run()
	for b.Loop() {
		run()
	}
}

// BenchmarkBareTrue is the least that a command over ssh can cost.
func BenchmarkBareTrue(b *testing.B) {
	client := bareClient(b, connectortest.StartSSHD(b))
	for b.Loop() {
		s, err := client.NewSession()
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Run("/bin/true"); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

func bareClient(b *testing.B, d *connectortest.SSHD) *xssh.Client {
	text, err := os.ReadFile(d.KeyFile)
	if err != nil {
		b.Fatal(err)
	}
	key, err := xssh.ParsePrivateKey(text)
	if err != nil {
		b.Fatal(err)
	}
	client, err := xssh.Dial("tcp", d.Addr, &xssh.ClientConfig{
		User: d.User, Auth: []xssh.AuthMethod{xssh.PublicKeys(key)}, HostKeyCallback: xssh.FixedHostKey(d.HostKey)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { client.Close() })
	return client
}
