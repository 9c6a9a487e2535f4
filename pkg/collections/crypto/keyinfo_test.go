package crypto

import (
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

func TestPrivateKeyInfo(t *testing.T) {
	dir := t.TempDir()
	keep(t, "openssl_privatekey", "path", dir+"/rsa", "size", 2048)
	keep(t, "openssl_privatekey", "path", dir+"/ecc", "type", "ECC", "curve", "secp384r1", "passphrase", "secret")
	keep(t, "openssl_privatekey", "path", dir+"/ed", "type", "Ed25519")

	r := once(t, "openssl_privatekey_info", "path", dir+"/rsa", "return_private_key_data", true, "check_consistency", true)
	has(t, r, map[string]any{"can_load_key": true, "can_parse_key": true, "key_is_consistent": true, "type": "RSA"})
	if got, want := moduletest.Field(r, "public_key"), openssl(t, "pkey", "-in", dir+"/rsa", "-pubout")+"\n"; got != want {
		t.Errorf("the public key is %s, by openssl %s", got, want)
	}
	parts, _ := moduletest.Field(r, "private_data").(*value.Dict)
	if got := value.Repr(parts.Keys()); got != "['exponent', 'p', 'q']" {
		t.Errorf("private data has %s", got)
	}
	r = once(t, "openssl_privatekey_info", "path", dir+"/ecc", "passphrase", "secret")
	has(t, r, map[string]any{"key_is_consistent": nil, "type": "ECC", "private_data": nil})
	data, _ := moduletest.Field(r, "public_data").(*value.Dict)
	if curve, _ := data.Get("curve"); curve != "secp384r1" {
		t.Errorf("public data is %s", value.Repr(data))
	}
	has(t, once(t, "openssl_privatekey_info", "content", text(t, dir+"/ed")), map[string]any{"type": "Ed25519"})

	for want, c := range map[string]struct {
		args []any
		load bool
	}{
		"does not exist":              {[]any{"path", dir + "/none"}, false},
		"encrypted with a passphrase": {[]any{"path", dir + "/ecc"}, true},
		"passphrase is wrong":         {[]any{"path", dir + "/ecc", "passphrase", "x"}, true},
		"holds no key":                {[]any{"content", "x"}, true},
	} {
		r := once(t, "openssl_privatekey_info", c.args...)
		if !r.Failed || !strings.Contains(r.Msg, want) {
			t.Errorf("%v: %+v, want %q", c.args, r, want)
		}
		has(t, r, map[string]any{"can_load_key": c.load, "can_parse_key": false})
	}
}

func TestCSRInfo(t *testing.T) {
	dir := t.TempDir()
	keep(t, "openssl_privatekey", "path", dir+"/key", "type", "ECC", "curve", "secp256r1")
	keep(t, "openssl_csr", "path", dir+"/csr", "privatekey_path", dir+"/key", "common_name", "web", "country_name", "CN",
		"subject_alt_name", []any{"DNS:web.example.org", "IP:192.0.2.7"}, "key_usage",
		[]any{"keyCertSign", "digitalSignature"},
		"key_usage_critical", true, "extended_key_usage", []any{"serverAuth"}, "basic_constraints",
		[]any{"CA:TRUE", "pathlen:2"})
	r := once(t, "openssl_csr_info", "path", dir+"/csr")
	for key, want := range map[string]string{
		"signature_valid": "True", "subject_ordered": "[['countryName', 'CN'], ['commonName', 'web']]",
		"subject_alt_name": "['DNS:web.example.org', 'IP:192.0.2.7']",
		"key_usage":        "['Certificate Sign', 'Digital Signature']", "key_usage_critical": "True",
		"extended_key_usage": "['TLS Web Server Authentication']", "basic_constraints": "['CA:TRUE', 'pathlen:2']",
		"ocsp_must_staple": "None", "name_constraints_permitted": "None", "public_key_type": "'ECC'",
	} {
		if got := value.Repr(moduletest.Field(r, key)); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}

	// openssl uses options that kk never requests.
	openssl(t, "req", "-new", "-key", dir+"/key", "-subj", "/CN=ca", "-out", dir+"/ca.csr", "-addext",
		"tlsfeature=status_request",
		"-addext", "nameConstraints=critical,permitted;DNS:example.org,permitted;IP:10.0.0.0/255.0.0.0,excluded;DNS:not.example.org")
	r = once(t, "openssl_csr_info", "content", text(t, dir+"/ca.csr"))
	for key, want := range map[string]string{
		"name_constraints_permitted": "['DNS:example.org', 'IP:10.0.0.0/8']",
		"name_constraints_excluded":  "['DNS:not.example.org']",
		"name_constraints_critical":  "True", "ocsp_must_staple": "True", "subject_alt_name": "None",
	} {
		if got := value.Repr(moduletest.Field(r, key)); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	refuses(t, "holds no certificate signing request", "openssl_csr_info", "path", dir+"/key")
	refuses(t, "one of the following is required: path, content", "openssl_csr_info")
}

func has(t *testing.T, r module.Result, want map[string]any) {
	t.Helper()
	for key, v := range want {
		if got := moduletest.Field(r, key); got != v {
			t.Errorf("%s is %s, want %s (%s)", key, value.Repr(got), value.Repr(v), r.Msg)
		}
	}
}
