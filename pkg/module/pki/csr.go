package pki

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// CSR is the module openssl_csr.
type CSR struct {
	placement
	keySource
	CommonName   string      `kk:"common_name,alias=CN|commonName" doc:"name of the subject"`
	Country      string      `kk:"country_name,alias=C|countryName" doc:"country, two letters"`
	Province     string      `kk:"state_or_province_name,alias=ST|stateOrProvinceName" doc:"state or province"`
	Locality     string      `kk:"locality_name,alias=L|localityName" doc:"town"`
	Organization string      `kk:"organization_name,alias=O|organizationName" doc:"organization"`
	Unit         string      `kk:"organizational_unit_name,alias=OU|organizationalUnitName" doc:"part of it"`
	Email        string      `kk:"email_address,alias=E|emailAddress" doc:"mail address"`
	Subject      *value.Dict `kk:"subject" doc:"more of the subject, by the short or long names of OpenSSL: CN, O, serialNumber, ...; a list gives several"`
	SANs         []string    `kk:"subject_alt_name,alias=subjectAltName" doc:"names that the certificate is to be valid for: DNS:NAME, IP:ADDRESS, URI:..., email:..."`
	SANCritical  bool        `kk:"subject_alt_name_critical,alias=subjectAltName_critical" default:"no" doc:"mark them as critical"`
	CNForSAN     bool        `kk:"use_common_name_for_san,alias=useCommonNameForSAN" default:"yes" doc:"without subject_alt_name, take common_name as DNS name"`
	KeyUsage     []string    `kk:"key_usage,alias=keyUsage" doc:"what the key is for: digitalSignature, keyEncipherment, keyCertSign, ..."`
	KUCritical   bool        `kk:"key_usage_critical,alias=keyUsage_critical" default:"no" doc:"mark that as critical"`
	ExtKeyUsage  []string    `kk:"extended_key_usage,alias=extKeyUsage|extendedKeyUsage" doc:"what the certificate is for: serverAuth, clientAuth, ..., or numbers with dots"`
	EKUCritical  bool        `kk:"extended_key_usage_critical,alias=extKeyUsage_critical|extendedKeyUsage_critical" default:"no" doc:"mark that as critical"`
	Basic        []string    `kk:"basic_constraints,alias=basicConstraints" doc:"CA:TRUE or CA:FALSE, and pathlen:N"`
	BCCritical   bool        `kk:"basic_constraints_critical,alias=basicConstraints_critical" default:"no" doc:"mark that as critical"`
}

func csrSpec() module.Spec {
	return module.Spec{
		Name: "openssl_csr", Collection: "community.crypto",
		Summary: "Keep a certificate signing request on the host.",
		Notes:   []string{"The request is signed on the control node with the key that is read from the host. It is made anew if it asks for anything else, or if it was signed by another key."},
		Examples: []string{
			"- name: Ask for a certificate of the web server\n  openssl_csr:\n    path: /etc/ssl/web.csr\n    privatekey_path: /etc/ssl/private/web.pem\n    common_name: www.example.org\n    subject_alt_name:\n      - DNS:www.example.org\n      - IP:192.0.2.7\n    extended_key_usage: serverAuth",
		},
		Returns: placementReturns("csr",
			module.Return{Key: "privatekey", Type: "str", Doc: "privatekey_path"},
			module.Return{Key: "subject", Type: "list of list", Doc: "pairs of name and text"},
			module.Return{Key: "subjectAltName", Type: "list of str", Doc: "names"},
			module.Return{Key: "keyUsage", Type: "list of str", Doc: "the argument"},
			module.Return{Key: "extendedKeyUsage", Type: "list of str", Doc: "the argument"},
			module.Return{Key: "basicConstraints", Type: "list of str", Doc: "the argument"},
		),
		New: func() module.Runner { return new(CSR) },
	}
}

// Run implements module.Runner.
func (m *CSR) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.State == "absent" {
		return m.remove(ctx, c)
	}
	if err := m.check(); err != nil {
		return module.Result{}, err
	}
	template, err := m.template()
	if err != nil {
		return module.Result{}, err
	}
	files, err := readHost(ctx, c, m.Path, m.source())
	if err != nil {
		return module.Result{}, err
	}
	key, err := keyOf(files[1], m.KeyPass)
	if err != nil {
		return notYet(c, files[0], err)
	}
	text, err := m.request(template, key, files[0].text)
	if err != nil {
		return module.Result{}, err
	}
	r, err := m.keep(ctx, c, files[0], text, 0o644)
	if err != nil {
		return r, err
	}
	told(c, &r, files[0].path, value.NewDict(), value.NewDict("privatekey", m.KeyPath, "subject", m.told(), "subjectAltName", value.List(m.sans()),
		"keyUsage", value.List(m.KeyUsage), "extendedKeyUsage", value.List(m.ExtKeyUsage), "basicConstraints", value.List(m.Basic)))
	m.content(&r, "csr", files[0], text)
	return r, nil
}

// request is the new request, nil if the old one asks for the same.
func (m *CSR) request(template *x509.CertificateRequest, key crypto.Signer, old []byte) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, err
	}
	wanted, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, err
	}
	if have, err := parseRequest(old); err == nil && !m.Force && bytes.Equal(have.RawTBSCertificateRequest, wanted.RawTBSCertificateRequest) {
		return nil, nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// parseRequest reads a request whose signature is right.
func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || !strings.HasSuffix(block.Type, "CERTIFICATE REQUEST") {
		return nil, errors.New("holds no certificate signing request in PEM form")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return csr, csr.CheckSignature()
}

// subjectParts are the parts of a subject by their names, in the order that they get.
func subjectParts() []struct {
	names []string
	oid   asn1.ObjectIdentifier
} {
	return []struct {
		names []string
		oid   asn1.ObjectIdentifier
	}{
		{[]string{"C", "countryName"}, asn1.ObjectIdentifier{2, 5, 4, 6}},
		{[]string{"ST", "stateOrProvinceName"}, asn1.ObjectIdentifier{2, 5, 4, 8}},
		{[]string{"L", "localityName"}, asn1.ObjectIdentifier{2, 5, 4, 7}},
		{[]string{"O", "organizationName"}, asn1.ObjectIdentifier{2, 5, 4, 10}},
		{[]string{"OU", "organizationalUnitName"}, asn1.ObjectIdentifier{2, 5, 4, 11}},
		{[]string{"CN", "commonName"}, asn1.ObjectIdentifier{2, 5, 4, 3}},
		{[]string{"E", "emailAddress"}, asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}},
		{[]string{"serialNumber"}, asn1.ObjectIdentifier{2, 5, 4, 5}},
		{[]string{"street", "streetAddress"}, asn1.ObjectIdentifier{2, 5, 4, 9}},
		{[]string{"postalCode"}, asn1.ObjectIdentifier{2, 5, 4, 17}},
		{[]string{"title"}, asn1.ObjectIdentifier{2, 5, 4, 12}},
		{[]string{"GN", "givenName"}, asn1.ObjectIdentifier{2, 5, 4, 42}},
		{[]string{"SN", "surname"}, asn1.ObjectIdentifier{2, 5, 4, 4}},
		{[]string{"UID", "userId"}, asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 1}},
		{[]string{"DC", "domainComponent"}, asn1.ObjectIdentifier{0, 9, 2342, 19200300, 100, 1, 25}},
	}
}

// given are the texts of one part of the subject.
func (m *CSR) given(names []string) []string {
	own := map[string]string{"C": m.Country, "ST": m.Province, "L": m.Locality, "O": m.Organization, "OU": m.Unit, "CN": m.CommonName, "E": m.Email}
	var all []string
	if text := own[names[0]]; text != "" {
		all = append(all, text)
	}
	for _, name := range names {
		v, ok := m.Subject.Get(name)
		if !ok {
			continue
		}
		many, several := v.([]any)
		if !several {
			many = []any{v}
		}
		for _, one := range many {
			all = append(all, value.Str(one))
		}
	}
	return all
}

func (m *CSR) told() []any {
	pairs := []any{}
	for _, part := range subjectParts() {
		for _, text := range m.given(part.names) {
			pairs = append(pairs, []any{part.names[len(part.names)-1], text})
		}
	}
	return pairs
}

func (m *CSR) template() (*x509.CertificateRequest, error) {
	subject, err := m.subject()
	if err != nil {
		return nil, err
	}
	names, err := parseSANs(m.sans())
	if err != nil {
		return nil, err
	}
	t := &x509.CertificateRequest{RawSubject: subject}
	add := func(critical bool, id []int, v any, err error) error {
		if err != nil {
			return err
		}
		der, err := asn1.Marshal(v)
		t.ExtraExtensions = append(t.ExtraExtensions, pkix.Extension{Id: id, Critical: critical, Value: der})
		return err
	}
	if raw := names.raw(); len(raw) > 0 {
		err = add(m.SANCritical, []int{2, 5, 29, 17}, raw, nil)
	}
	if len(m.KeyUsage) > 0 && err == nil {
		bits, bad := usageBits(m.KeyUsage)
		err = add(m.KUCritical, []int{2, 5, 29, 15}, bits, bad)
	}
	if len(m.ExtKeyUsage) > 0 && err == nil {
		ids, bad := usageIDs(m.ExtKeyUsage)
		err = add(m.EKUCritical, []int{2, 5, 29, 37}, ids, bad)
	}
	if len(m.Basic) > 0 && err == nil {
		limits, bad := parseBasic(m.Basic)
		err = add(m.BCCritical, []int{2, 5, 29, 19}, limits, bad)
	}
	return t, err
}

func (m *CSR) sans() []string {
	if len(m.SANs) == 0 && m.CNForSAN && m.CommonName != "" && checkDNS(m.CommonName) == nil {
		return []string{"DNS:" + m.CommonName}
	}
	return m.SANs
}

func (m *CSR) subject() ([]byte, error) {
	var rdns pkix.RDNSequence
	known := map[string]bool{}
	for _, part := range subjectParts() {
		for _, name := range part.names {
			known[name] = true
		}
		for _, text := range m.given(part.names) {
			if part.names[0] == "C" && len(text) != 2 {
				return nil, fmt.Errorf("country_name must be two letters, got %q", text)
			}
			var v any = text
			if part.names[0] == "E" || part.names[0] == "DC" {
				v = asn1.RawValue{Tag: asn1.TagIA5String, Bytes: []byte(text)}
			}
			rdns = append(rdns, pkix.RelativeDistinguishedNameSET{{Type: part.oid, Value: v}})
		}
	}
	for key := range m.Subject.All() {
		if !known[value.Str(key)] {
			return nil, fmt.Errorf("subject has the part %q, which is not known", value.Str(key))
		}
	}
	return asn1.Marshal(rdns)
}

// raw are the names as the extension has them (RFC 5280, 4.2.1.6).
func (n names) raw() []asn1.RawValue {
	var all []asn1.RawValue
	add := func(tag int, b []byte) {
		all = append(all, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, Bytes: b})
	}
	for _, text := range n.dns {
		add(2, []byte(text))
	}
	for _, text := range n.email {
		add(1, []byte(text))
	}
	for _, u := range n.uri {
		add(6, []byte(u.String()))
	}
	for _, ip := range n.ip {
		if short := ip.To4(); short != nil {
			ip = short
		}
		add(7, ip)
	}
	return all
}

// usageBits are key usages by their bits (RFC 5280, 4.2.1.3).
func usageBits(usages []string) (asn1.BitString, error) {
	order := [][]string{{"digitalSignature", "Digital Signature"}, {"nonRepudiation", "Non Repudiation", "contentCommitment", "Content Commitment"},
		{"keyEncipherment", "Key Encipherment"}, {"dataEncipherment", "Data Encipherment"}, {"keyAgreement", "Key Agreement"},
		{"keyCertSign", "Certificate Sign"}, {"cRLSign", "CRL Sign"}, {"encipherOnly", "Encipher Only"}, {"decipherOnly", "Decipher Only"}}
	var b asn1.BitString
	b.Bytes = make([]byte, 2)
	for _, u := range usages {
		at := slices.IndexFunc(order, func(names []string) bool { return slices.Contains(names, u) })
		if at < 0 {
			return b, fmt.Errorf("key_usage has %q, which is not known", u)
		}
		b.Bytes[at/8] |= 0x80 >> (at % 8)
		b.BitLength = max(b.BitLength, at+1)
	}
	b.Bytes = b.Bytes[:(b.BitLength+7)/8]
	return b, nil
}

// usageIDs are extended key usages by their numbers.
func usageIDs(usages []string) ([]asn1.ObjectIdentifier, error) {
	known := map[string][]int{
		"serverAuth": {1, 3, 6, 1, 5, 5, 7, 3, 1}, "TLS Web Server Authentication": {1, 3, 6, 1, 5, 5, 7, 3, 1},
		"clientAuth": {1, 3, 6, 1, 5, 5, 7, 3, 2}, "TLS Web Client Authentication": {1, 3, 6, 1, 5, 5, 7, 3, 2},
		"codeSigning": {1, 3, 6, 1, 5, 5, 7, 3, 3}, "Code Signing": {1, 3, 6, 1, 5, 5, 7, 3, 3},
		"emailProtection": {1, 3, 6, 1, 5, 5, 7, 3, 4}, "E-mail Protection": {1, 3, 6, 1, 5, 5, 7, 3, 4},
		"timeStamping": {1, 3, 6, 1, 5, 5, 7, 3, 8}, "Time Stamping": {1, 3, 6, 1, 5, 5, 7, 3, 8},
		"OCSPSigning": {1, 3, 6, 1, 5, 5, 7, 3, 9}, "OCSP Signing": {1, 3, 6, 1, 5, 5, 7, 3, 9},
		"anyExtendedKeyUsage": {2, 5, 29, 37, 0}, "any": {2, 5, 29, 37, 0},
	}
	var ids []asn1.ObjectIdentifier
	for _, u := range usages {
		id, ok := known[u]
		if !ok {
			for part := range strings.SplitSeq(u, ".") {
				n, err := strconv.Atoi(part)
				if err != nil || n < 0 {
					return nil, fmt.Errorf("extended_key_usage has %q, which is neither known nor numbers with dots", u)
				}
				id = append(id, n)
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// basicConstraints is the extension as RFC 5280, 4.2.1.9 has it.
type basicConstraints struct {
	IsCA       bool `asn1:"optional"`
	MaxPathLen int  `asn1:"optional,default:-1"`
}

func parseBasic(words []string) (basicConstraints, error) {
	b := basicConstraints{MaxPathLen: -1}
	for _, w := range words {
		key, text, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(w, " ", "")), ":")
		n, err := strconv.Atoi(text)
		switch {
		case key == "ca" && (text == "true" || text == "false"):
			b.IsCA = text == "true"
		case key == "pathlen" && err == nil && n >= 0:
			b.MaxPathLen = n
		default:
			return b, fmt.Errorf("basic_constraints has %q; it takes CA:TRUE, CA:FALSE and pathlen:N", w)
		}
	}
	return b, nil
}
