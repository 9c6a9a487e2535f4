package pki

import (
	"crypto/ecdsa"
	"crypto/ed25519"
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
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"

	"kubekey/pkg/value"
)

// digests are those of bytes, by algorithm, as hexadecimal pairs.
func digests(b []byte) *value.Dict {
	m5, s1, s224, s256, s384, s512 := md5.Sum(b), sha1.Sum(b), sha256.Sum224(b), sha256.Sum256(b), sha512.Sum384(b), sha512.Sum512(b) //nolint:gosec // as above
	t224, t256, t384, t512 := sha3.Sum224(b), sha3.Sum256(b), sha3.Sum384(b), sha3.Sum512(b)
	return value.NewDict(
		"md5", pairs(m5[:]), "sha1", pairs(s1[:]), "sha224", pairs(s224[:]), "sha256", pairs(s256[:]), "sha384", pairs(s384[:]), "sha512", pairs(s512[:]),
		"sha3_224", pairs(t224[:]), "sha3_256", pairs(t256[:]), "sha3_384", pairs(t384[:]), "sha3_512", pairs(t512[:]),
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

func describePublic(crt *x509.Certificate) *value.Dict {
	kind, data := "unknown", value.NewDict()
	switch k := crt.PublicKey.(type) {
	case *rsa.PublicKey:
		kind = "RSA"
		data = value.NewDict("size", k.N.BitLen(), "modulus", intOrDigits(k.N), "exponent", k.E)
	case *ecdsa.PublicKey:
		kind = "ECC"
		data = value.NewDict("curve", curveName(k.Curve), "exponent_size", k.Params().BitSize)
		if point, err := k.Bytes(); err == nil { // 4, x, y
			half := len(point) / 2
			data.Set("x", intOrDigits(new(big.Int).SetBytes(point[1:half+1])))
			data.Set("y", intOrDigits(new(big.Int).SetBytes(point[half+1:])))
		}
	case ed25519.PublicKey:
		kind = "Ed25519"
	}
	d := value.NewDict("public_key_type", kind, "public_key_data", data, "public_key_fingerprints", digests(crt.RawSubjectPublicKeyInfo))
	if text, err := encodePublic(crt.PublicKey); err == nil {
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
	extensionExtUsage   = "2.5.29.37"
	extensionMustStaple = "1.3.6.1.5.5.7.1.24"
)

func describeExtensions(crt *x509.Certificate) *value.Dict {
	all, found := value.NewDict(), map[string]pkix.Extension{}
	for _, e := range crt.Extensions {
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
	tell("key_usage", extensionKeyUsage, func([]byte) any { return value.List(usagesOf(crt.KeyUsage)) })
	tell("extended_key_usage", extensionExtUsage, func(der []byte) any { return value.List(extendedUsages(der)) })
	tell("subject_alt_name", extensionSAN, func(der []byte) any { return value.List(generalNames(der)) })
	tell("basic_constraints", extensionBasic, func([]byte) any { return value.List(basicTexts(crt)) })
	tell("ocsp_must_staple", extensionMustStaple, func(der []byte) any {
		var features []int
		return parses(der, &features) && slices.Contains(features, 5)
	})
	d.Set("subject_key_identifier", identifier(crt.SubjectKeyId))
	d.Set("authority_key_identifier", identifier(crt.AuthorityKeyId))
	d.Set("authority_cert_issuer", nil)
	d.Set("authority_cert_serial_number", nil)
	d.Set("ocsp_uri", firstOf(crt.OCSPServer))
	d.Set("issuer_uri", firstOf(crt.IssuingCertificateURL))
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
func usagesOf(have x509.KeyUsage) []string {
	names := []string{ // in the order of their bits
		"Digital Signature", "Non Repudiation", "Key Encipherment", "Data Encipherment", "Key Agreement",
		"Certificate Sign", "CRL Sign", "Encipher Only", "Decipher Only",
	}
	var out []string
	for i, name := range names {
		if have&(1<<i) != 0 {
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

func basicTexts(crt *x509.Certificate) []string {
	if !crt.IsCA {
		return []string{"CA:FALSE"}
	}
	if crt.MaxPathLen > 0 || crt.MaxPathLenZero {
		return []string{"CA:TRUE", fmt.Sprintf("pathlen:%d", crt.MaxPathLen)}
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
		switch n.Tag {
		case 1:
			out = append(out, "email:"+string(n.Bytes))
		case 2:
			out = append(out, "DNS:"+string(n.Bytes))
		case 6:
			out = append(out, "URI:"+string(n.Bytes))
		case 7:
			out = append(out, "IP:"+net.IP(n.Bytes).String())
		case 8:
			var id asn1.ObjectIdentifier
			if _, err := asn1.UnmarshalWithParams(n.FullBytes, &id, "tag:8"); err == nil {
				out = append(out, "RID:"+id.String())
			}
		}
	}
	return out
}
