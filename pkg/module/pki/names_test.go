package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"
	"time"

	"kubekey/pkg/certs"
)

// Whatever passes for a name can be put into a certificate and read back.
func FuzzSANs(f *testing.F) {
	for _, s := range []string{"a.example.org", "*.x", "10.0.0.1", "::1", "::ffff:1.2.3.4", "spiffe://a/b", "a@b.c",
		"URI:urn:x:y", "DNS:1.2.3", "email:x", "", "IP:", "a..b", "-x"} {
		f.Add(s)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := certs.ParseNames([]string{text})
		if err != nil {
			return
		}
		m := &GenCert{CommonName: "x", SANs: []string{text}, KeyType: "ECDSA"}
		w := desired{now: time.Now(), self: true, days: 1}
		if w.template, err = m.template(n, w); err != nil {
			t.Fatal(err)
		}
		crt, err := w.sign(key)
		if err != nil {
			t.Fatalf("%q passes, but: %v", text, err)
		}
		if why := w.difference(crt); why != "" {
			t.Errorf("%q is renewed for ever: %s: %v, %v", text, why, sanTexts(crt), sanTexts(w.template))
		}
	})
}
