package pki

import (
	"context"
	"crypto/x509"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func certInfoSpec() module.Spec {
	return module.Spec{
		Name: "x509_certificate_info", Aliases: []string{"openssl_certificate_info"}, Collection: "community.crypto",
		Summary: "Returns the content and the validity of a certificate.",
		Notes: []string{
			"The certificate is parsed on the control node, so hosts need no openssl; with content no host is contacted.",
			"Of several certificates the first is described; all of them are in chain. Keys are ignored.",
			"Numbers beyond 64 bits, such as most serial numbers, are strings of digits.",
		},
		Examples: []string{
			"- name: Check the certificate of the API server\n  x509_certificate_info:\n" +
				"    path: /etc/kubernetes/pki/apiserver.crt\n    before_days: 14\n    valid_at:\n      next_month: +30d\n" +
				"  register: cert\n  failed_when: cert.expiring or not cert.valid_at.next_month",
		},
		Returns: []module.Return{
			{Key: "expired", Type: "bool", Doc: "whether it has expired"},
			{Key: "expiring", Type: "bool", Doc: "whether it has expired, or expires within before_days"},
			{Key: "days_left", Type: "int", Doc: "full days until it expires; negative after that"},
			{Key: "not_before", Type: "str", Doc: "start of the validity, YYYYMMDDhhmmssZ"},
			{Key: "not_after", Type: "str", Doc: "end of the validity"},
			{Key: "valid_at", Type: "dict", Doc: "whether it is valid at each time of the argument"},
			{Key: "subject", Type: "dict", Doc: "subject, with OpenSSL's long names"},
			{Key: "subject_ordered", Type: "list of list", Doc: "the same in order, including repeated names"},
			{Key: "issuer", Type: "dict", Doc: "issuer"},
			{Key: "issuer_ordered", Type: "list of list", Doc: "the same in order"},
			{Key: "subject_alt_name", Type: "list of str", Doc: "subject alternative names as DNS:NAME, IP:ADDRESS, " +
				"URI:..., email:...; null without the extension, as are the following keys"},
			{Key: "basic_constraints", Type: "list of str", Doc: "CA:TRUE or CA:FALSE, and pathlen:N"},
			{Key: "key_usage", Type: "list of str", Doc: "what the key may be used for, with OpenSSL's names"},
			{Key: "extended_key_usage", Type: "list of str", Doc: "what the certificate may be used for"},
			{Key: "ocsp_must_staple", Type: "bool", Doc: "whether OCSP stapling is required"},
			{Key: "*_critical", Type: "bool", Doc: "whether the extension of this name is marked as critical"},
			{Key: "extensions_by_oid", Type: "dict", Doc: "each extension: critical, and its value in base64"},
			{Key: "ocsp_uri", Type: "str", Doc: "where OCSP answers"},
			{Key: "issuer_uri", Type: "str", Doc: "URI of the issuer's certificate"},
			{Key: "subject_key_identifier", Type: "str", Doc: "identifier of the key"},
			{Key: "authority_key_identifier", Type: "str", Doc: "identifier of the issuer's key"},
			{Key: "public_key", Type: "str", Doc: "the public key, PEM"},
			{Key: "public_key_type", Type: "str", Doc: "RSA, ECC, Ed25519, or unknown"},
			{Key: "public_key_data", Type: "dict", Doc: "size, modulus and exponent, or curve, exponent_size, x and y"},
			{Key: "public_key_fingerprints", Type: "dict", Doc: "digests of the public key"},
			{Key: "fingerprints", Type: "dict", Doc: "digests of the certificate"},
			{Key: "serial_number", Type: "int", Doc: "serial number"},
			{Key: "signature_algorithm", Type: "str", Doc: "signature algorithm, with OpenSSL's name"},
			{Key: "version", Type: "int", Doc: "version of X.509"},
			{Key: "is_ca", Type: "bool", Doc: "whether it is a CA"},
			{Key: "chain", Type: "list of dict", Doc: "all certificates of the text, each with these keys"},
		},
		New:   func() module.Runner { return &CertInfo{} },
		Check: module.Harmless,
	}
}

// CertInfo is the module x509_certificate_info.
type CertInfo struct {
	Backend string      `kk:"select_crypto_backend" default:"auto" choices:"auto,cryptography" doc:"without effect: kk needs no library for it"`
	Content string      `kk:"content" doc:"the certificate, PEM"`
	Path    string      `kk:"path,path" doc:"path of the certificate on the host"`
	ValidAt *value.Dict `kk:"valid_at" doc:"times to check the validity at, by arbitrary names: relative such as +1d2h, or YYYYMMDDhhmmssZ"`
	Before  int         `kk:"before_days" default:"30" doc:"days before expiry from which expiring is true"`
}

// Rules implements schema.Ruled.
func (*CertInfo) Rules() schema.Rules { return OneSource() }

// Run implements module.Runner.
func (m *CertInfo) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	f, err := ReadOne(ctx, c, Source{Path: m.Path, Text: m.Content, Name: "content"})
	if err != nil {
		return module.Result{}, err
	}
	certs, err := certs.ParseCerts(f.Text)
	if err != nil {
		return module.Result{}, fmt.Errorf("%s %w", f.Path, err)
	}
	var data *value.Dict
	chain := make([]any, len(certs))
	for i, crt := range certs {
		d, err := m.describe(crt, c.Now())
		if err != nil {
			return module.Result{}, err
		}
		if i == 0 {
			data = d.Copy()
		}
		chain[i] = d
	}
	data.Set("chain", chain)
	return module.Result{Data: data}, nil
}

func (m *CertInfo) describe(crt *x509.Certificate, now time.Time) (*value.Dict, error) {
	ended := !crt.NotAfter.After(now)
	soon := crt.NotAfter.Sub(now) < time.Duration(m.Before)*24*time.Hour
	validAt, err := m.validAt(crt, now)
	if err != nil {
		return nil, err
	}
	d := value.NewDict(
		"days_left", daysLeft(crt, now), "expired", ended, "expiring", ended || soon, "valid_at", validAt,
		"not_before", crt.NotBefore.UTC().Format(ASN1Time), "not_after", crt.NotAfter.UTC().Format(ASN1Time),
		"is_ca", crt.IsCA, "version", crt.Version, "serial_number", certs.IntOrDigits(crt.SerialNumber),
		"signature_algorithm", certs.SignatureName(crt),
		"fingerprints", certs.Digests(crt.Raw),
	)
	d.Merge(certs.DescribeName("subject", crt.Subject))
	d.Merge(certs.DescribeName("issuer", crt.Issuer))
	d.Merge(certs.DescribePublic(crt.PublicKey, crt.RawSubjectPublicKeyInfo))
	d.Merge(certs.DescribeExtensions(crt.Extensions))
	d.Set("ocsp_uri", certs.FirstOf(crt.OCSPServer))
	d.Set("issuer_uri", certs.FirstOf(crt.IssuingCertificateURL))
	return d, nil
}

func (m *CertInfo) validAt(crt *x509.Certificate, now time.Time) (*value.Dict, error) {
	d := value.NewDict()
	if m.ValidAt == nil {
		return d, nil
	}
	for name, when := range m.ValidAt.All() {
		t, err := TimeOf(now, value.Str(when))
		if err != nil {
			return nil, fmt.Errorf("valid_at %s: %w", value.Str(name), err)
		}
		d.Set(name, !t.Before(crt.NotBefore) && !t.After(crt.NotAfter))
	}
	return d, nil
}

// OneSource are the rules for arguments of which exactly one selects the source.
func OneSource() schema.Rules {
	return schema.Rules{schema.AtMostOne("path", "content"), schema.AtLeastOne("path", "content"),
		schema.Needs("path").If("content", "")}
}

// ReadOne reads the one file or text of a task.
func ReadOne(ctx context.Context, c *module.Call, from Source) (HostFile, error) {
	if from.Text != "" {
		return HostFile{Path: from.Name, There: true, Text: []byte(from.Text)}, nil
	}
	files, err := ReadHost(ctx, c, from.Path)
	if err != nil {
		return HostFile{}, err
	}
	if !files[0].There {
		return HostFile{}, fmt.Errorf("%s: %w", from.Path, ErrAway)
	}
	return files[0], nil
}

// ASN1Time is the form of times in results, and of absolute ones in arguments.
const ASN1Time = "20060102150405Z"

var relativeTime = regexp.MustCompile(`(?i)^([+-])(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?$`)

func TimeOf(now time.Time, text string) (time.Time, error) {
	for _, layout := range []string{ASN1Time, "200601021504Z", "20060102150405-0700", "200601021504-0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	g := relativeTime.FindStringSubmatch(text)
	if g == nil {
		return time.Time{}, fmt.Errorf("%q is neither a time such as +3650d or +1w2d3h4m5s, nor YYYYMMDDhhmmssZ", text)
	}
	var d time.Duration
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if g[i+2] == "" {
			continue
		}
		n, err := strconv.Atoi(g[i+2])
		if err != nil || n > 1_000_000_000 {
			return time.Time{}, fmt.Errorf("%q is too far away", text)
		}
		d += time.Duration(n) * unit
	}
	if g[1] == "-" {
		d = -d
	}
	return now.Add(d).UTC().Truncate(time.Second), nil
}
