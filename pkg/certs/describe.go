package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/md5" //nolint:gosec // a documented key of results
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/blake2s"

	"kubekey/pkg/value"
)

// Digests are those of bytes, by algorithm, as hexadecimal pairs.
func Digests(b []byte) *value.Dict {
	m5, s1, s224, s256, s384, s512 := md5.Sum(b), sha1.Sum(b), sha256.Sum224(b), sha256.Sum256(b), sha512.Sum384(b),
		sha512.Sum512(b) //nolint:gosec // as above
	t224, t256, t384, t512 := sha3.Sum224(b), sha3.Sum256(b), sha3.Sum384(b), sha3.Sum512(b)
	b2b, b2s := blake2b.Sum512(b), blake2s.Sum256(b)
	return value.NewDict(
		"md5", pairs(m5[:]), "sha1", pairs(s1[:]), "sha224", pairs(s224[:]), "sha256", pairs(s256[:]), "sha384",
		pairs(s384[:]), "sha512", pairs(s512[:]),
		"sha3_224", pairs(t224[:]), "sha3_256", pairs(t256[:]), "sha3_384", pairs(t384[:]), "sha3_512", pairs(t512[:]),
		"shake_128", pairs(sha3.SumSHAKE128(b, 32)), "shake_256", pairs(sha3.SumSHAKE256(b, 32)),
		"blake2b", pairs(b2b[:]), "blake2s", pairs(b2s[:]),
	)
}

// IntOrDigits is an int if 64 bits are enough, else its digits.
func IntOrDigits(n *big.Int) any {
	if n.IsInt64() {
		return int(n.Int64())
	}
	return n.String()
}

// DescribeName is a subject or an issuer, by the long names of its parts.
func DescribeName(key string, name pkix.Name) *value.Dict {
	long := map[string]string{}
	for _, p := range subjectParts() {
		long[p.oid.String()] = p.names[len(p.names)-1]
	}
	parts, ordered := value.NewDict(), []any{}
	for _, a := range name.Names {
		id := a.Type.String()
		if known := long[id]; known != "" {
			id = known
		}
		text := fmt.Sprint(a.Value)
		parts.Set(id, text)
		ordered = append(ordered, []any{id, text})
	}
	return value.NewDict(key, parts, key+"_ordered", ordered)
}

// DescribePublic describes the key of a certificate or a request.
func DescribePublic(public crypto.PublicKey, spki []byte) *value.Dict {
	kind, data := PublicData(public)
	d := value.NewDict("public_key_type", kind, "public_key_data", data, "public_key_fingerprints", Digests(spki))
	if text, err := EncodePublic(public); err == nil {
		d.Set("public_key", string(text))
	}
	return d
}

// SignatureName is OpenSSL's name for the signature algorithm of a certificate.
func SignatureName(crt *x509.Certificate) string {
	switch crt.SignatureAlgorithm {
	case x509.PureEd25519:
		return "ED25519"
	case x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS:
		return "rsassaPss"
	}
	kind, digest, _ := strings.Cut(crt.SignatureAlgorithm.String(), "-")
	switch kind {
	case "ECDSA":
		return "ecdsa-with-" + digest
	case "DSA":
		return "dsa-with-" + digest
	}
	return strings.ToLower(kind) + "WithRSAEncryption" // SHA256-RSA
}

// Extensions by their numbers (RFC 5280, 4.2; RFC 7633).
const (
	ExtensionSKI        = "2.5.29.14"
	ExtensionKeyUsage   = "2.5.29.15"
	ExtensionSAN        = "2.5.29.17"
	ExtensionBasic      = "2.5.29.19"
	ExtensionNames      = "2.5.29.30"
	ExtensionCRL        = "2.5.29.31"
	ExtensionAKI        = "2.5.29.35"
	ExtensionExtUsage   = "2.5.29.37"
	ExtensionMustStaple = "1.3.6.1.5.5.7.1.24"
)

// DescribeExtensions describes the extensions of a certificate or a request.
func DescribeExtensions(list []pkix.Extension) *value.Dict {
	all, found := value.NewDict(), map[string]pkix.Extension{}
	for _, e := range list {
		found[e.Id.String()] = e
		all.Set(e.Id.String(), value.NewDict("critical", e.Critical, "value", base64.StdEncoding.EncodeToString(e.Value)))
	}
	d := value.NewDict("extensions_by_oid", all)
	tell := func(key, id string, texts func(der []byte) any) {
		e, there := found[id]
		var v any
		if there {
			v = texts(e.Value)
		}
		d.Set(key, v)
		d.Set(key+"_critical", e.Critical)
	}
	tell("key_usage", ExtensionKeyUsage, func(der []byte) any { return value.List(usagesOf(der)) })
	tell("extended_key_usage", ExtensionExtUsage, func(der []byte) any { return value.List(extendedUsages(der)) })
	tell("subject_alt_name", ExtensionSAN, func(der []byte) any { return value.List(generalNames(der)) })
	tell("basic_constraints", ExtensionBasic, func(der []byte) any { return value.List(basicTexts(der)) })
	tell("ocsp_must_staple", ExtensionMustStaple, func(der []byte) any {
		var features []int
		return parses(der, &features) && slices.Contains(features, StatusRequest)
	})
	var subject []byte
	var authority AuthorityID
	_, _ = asn1.Unmarshal(found[ExtensionSKI].Value, &subject)
	_, _ = asn1.Unmarshal(found[ExtensionAKI].Value, &authority)
	d.Set("subject_key_identifier", identifier(subject))
	d.Set("authority_key_identifier", identifier(authority.ID))
	d.Set("authority_cert_issuer", nil)
	d.Set("authority_cert_serial_number", nil)
	if authority.Serial != nil {
		issuers := []any{}
		for _, n := range authority.Issuer {
			issuers = append(issuers, generalName(n))
		}
		d.Set("authority_cert_issuer", issuers)
		d.Set("authority_cert_serial_number", IntOrDigits(authority.Serial))
	}
	return d
}

// DescribeNameConstraints describes the names that a CA is permitted or forbidden to sign (RFC
// 5280, 4.2.1.10).
func DescribeNameConstraints(list []pkix.Extension) *value.Dict {
	d := value.NewDict("name_constraints_permitted", nil, "name_constraints_excluded", nil, "name_constraints_critical",
		false)
	for _, e := range list {
		var trees Subtrees
		if e.Id.String() != ExtensionNames || !parses(e.Value, &trees) {
			continue
		}
		texts := func(all []Subtree) []any {
			out := []any{}
			for _, tree := range all {
				out = append(out, generalName(tree.Base))
			}
			return out
		}
		d.Set("name_constraints_permitted", texts(trees.Permitted))
		d.Set("name_constraints_excluded", texts(trees.Excluded))
		d.Set("name_constraints_critical", e.Critical)
	}
	return d
}

func identifier(id []byte) any {
	if len(id) == 0 {
		return nil
	}
	return pairs(id)
}

// FirstOf is the first text, nil if there is none.
func FirstOf(texts []string) any {
	if len(texts) == 0 {
		return nil
	}
	return texts[0]
}

// usagesOf are OpenSSL's names of usages of a key, sorted.
func usagesOf(der []byte) []string {
	names := []string{ // in the order of their bits
		"Digital Signature", "Non Repudiation", "Key Encipherment", "Data Encipherment", "Key Agreement",
		"Certificate Sign", "CRL Sign", "Encipher Only", "Decipher Only",
	}
	var have asn1.BitString
	if !parses(der, &have) {
		return nil
	}
	var out []string
	for i, name := range names {
		if have.At(i) != 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// extendedUsages are OpenSSL's names of extended key usages, sorted; one without a name is its
// OID.
func extendedUsages(der []byte) []string {
	names := map[string]string{
		"1.3.6.1.5.5.7.3.1": "TLS Web Server Authentication", "1.3.6.1.5.5.7.3.2": "TLS Web Client Authentication",
		"1.3.6.1.5.5.7.3.3": "Code Signing", "1.3.6.1.5.5.7.3.4": "E-mail Protection", "1.3.6.1.5.5.7.3.8": "Time Stamping",
		"1.3.6.1.5.5.7.3.9": "OCSP Signing", "1.3.6.1.5.5.7.3.17": "ipsec Internet Key Exchange",
		"2.5.29.37.0": "Any Extended Key Usage",
	}
	var ids []asn1.ObjectIdentifier
	if !parses(der, &ids) {
		return nil
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
		if name := names[out[i]]; name != "" {
			out[i] = name
		}
	}
	slices.Sort(out)
	return out
}

func basicTexts(der []byte) []string {
	var basic struct {
		CA      bool `asn1:"optional"`
		MaxPath int  `asn1:"optional,default:-1"`
	}
	if !parses(der, &basic) || !basic.CA {
		return []string{"CA:FALSE"}
	}
	if basic.MaxPath >= 0 {
		return []string{"CA:TRUE", fmt.Sprintf("pathlen:%d", basic.MaxPath)}
	}
	return []string{"CA:TRUE"}
}

// generalNames are the names of a subject alternative name, in their order
// (RFC 5280, 4.2.1.6).
func generalNames(der []byte) []string {
	var all []asn1.RawValue
	if !parses(der, &all) {
		return nil
	}
	var out []string
	for _, n := range all {
		if text := generalName(n); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// generalName is a name with its kind before it, "" if that has no short name.
func generalName(n asn1.RawValue) string {
	switch n.Tag {
	case nameMail:
		return "email:" + string(n.Bytes)
	case nameDNS:
		return "DNS:" + string(n.Bytes)
	case nameURI:
		return "URI:" + string(n.Bytes)
	case nameDir:
		return "dirName:" + DirName(n.Bytes)
	case nameIP:
		if half := len(n.Bytes) / 2; half == net.IPv4len || half == net.IPv6len { // an address and its mask
			return "IP:" + (&net.IPNet{IP: n.Bytes[:half], Mask: n.Bytes[half:]}).String()
		}
		return "IP:" + net.IP(n.Bytes).String()
	case nameRID:
		var id asn1.ObjectIdentifier
		if _, err := asn1.UnmarshalWithParams(n.FullBytes, &id, "tag:8"); err == nil {
			return "RID:" + id.String()
		}
	}
	return ""
}

// StatusRequest is the TLS feature of must-staple (RFC 7633).
const StatusRequest = 5

// Subtree is a set of names in a name constraint.
type Subtree struct{ Base asn1.RawValue }

// Subtrees is the extension as RFC 5280, 4.2.1.10 has it.
type Subtrees struct {
	Permitted []Subtree `asn1:"optional,tag:0"`
	Excluded  []Subtree `asn1:"optional,tag:1"`
}

// AuthorityID is the extension as RFC 5280, 4.2.1.1 has it.
type AuthorityID struct {
	ID     []byte          `asn1:"optional,tag:0"`
	Issuer []asn1.RawValue `asn1:"optional,tag:1"`
	Serial *big.Int        `asn1:"optional,tag:2"`
}

// SignatureOf is the signature algorithm for a key and a digest.
func SignatureOf(key crypto.Signer, digest string) (x509.SignatureAlgorithm, error) {
	kind := x509.ECDSAWithSHA1
	table := map[string][2]x509.SignatureAlgorithm{
		"sha1": {x509.SHA1WithRSA, x509.ECDSAWithSHA1}, "sha256": {x509.SHA256WithRSA, x509.ECDSAWithSHA256},
		"sha384": {x509.SHA384WithRSA, x509.ECDSAWithSHA384}, "sha512": {x509.SHA512WithRSA, x509.ECDSAWithSHA512},
	}
	both, known := table[digest]
	switch key.Public().(type) {
	case ed25519.PublicKey:
		return x509.PureEd25519, nil
	case *rsa.PublicKey:
		kind = both[0]
	default:
		kind = both[1]
	}
	if !known {
		return kind, fmt.Errorf("the digest %q is not supported", digest)
	}
	return kind, nil
}

// Canonical returns texts for the known extensions, equal if the extensions are equivalent: the
// order of names and usages is irrelevant.
func Canonical(list []pkix.Extension) []string {
	var all []string
	for _, e := range list {
		var what string
		switch id := e.Id.String(); id {
		case ExtensionSAN, ExtensionExtUsage:
			var raw []asn1.RawValue
			_ = parses(e.Value, &raw)
			what = fmt.Sprintf("%q", sortedRaw(raw))
		case ExtensionNames:
			var trees Subtrees
			_ = parses(e.Value, &trees)
			bases := func(all []Subtree) []string {
				var raw []asn1.RawValue
				for _, one := range all {
					raw = append(raw, one.Base)
				}
				return sortedRaw(raw)
			}
			what = fmt.Sprintf("%q %q", bases(trees.Permitted), bases(trees.Excluded))
		case ExtensionKeyUsage, ExtensionBasic, ExtensionMustStaple, ExtensionSKI, ExtensionAKI, ExtensionCRL:
			what = hex.EncodeToString(e.Value)
		default:
			continue
		}
		all = append(all, fmt.Sprint(e.Id, e.Critical, what))
	}
	slices.Sort(all)
	return all
}

// sortedRaw is a set of encoded names or numbers.
func sortedRaw(raw []asn1.RawValue) []string {
	var all []string
	for _, one := range raw {
		all = append(all, string(one.FullBytes))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// PublicData is the kind of a public key and its numbers.
func PublicData(public crypto.PublicKey) (kind string, data *value.Dict) {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return "RSA", value.NewDict("size", k.N.BitLen(), "modulus", IntOrDigits(k.N), "exponent", k.E)
	case *ecdsa.PublicKey:
		data = value.NewDict("curve", curveName(k.Curve), "exponent_size", k.Params().BitSize)
		if point, err := k.Bytes(); err == nil { // 4, x, y
			half := len(point) / 2
			data.Set("x", IntOrDigits(new(big.Int).SetBytes(point[1:half+1])))
			data.Set("y", IntOrDigits(new(big.Int).SetBytes(point[half+1:])))
		}
		return "ECC", data
	case ed25519.PublicKey:
		return "Ed25519", value.NewDict()
	}
	return "unknown", value.NewDict()
}

// PrivateData is the secret parameters of a key.
func PrivateData(key crypto.Signer) *value.Dict {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		d := value.NewDict("exponent", IntOrDigits(k.D))
		for i, name := range []string{"p", "q"} {
			d.Set(name, IntOrDigits(k.Primes[i]))
		}
		return d
	case *ecdsa.PrivateKey:
		if b, err := k.Bytes(); err == nil {
			return value.NewDict("multiplier", IntOrDigits(new(big.Int).SetBytes(b)))
		}
	}
	return value.NewDict()
}

// DescribeKey is the type and the size of a key, and digests of its public part.
func DescribeKey(key crypto.Signer) *value.Dict {
	d := value.NewDict()
	if key == nil {
		return d
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		d.Merge(value.NewDict("type", "RSA", "size", k.N.BitLen()))
	case *ecdsa.PrivateKey:
		d.Merge(value.NewDict("type", "ECC", "size", k.Curve.Params().BitSize, "curve", curveName(k.Curve)))
	default:
		d.Merge(value.NewDict("type", "Ed25519", "size", 256))
	}
	d.Set("fingerprint", KeyFingerprint(key.Public()))
	return d
}

// curveName is the name of a curve in SEC 2.
func curveName(c elliptic.Curve) string {
	return strings.NewReplacer("P-256", "secp256r1", "P-224", "secp224r1", "P-384", "secp384r1", "P-521",
		"secp521r1").Replace(c.Params().Name)
}

// KeyFingerprint are digests of a public key.
func KeyFingerprint(public any) *value.Dict {
	spki, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return value.NewDict()
	}
	return Digests(spki)
}

// pairs writes bytes as 0a:1b:2c.
func pairs(b []byte) string {
	words := make([]string, len(b))
	for i, x := range b {
		words[i] = hex.EncodeToString([]byte{x})
	}
	return strings.Join(words, ":")
}

// SameTexts reports whether two lists contain the same texts, ignoring order and duplicates.
func SameTexts(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
