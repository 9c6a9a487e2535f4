package crypto

import (
	"crypto"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/certs"
	"kubekey/pkg/schema"
)

// csrExtras contains the arguments of openssl_csr for extensions that are used by CAs rather than servers.
type csrExtras struct {
	MustStaple     bool       `kk:"ocsp_must_staple,alias=ocspMustStaple" default:"no" doc:"require OCSP stapling"`
	StapleCritical bool       `kk:"ocsp_must_staple_critical,alias=ocspMustStaple_critical" default:"no" doc:"mark that as critical"`
	Permitted      []string   `kk:"name_constraints_permitted" doc:"names that the CA may sign for, in the form of subject_alt_name; IP: is a network, DNS: and email: a domain"`
	Excluded       []string   `kk:"name_constraints_excluded" doc:"names that it may not sign for"`
	NCCritical     bool       `kk:"name_constraints_critical" default:"no" doc:"mark them as critical"`
	CreateSKI      bool       `kk:"create_subject_key_identifier" default:"no" doc:"ask for an identifier of the key, its digest"`
	SKI            string     `kk:"subject_key_identifier" doc:"ask for this identifier of the key, hexadecimal with or without colons"`
	AKI            string     `kk:"authority_key_identifier" doc:"identifier of the CA's key, hexadecimal with or without colons"`
	AKIIssuer      []string   `kk:"authority_cert_issuer" doc:"names of the issuer of the CA's certificate, in the form of subject_alt_name; with authority_cert_serial_number"`
	AKISerial      string     `kk:"authority_cert_serial_number" doc:"serial number of the CA's certificate; with authority_cert_issuer"`
	CRL            []crlPoint `kk:"crl_distribution_points" doc:"distribution points of certificate revocation lists"`
}

// crlPoint is a distribution point of certificate revocation lists.
type crlPoint struct {
	Full     []string `kk:"full_name" doc:"places in the form of subject_alt_name, such as URI:http://..."`
	Relative []string `kk:"relative_name" doc:"place below the name of the issuer: parts such as CN=a; not with full_name"`
	Issuer   []string `kk:"crl_issuer" doc:"names of the issuer of the list"`
	Reasons  []string `kk:"reasons" choices:"aa_compromise,affiliation_changed,ca_compromise,certificate_hold,cessation_of_operation,key_compromise,privilege_withdrawn,superseded" doc:"reasons for which certificates are in the list. Default: all"`
}

// Rules implements schema.Ruled.
func (*crlPoint) Rules() schema.Rules {
	return schema.Rules{schema.AtMostOne("full_name", "relative_name"),
		schema.AtLeastOne("full_name", "relative_name", "crl_issuer")}
}

func isSerial(text string) bool {
	_, ok := new(big.Int).SetString(text, 10)
	return ok
}

// extensions returns all extensions of a request.
func (m *CSR) extensions(sans []string, public crypto.PublicKey) ([]pkix.Extension, error) {
	var all []pkix.Extension
	var failed error
	add := func(id string, critical bool, v any, err error) {
		if failed = errors.Join(failed, err); failed != nil {
			return
		}
		oid, err := certs.ParseOID(id)
		der, bad := asn1.Marshal(v)
		failed = errors.Join(err, bad)
		all = append(all, pkix.Extension{Id: oid, Critical: critical, Value: der})
	}
	if len(sans) > 0 {
		raw, err := certs.EncodeNames("subject_alt_name", sans, certs.EncodeSAN)
		add(certs.ExtensionSAN, m.SANCritical, raw, err)
	}
	if len(m.KeyUsage) > 0 {
		bits, err := usageBits(m.KeyUsage)
		add(certs.ExtensionKeyUsage, m.KUCritical, bits, err)
	}
	if len(m.ExtKeyUsage) > 0 {
		ids, err := usageIDs(m.ExtKeyUsage)
		add(certs.ExtensionExtUsage, m.EKUCritical, ids, err)
	}
	if len(m.Basic) > 0 {
		limits, err := parseBasic(m.Basic)
		add(certs.ExtensionBasic, m.BCCritical, limits, err)
	}
	if m.MustStaple {
		add(certs.ExtensionMustStaple, m.StapleCritical, []int{certs.StatusRequest}, nil)
	}
	if len(m.Permitted)+len(m.Excluded) > 0 {
		trees, err := m.constraints()
		add(certs.ExtensionNames, m.NCCritical, trees, err)
	}
	switch {
	case m.CreateSKI:
		id, err := keyID(public)
		add(certs.ExtensionSKI, false, id, err)
	case m.SKI != "":
		id, err := fromHex("subject_key_identifier", m.SKI)
		add(certs.ExtensionSKI, false, id, err)
	}
	if m.AKI != "" || len(m.AKIIssuer) > 0 || m.AKISerial != "" {
		id, err := m.authority()
		add(certs.ExtensionAKI, false, id, err)
	}
	if len(m.CRL) > 0 {
		points, err := distributionPoints(m.CRL)
		add(certs.ExtensionCRL, false, points, err)
	}
	return all, failed
}

func (m *csrExtras) constraints() (certs.Subtrees, error) {
	trees := func(argument string, texts []string) ([]certs.Subtree, error) {
		raw, err := certs.EncodeNames(argument, texts, certs.EncodeName)
		var all []certs.Subtree
		for _, one := range raw {
			all = append(all, certs.Subtree{Base: one})
		}
		return all, err
	}
	permitted, bad := trees("name_constraints_permitted", m.Permitted)
	excluded, worse := trees("name_constraints_excluded", m.Excluded)
	return certs.Subtrees{Permitted: permitted, Excluded: excluded}, errors.Join(bad, worse)
}

func (m *csrExtras) authority() (certs.AuthorityID, error) {
	var a certs.AuthorityID
	var err, bad error
	if m.AKI != "" {
		a.ID, err = fromHex("authority_key_identifier", m.AKI)
	}
	if m.AKISerial != "" {
		a.Serial, _ = new(big.Int).SetString(m.AKISerial, 10)
		a.Issuer, bad = certs.EncodeNames("authority_cert_issuer", m.AKIIssuer, certs.EncodeName)
	}
	return a, errors.Join(err, bad)
}

// crlPlace is the name of a distribution point (RFC 5280, 4.2.1.13).
type crlPlace struct {
	Full     []asn1.RawValue                   `asn1:"optional,tag:0"`
	Relative pkix.RelativeDistinguishedNameSET `asn1:"optional,tag:1"`
}

type crlEntry struct {
	Place   crlPlace        `asn1:"optional,tag:0"`
	Reasons asn1.BitString  `asn1:"optional,tag:1"`
	Issuer  []asn1.RawValue `asn1:"optional,tag:2"`
}

func distributionPoints(points []crlPoint) ([]crlEntry, error) {
	reasons := []string{ // in the order of the bits
		"unused", "key_compromise", "ca_compromise", "affiliation_changed", "superseded", "cessation_of_operation",
		"certificate_hold", "privilege_withdrawn", "aa_compromise",
	}
	var all []crlEntry
	for i, p := range points {
		argument := fmt.Sprintf("crl_distribution_points[%d]", i)
		var e crlEntry
		var bad, worse, worst error
		e.Place.Full, bad = certs.EncodeNames(argument+".full_name", p.Full, certs.EncodeName)
		e.Issuer, worse = certs.EncodeNames(argument+".crl_issuer", p.Issuer, certs.EncodeName)
		e.Place.Relative, worst = relativeName(p.Relative)
		if err := errors.Join(bad, worse, worst); err != nil {
			return nil, err
		}
		if len(p.Reasons) > 0 {
			e.Reasons = bitsOf(len(reasons), func(bit int) bool { return slices.Contains(p.Reasons, reasons[bit]) })
		}
		all = append(all, e)
	}
	return all, nil
}

func relativeName(texts []string) (pkix.RelativeDistinguishedNameSET, error) {
	var set pkix.RelativeDistinguishedNameSET
	for _, text := range texts {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("relative_name has %q, which is not a part such as CN=a", text)
		}
		der, err := certs.EncodeSubject([]certs.NamePart{{Name: strings.TrimSpace(name), Text: strings.TrimLeft(rest, " ")}})
		if err != nil {
			return nil, err
		}
		var one pkix.RDNSequence
		if _, err := asn1.Unmarshal(der, &one); err != nil {
			return nil, err
		}
		set = append(set, one[0]...)
	}
	return set, nil
}

// bitsOf returns a list of named bits. Trailing zero bits are omitted (X.690, 11.2.2).
func bitsOf(n int, on func(int) bool) asn1.BitString {
	b := asn1.BitString{Bytes: make([]byte, (n+7)/8)}
	for bit := range n {
		if on(bit) {
			b.Bytes[bit/8] |= 0x80 >> (bit % 8)
			b.BitLength = bit + 1
		}
	}
	b.Bytes = b.Bytes[:(b.BitLength+7)/8]
	return b
}

func fromHex(argument, text string) ([]byte, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("cannot parse %s: %q is not pairs of hexadecimal digits", argument, text)
	}
	return b, nil
}

// usageBits converts key usages to bits (RFC 5280, 4.2.1.3).
func usageBits(usages []string) (asn1.BitString, error) {
	order := [][]string{{"digitalSignature", "Digital Signature"},
		{"nonRepudiation", "Non Repudiation", "contentCommitment", "Content Commitment"},
		{"keyEncipherment", "Key Encipherment"}, {"dataEncipherment", "Data Encipherment"}, {"keyAgreement", "Key Agreement"},
		{"keyCertSign", "Certificate Sign"}, {"cRLSign", "CRL Sign"}, {"encipherOnly", "Encipher Only"},
		{"decipherOnly", "Decipher Only"}}
	var bits []int
	for _, u := range usages {
		at := slices.IndexFunc(order, func(names []string) bool { return slices.Contains(names, u) })
		if at < 0 {
			return asn1.BitString{}, fmt.Errorf("key_usage has %q, which is not known", u)
		}
		bits = append(bits, at)
	}
	return bitsOf(len(order), func(bit int) bool { return slices.Contains(bits, bit) }), nil
}

// usageIDs converts extended key usages to object identifiers.
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
		id, ok := asn1.ObjectIdentifier(known[u]), known[u] != nil
		if !ok {
			var err error
			if id, err = certs.ParseOID(u); err != nil {
				return nil, fmt.Errorf("extended_key_usage has %q, which is neither known nor numbers with dots", u)
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// basicConstraints is the extension defined in RFC 5280, 4.2.1.9.
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
			return b, fmt.Errorf("basic_constraints has %q; allowed are CA:TRUE, CA:FALSE and pathlen:N", w)
		}
	}
	return b, nil
}
