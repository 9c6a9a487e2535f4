package crypto

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // names keys, does not protect them
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Certificate is the module x509_certificate.
type Certificate struct {
	backend
	placement
	keySource
	Provider    string         `kk:"provider" choices:"ownca,selfsigned" doc:"who signs: the key itself, or your own CA; needed with state: present"`
	CSRPath     string         `kk:"csr_path,path" doc:"certificate signing request, a file of the host; ownca needs one"`
	CSRText     string         `kk:"csr_content" doc:"certificate signing request, as a text"`
	SelfBefore  string         `kk:"selfsigned_not_before,alias=selfsigned_notBefore" default:"+0s" doc:"start of the validity with selfsigned: relative such as +1d2h, or YYYYMMDDhhmmssZ; the seconds are optional, and the zone may be such as +0200"`
	SelfAfter   string         `kk:"selfsigned_not_after,alias=selfsigned_notAfter" default:"+3650d" doc:"end of the validity with selfsigned"`
	CAPath      string         `kk:"ownca_path,path" doc:"certificate of the CA, a file of the host"`
	CAText      string         `kk:"ownca_content" doc:"certificate of the CA, as a text"`
	CAKeyPath   string         `kk:"ownca_privatekey_path,path" doc:"its private key, a file of the host"`
	CAKeyText   *redact.Secret `kk:"ownca_privatekey_content" doc:"its private key, as a text"`
	CAKeyPass   *redact.Secret `kk:"ownca_privatekey_passphrase" doc:"its passphrase"`
	OwnBefore   string         `kk:"ownca_not_before" default:"+0s" doc:"start of the validity with ownca"`
	OwnAfter    string         `kk:"ownca_not_after" default:"+3650d" doc:"end of the validity with ownca"`
	SelfDigest  string         `kk:"selfsigned_digest" default:"sha256" choices:"sha256,sha384,sha512" doc:"digest for the signature with selfsigned; Ed25519 keys have their own. An existing certificate with another digest is kept, also with ownca_digest"`
	SelfVersion int            `kk:"selfsigned_version" default:"3" choices:"3" doc:"version with selfsigned; only 3 exists"`
	SelfSKI     string         `kk:"selfsigned_create_subject_key_identifier" default:"create_if_not_provided" choices:"always_create,create_if_not_provided,never_create" doc:"add a subject key identifier with selfsigned: only if the request has none, always, or never"`
	OwnDigest   string         `kk:"ownca_digest" default:"sha256" choices:"sha256,sha384,sha512" doc:"digest for the signature with ownca"`
	OwnVersion  int            `kk:"ownca_version" default:"3" choices:"3" doc:"version with ownca; only 3 exists"`
	OwnSKI      string         `kk:"ownca_create_subject_key_identifier" default:"create_if_not_provided" choices:"always_create,create_if_not_provided,never_create" doc:"add a subject key identifier with ownca"`
	OwnAKI      bool           `kk:"ownca_create_authority_key_identifier" default:"yes" doc:"add an authority key identifier with ownca; no uses that of the request"`
	IgnoreTimes bool           `kk:"ignore_timestamps" default:"yes" doc:"keep a certificate even if its validity period differs; no is for absolute times"`
}

func certificateSpec() module.Spec {
	return module.Spec{
		Name: "x509_certificate", Aliases: []string{"openssl_certificate"}, Collection: "community.crypto",
		Summary: "Manages a certificate on the host, self-signed or signed by your own CA.",
		Notes: []string{
			"Keys are read from the host, and the certificate is signed on the control node: the host needs no openssl.",
			"It is replaced if its key, subject or extensions differ from the request, if another CA signed it, or if it " +
				"cannot be read; not when it is about to expire: see x509_certificate_info, and gen_cert, which renews " +
				"certificates.",
			"Without a request a self-signed certificate has an empty subject.",
		},
		Examples: []string{
			"- name: Sign the request with your own CA\n  x509_certificate:\n    path: /etc/ssl/web.crt\n" +
				"    provider: ownca\n    csr_path: /etc/ssl/web.csr\n    ownca_path: /etc/ssl/ca.crt\n" +
				"    ownca_privatekey_path: /etc/ssl/private/ca.pem\n    ownca_not_after: +397d",
			"- name: Create a self-signed certificate\n  x509_certificate:\n    path: /etc/ssl/test.crt\n" +
				"    provider: selfsigned\n    csr_path: /etc/ssl/test.csr\n    privatekey_path: /etc/ssl/private/test.pem",
		},
		Returns: placementReturns("certificate",
			module.Return{Key: "notBefore", Type: "str", Doc: "start of the validity, YYYYMMDDhhmmssZ"},
			module.Return{Key: "notAfter", Type: "str", Doc: "end of the validity"},
			module.Return{Key: "serial_number", Type: "int", Doc: "its number"},
			module.Return{Key: "csr", Type: "str", Doc: "csr_path"},
			module.Return{Key: "ca_cert", Type: "str", Doc: "ownca_path, with ownca"},
			module.Return{Key: "ca_privatekey", Type: "str", Doc: "ownca_privatekey_path, with ownca"},
			module.Return{Key: "privatekey", Type: "str", Doc: "privatekey_path"},
		),
		New: func() module.Runner { return new(Certificate) },
	}
}

// asked contains the desired properties of a certificate, and its signer.
type asked struct {
	csr        *x509.CertificateRequest
	public     any
	by         certs.Authority // without cert if self-signed
	begin, end time.Time
	digest     string
	createSKI  string // always_create, create_if_not_provided, never_create
	createAKI  bool
}

// Rules implements schema.Ruled.
func (*Certificate) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("provider").If("state", "present"),
		schema.AtMostOne("csr_path", "csr_content"),
		schema.AtMostOne("privatekey_path", "privatekey_content"),
		schema.AtMostOne("ownca_path", "ownca_content"),
		schema.AtMostOne("ownca_privatekey_path", "ownca_privatekey_content"),
		schema.AtLeastOne("privatekey_path", "privatekey_content").If("provider", "selfsigned").If("state", "present"),
		schema.AtLeastOne("csr_path", "csr_content").If("provider", "ownca").If("state", "present").
			Says("csr_path or csr_content must be specified for the ownca provider"),
		schema.AtLeastOne("ownca_path", "ownca_content").If("provider", "ownca").If("state", "present").
			Says("give one of ownca_path and ownca_content for the ownca provider"),
		schema.AtLeastOne("ownca_privatekey_path", "ownca_privatekey_content").If("provider", "ownca").If("state", "present").
			Says("give one of ownca_privatekey_path and ownca_privatekey_content for the ownca provider"),
	}
}

// Run implements module.Runner.
func (m *Certificate) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.State == "absent" {
		r, _, err := m.remove(ctx, c)
		m.describe(&r)
		m.content(c, &r, "certificate", pki.HostFile{}, nil)
		return r, err
	}
	caKey := pki.Source{Path: m.CAKeyPath, Name: "ownca_privatekey_content"}
	if m.CAKeyText != nil {
		caKey.Text = m.CAKeyText.Reveal()
	}
	files, err := pki.ReadHost(ctx, c, m.Path, m.source(),
		pki.Source{Path: m.CSRPath, Text: m.CSRText, Name: "csr_content"},
		pki.Source{Path: m.CAPath, Text: m.CAText, Name: "ownca_content"}, caKey)
	if err != nil {
		return module.Result{}, err
	}
	have := files[0]
	want, err := m.desired(c.Now(), files[1:])
	if err != nil {
		r, err := notYet(c, have, err)
		m.describe(&r)
		return r, err
	}
	old, text := oneCertificate(have.Text), []byte(nil)
	now := old
	if m.Force || old == nil || !want.fits(old, m.IgnoreTimes) {
		if now, err = want.sign(); err != nil {
			return module.Result{}, fmt.Errorf("sign %s: %w", have.Path, err)
		}
		text = certs.EncodeCert(now.Raw)
	}
	r, err := m.keep(ctx, c, have, text, 0o644)
	if err != nil {
		return r, err
	}
	noteDiff(c, &r, have.Path, times(old), times(now))
	m.describe(&r)
	r.Data.Merge(times(now))
	m.content(c, &r, "certificate", have, text)
	return r, nil
}

// desired determines the desired properties from the key, the request, the CA and its key.
func (m *Certificate) desired(now time.Time, files []pki.HostFile) (asked, error) {
	key, csr, ca, caKey := files[0], files[1], files[2], files[3]
	var a asked
	var err error
	if m.CSRPath != "" || m.CSRText != "" {
		if !csr.There {
			return a, fmt.Errorf("%s: %w", csr.Path, pki.ErrAway)
		}
		if a.csr, err = parseRequest(csr.Text); err != nil {
			return a, fmt.Errorf("%s: %w", csr.Path, err)
		}
		a.public = a.csr.PublicKey
	}
	if m.Provider == "ownca" {
		if a.by, err = authorityOf(ca, caKey, m.CAKeyPass); err != nil {
			return a, err
		}
		a.digest, a.createSKI, a.createAKI = m.OwnDigest, m.OwnSKI, m.OwnAKI
		return a, a.times(now, m.OwnBefore, m.OwnAfter)
	}
	if a.by.Key, err = keyOf(key, m.KeyPass); err != nil {
		return a, err
	}
	if a.csr != nil && !certs.Same(a.by.Key.Public(), a.csr.PublicKey) {
		return a, fmt.Errorf("%s is not a request of the key %s", csr.Path, key.Path)
	}
	a.public = a.by.Key.Public()
	a.digest, a.createSKI = m.SelfDigest, m.SelfSKI
	return a, a.times(now, m.SelfBefore, m.SelfAfter)
}

func authorityOf(ca, caKey pki.HostFile, passphrase *redact.Secret) (certs.Authority, error) {
	if !ca.There {
		return certs.Authority{}, fmt.Errorf("%s: %w", ca.Path, pki.ErrAway)
	}
	crt := oneCertificate(ca.Text)
	if crt == nil {
		return certs.Authority{}, fmt.Errorf("%s contains no PEM certificate", ca.Path)
	}
	key, err := keyOf(caKey, passphrase)
	switch {
	case err != nil:
		return certs.Authority{}, err
	case !certs.Same(key.Public(), crt.PublicKey):
		return certs.Authority{}, fmt.Errorf("%s is not the key of %s", caKey.Path, ca.Path)
	case !crt.IsCA:
		return certs.Authority{}, fmt.Errorf("%s is not a CA: it may not sign certificates", ca.Path)
	}
	return certs.Authority{Cert: crt, Key: key}, nil
}

func oneCertificate(text []byte) *x509.Certificate {
	certs, err := certs.ParseCerts(text)
	if err != nil {
		return nil
	}
	return certs[0]
}

func (a *asked) times(now time.Time, begin, end string) (err error) {
	if a.begin, err = pki.TimeOf(now, begin); err != nil {
		return err
	}
	if a.end, err = pki.TimeOf(now, end); err == nil && !a.end.After(a.begin) {
		err = errors.New("the certificate would end before it begins")
	}
	return err
}

// fits reports whether a certificate has the desired properties.
func (a asked) fits(crt *x509.Certificate, ignoreTimes bool) bool {
	by := a.by.Cert
	if by == nil {
		by = crt
	}
	extensions, err := a.extensions()
	subject := a.subject()
	return err == nil && certs.Same(a.public, crt.PublicKey) && sameExtensions(extensions, crt.Extensions) &&
		slices.Equal(certs.SubjectTexts(subject), certs.SubjectTexts(crt.RawSubject)) &&
		bytes.Equal(crt.RawIssuer, by.RawSubject) &&
		signedBy(crt, by) && (ignoreTimes || crt.NotBefore.Equal(a.begin) && crt.NotAfter.Equal(a.end))
}

// sameExtensions compares extensions in any order.
func sameExtensions(a, b []pkix.Extension) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(one pkix.Extension) bool {
		return !slices.ContainsFunc(b, func(other pkix.Extension) bool {
			return one.Id.Equal(other.Id) && one.Critical == other.Critical && bytes.Equal(one.Value, other.Value)
		})
	})
}

func (a asked) subject() []byte {
	if a.csr == nil {
		return emptySubject
	}
	return a.csr.RawSubject
}

// extensions returns the extensions of the request and the key identifiers.
func (a asked) extensions() ([]pkix.Extension, error) {
	var all []pkix.Extension
	named := false
	if a.csr != nil {
		for _, e := range a.csr.Extensions {
			id := e.Id.String()
			if id == certs.ExtensionSKI && a.createSKI == "always_create" || id == certs.ExtensionAKI && a.createAKI {
				continue
			}
			named = named || id == certs.ExtensionSKI
			all = append(all, e)
		}
	}
	if !named && a.createSKI != "never_create" {
		id, err := keyID(a.public)
		if err != nil {
			return nil, err
		}
		all, err = extended(all, certs.ExtensionSKI, id)
		if err != nil {
			return nil, err
		}
	}
	if !a.createAKI {
		return all, nil
	}
	id := a.by.Cert.SubjectKeyId
	if len(id) == 0 {
		var err error
		if id, err = keyID(a.by.Cert.PublicKey); err != nil {
			return nil, err
		}
	}
	return extended(all, certs.ExtensionAKI, certs.AuthorityID{ID: id})
}

func extended(all []pkix.Extension, id string, v any) ([]pkix.Extension, error) {
	oid, err := certs.ParseOID(id)
	if err != nil {
		return nil, err
	}
	der, err := asn1.Marshal(v)
	return append(all, pkix.Extension{Id: oid, Value: der}), err
}

// signedBy only checks the signature. Whether the signer is a CA is checked elsewhere.
func signedBy(crt, by *x509.Certificate) bool {
	return by.CheckSignature(crt.SignatureAlgorithm, crt.RawTBSCertificate, crt.Signature) == nil
}

// emptySubject is an encoded name without parts.
var emptySubject = []byte{asn1.TagSequence | 0x20, 0}

func (a asked) sign() (*x509.Certificate, error) {
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{SerialNumber: number.Add(number, big.NewInt(1)), RawSubject: a.subject(), NotBefore: a.begin,
		NotAfter: a.end}
	if t.ExtraExtensions, err = a.extensions(); err != nil {
		return nil, err
	}
	if t.SignatureAlgorithm, err = certs.SignatureOf(a.by.Key, a.digest); err != nil {
		return nil, err
	}
	by := t
	if a.by.Cert != nil {
		copied := *a.by.Cert
		copied.SubjectKeyId = nil // otherwise it is always included
		by = &copied
	}
	der, err := x509.CreateCertificate(rand.Reader, t, by, crypto.PublicKey(a.public), a.by.Key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// keyID returns the digest that identifies a key in certificates (RFC 5280, 4.2.1.2).
func keyID(public any) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	var spki struct {
		Algorithm pkix.AlgorithmIdentifier
		Key       asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &spki); err != nil {
		return nil, err
	}
	sum := sha1.Sum(spki.Key.Bytes) //nolint:gosec // as above
	return sum[:], nil
}

// describe adds the origin of the certificate.
func (m *Certificate) describe(r *module.Result) {
	if r.Data == nil {
		return
	}
	r.Data.Merge(value.NewDict("csr", given(m.CSRPath), "privatekey", given(m.KeyPath)))
	if m.Provider == "ownca" && m.State != "absent" {
		r.Data.Merge(value.NewDict("ca_cert", given(m.CAPath), "ca_privatekey", given(m.CAKeyPath)))
	}
}

// times returns the validity and the serial number of a certificate.
func times(crt *x509.Certificate) *value.Dict {
	if crt == nil {
		return value.NewDict()
	}
	return value.NewDict("notBefore", crt.NotBefore.UTC().Format(pki.ASN1Time), "notAfter",
		crt.NotAfter.UTC().Format(pki.ASN1Time), "serial_number", certs.IntOrDigits(crt.SerialNumber))
}
