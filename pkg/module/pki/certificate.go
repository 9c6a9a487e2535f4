package pki

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kubekey/pkg/certs"
)

// desired is the certificate that the arguments describe.
type desired struct {
	now       time.Time
	alone     bool // a key without certificate
	self      bool // signs itself
	kind      certs.KeyKind
	days      int
	exact     bool              // days are in the arguments: a certificate that was made for other days differs
	template  *x509.Certificate // without times, serial and key
	authority certs.Authority   // zero if self
}

// keyUsages and extKeyUsages are the usages by their names in playbooks.
func keyUsages() map[string]x509.KeyUsage {
	return map[string]x509.KeyUsage{
		"digital_signature":  x509.KeyUsageDigitalSignature,
		"content_commitment": x509.KeyUsageContentCommitment,
		"key_encipherment":   x509.KeyUsageKeyEncipherment,
		"data_encipherment":  x509.KeyUsageDataEncipherment,
		"key_agreement":      x509.KeyUsageKeyAgreement,
		"cert_sign":          x509.KeyUsageCertSign,
		"crl_sign":           x509.KeyUsageCRLSign,
	}
}

func extKeyUsages() map[string]x509.ExtKeyUsage {
	return map[string]x509.ExtKeyUsage{
		"any":              x509.ExtKeyUsageAny,
		"server_auth":      x509.ExtKeyUsageServerAuth,
		"client_auth":      x509.ExtKeyUsageClientAuth,
		"code_signing":     x509.ExtKeyUsageCodeSigning,
		"email_protection": x509.ExtKeyUsageEmailProtection,
		"time_stamping":    x509.ExtKeyUsageTimeStamping,
		"ocsp_signing":     x509.ExtKeyUsageOCSPSigning,
	}
}

// template is the certificate in the form of x509.
func (m *GenCert) template(n certs.Names, w desired) (*x509.Certificate, error) {
	t := &x509.Certificate{
		Subject:               pkix.Name{CommonName: m.CommonName, Organization: m.Organization},
		DNSNames:              n.DNS,
		IPAddresses:           n.IP,
		EmailAddresses:        n.Email,
		URIs:                  n.URI,
		BasicConstraintsValid: true,
		IsCA:                  m.IsCA,
		MaxPathLen:            -1,
	}
	if m.PathLength != nil {
		t.MaxPathLen, t.MaxPathLenZero = *m.PathLength, *m.PathLength == 0
	}
	for _, u := range m.keyUsage() {
		t.KeyUsage |= keyUsages()[u]
	}
	for _, u := range m.extKeyUsage() {
		if usage := extKeyUsages()[u]; !slices.Contains(t.ExtKeyUsage, usage) {
			t.ExtKeyUsage = append(t.ExtKeyUsage, usage)
		}
	}
	if m.IsCA && t.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, errors.New("the key_usage of a CA must include cert_sign")
	}
	if !m.IsCA && t.KeyUsage&x509.KeyUsageCertSign != 0 {
		return nil, errors.New("cert_sign is for CAs only: set is_ca")
	}
	return t, nil
}

func (m *GenCert) keyUsage() []string {
	switch {
	case len(m.KeyUsage) > 0:
		return m.KeyUsage
	case m.IsCA:
		return []string{"digital_signature", "cert_sign", "crl_sign"}
	case m.KeyType == "RSA":
		return []string{"digital_signature", "key_encipherment"}
	}
	return []string{"digital_signature"}
}

func (m *GenCert) extKeyUsage() []string {
	switch {
	case len(m.ExtKeyUsage) > 0:
		return m.ExtKeyUsage
	case m.IsCA:
		return nil
	case len(m.SANs) > 0:
		return []string{"server_auth", "client_auth"}
	}
	return []string{"client_auth"}
}

// readAuthority reads the certificate and the key of a CA, while
// nobody replaces them.
func readAuthority(ctx context.Context, certPath, keyPath string) (certs.Authority, error) {
	if missing(certPath) {
		return certs.Authority{}, fmt.Errorf("%s: %w", certPath, fs.ErrNotExist)
	}
	unlock, err := lockFolder(ctx, filepath.Dir(keyPath))
	if err != nil {
		return certs.Authority{}, err
	}
	defer unlock()
	list, err := certs.ReadCerts(certPath)
	if err != nil {
		return certs.Authority{}, err
	}
	key, err := certs.ReadKey(keyPath)
	if err != nil {
		return certs.Authority{}, err
	}
	for _, crt := range list {
		if certs.Same(crt.PublicKey, key.Public()) {
			return certs.Authority{Cert: crt, Key: key}, nil
		}
	}
	return certs.Authority{}, fmt.Errorf("%s is not the key of %s", keyPath, certPath)
}

// fitsAuthority checks that the CA may sign the certificate.
func (w desired) fitsAuthority() error {
	ca := w.authority.Cert
	switch {
	case ca == nil:
		return nil
	case !ca.IsCA || ca.KeyUsage != 0 && ca.KeyUsage&x509.KeyUsageCertSign == 0:
		return fmt.Errorf("ca_cert (%s) is not a CA: it may not sign certificates", ca.Subject)
	case !ca.NotAfter.After(w.now):
		return fmt.Errorf("ca_cert (%s) expired on %s: renew the CA first", ca.Subject, ca.NotAfter.Format(time.DateOnly))
	case w.template.IsCA && ca.MaxPathLen == 0 && ca.MaxPathLenZero:
		return fmt.Errorf("ca_cert (%s) allows no CA below it: its path_length is 0", ca.Subject)
	case w.template.IsCA && ca.MaxPathLen > 0 && w.template.MaxPathLen >= ca.MaxPathLen:
		return fmt.Errorf("path_length must be below that of ca_cert, %d", ca.MaxPathLen)
	}
	return nil
}

// early is how long before its making a certificate is valid already, for
// hosts whose clocks are late.
const early = 5 * time.Minute

// end is the expiry of a certificate created now.
func (w desired) end() time.Time {
	end := w.now.Add(time.Duration(w.days) * 24 * time.Hour)
	if ca := w.authority.Cert; ca != nil && ca.NotAfter.Before(end) {
		end = ca.NotAfter
	}
	return end.UTC().Truncate(time.Second)
}

// sign makes the certificate of a key.
func (w desired) sign(key crypto.Signer) (*x509.Certificate, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	spki, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	id := sha256.Sum256(spki)
	t := *w.template
	t.SerialNumber = number.Add(number, big.NewInt(1))
	t.NotBefore, t.NotAfter = w.now.Add(-early).UTC().Truncate(time.Second), w.end()
	t.SubjectKeyId = id[:20]
	by := w.authority
	if w.self {
		by = certs.Authority{Cert: &t, Key: key}
	}
	t.AuthorityKeyId = by.Cert.SubjectKeyId
	der, err := x509.CreateCertificate(rand.Reader, &t, by.Cert, key.Public(), by.Key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// daysLeft is how many whole days a certificate has left; negative once it ended.
func daysLeft(crt *x509.Certificate, now time.Time) int {
	return int(math.Floor(crt.NotAfter.Sub(now).Hours() / 24))
}

func fingerprint(crt *x509.Certificate) string {
	sum := sha256.Sum256(crt.Raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func serial(crt *x509.Certificate) string { return crt.SerialNumber.Text(16) }

// pin is the digest of a public key, in the form that kubeadm takes as
// discovery-token-ca-cert-hash.
func pin(public any) string {
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(spki)
	return "sha256:" + hex.EncodeToString(sum[:])
}
