package apps_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
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

// program finds one of the lab's mirror, or of this machine; without it the test is skipped.
func program(t *testing.T, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	pattern := filepath.Join(cache, "kk-upstream", "*", runtime.GOARCH, name)
	if found, _ := filepath.Glob(pattern); len(found) > 0 {
		return slices.Max(found)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: neither %s nor in PATH (the lab's mirror builds it)", name, pattern)
	}
	return path
}

// cluster is an API server with its etcd, on loopback.
type cluster struct {
	kubectl string
	flags   []string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	etcd, apiserver := program(t, "etcd"), program(t, "kube-apiserver")
	c := &cluster{kubectl: program(t, "kubectl")}
	dir := t.TempDir()
	client, peer, secure := freePort(t), freePort(t), freePort(t)
	start(t, dir, etcd, "--data-dir", filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer, "--initial-cluster", "default=http://"+peer)
	writeKey(t, filepath.Join(dir, "sa.key"))
	write(t, dir, "tokens", "token,admin,admin,system:masters\n")
	_, port, _ := net.SplitHostPort(secure)
	in := func(name string) string { return filepath.Join(dir, name) }
	start(t, dir, apiserver, "--etcd-servers", "http://"+client, "--bind-address", "127.0.0.1", "--secure-port", port, "--cert-dir", in("certs"),
		"--service-cluster-ip-range", "10.233.0.0/18,fd85::/108", "--authorization-mode", "RBAC", "--allow-privileged", "--token-auth-file", in("tokens"),
		"--service-account-key-file", in("sa.key"), "--service-account-signing-key-file", in("sa.key"), "--service-account-issuer", "https://kubernetes")
	c.flags = []string{"--server", "https://" + secure, "--token", "token", "--insecure-skip-tls-verify", "--cache-dir", in("cache")}
	c.wait(t, filepath.Join(dir, filepath.Base(apiserver)+".log"))
	return c
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs a program until the test ends, its output in a file of the folder.
func start(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, filepath.Base(name)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		log.Close()
	})
}

func writeKey(t *testing.T, name string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wait returns when the API server has what every cluster begins with.
func (c *cluster) wait(t *testing.T, log string) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(500 * time.Millisecond) {
		if _, err := c.run(t, "", "get", "namespaces", "default", "kube-system"); err == nil {
			return
		}
	}
	text, _ := os.ReadFile(log)
	t.Fatalf("the API server did not start:\n%s", text[max(0, len(text)-3000):])
}

func (c *cluster) run(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), c.kubectl, append(slices.Clone(c.flags), args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// apply hands a manifest to the API server, which must take all of it without a warning.
func (c *cluster) apply(t *testing.T, name, manifest string) {
	t.Helper()
	out, err := c.run(t, manifest, "apply", "--server-side", "--field-manager", "kk", "--validate=strict", "-f", "-")
	if err != nil || strings.Contains(out, "Warning") {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

func (c *cluster) versions(t *testing.T, manifest string) string {
	t.Helper()
	out, err := c.run(t, manifest, "get", "-f", "-", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func TestServerTakesManifests(t *testing.T) {
	c := startCluster(t)
	for family, ranges := range families {
		t.Run(family, func(t *testing.T) {
			r := render(t, fmt.Sprintf("kubernetes: {networking: %s}", ranges))
			for _, name := range manifests {
				text := r.text(t, name+".yaml")
				c.apply(t, name, text)
				before := c.versions(t, text)
				c.apply(t, name, text)
				if after := c.versions(t, text); after != before {
					t.Errorf("%s: applied again it changes\n%s\nto\n%s", name, before, after)
				}
			}
			// The service's address is what differs, and cannot change.
			if out, err := c.run(t, "", "delete", "service", "-n", "kube-system", "kube-dns"); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
