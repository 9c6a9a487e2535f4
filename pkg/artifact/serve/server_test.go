package serve

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"kubekey/pkg/artifact/artifacttest"
)

// certificate writes a certificate for 127.0.0.1 and its key, and returns the client that trusts it.
func certificate(t *testing.T) (cert, key string, client *http.Client) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	check(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(k)
	check(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	check(t, os.WriteFile(cert, text, 0o600))
	check(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return cert, key, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true}}
}

func users(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "users")
	check(t, os.WriteFile(path, []byte(text), 0o600))
	check(t, os.Chmod(path, mode))
	return path
}

// runServer runs a server until the test ends, and returns its URL.
func runServer(t *testing.T, s Server, h http.Handler) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	url, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- s.Run(ctx, h, func(u string) { url <- u }, func(err error) { t.Log(err) }) }()
	select {
	case u := <-url:
		t.Cleanup(func() {
			stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return u
	case err := <-done:
		stop()
		t.Fatal(err)
	}
	return ""
}

func TestTLSAndPassword(t *testing.T) {
	o := artifacttest.Sample(t, nil)
	hash, err := bcrypt.GenerateFromPassword([]byte("s3cret: it's"), bcrypt.MinCost)
	check(t, err)
	cert, key, client := certificate(t)
	url := runServer(t, Server{Listen: "0.0.0.0:0", TLSCert: cert, TLSKey: key,
		Auth: users(t, "# who may read\n\nada:"+string(hash)+"\nbob:plain:text\n", 0o600)}, handler(t, &problemLog{}, o.Path))
	_, port, err := net.SplitHostPort(strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/"))
	check(t, err)
	url = "https://127.0.0.1:" + port
	for _, c := range []struct {
		user, password string
		status         int
	}{
		{"ada", "s3cret: it's", 200}, {"ada", "s3cret: it's", 200}, {"bob", "plain:text", 200},
		{"", "", 401}, {"ada", "", 401}, {"ada", "plain:text", 401}, {"bob", "s3cret: it's", 401},
		{"eve", "s3cret: it's", 401},
		{"ada", string(hash), 401}, {"bob", "plain", 401}, {"bo", "b:plain:text", 401}, {"# who may read", "", 401},
	} {
		for _, path := range []string{"/", kubeadm, "/overlay.yaml", "/v2/", "/nothing"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
			check(t, err)
			if c.user != "" {
				req.SetBasicAuth(c.user, c.password)
			}
			res, err := client.Do(req)
			check(t, err)
			body, err := io.ReadAll(res.Body)
			check(t, errors.Join(err, res.Body.Close()))
			want := c.status
			if path == "/nothing" && want == 200 {
				want = 404
			}
			if res.StatusCode != want {
				t.Errorf("%s as %q: %s", path, c.user, res.Status)
			}
			if want == 401 && !strings.HasPrefix(res.Header.Get("WWW-Authenticate"), "Basic ") {
				t.Errorf("%s: %v", path, res.Header)
			}
			if want == 401 && bytes.Contains(body, []byte("sha256")) {
				t.Errorf("%s without a password: %s", path, body)
			}
			if path == "/overlay.yaml" && want == 200 && !bytes.Contains(body, []byte("https://: "+url+"/\n")) {
				t.Errorf("%s", body)
			}
			if path == kubeadm && want == 200 && !bytes.Equal(body, o.Program) {
				t.Errorf("%d bytes over %s", len(body), res.Proto)
			}
		}
	}
}

func TestAddressesOfOthersNeedTLSAndAPassword(t *testing.T) {
	for _, c := range []struct {
		server Server
		want   []string
	}{
		{Server{Listen: "0.0.0.0:0"}, []string{"--tls-cert FILE and --tls-key FILE", "--auth FILE", "127.0.0.1"}},
		{Server{Listen: ":8080"}, []string{"--auth FILE"}},
		{Server{Listen: "[::]:8080", TLSCert: "a", TLSKey: "b"}, []string{"add --auth FILE,"}},
		{Server{Listen: "mirror.example.org:80", Auth: "c"}, []string{"add --tls-cert FILE and --tls-key FILE,"}},
		{Server{Listen: "127.0.0.1.example.org:80"}, []string{"--auth FILE"}},
		{Server{Listen: "8080", TLSCert: "a"}, []string{`--listen "8080" is not HOST:PORT`, "belong together"}},
		{Server{Listen: "127.0.0.1:0", TLSKey: "a"}, []string{"belong together"}},
		{Server{Listen: "127.0.0.1:0", TLSCert: "none", TLSKey: "none"}, []string{"read --tls-cert and --tls-key", "none"}},
		{Server{Listen: "127.0.0.1:0", Auth: "none"}, []string{"read --auth", "none"}},
	} {
		err := c.server.Run(t.Context(), http.NotFoundHandler(), func(url string) { t.Errorf("%s is served", url) }, nil)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, not %q", c.server, err, want)
			}
		}
	}
}

func TestFilesOfUsers(t *testing.T) {
	for _, c := range []struct {
		text string
		mode os.FileMode
		want []string
	}{
		{"ada:x\n", 0o644, []string{"0644", "chmod 600"}},
		{"ada:x\n", 0o620, []string{"chmod 600"}},
		{"", 0o600, []string{"has no users"}},
		{"ada\nbob:\n:x\n", 0o600, []string{"users:1:", "users:2:", "users:3:", "USER:PASSWORD"}},
		{"ada:$apr1$salt$secret\nbob:{SHA}secret\n", 0o600, []string{"users:1:", "users:2:", "htpasswd -B"}},
		{"ada:$2y$xx$secret\n", 0o600, []string{"bcrypt", "htpasswd -B"}},
		{"ada:secret\nada:secret\n", 0o600, []string{"users:2:", "already"}},
		{strings.Repeat("x", maxUsers+1), 0o600, []string{"at most"}},
	} {
		_, err := ReadUsers(users(t, c.text, c.mode))
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.30q: %v, not %q", c.text, err, want)
			}
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is shown: %s", err)
		}
	}
}

// TestBcryptIsComputedOnce: otherwise each request would take as long as the hash was made to take.
func TestBcryptIsComputedOnce(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("x"), bcrypt.MinCost)
	check(t, err)
	u, err := ReadUsers(users(t, "ada:"+string(hash)+"\n", 0o600))
	check(t, err)
	if !u.allow(t.Context(), "ada", "x") {
		t.Fatal("the password is not accepted")
	}
	u.turns <- struct{}{} // nobody computes bcrypt
	u.turns <- struct{}{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if !u.allow(ended, "ada", "x") || u.allow(ended, "ada", "y") {
		t.Error("the password is not remembered, or another is accepted")
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	began, proceed := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-proceed
		fmt.Fprint(w, "whole")
	})
	url, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- Server{Listen: "127.0.0.1:0"}.Run(ctx, h, func(u string) { url <- u }, nil) }()
	at := <-url
	answer := make(chan string, 1)
	go func() {
		_, body := get(t, http.MethodGet, at)
		answer <- string(body)
	}()
	<-began
	stop()
	select {
	case err := <-done:
		t.Fatalf("it ended before its response: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(proceed)
	if got := <-answer; got != "whole" {
		t.Errorf("%q", got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	address := strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/")
	if _, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		t.Error("something listens still")
	}
}

func TestLargeHeadersAreRejected(t *testing.T) {
	o := artifacttest.Sample(t, nil)
	url := runServer(t, Server{Listen: "127.0.0.1:0"}, handler(t, &problemLog{}, o.Path))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	check(t, err)
	req.Header.Set("X-Large", strings.Repeat("x", 2*maxHeader))
	if res, err := plainClient.Do(req); err == nil { // else the connection was closed while it was sent
		_ = res.Body.Close()
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Error(res.Status)
		}
	}
	if res, _ := get(t, http.MethodGet, url); res.StatusCode != http.StatusOK {
		t.Error(res.Status)
	}
}
