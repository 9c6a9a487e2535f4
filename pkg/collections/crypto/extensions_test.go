package crypto

import (
	"strings"
	"testing"

	"kubekey/pkg/value"
)

// TestRequestOfAnAuthority checks with openssl the content of a request for a CA.
func TestRequestOfAnAuthority(t *testing.T) {
	dir := t.TempDir()
	keep(t, "openssl_privatekey", "path", dir+"/key", "size", 2048)
	args := []any{"path", dir + "/csr", "privatekey_path", dir + "/key", "digest", "sha512", "subject_ordered",
		[]any{value.NewDict("CN", "Ö, CA"), value.NewDict("2.5.4.10", "Ex")},
		"name_constraints_permitted", []any{"DNS:.example.org", "IP:192.0.2.0/24"}, "name_constraints_excluded",
		"email:.example.com", "name_constraints_critical", true,
		"create_subject_key_identifier", true, "ocsp_must_staple", true, "authority_key_identifier", "aa:bb",
		"authority_cert_issuer", []any{`dirName:CN=a\,b,O=c`, "URI:http://ca"}, "authority_cert_serial_number",
		"1234567890123456789012",
		"crl_distribution_points", []any{value.NewDict("full_name", "URI:http://crl", "reasons",
			[]any{"key_compromise", "aa_compromise"}), value.NewDict("relative_name", "CN=x", "crl_issuer", "dirName:CN=y")},
		"subject_alt_name", []any{"RID:1.2.3", "DNS:a.example.org", "dirName:/CN=z"}}
	keep(t, "openssl_csr", args...)
	said := openssl(t, "req", "-in", dir+"/csr", "-noout", "-verify", "-text", "-nameopt",
		"utf8,sep_comma_plus_space,space_eq")
	for _, part := range []string{
		"Signature Algorithm: sha512WithRSA", "Name Constraints: critical", "Permitted:", "DNS:.example.org",
		"IP:192.0.2.0/255.255.255.0", "Excluded:", "email:.example.com",
		"TLS Feature", "status_request", "keyid:AA:BB", "DirName:/O=c/CN=a,b", "URI:http://ca",
		"serial:42:ED:12:3B:0B:D8:20:3A:14", "URI:http://crl", "Key Compromise, AA Compromise", "CN = x",
		"CRL Issuer", "DNS:a.example.org", "Registered ID:1.2.3", "DirName:/CN=z",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("openssl does not read %q", part)
		}
	}
	if t.Failed() {
		t.Log(said)
	}
	if got := once(t, "openssl_csr", append(args, "subject_alt_name",
		[]any{"dirName:CN=z", "DNS:a.example.org", "RID:1.2.3"}, "digest", "sha256")...); got.Changed {
		t.Error("names in another order, or another digest, made a new request")
	}
	if got := once(t, "openssl_csr", append(args, "subject_ordered",
		[]any{value.NewDict("O", "Ex"), value.NewDict("CN", "Ö, CA")})...); !got.Changed {
		t.Error("the order of the subject does not count")
	}
	for text, wrong := range map[string][]any{
		"is not a name: write DNS:NAME": {"name_constraints_excluded", "example.org"},
		"is not an IP address":          {"subject_alt_name", "what:a"},
		"neither an IP address":         {"name_constraints_permitted", "IP:10.0.0.1/8"},
		"hexadecimal":                   {"authority_key_identifier", "x"},
		"required together":             {"authority_cert_issuer", "DNS:a", "authority_cert_serial_number", ""},
		"cannot be specified if":        {"subject_key_identifier", "00"},
		"cannot be combined":            {"common_name", "a"},
		"exactly one key":               {"subject_ordered", []any{value.NewDict("CN", "a", "O", "b")}},
		"mutually exclusive: full": {"crl_distribution_points",
			value.NewDict("full_name", "URI:a", "relative_name", "CN=a")},
		"one of the following is":   {"crl_distribution_points", value.NewDict("reasons", "superseded")},
		"ends in a backslash":       {"authority_cert_issuer", `dirName:CN=a\`},
		"is not a name such as CN=": {"authority_cert_issuer", "dirName:a"},
	} {
		refuses(t, text, "openssl_csr", append(args, wrong...)...)
	}
}

// TestIdentifiersOfKeys requests certificates with and without key identifiers.
func TestIdentifiersOfKeys(t *testing.T) {
	dir := t.TempDir()
	keep(t, "openssl_privatekey", "path", dir+"/key", "type", "ECC", "curve", "secp256r1")
	keep(t, "openssl_csr", "path", dir+"/csr", "privatekey_path", dir+"/key", "common_name", "ca", "basic_constraints",
		"CA:TRUE", "subject_key_identifier", "01:02")
	self := []any{"path", dir + "/ca", "provider", "selfsigned", "privatekey_path", dir + "/key", "csr_path", dir + "/csr"}
	sign := []any{"path", dir + "/crt", "provider", "ownca", "csr_path", dir + "/csr", "ownca_path", dir + "/ca",
		"ownca_privatekey_path", dir + "/key"}
	for _, tt := range []struct {
		args      []any
		subject   string // identifier of the key; "key" for its digest, "" for none
		authority bool
	}{
		{args: append(self, "selfsigned_create_subject_key_identifier", "always_create", "selfsigned_digest", "sha512"),
			subject: "key"},
		{args: self, subject: "01:02"},
		{args: sign, subject: "01:02", authority: true},
		{args: append(sign, "ownca_create_subject_key_identifier", "always_create"), subject: "key", authority: true},
		{args: append(sign, "ownca_create_authority_key_identifier", false, "ownca_digest", "sha384"), subject: "01:02"},
	} {
		keep(t, "x509_certificate", tt.args...)
		r := once(t, "x509_certificate_info", "path", tt.args[1])
		want := tt.subject
		if want == "key" {
			want = strings.ToLower(strings.TrimSpace(openssl(t, "x509", "-in", tt.args[1].(string), "-noout", "-ext",
				"subjectKeyIdentifier")))
			want = strings.TrimSpace(want[strings.LastIndex(want, "\n")+1:])
			if strings.Count(want, ":") != 19 {
				t.Errorf("openssl reads the identifier %s", want)
			}
		}
		if got := dataOf(r, "subject_key_identifier"); got != want {
			t.Errorf("%v: the key is %v, not %s", tt.args, got, want)
		}
		if got := dataOf(r, "authority_key_identifier"); (got != nil) != tt.authority {
			t.Errorf("%v: the CA is %v", tt.args, got)
		}
	}
	keep(t, "openssl_csr", "path", dir+"/csr", "privatekey_path", dir+"/key", "common_name", "b")
	keep(t, "x509_certificate", append(sign, "ownca_create_subject_key_identifier", "never_create", "ownca_not_before",
		"203001010000Z", "ownca_not_after", "20310101000000+0200", "ignore_timestamps", false)...)
	if r := once(t, "x509_certificate_info", "path", dir+"/crt"); dataOf(r, "subject_key_identifier") != nil ||
		dataOf(r, "not_after") != "20301231220000Z" {
		t.Errorf("got %s", value.Repr(r.Data))
	}
}
