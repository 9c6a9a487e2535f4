package pki

import (
	"crypto"
	"crypto/md5"  //nolint:gosec // a documented key of results
	"crypto/sha1" //nolint:gosec // as above
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/blake2s"

	"kubekey/pkg/value"
)

// digests are those of bytes, by algorithm, as hexadecimal pairs.
func digests(b []byte) *value.Dict {
	m5, s1, s224, s256, s384, s512 := md5.Sum(b), sha1.Sum(b), sha256.Sum224(b), sha256.Sum256(b), sha512.Sum384(b), sha512.Sum512(b) //nolint:gosec // as above
	t224, t256, t384, t512 := sha3.Sum224(b), sha3.Sum256(b), sha3.Sum384(b), sha3.Sum512(b)
	b2b, b2s := blake2b.Sum512(b), blake2s.Sum256(b)
	return value.NewDict(
		"md5", pairs(m5[:]), "sha1", pairs(s1[:]), "sha224", pairs(s224[:]), "sha256", pairs(s256[:]), "sha384", pairs(s384[:]), "sha512", pairs(s512[:]),
		"sha3_224", pairs(t224[:]), "sha3_256", pairs(t256[:]), "sha3_384", pairs(t384[:]), "sha3_512", pairs(t512[:]),
		"shake_128", pairs(sha3.SumSHAKE128(b, 32)), "shake_256", pairs(sha3.SumSHAKE256(b, 32)),
		"blake2b", pairs(b2b[:]), "blake2s", pairs(b2s[:]),
	)
}

// intOrDigits is a number where 64 bits hold it, and its digits otherwise.
func intOrDigits(n *big.Int) any {
	if n.IsInt64() {
		return int(n.Int64())
	}
	return n.String()
}

// describeName is a subject or an issuer, by the long names of its parts.
func describeName(key string, name pkix.Name) *value.Dict {
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

// describePublic is what a certificate or a request says of its key.
func describePublic(public crypto.PublicKey, spki []byte) *value.Dict {
	kind, data := publicData(public)
	d := value.NewDict("public_key_type", kind, "public_key_data", data, "public_key_fingerprints", digests(spki))
	if text, err := encodePublic(public); err == nil {
		d.Set("public_key", string(text))
	}
	return d
}

// signatureName is OpenSSL's name of how a certificate is signed.
func signatureName(crt *x509.Certificate) string {
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
	extensionSKI        = "2.5.29.14"
	extensionKeyUsage   = "2.5.29.15"
	extensionSAN        = "2.5.29.17"
	extensionBasic      = "2.5.29.19"
	extensionNames      = "2.5.29.30"
	extensionCRL        = "2.5.29.31"
	extensionAKI        = "2.5.29.35"
	extensionExtUsage   = "2.5.29.37"
	extensionMustStaple = "1.3.6.1.5.5.7.1.24"
)

func describeExtensions(list []pkix.Extension) *value.Dict {
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
	tell("key_usage", extensionKeyUsage, func(der []byte) any { return value.List(usagesOf(der)) })
	tell("extended_key_usage", extensionExtUsage, func(der []byte) any { return value.List(extendedUsages(der)) })
	tell("subject_alt_name", extensionSAN, func(der []byte) any { return value.List(generalNames(der)) })
	tell("basic_constraints", extensionBasic, func(der []byte) any { return value.List(basicTexts(der)) })
	tell("ocsp_must_staple", extensionMustStaple, func(der []byte) any {
		var features []int
		return parses(der, &features) && slices.Contains(features, statusRequest)
	})
	var subject []byte
	var authority authorityID
	_, _ = asn1.Unmarshal(found[extensionSKI].Value, &subject)
	_, _ = asn1.Unmarshal(found[extensionAKI].Value, &authority)
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
		d.Set("authority_cert_serial_number", intOrDigits(authority.Serial))
	}
	return d
}

// describeNameConstraints are the names that an authority may or may not sign
// for (RFC 5280, 4.2.1.10).
func describeNameConstraints(list []pkix.Extension) *value.Dict {
	d := value.NewDict("name_constraints_permitted", nil, "name_constraints_excluded", nil, "name_constraints_critical", false)
	for _, e := range list {
		var trees subtrees
		if e.Id.String() != extensionNames || !parses(e.Value, &trees) {
			continue
		}
		texts := func(all []subtree) []any {
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

func firstOf(texts []string) any {
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

// extendedUsages are OpenSSL's names of extended key usages, sorted; one
// without a name is its number.
func extendedUsages(der []byte) []string {
	names := map[string]string{
		"1.3.6.1.5.5.7.3.1": "TLS Web Server Authentication", "1.3.6.1.5.5.7.3.2": "TLS Web Client Authentication",
		"1.3.6.1.5.5.7.3.3": "Code Signing", "1.3.6.1.5.5.7.3.4": "E-mail Protection", "1.3.6.1.5.5.7.3.8": "Time Stamping",
		"1.3.6.1.5.5.7.3.9": "OCSP Signing", "1.3.6.1.5.5.7.3.17": "ipsec Internet Key Exchange", "2.5.29.37.0": "Any Extended Key Usage",
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
		return "dirName:" + dirName(n.Bytes)
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
