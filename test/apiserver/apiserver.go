// Package apiserver runs a real API server of Kubernetes for tests: with its
// etcd, on loopback, and without controllers and nodes.
package apiserver

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Token is what the API server takes for its administrator.
const Token = "test-token"

// Server is an API server that runs until its test ends.
type Server struct {
	Address    string // https://127.0.0.1:PORT
	Kubeconfig string // file
	Kubectl    string // program
	CA         string // file with the certificate that vouches for the server's

	dir string
}

// find finds a program of the lab's mirror, or of this machine.
func find(name string) (string, error) {
	root := os.Getenv("KK_UPSTREAM")
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		root = filepath.Join(cache, "kk-upstream")
	}
	pattern := filepath.Join(root, "*", runtime.GOARCH, name)
	if found, _ := filepath.Glob(pattern); len(found) > 0 {
		return slices.Max(found), nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("there is no %s: neither %s nor in PATH (make mirror builds it)", name, pattern)
	}
	return path, nil
}

// Missing says which programs an API server lacks, nil when it has all.
func Missing() error {
	var all []error
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		_, err := find(name)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// Program finds a program of the lab's mirror, or of this machine; without it
// the test is skipped.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := find(name)
	if err != nil {
		t.Skip(err)
	}
	return path
}

// Start starts an API server. Where its programs are missing the test is skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server")
	}
	etcd, apiserver := Program(t, "etcd"), Program(t, "kube-apiserver")
	s := &Server{Kubectl: Program(t, "kubectl"), dir: t.TempDir()}
	client, peer, secure := freeAddress(t), freeAddress(t), freeAddress(t)
	s.Address, s.CA = "https://"+secure, s.in("certs/apiserver.crt")
	s.program(t, etcd, "--data-dir", s.in("etcd"), "--unsafe-no-fsync", "--listen-client-urls", "http://"+client,
		"--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster",
		"default=http://"+peer)
	s.write(t, "sa.key", key(t))
	s.write(t, "tokens.csv", Token+",admin,admin,system:masters\n")
	s.Kubeconfig = s.write(t, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: t, contexts: [{name: t, context: {cluster: t, user: t}}],
clusters: [{name: t, cluster: {server: %q, insecure-skip-tls-verify: true}}], users: [{name: t, user: {token: %s}}]}
`, s.Address, Token))
	_, port, _ := net.SplitHostPort(secure)
	s.program(t, apiserver, "--etcd-servers", "http://"+client, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", s.in("certs"),
		"--service-cluster-ip-range", "10.233.0.0/18,fd85::/108", "--authorization-mode", "RBAC", "--allow-privileged",
		"--token-auth-file", s.in("tokens.csv"),
		"--service-account-key-file", s.in("sa.key"), "--service-account-signing-key-file", s.in("sa.key"),
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--disable-admission-plugins", "ServiceAccount") // no controller makes the account that Pods run under
	s.await(t, s.in(filepath.Base(apiserver)+".log"))
	return s
}

// Run runs kubectl and returns all that it prints.
func (s *Server) Run(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.Kubectl,
		append([]string{"--kubeconfig", s.Kubeconfig, "--cache-dir", s.in("cache")}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Must runs kubectl, which must not fail.
func (s *Server) Must(t testing.TB, args ...string) string {
	t.Helper()
	out, err := s.Run(t, "", args...)
	if err != nil {
		t.Fatalf("kubectl %v: %v: %s", args, err, out)
	}
	return out
}

func (s *Server) in(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) write(t testing.TB, name, text string) string {
	t.Helper()
	if err := os.WriteFile(s.in(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s.in(name)
}

// program runs a program until the test ends, its output in a file of the folder.
func (s *Server) program(t testing.TB, name string, args ...string) {
	t.Helper()
	log, err := os.Create(s.in(filepath.Base(name) + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = log.Close()
	})
}

// await returns when the API server has what every cluster begins with.
func (s *Server) await(t testing.TB, log string) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(300 * time.Millisecond) {
		if _, err := s.Run(t, "", "get", "namespaces", "default", "kube-system"); err == nil {
			return
		}
	}
	text, _ := os.ReadFile(log)
	t.Fatalf("the API server did not start:\n%s", text[max(0, len(text)-3000):])
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func key(t testing.TB) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}
