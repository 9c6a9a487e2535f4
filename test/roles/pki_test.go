package roles

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// authority signs the certificates that the control node would have made.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// etcdPKI makes the authority and the certificates of etcd for all hosts of the lab.
func (p *project) etcdPKI(t *testing.T) {
	t.Helper()
	ca := &authority{}
	ca.cert, ca.key = p.certificate(t, nil, "etcd/ca", caTemplate())
	for _, h := range hosts.Hosts {
		names := &x509.Certificate{DNSNames: []string{h.Name, "localhost"},
			IPAddresses: []net.IP{net.ParseIP(h.Address), net.IPv4(127, 0, 0, 1)}}
		p.certificate(t, ca, "etcd/server-"+h.Name, names)
		p.certificate(t, ca, "etcd/peer-"+h.Name, names)
	}
	p.certificate(t, ca, "etcd/client", &x509.Certificate{})
}

// certificate writes NAME.crt and NAME.key; without an authority it signs itself.
func (p *project) certificate(t *testing.T, ca *authority, name string, c *x509.Certificate) (*x509.Certificate,
	crypto.Signer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if ca == nil {
		ca = &authority{c, key}
	} else {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca.cert, key.Public(), ca.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "work/clusters/kk/pki/"+name+".crt",
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	p.write(t, "work/clusters/kk/pki/"+name+".key",
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
	return c, key
}

func caTemplate() *x509.Certificate {
	return &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
}
