package pki

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"kubekey/pkg/certs"
)

// files are the existing files.
type files struct {
	cert              *x509.Certificate
	certErr, keyErr   error // why it cannot be read; fs.ErrNotExist if it does not exist
	signer            crypto.Signer
	wrongPub, wideKey bool // pub is missing or of another key; others may read the key
}

func (m *GenCert) read() files {
	var f files
	f.signer, f.keyErr = certs.ReadKey(m.Key)
	if info, err := os.Stat(m.Key); err == nil {
		f.wideKey = info.Mode().Perm()&0o077 != 0
	}
	if m.Cert != "" {
		certs, err := certs.ReadCerts(m.Cert)
		f.certErr = err
		if err == nil {
			f.cert = certs[0]
		}
	}
	if m.Pub != "" && f.signer != nil {
		want, _ := certs.EncodePublic(f.signer.Public())
		have, err := certs.ReadPEM(m.Pub)
		f.wrongPub = err != nil || !bytes.Equal(want, have)
	}
	return f
}

// steps are the changes to make.
type steps struct{ newKey, newCert, pub, narrow bool }

// evaluate returns the steps and their reason, "" if there are none.
func (m *GenCert) evaluate(w desired, f files) (reason string, s steps, err error) {
	if err := m.usable(f); err != nil {
		return "", s, err
	}
	var reasons []string
	note := func(when bool, reason string) bool {
		if when {
			reasons = append(reasons, reason)
		}
		return when
	}
	why := m.keyFlaw(w, f)
	s.newKey = note(why != "", why)
	if !w.alone {
		why = m.certFlaw(w, f)
		s.newCert = note(why != "", why) || s.newKey
		s.newKey = s.newKey || s.newCert && !m.keepsKey(f)
	}
	s.pub = note(!s.newKey && f.wrongPub, "the public key is missing or of another key") || s.newKey && m.Pub != ""
	s.narrow = note(!s.newKey && f.wideKey, "others could read the key")
	return strings.Join(reasons, "; "), s, nil
}

// usable is an error where only a person can decide.
func (m *GenCert) usable(f files) error {
	if errors.Is(f.keyErr, certs.ErrEncrypted) {
		return f.keyErr
	}
	for _, err := range []error{f.keyErr, f.certErr} {
		if errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	if !m.IsCA || m.Policy != "if_not_present" || errors.Is(f.certErr, fs.ErrNotExist) {
		return nil
	}
	const fix = "an existing CA is not replaced: restore the right file, or remove the pair"
	switch {
	case f.certErr != nil:
		return fmt.Errorf("%w; %s", f.certErr, fix)
	case errors.Is(f.keyErr, fs.ErrNotExist):
		return fmt.Errorf("%s has no key %s; %s", m.Cert, m.Key, fix)
	case f.keyErr != nil:
		return fmt.Errorf("%w; %s", f.keyErr, fix)
	case !certs.Same(f.cert.PublicKey, f.signer.Public()):
		return fmt.Errorf("%s is not the key of %s; %s", m.Key, m.Cert, fix)
	}
	return nil
}

// keepsKey reports whether a new certificate uses the existing key.
func (m *GenCert) keepsKey(f files) bool {
	return m.Policy != "always" && (m.IsCA || errors.Is(f.certErr, fs.ErrNotExist))
}

// keyFlaw is why a new key is needed, "" if it is not.
func (m *GenCert) keyFlaw(w desired, f files) string {
	switch {
	case errors.Is(f.keyErr, fs.ErrNotExist):
		return "the key does not exist"
	case f.keyErr != nil:
		return f.keyErr.Error()
	case m.Policy == "always":
		return "the policy is always"
	case m.Policy == "renew" && certs.KindName(f.signer.Public()) != w.kind.String():
		return fmt.Sprintf("the key is %s and not %s", certs.KindName(f.signer.Public()), w.kind)
	}
	return ""
}

// certFlaw is why a new certificate is needed, "" if it is not.
func (m *GenCert) certFlaw(w desired, f files) string {
	switch {
	case errors.Is(f.certErr, fs.ErrNotExist):
		return "the certificate does not exist"
	case f.certErr != nil:
		return f.certErr.Error()
	case f.signer != nil && !certs.Same(f.cert.PublicKey, f.signer.Public()):
		return "the key is not that of the certificate"
	case m.Policy != "renew":
		return ""
	}
	if why := w.expiry(f.cert, m.RenewBefore); why != "" {
		return why
	}
	return w.difference(f.cert)
}

// expiry is the message for a certificate that is not valid or expires soon.
func (w desired) expiry(crt *x509.Certificate, before int) string {
	switch {
	case !crt.NotAfter.After(w.now):
		return "it ended on " + crt.NotAfter.Format(time.DateOnly)
	case crt.NotBefore.After(w.now):
		return "it begins only on " + crt.NotBefore.Format(time.DateOnly)
	case crt.NotAfter.Sub(w.now) >= time.Duration(before)*24*time.Hour, !w.end().After(crt.NotAfter):
		return ""
	}
	return fmt.Sprintf("it expires on %s, in %d days", crt.NotAfter.Format(time.DateOnly), daysLeft(crt, w.now))
}

// difference names the properties of a certificate that differ from the desired ones.
func (w desired) difference(crt *x509.Certificate) string {
	var differs []string
	note := func(equal bool, what string) {
		if !equal {
			differs = append(differs, what)
		}
	}
	t := w.template
	note(crt.Subject.CommonName == t.Subject.CommonName, "common name")
	note(certs.SameTexts(crt.Subject.Organization, t.Subject.Organization), "organization")
	note(certs.SameTexts(sanTexts(crt), sanTexts(t)), "subject alternative names")
	note(crt.IsCA == t.IsCA && (!t.IsCA || crt.MaxPathLen == t.MaxPathLen), "CA and path length")
	note(crt.KeyUsage == t.KeyUsage, "key usage")
	note(certs.SameTexts(usageNames(crt), usageNames(t)), "extended key usage")
	note(w.issued(crt), "issuer")
	note(!w.exact || w.lasts(crt), "validity")
	if len(differs) == 0 {
		return ""
	}
	return strings.Join(differs, ", ") + " differs"
}

// lasts reports whether a certificate was made for the desired number of days, or until its CA expires.
func (w desired) lasts(crt *x509.Certificate) bool {
	made := w
	made.now = crt.NotBefore.Add(early)
	return made.end().Sub(crt.NotAfter).Abs() < 24*time.Hour
}

// issued reports whether the desired CA signed the certificate.
func (w desired) issued(crt *x509.Certificate) bool {
	by := w.authority.Cert
	if w.self {
		by = crt
	}
	return bytes.Equal(crt.RawIssuer, by.RawSubject) &&
		by.CheckSignature(crt.SignatureAlgorithm, crt.RawTBSCertificate, crt.Signature) == nil
}

// sanTexts are the subject alternative names, each with its kind.
func sanTexts(crt *x509.Certificate) []string {
	var texts []string
	for _, n := range crt.DNSNames {
		texts = append(texts, "DNS:"+n)
	}
	for _, ip := range crt.IPAddresses {
		texts = append(texts, "IP:"+net.IP(ip).String())
	}
	for _, e := range crt.EmailAddresses {
		texts = append(texts, "email:"+e)
	}
	for _, u := range crt.URIs {
		texts = append(texts, "URI:"+u.String())
	}
	return texts
}

// usageNames are the extended key usages; one without a name is its number.
func usageNames(crt *x509.Certificate) []string {
	var texts []string
	for _, u := range crt.ExtKeyUsage {
		texts = append(texts, extName(u))
	}
	for _, id := range crt.UnknownExtKeyUsage {
		texts = append(texts, id.String())
	}
	return texts
}

func extName(u x509.ExtKeyUsage) string {
	for name, known := range extKeyUsages() {
		if known == u {
			return name
		}
	}
	return fmt.Sprint(int(u))
}
