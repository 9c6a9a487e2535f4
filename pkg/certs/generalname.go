package certs

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Kinds of general names by their tags (RFC 5280, 4.2.1.6).
const (
	nameMail = 1
	nameDNS  = 2
	nameDir  = 4
	nameURI  = 6
	nameIP   = 7
	nameRID  = 8
)

func tagged(tag int, b []byte) asn1.RawValue {
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, Bytes: b}
}

// EncodeNames encodes names with a type prefix; an error names the argument.
func EncodeNames(argument string, texts []string, encode func(string) (asn1.RawValue, error)) ([]asn1.RawValue, error) {
	var all []asn1.RawValue
	for _, text := range texts {
		raw, err := encode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", argument, err)
		}
		all = append(all, raw)
	}
	return all, nil
}

// EncodeSAN validates and encodes a subject alternative name.
func EncodeSAN(text string) (asn1.RawValue, error) {
	if kind, _, _ := strings.Cut(text, ":"); kind == "RID" || kind == "dirName" {
		return EncodeName(text)
	}
	var n Names
	if err := n.add(text); err != nil {
		return asn1.RawValue{}, err
	}
	return n.raw()[0], nil
}

// EncodeName encodes a name that can be partial, as in constraints.
func EncodeName(text string) (asn1.RawValue, error) {
	kind, rest, _ := strings.Cut(text, ":")
	plain := map[string]int{"DNS": nameDNS, "email": nameMail, "URI": nameURI}
	switch {
	case plain[kind] != 0 && printable(rest):
		return tagged(plain[kind], []byte(rest)), nil
	case kind == "IP":
		return encodeIP(rest)
	case kind == "RID":
		id, err := ParseOID(rest)
		if err != nil {
			return asn1.RawValue{}, err
		}
		der, err := asn1.MarshalWithParams(id, "tag:8")
		return asn1.RawValue{FullBytes: der}, err
	case kind == "dirName":
		return encodeDirName(rest)
	}
	return asn1.RawValue{}, fmt.Errorf("%q is not a name: "+
		"write DNS:NAME, IP:ADDRESS, email:ADDRESS, URI:..., RID:NUMBERS or dirName:CN=...,O=...", text)
}

func encodeIP(text string) (asn1.RawValue, error) {
	if ip, network, err := net.ParseCIDR(text); err == nil && ip.Equal(network.IP) {
		return tagged(nameIP, append(network.IP, network.Mask...)), nil
	}
	ip := net.ParseIP(text)
	switch short := ip.To4(); {
	case ip == nil:
		return asn1.RawValue{}, fmt.Errorf("%q is neither an IP address nor a network", text)
	case short != nil:
		ip = short
	}
	return tagged(nameIP, ip), nil
}

// ParseOID reads an object identifier: 1.2.840.113549.
func ParseOID(text string) (asn1.ObjectIdentifier, error) {
	var id asn1.ObjectIdentifier
	for part := range strings.SplitSeq(text, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not an object identifier: write numbers separated by dots", text)
		}
		id = append(id, n)
	}
	return id, nil
}

// encodeDirName encodes a name as RFC 4514 writes it, the last part first.
func encodeDirName(text string) (asn1.RawValue, error) {
	parts, err := parseDN(text)
	if err != nil {
		return asn1.RawValue{}, err
	}
	slices.Reverse(parts)
	der, err := EncodeSubject(parts)
	return asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: nameDir, IsCompound: true, Bytes: der}, err
}

// parseDN parses CN=a,O=b or /CN=a/O=b. A backslash escapes a character, or precedes the two hex
// digits of a byte.
func parseDN(text string) ([]NamePart, error) {
	separator := ","
	text, slash := strings.CutPrefix(strings.TrimLeft(text, " "), "/")
	if slash {
		separator = "/"
	}
	var parts []NamePart
	for text != "" {
		key, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not a name such as CN=a,O=b", text)
		}
		var one string
		var err error
		if one, text, err = cutEscaped(strings.TrimLeft(rest, " "), separator); err != nil {
			return nil, err
		}
		parts = append(parts, NamePart{strings.TrimSpace(key), one})
	}
	return parts, nil
}

func cutEscaped(text, separator string) (one, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i:i+1] == separator:
			return b.String(), text[i+1:], nil
		case text[i] != '\\':
			b.WriteByte(text[i])
		case i+1 == len(text):
			return "", "", errors.New("a name ends in a backslash")
		default:
			i++
			if i+1 < len(text) {
				if pair, err := hex.DecodeString(text[i : i+2]); err == nil {
					b.Write(pair)
					i++
					continue
				}
			}
			b.WriteByte(text[i])
		}
	}
	return b.String(), "", nil
}

// NamePart is a part of a subject: its name, and its text.
type NamePart struct{ Name, Text string }

// EncodeSubject encodes the parts of a name in their order.
func EncodeSubject(parts []NamePart) ([]byte, error) {
	ids := map[string]asn1.ObjectIdentifier{}
	for _, known := range subjectParts() {
		for _, name := range known.names {
			ids[name] = known.oid
		}
	}
	rdns := pkix.RDNSequence{}
	for _, p := range parts {
		id, err := ids[p.Name], error(nil)
		if id == nil {
			if id, err = ParseOID(p.Name); err != nil {
				return nil, fmt.Errorf("the subject has an unknown part %q", p.Name)
			}
		}
		tag := asn1.TagUTF8String
		switch id.String() {
		case "2.5.4.6": // countryName
			if len(p.Text) != 2 {
				return nil, fmt.Errorf("country_name must be two letters, got %q", p.Text)
			}
			tag = asn1.TagPrintableString
		case "2.5.4.5": // serialNumber
			tag = asn1.TagPrintableString
		case "1.2.840.113549.1.9.1", "0.9.2342.19200300.100.1.25": // emailAddress, domainComponent
			tag = asn1.TagIA5String
		}
		if p.Text == "" {
			return nil, fmt.Errorf("the part %s of the subject is empty", p.Name)
		}
		rdns = append(rdns, pkix.RelativeDistinguishedNameSET{{Type: id, Value: asn1.RawValue{Tag: tag,
			Bytes: []byte(p.Text)}}})
	}
	return asn1.Marshal(rdns)
}

// SubjectTexts are the parts of an encoded name, whatever types their texts have.
func SubjectTexts(der []byte) []string {
	var rdns pkix.RDNSequence
	if !parses(der, &rdns) {
		return nil
	}
	var texts []string
	for _, rdn := range rdns {
		for _, part := range rdn {
			texts = append(texts, fmt.Sprint(part.Type, "=", part.Value))
		}
	}
	return texts
}

// DirName writes a name as parseDN reads it, by the short names of OpenSSL.
func DirName(der []byte) string {
	short := map[string]string{}
	for _, known := range subjectParts() {
		short[known.oid.String()] = known.names[0]
	}
	short["1.2.840.113549.1.9.1"] = "emailAddress"
	escape := strings.NewReplacer(`\`, `\\`, ",", `\,`, "+", `\+`, "<", `\<`, ">", `\>`, ";", `\;`, `"`, `\"`)
	var rdns pkix.RDNSequence
	_ = parses(der, &rdns)
	var parts []string
	for _, rdn := range slices.Backward(rdns) {
		for _, part := range rdn {
			name := part.Type.String()
			if known := short[name]; known != "" {
				name = known
			}
			parts = append(parts, name+"="+escape.Replace(fmt.Sprint(part.Value)))
		}
	}
	return strings.Join(parts, ",")
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

// raw are the names as the extension has them (RFC 5280, 4.2.1.6).
func (n Names) raw() []asn1.RawValue {
	var all []asn1.RawValue
	add := func(tag int, b []byte) {
		all = append(all, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, Bytes: b})
	}
	for _, text := range n.DNS {
		add(2, []byte(text))
	}
	for _, text := range n.Email {
		add(1, []byte(text))
	}
	for _, u := range n.URI {
		add(6, []byte(u.String()))
	}
	for _, ip := range n.IP {
		if short := ip.To4(); short != nil {
			ip = short
		}
		add(7, ip)
	}
	return all
}
