package ssh_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
)

// BenchmarkTrue is the cost of a command, to be compared with BenchmarkBareTrue.
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

// BenchmarkPut is the throughput of a transfer, to be compared with BenchmarkBareCat.
func BenchmarkPut(b *testing.B) {
	h := connect(b, options(connectortest.StartSSHD(b)))
	b.SetBytes(putSize)
	for b.Loop() {
		f := connector.File{Path: b.TempDir() + "/f", Size: putSize, SHA256: zerosDigest()}
		if _, err := connector.Put(context.Background(), h, f, io.LimitReader(zeros{}, putSize)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBareCat is what ssh host 'cat >f' does with the same library.
func BenchmarkBareCat(b *testing.B) {
	client := bareClient(b, connectortest.StartSSHD(b))
	b.SetBytes(putSize)
	for b.Loop() {
		s, err := client.NewSession()
		if err != nil {
			b.Fatal(err)
		}
		s.Stdin = io.LimitReader(zeros{}, putSize)
		if err := s.Run("cat > " + b.TempDir() + "/f"); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}

const putSize = 100 << 20

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func zerosDigest() string {
	sum := sha256.New()
	_, _ = io.Copy(sum, io.LimitReader(zeros{}, putSize))
	return hex.EncodeToString(sum.Sum(nil))
}
