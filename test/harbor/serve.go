package harbor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// CA signs the certificates of instances in a test.
type CA struct {
	PEM  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes one.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca of a test"},
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, ca.key.Public(), ca.key)
	check(t, err)
	ca.cert, err = x509.ParseCertificate(der)
	check(t, err)
	ca.PEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return ca
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// config returns the TLS options of a server with a new certificate.
func (ca *CA) config(t testing.TB, name string, addresses ...net.IP) *tls.Config {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{name}, IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	check(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// transport trusts the CA.
func (ca *CA) transport() *http.Transport {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
}

// Port returns a free port for an address, which instances on several loopback addresses can share.
func Port(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	check(t, err)
	defer func() { _ = l.Close() }() // it was only needed for its number
	_, port, err := net.SplitHostPort(l.Addr().String())
	check(t, err)
	return port
}

// Serve starts an instance at an IP address, with a certificate for it and for the name. Its name in harbor.yml is
// NAME:PORT, as that of an https port other than 443 is.
func (ca *CA) Serve(t testing.TB, name, address, port, user, password string) *Harbor {
	t.Helper()
	h := New(net.JoinHostPort(name, port), user, password)
	h.Trust, h.address = ca.transport(), net.JoinHostPort(address, port)
	server := httptest.NewUnstartedServer(h)
	check(t, server.Listener.Close())
	listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
	check(t, err)
	server.Listener, server.TLS = listener, ca.config(t, name, net.ParseIP(address))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return h
}
