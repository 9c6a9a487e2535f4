package kube

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"crypto/tls"
)

// upstream finds a program of the folder of upstream binaries, or of PATH.
func upstream(t *testing.T, pattern string) string {
	t.Helper()
	root := os.Getenv("KK_UPSTREAM")
	if root == "" {
		home, _ := os.UserHomeDir()
		root = filepath.Join(home, ".cache", "kk-upstream")
	}
	if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) > 0 {
		return found[len(found)-1]
	}
	path, err := exec.LookPath(filepath.Base(pattern))
	if err != nil {
		t.Skipf("needs %s in %s (KK_UPSTREAM) or in PATH", pattern, root)
	}
	return path
}

// cluster is a real API server with its etcd on loopback, without nodes.
type cluster struct{ kubectl, kubeconfig, dir string }

func startCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an API server")
	}
	etcd, apiserver := upstream(t, "etcd-*/amd64/etcd"), upstream(t, "kubernetes-*/amd64/kube-apiserver")
	c := &cluster{kubectl: upstream(t, "kubernetes-*/amd64/kubectl"), dir: t.TempDir()}
	ports := freePorts(t, 3)
	etcdURL, peerURL := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	c.start(t, etcd, "--data-dir", c.dir+"/etcd", "--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster", "default="+peerURL)
	c.write(t, "sa.key", string(saKey(t)))
	c.write(t, "tokens.csv", "test-token,admin,1,system:masters\n")
	c.start(t, apiserver, "--etcd-servers", etcdURL, "--secure-port", fmt.Sprint(ports[2]), "--bind-address", "127.0.0.1",
		"--cert-dir", c.dir+"/certs", "--token-auth-file", c.dir+"/tokens.csv", "--authorization-mode", "RBAC",
		"--service-account-key-file", c.dir+"/sa.key", "--service-account-signing-key-file", c.dir+"/sa.key",
		"--service-account-issuer", "https://kubernetes.default.svc", "--service-cluster-ip-range", "10.0.0.0/24",
		"--disable-admission-plugins", "ServiceAccount")
	server := fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	c.kubeconfig = c.write(t, "kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: t,
contexts: [{name: t, context: {cluster: t, user: t}}],
clusters: [{name: t, cluster: {server: %q, insecure-skip-tls-verify: true}}],
users: [{name: t, user: {token: test-token}}]}
`, server))
	c.await(t, server+"/readyz")
	return c
}

func (c *cluster) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(c.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c *cluster) start(t *testing.T, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(c.dir, filepath.Base(program)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() && os.Getenv("KK_LOGS") != "" {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s: %.4000s", program, text)
		}
	})
}

func (c *cluster) await(t *testing.T, url string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // loopback
	for range 600 {
		req, _ := http.NewRequest(http.MethodGet, url, nil)
		req.Header.Set("Authorization", "Bearer test-token")
		if resp, err := client.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the API server did not get ready in a minute; KK_LOGS=1 shows its log")
}

// kubectlRun runs kubectl and returns what it prints.
func (c *cluster) kubectlRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(c.kubectl, append([]string{"--kubeconfig", c.kubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v: %s", args, err, out)
	}
	return string(out)
}

func freePorts(t *testing.T, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func saKey(t *testing.T) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}
