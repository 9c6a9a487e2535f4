package crypto

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// CSR is the module openssl_csr.
type CSR struct {
	backend
	placement
	keySource
	CommonName   string      `kk:"common_name,alias=CN|commonName" doc:"name of the subject"`
	Country      string      `kk:"country_name,alias=C|countryName" doc:"country, two letters"`
	Province     string      `kk:"state_or_province_name,alias=ST|stateOrProvinceName" doc:"state or province"`
	Locality     string      `kk:"locality_name,alias=L|localityName" doc:"locality, such as a city"`
	Organization string      `kk:"organization_name,alias=O|organizationName" doc:"organization"`
	Unit         string      `kk:"organizational_unit_name,alias=OU|organizationalUnitName" doc:"organizational unit"`
	Email        string      `kk:"email_address,alias=E|emailAddress" doc:"mail address"`
	Subject      *value.Dict `kk:"subject" doc:"further fields of the subject, by OpenSSL's short or long names (CN, O, serialNumber, ...) or OIDs; a list sets several values"`
	Ordered      []any       `kk:"subject_ordered" doc:"the whole subject in order, as a list of dicts with one field each; excludes the other subject arguments"`
	SANs         []string    `kk:"subject_alt_name,alias=subjectAltName" doc:"requested subject alternative names: DNS:NAME, IP:ADDRESS, URI:..., email:..., RID:NUMBERS, dirName:CN=...,O=..."`
	SANCritical  bool        `kk:"subject_alt_name_critical,alias=subjectAltName_critical" default:"no" doc:"mark them as critical"`
	CNForSAN     bool        `kk:"use_common_name_for_san,alias=useCommonNameForSAN" default:"yes" doc:"without subject_alt_name, use common_name as DNS name, if it is one"`
	KeyUsage     []string    `kk:"key_usage,alias=keyUsage" doc:"what the key is for: digitalSignature, keyEncipherment, keyCertSign, ..."`
	KUCritical   bool        `kk:"key_usage_critical,alias=keyUsage_critical" default:"no" doc:"mark that as critical"`
	ExtKeyUsage  []string    `kk:"extended_key_usage,alias=extKeyUsage|extendedKeyUsage" doc:"what the certificate is for: serverAuth, clientAuth, ..., or OIDs"`
	EKUCritical  bool        `kk:"extended_key_usage_critical,alias=extKeyUsage_critical|extendedKeyUsage_critical" default:"no" doc:"mark that as critical"`
	Basic        []string    `kk:"basic_constraints,alias=basicConstraints" doc:"CA:TRUE or CA:FALSE, and pathlen:N"`
	BCCritical   bool        `kk:"basic_constraints_critical,alias=basicConstraints_critical" default:"no" doc:"mark that as critical"`
	Digest       string      `kk:"digest" default:"sha256" choices:"sha1,sha256,sha384,sha512" doc:"digest for the signature; Ed25519 keys have their own. An existing request with another digest is kept"`
	Version      int         `kk:"version" default:"1" choices:"1" doc:"version of the request; only 1 exists"`
	csrExtras
}

func csrSpec() module.Spec {
	return module.Spec{
		Name: "openssl_csr", Collection: "community.crypto",
		Summary: "Manages a certificate signing request on the host.",
		Notes: []string{"The request is signed on the control node with the key that is read from the host. It is " +
			"replaced if its content differs, regardless of order, or if it was signed by another key."},
		Examples: []string{
			"- name: Create a CSR for the web server\n  openssl_csr:\n    path: /etc/ssl/web.csr\n" +
				"    privatekey_path: /etc/ssl/private/web.pem\n    common_name: www.example.org\n    subject_alt_name:\n" +
				"      - DNS:www.example.org\n      - IP:192.0.2.7\n    extended_key_usage: serverAuth",
		},
		Returns: placementReturns("csr",
			module.Return{Key: "privatekey", Type: "str", Doc: "privatekey_path"},
			module.Return{Key: "subject", Type: "list of list", Doc: "pairs of name and text"},
			module.Return{Key: "subjectAltName", Type: "list of str",
				Doc: "names; null if none were requested, like the next four"},
			module.Return{Key: "keyUsage", Type: "list of str", Doc: "the argument"},
			module.Return{Key: "extendedKeyUsage", Type: "list of str", Doc: "the argument"},
			module.Return{Key: "basicConstraints", Type: "list of str", Doc: "the argument"},
			module.Return{Key: "ocspMustStaple", Type: "bool", Doc: "the argument"},
			module.Return{Key: "name_constraints_permitted, name_constraints_excluded", Type: "list of str",
				Doc: "the arguments"},
		),
		New: func() module.Runner { return new(CSR) },
	}
}

// subjectFields returns the arguments that are parts of the subject.
func subjectFields() []string {
	return []string{
		"common_name", "country_name", "state_or_province_name", "locality_name",
		"organization_name", "organizational_unit_name", "email_address",
	}
}

// Rules implements schema.Ruled.
func (*CSR) Rules() schema.Rules {
	return append(keyRules(), schema.Rules{
		schema.AtMostOne("subject", "subject_ordered"),
		schema.Refuses("subject_key_identifier").If("create_subject_key_identifier", true).
			Says("subject_key_identifier cannot be specified if create_subject_key_identifier is true"),
		schema.AllOrNone("authority_cert_issuer", "authority_cert_serial_number"),
		schema.Looks("a number", isSerial, "authority_cert_serial_number"),
		schema.Refuses(subjectFields()...).With("subject_ordered").
			Says("subject_ordered cannot be combined with any other subject field"),
	}...)
}

// Run implements module.Runner.
func (m *CSR) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	subject, err := m.subject()
	if err != nil {
		return module.Result{}, err
	}
	if m.State == "absent" {
		r, _, err := m.remove(ctx, c)
		m.describe(&r, subject)
		m.content(c, &r, "csr", pki.HostFile{}, nil)
		return r, err
	}
	files, err := pki.ReadHost(ctx, c, m.Path, m.source())
	if err != nil {
		return module.Result{}, err
	}
	key, err := keyOf(files[1], m.KeyPass)
	if err != nil {
		r, err := notYet(c, files[0], err)
		m.describe(&r, subject)
		return r, err
	}
	text, err := m.request(subject, key, files[0].Text)
	if err != nil {
		return module.Result{}, err
	}
	r, err := m.keep(ctx, c, files[0], text, 0o644)
	if err != nil {
		return r, err
	}
	m.describe(&r, subject)
	m.content(c, &r, "csr", files[0], text)
	noteDiff(c, &r, files[0].Path, value.NewDict(),
		value.NewDict("privatekey", m.KeyPath, "subject", pairsOf(subject), "subjectAltName", value.List(m.sans(subject)),
			"keyUsage", value.List(m.KeyUsage), "extendedKeyUsage", value.List(m.ExtKeyUsage), "basicConstraints",
			value.List(m.Basic)))
	return r, nil
}

// describe adds the requested values.
func (m *CSR) describe(r *module.Result, subject []certs.NamePart) {
	if r.Data == nil {
		return
	}
	listed := func(texts []string) any {
		if texts == nil {
			return nil
		}
		return value.List(texts)
	}
	r.Data.Merge(value.NewDict("privatekey", given(m.KeyPath), "subject", pairsOf(subject), "subjectAltName",
		listed(m.sans(subject)),
		"keyUsage", listed(m.KeyUsage), "extendedKeyUsage", listed(m.ExtKeyUsage), "basicConstraints", listed(m.Basic),
		"ocspMustStaple", m.MustStaple,
		"name_constraints_permitted", value.List(m.Permitted), "name_constraints_excluded", value.List(m.Excluded)))
}

func pairsOf(parts []certs.NamePart) []any {
	all := make([]any, len(parts))
	for i, p := range parts {
		all[i] = []any{p.Name, p.Text}
	}
	return all
}

// request returns the new request, or nil if the old one is equivalent.
func (m *CSR) request(subject []certs.NamePart, key crypto.Signer, old []byte) ([]byte, error) {
	name, err := certs.EncodeSubject(subject)
	if err != nil {
		return nil, err
	}
	extensions, err := m.extensions(m.sans(subject), key.Public())
	if err != nil {
		return nil, err
	}
	if have, err := parseRequest(old); err == nil && !m.Force && m.asks(have, name, extensions) &&
		certs.Same(key.Public(), have.PublicKey) {
		return nil, nil
	}
	algorithm, err := certs.SignatureOf(key, m.Digest)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{RawSubject: name, ExtraExtensions: extensions, SignatureAlgorithm: algorithm}, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), err
}

// asks reports whether a request contains a subject and extensions. Additional extensions of unknown types are
// ignored.
func (m *CSR) asks(have *x509.CertificateRequest, subject []byte, extensions []pkix.Extension) bool {
	a, b := certs.SubjectTexts(have.RawSubject), certs.SubjectTexts(subject)
	if len(m.Ordered) > 0 && !slices.Equal(a, b) || !certs.SameTexts(a, b) {
		return false
	}
	return slices.Equal(certs.Canonical(have.Extensions), certs.Canonical(extensions))
}

var errNoRequest = errors.New("holds no certificate signing request in PEM form")

// parseRequest parses a request and verifies its signature.
func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || !strings.HasSuffix(block.Type, "CERTIFICATE REQUEST") {
		return nil, errNoRequest
	}
	csr, err := certs.ReadRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return csr, csr.CheckSignature()
}

// subject returns the requested subject, in order.
func (m *CSR) subject() ([]certs.NamePart, error) {
	var parts []certs.NamePart
	for _, own := range []certs.NamePart{
		{Name: "C", Text: m.Country}, {Name: "ST", Text: m.Province}, {Name: "L", Text: m.Locality},
		{Name: "O", Text: m.Organization},
		{Name: "OU", Text: m.Unit}, {Name: "CN", Text: m.CommonName}, {Name: "emailAddress", Text: m.Email},
	} {
		if own.Text != "" {
			parts = append(parts, own)
		}
	}
	for i, one := range m.Ordered {
		d, ok := one.(*value.Dict)
		if !ok || d.Len() != 1 {
			return nil, fmt.Errorf("entry #%d in subject_ordered must be a dictionary with exactly one key-value pair", i+1)
		}
		parts = append(parts, partsOf(d)...)
	}
	if m.Subject != nil {
		parts = append(parts, partsOf(m.Subject)...)
	}
	return parts, nil
}

func partsOf(d *value.Dict) []certs.NamePart {
	var parts []certs.NamePart
	for name, v := range d.All() {
		many, several := v.([]any)
		if !several {
			many = []any{v}
		}
		for _, one := range many {
			parts = append(parts, certs.NamePart{Name: value.Str(name), Text: value.Str(one)})
		}
	}
	return parts
}

// sans returns the subject alternative names of the certificate, or nil if there are none.
func (m *CSR) sans(subject []certs.NamePart) []string {
	if len(m.SANs) == 0 && m.CNForSAN {
		for _, p := range subject {
			if (p.Name == "CN" || p.Name == "commonName") && certs.CheckDNS(p.Text) == nil {
				return []string{"DNS:" + p.Text}
			}
		}
	}
	return m.SANs
}
