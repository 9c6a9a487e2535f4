package net_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/module/net"
	"kubekey/pkg/value"
)

// newClient writes a certificate and its key.
func newClient(t *testing.T, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// The server tells who asks, and in which cipher.
func TestClientCertificates(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.TLS.PeerCertificates[0].Subject.CommonName, tls.CipherSuiteName(r.TLS.CipherSuite))
	}))
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	cert, key := newClient(t, "ada")
	const cipher = "ECDHE-RSA-AES256-GCM-SHA384"
	const want = "ada TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
	args := func(more ...any) *value.Dict {
		return value.NewDict(append([]any{"url", s.URL + "/x", "validate_certs", false, "client_cert", cert, "client_key",
			key, "ciphers", []any{"NULL-SHA256", cipher}}, more...)...)
	}
	dest := filepath.Join(t.TempDir(), "file")
	moduletest.RunTwice(t, moduletest.Find(t, net.Modules(), "get_url"), args("dest", dest), moduletest.Options{})
	if got := read(t, dest); got != want {
		t.Errorf("get_url: the server says %q", got)
	}
	r := moduletest.Run(t, moduletest.Find(t, net.Modules(), "uri"), args("return_content", true), moduletest.Options{})
	if get(r, "content") != want {
		t.Errorf("uri: %+v %s", r, value.Repr(r.Data))
	}
	// Without the certificate there is no answer.
	for _, name := range []string{"uri", "get_url"} {
		plain := value.NewDict("url", s.URL+"/x", "validate_certs", false)
		if name == "get_url" {
			plain.Set("dest", dest+"2")
		}
		r, err := moduletest.Try(t, moduletest.Find(t, net.Modules(), name), plain, moduletest.Options{})
		if err != nil || !r.Failed {
			t.Errorf("%s without a certificate: %+v, %v", name, r, err)
		}
	}
	// The control node's own client has none of it.
	only(t, fetchTools("wget")...)
	r, err := moduletest.Try(t, moduletest.Find(t, net.Modules(), "get_url"), args("dest", dest+"3"), moduletest.Options{})
	if err != nil || !r.Failed || !strings.Contains(r.Msg, "need curl on the host") {
		t.Errorf("%+v, %v", r, err)
	}
}
