package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// hugeRequest is a request of a key, with a signature of the right length.
func hugeRequest(t *testing.T, key *rsa.PublicKey) []byte {
	t.Helper()
	public, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	type content struct {
		Version    int
		Subject    pkix.RDNSequence
		PublicKey  asn1.RawValue
		Attributes []asn1.RawValue `asn1:"tag:0,set"`
	}
	der, err := asn1.Marshal(struct {
		Content   content
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}{
		content{PublicKey: asn1.RawValue{FullBytes: public}},
		pkix.AlgorithmIdentifier{Algorithm: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11},
			Parameters: asn1.NullRawValue},
		asn1.BitString{Bytes: bytes.Repeat([]byte{0x5a}, key.Size()), BitLength: 8 * key.Size()},
	})
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestHugeKeys reads requests and certificates whose keys take a processor
// for hours: they are refused by their size, before anything is verified.
func TestHugeKeys(t *testing.T) {
	for _, bits := range []int{1 << 15, 1 << 20} {
		n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1))
		huge := &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 1<<31 - 1}
		der := hugeRequest(t, huge)
		_, err := ReadRequest(der)
		wantTooLarge(t, err)

		small, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
		if der, err = x509.CreateCertificate(rand.Reader, template, template, huge, small); err != nil {
			t.Fatal(err)
		}
		_, err = ParseCerts(EncodeCert(der))
		wantTooLarge(t, err)
	}
}

func wantTooLarge(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "bits: at most") {
		t.Errorf("got %v", err)
	}
}

// TestHugePrivateKeys reads private keys that are long: the parser would test
// whether their factors are prime.
func TestHugePrivateKeys(t *testing.T) {
	p := new(big.Int).Lsh(big.NewInt(1), 1<<19)
	p.SetBit(p, 0, 1)
	der, err := asn1.Marshal(struct {
		Version                      int
		N                            *big.Int
		E                            int
		D, P, Q, Dp, Dq, Coefficient *big.Int
	}{N: new(big.Int).Mul(p, p), E: 65537, D: p, P: p, Q: p, Dp: p, Dq: p, Coefficient: p})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := parseKey(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der}); ok {
		t.Error("the key is accepted")
	}
}
