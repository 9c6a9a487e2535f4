package crypto

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/value"
)

func keep(t *testing.T, name string, pairs ...any) module.Result {
	t.Helper()
	first, _ := moduletest.RunTwice(t, moduletest.Find(t, all(), name), value.NewDict(pairs...),
		moduletest.Options{Diff: true})
	return first
}

func once(t *testing.T, name string, pairs ...any) module.Result {
	t.Helper()
	return moduletest.Run(t, moduletest.Find(t, all(), name), value.NewDict(pairs...), moduletest.Options{})
}

func refuses(t *testing.T, text, name string, pairs ...any) {
	t.Helper()
	_, err := moduletest.Try(t, moduletest.Find(t, all(), name), value.NewDict(pairs...), moduletest.Options{})
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s %v ended with %v, not %q", name, pairs, err, text)
	}
}

// openssl runs openssl as an independent check.
func openssl(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	out, err := exec.Command("openssl", args...).CombinedOutput()
	if err != nil {
		t.Errorf("openssl %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPrivateKey(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args  []any
		label string
		size  int
	}{
		"rsa":   {[]any{"size", 2048}, "RSA PRIVATE KEY", 2048},
		"rsa8":  {[]any{"size", 2048, "format", "pkcs8"}, "PRIVATE KEY", 2048},
		"ec":    {[]any{"type", "ECC", "curve", "secp384r1"}, "EC PRIVATE KEY", 4096},
		"ec521": {[]any{"type", "ECC", "curve", "secp521r1", "format", "pkcs8"}, "PRIVATE KEY", 4096},
		"ed":    {[]any{"type", "Ed25519"}, "PRIVATE KEY", 4096},
	} {
		p := dir + "/it's " + name
		r := keep(t, "openssl_privatekey", append(c.args, "path", p)...)
		if size, _ := r.Data.Get("size"); size != c.size || !strings.HasPrefix(text(t, p), "-----BEGIN "+c.label+"-----\n") ||
			len(r.Diff) != 1 {
			t.Errorf("%s: %s, %+v", name, value.Repr(r.Data), r.Diff)
		}
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if strings.Contains(value.Repr(r.Data), "PRIVATE") {
			t.Errorf("%s is in the result: %s", name, value.Repr(r.Data))
		}
		openssl(t, "pkey", "-in", p, "-noout", "-check")
	}
	p := dir + "/it's rsa"
	was := text(t, p)
	keep(t, "openssl_privatekey", "path", p, "size", 2048, "mode", "0640")
	refuses(t, "format_mismatch: convert", "openssl_privatekey", "path", p, "size", 2048, "format", "pkcs8", "regenerate",
		"fail")
	keep(t, "openssl_privatekey", "path", p, "size", 2048, "format", "pkcs8", "format_mismatch", "convert")
	if before, after := openssl(t, "rsa", "-in", p, "-traditional"), strings.TrimSpace(was); !strings.HasSuffix(before,
		after) {
		t.Error("another form made another key")
	}
	refuses(t, "Will not proceed", "openssl_privatekey", "path", p, "size", 3072, "regenerate", "fail")
	if r := once(t, "openssl_privatekey", "path", p, "size", 3072, "regenerate", "never"); r.Changed {
		t.Errorf("never made %+v", r)
	}
	r := keep(t, "openssl_privatekey", "path", p, "type", "ECC", "curve", "prime256v1", "backup", true)
	if !strings.Contains(text(t, r.Data.String("backup_file")), "BEGIN PRIVATE KEY") {
		t.Error("the backup is not the old key")
	}
	if r := once(t, "openssl_privatekey", "path", p, "type", "Ed25519", "force", true, "return_content",
		true); r.Data.String("privatekey") != text(t, p) {
		t.Errorf("return_content gave %s", value.Repr(r.Data))
	}
	if err := os.WriteFile(p, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, "holds no key in PEM form", "openssl_privatekey", "path", p, "size", 2048, "regenerate",
		"partial_idempotence")
	keep(t, "openssl_privatekey", "path", p, "size", 2048)
	keep(t, "openssl_privatekey", "path", p, "state", "absent")
	refuses(t, "missing: curve", "openssl_privatekey", "path", p, "type", "ECC")
	refuses(t, "2048 to 8192", "openssl_privatekey", "path", p, "size", 512)
	refuses(t, "is a folder", "openssl_privatekey", "path", dir)
}

func TestChainOnTheHost(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ca", "web"} {
		keep(t, "openssl_privatekey", "path", dir+"/"+name+".key", "type", "ECC", "curve", "secp256r1")
	}
	keep(t, "openssl_publickey", "path", dir+"/web.pub", "privatekey_path", dir+"/web.key")
	if got := openssl(t, "pkey", "-in", dir+"/web.key", "-pubout"); got != strings.TrimSpace(text(t, dir+"/web.pub")) {
		t.Errorf("openssl makes another public key: %s", got)
	}
	keep(t, "openssl_csr", "path", dir+"/ca.csr", "privatekey_path", dir+"/ca.key", "common_name", "Our CA",
		"organization_name", "Ex: ümple",
		"use_common_name_for_san", false, "basic_constraints", []any{"CA:TRUE", "pathlen:0"}, "basic_constraints_critical",
		true, "key_usage", []any{"keyCertSign", "cRLSign"}, "key_usage_critical", true)
	keep(t, "x509_certificate", "path", dir+"/ca.crt", "provider", "selfsigned", "csr_path", dir+"/ca.csr",
		"privatekey_path", dir+"/ca.key")
	csr := []any{"path", dir + "/web.csr", "privatekey_path", dir + "/web.key", "common_name", "www.example.org",
		"country_name", "DE", "email_address", "a@example.org",
		"subject", value.NewDict("OU", []any{"one", "two"}), "subject_alt_name",
		[]any{"DNS:www.example.org", "IP:192.0.2.7", "IP:2001:db8::1"},
		"key_usage", []any{"digitalSignature", "keyAgreement"}, "extended_key_usage",
		[]any{"serverAuth", "1.3.6.1.5.5.7.3.2"}, "basic_constraints", "CA:FALSE"}
	r := keep(t, "openssl_csr", csr...)
	if got := value.Repr(dataOf(r, "subject")); got != "[['C', 'DE'], ['CN', 'www.example.org'], ['emailAddress', 'a@example.org'], ['OU', 'one'], ['OU', 'two']]" {
		t.Errorf("the subject is %s", got)
	}
	said := openssl(t, "req", "-in", dir+"/web.csr", "-noout", "-verify", "-text")
	for _, part := range []string{"C = DE, CN = www.example.org, emailAddress = a@example.org, OU = one, OU = two",
		"DNS:www.example.org, IP Address:192.0.2.7, IP Address:2001:DB8:0:0:0:0:0:1",
		"Digital Signature, Key Agreement", "TLS Web Server Authentication, TLS Web Client Authentication", "CA:FALSE"} {
		if !strings.Contains(said, part) {
			t.Errorf("openssl does not read %q in the request: %s", part, said)
		}
	}
	sign := []any{"path", dir + "/web.crt", "provider", "ownca", "csr_path", dir + "/web.csr", "ownca_path", dir +
		"/ca.crt", "ownca_privatekey_path", dir + "/ca.key"}
	r = keep(t, "x509_certificate", append(sign, "ownca_not_after", "+1w1d")...)
	if got := openssl(t, "verify", "-x509_strict", "-CAfile", dir+"/ca.crt", "-verify_hostname", "www.example.org", dir+
		"/web.crt"); !strings.HasSuffix(got, ": OK") {
		t.Errorf("openssl verify says %s", got)
	}
	serial, _ := r.Data.Get("serial_number")
	if got := once(t, "x509_certificate", sign...); got.Changed || dataOf(got, "serial_number") != serial {
		t.Errorf("other times made a new certificate: %s", value.Repr(got.Data))
	}
	keep(t, "x509_certificate", append(sign, "ignore_timestamps", false, "ownca_not_before", "20250101000000Z",
		"ownca_not_after", "20360101000000Z")...)
	keep(t, "openssl_csr", append(csr, "organization_name", "new")...)
	keep(t, "x509_certificate", sign...) // another subject
	keep(t, "x509_certificate", "path", dir+"/ca.crt", "provider", "selfsigned", "csr_path", dir+"/ca.csr",
		"privatekey_path", dir+"/ca.key", "state", "absent")
	keep(t, "openssl_privatekey", "path", dir+"/ca.key", "type", "ECC", "curve", "secp384r1")
	keep(t, "openssl_csr", "path", dir+"/ca.csr", "privatekey_path", dir+"/ca.key", "common_name", "Our CA",
		"basic_constraints", "CA:TRUE")
	keep(t, "x509_certificate", "path", dir+"/ca.crt", "provider", "selfsigned", "csr_path", dir+"/ca.csr",
		"privatekey_path", dir+"/ca.key")
	keep(t, "x509_certificate", sign...) // another CA
	keep(t, "x509_certificate", "path", dir+"/bare.crt", "provider", "selfsigned", "privatekey_content",
		text(t, dir+"/web.key"), "mode", "0600")

	refuses(t, "is not a request of the key", "x509_certificate", "path", dir+"/x", "provider", "selfsigned", "csr_path",
		dir+"/ca.csr", "privatekey_path", dir+"/web.key")
	refuses(t, "is not the key of", "x509_certificate", append(sign, "ownca_privatekey_path", dir+"/web.key")...)
	refuses(t, "may not sign", "x509_certificate",
		append(sign, "ownca_path", dir+"/bare.crt", "ownca_privatekey_path", dir+"/web.key")...)
	refuses(t, "csr_path or csr_content must be", "x509_certificate", "path", dir+"/x", "provider", "ownca")
	refuses(t, "missing: provider", "x509_certificate", "path", dir+"/x")
	refuses(t, "is neither a time", "x509_certificate", append(sign, "ownca_not_after", "tomorrow")...)
	refuses(t, "would end before", "x509_certificate", append(sign, "ownca_not_after", "-1d")...)
	refuses(t, "does not exist", "openssl_csr", "path", dir+"/x", "privatekey_path", dir+"/none")
	refuses(t, "two letters", "openssl_csr", "path", dir+"/x", "privatekey_path", dir+"/web.key", "country_name",
		"Germany")
	refuses(t, "key_usage has", "openssl_csr", "path", dir+"/x", "privatekey_path", dir+"/web.key", "key_usage", "fly")
	refuses(t, "extended_key_usage has", "openssl_csr", "path", dir+"/x", "privatekey_path", dir+"/web.key",
		"extended_key_usage", "fly")
	refuses(t, "basic_constraints has", "openssl_csr", "path", dir+"/x", "privatekey_path", dir+"/web.key",
		"basic_constraints", "CA:MAYBE")
	refuses(t, "has an unknown part", "openssl_csr", "path", dir+"/x", "privatekey_path", dir+"/web.key", "subject",
		value.NewDict("XX", "y"))
	refuses(t, "required: privatekey_path, privatekey_content", "openssl_publickey", "path", dir+"/x")
}

func dataOf(r module.Result, key string) any {
	v, _ := r.Data.Get(key)
	return v
}

// TestHostFilesInCheckMode checks predictions about files that an earlier task would create.
func TestHostFilesInCheckMode(t *testing.T) {
	dir := t.TempDir()
	for name, args := range map[string]*value.Dict{
		"openssl_csr":       value.NewDict("path", dir+"/x", "privatekey_path", dir+"/none", "common_name", "x"),
		"openssl_publickey": value.NewDict("path", dir+"/x", "privatekey_path", dir+"/none"),
		"x509_certificate":  value.NewDict("path", dir+"/x", "privatekey_path", dir+"/none", "provider", "selfsigned"),
	} {
		if r := moduletest.Run(t, moduletest.Find(t, all(), name), args, moduletest.Options{Check: true}); !r.Changed ||
			len(r.Warnings) != 1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestHostKeysAreNotSeen checks that no command line contains a key.
func TestHostKeysAreNotSeen(t *testing.T) {
	dir := t.TempDir()
	conn := moduletest.Count(nil)
	for _, run := range [][]any{
		{"openssl_privatekey", "path", dir + "/k", "type", "Ed25519"},
		{"openssl_csr", "path", dir + "/c", "privatekey_path", dir + "/k", "common_name", "x"},
		{"x509_certificate", "path", dir + "/x", "privatekey_path", dir + "/k", "csr_path", dir + "/c", "provider",
			"selfsigned"},
	} {
		moduletest.Run(t, moduletest.Find(t, all(), run[0].(string)), value.NewDict(run[1:]...),
			moduletest.Options{Conn: conn})
	}
	body := strings.Split(text(t, dir+"/k"), "\n")[1]
	if strings.Contains(strings.Join(conn.Lines(), ""), body) {
		t.Error("the key stands in a command line")
	}
}

// The results for files made by openssl are those of community.crypto.
func TestInfoOfExtensions(t *testing.T) {
	dir := t.TempDir()
	openssl(t, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp384r1", "-nodes", "-keyout", dir+"/key",
		"-out", dir+"/crt", "-days", "30",
		"-set_serial", "77", "-subj", "/C=DE/O=Acme/OU=a/OU=b/CN=www.example.org",
		"-addext", "subjectAltName=DNS:b.example,IP:10.0.0.1,DNS:a.example,email:x@y.z,URI:http://u,RID:1.2.3", "-addext",
		"keyUsage=critical,digitalSignature,keyCertSign",
		"-addext", "extendedKeyUsage=serverAuth,clientAuth,1.2.3.4", "-addext",
		"authorityInfoAccess=OCSP;URI:http://ocsp,caIssuers;URI:http://ca", "-addext", "tlsfeature=status_request")
	r := once(t, "x509_certificate_info", "path", dir+"/crt", "valid_at", value.NewDict("soon", "+1d", "late", "+10w"))
	for key, want := range map[string]string{
		"subject":                    "{'countryName': 'DE', 'organizationName': 'Acme', 'organizationalUnitName': 'b', 'commonName': 'www.example.org'}",
		"issuer_ordered":             "[['countryName', 'DE'], ['organizationName', 'Acme'], ['organizationalUnitName', 'a'], ['organizationalUnitName', 'b'], ['commonName', 'www.example.org']]",
		"subject_alt_name":           "['DNS:b.example', 'IP:10.0.0.1', 'DNS:a.example', 'email:x@y.z', 'URI:http://u', 'RID:1.2.3']",
		"key_usage":                  "['Certificate Sign', 'Digital Signature']",
		"key_usage_critical":         "True",
		"extended_key_usage":         "['1.2.3.4', 'TLS Web Client Authentication', 'TLS Web Server Authentication']",
		"basic_constraints":          "['CA:TRUE']",
		"basic_constraints_critical": "True",
		"ocsp_must_staple":           "True",
		"ocsp_uri":                   "http://ocsp",
		"issuer_uri":                 "http://ca",
		"serial_number":              "77",
		"signature_algorithm":        "ecdsa-with-SHA256",
		"public_key_type":            "ECC",
		"valid_at":                   "{'soon': True, 'late': False}",
		"version":                    "3",
		"expired":                    "False",
	} {
		v, _ := r.Data.Get(key)
		if got := value.Str(v); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	want := strings.ToLower(strings.TrimPrefix(openssl(t, "x509", "-in", dir+"/crt", "-noout", "-fingerprint", "-sha256"),
		"sha256 Fingerprint="))
	v, _ := r.Data.Get("fingerprints")
	prints, _ := v.(*value.Dict)
	if got, _ := prints.Get("sha256"); got != want {
		t.Errorf("the digest is %v, by openssl %s", got, want)
	}
	openssl(t, "req", "-x509", "-key", dir+"/key", "-out", dir+"/bare", "-days", "1", "-subj", "/CN=e", "-config",
		"/dev/null")
	r = once(t, "x509_certificate_info", "content", text(t, dir+"/bare"))
	if v, there := r.Data.Get("key_usage"); v != nil || !there {
		t.Errorf("without the extension key_usage is %v, %v", v, there)
	}
	refuses(t, "does not exist", "x509_certificate_info", "path", dir+"/none")
	refuses(t, "holds no certificate", "x509_certificate_info", "path", dir+"/key")
	refuses(t, "valid_at x", "x509_certificate_info", "path", dir+"/crt", "valid_at", value.NewDict("x", "soon"))
	refuses(t, "mutually exclusive", "x509_certificate_info", "path", dir+"/crt", "content", "x")
}

func TestFlagsOfAKey(t *testing.T) {
	p := t.TempDir() + "/key"
	if err := os.WriteFile(p, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chattr", "+A", p).CombinedOutput(); err != nil {
		t.Skipf("the file system of the test keeps no flags: %s", out)
	}
	keep(t, "openssl_privatekey", "path", p, "type", "Ed25519", "setype", "etc_t")
	keep(t, "openssl_privatekey", "path", p, "type", "Ed25519", "attributes", "+A")
	if err := exec.Command("sh", "-c", `lsattr -d "$0" | cut -d " " -f 1 | grep -q A`, p).Run(); err != nil {
		t.Error("the flag is not set")
	}
}

// all returns the modules that the tests use, including a core module that describes certificates.
func all() []module.Spec { return append(Modules(), pki.Modules()...) }
