package ssh_test

import (
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/ssh"
	"kubekey/pkg/redact"
)

func rawKey(t *testing.T, file string) any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	key, err := xssh.ParseRawPrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestEncryptedKey(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	block, err := xssh.MarshalPrivateKeyWithPassphrase(rawKey(t, d.KeyFile), "", []byte("open-it"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options(d)
	o.PrivateKeyFiles = []string{file}
	// All hosts of a run share the decrypted key, but not the answer for another passphrase.
	shared := ssh.NewShared()
	next := func() connector.Connector {
		h, err := shared.New(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { h.Close() })
		return h
	}
	wantUnreachable(t, next(), "no private key, agent or password", "encrypted and no passphrase is given")
	for range 2 {
		o.Passphrase = new(redact.Set).Secret("wrong")
		wantUnreachable(t, next(), "the passphrase is wrong")
		o.Passphrase = new(redact.Set).Secret("open-it")
		mustRun(t, next(), "echo hi", "hi\n")
	}
	o.PrivateKeyFiles, o.PrivateKey = nil, new(redact.Set).Secret(string(pem.EncodeToMemory(block)))
	mustRun(t, next(), "echo given", "given\n")
}

func TestAgent(t *testing.T) {
	t.Parallel()
	d := connectortest.StartSSHD(t)
	keys := agent.NewKeyring()
	if err := keys.Add(agent.AddedKey{PrivateKey: rawKey(t, d.KeyFile)}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keys, c) }()
		}
	}()
	o := options(d)
	o.PrivateKeyFiles, o.AgentSocket = nil, socket
	mustRun(t, connect(t, o), "echo hi", "hi\n")
	o.AgentSocket = socket + "-none"
	o.PrivateKeyFiles = []string{"/no/key"}
	wantUnreachable(t, connect(t, o), "/no/key")
}
