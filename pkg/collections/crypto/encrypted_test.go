package crypto

import (
	"strings"
	"testing"
)

func TestKeysWithPassphrase(t *testing.T) {
	dir := t.TempDir()
	key, pass := dir+"/web.key", "not even openssl knows"
	for name, args := range map[string][]any{"RSA": {"size", 2048}, "ECC": {"curve", "secp384r1"}, "Ed25519": nil} {
		path := dir + "/" + name
		keep(t, "openssl_privatekey", append(args, "path", path, "type", name, "passphrase", pass)...)
		if got := text(t, path); !strings.HasPrefix(got, "-----BEGIN ENCRYPTED PRIVATE KEY-----") {
			t.Errorf("%s is in the form %.40s", name, got)
		}
		public := openssl(t, "pkey", "-in", path, "-passin", "pass:"+pass, "-pubout")
		keep(t, "openssl_publickey", "path", path+".pub", "privatekey_path", path, "privatekey_passphrase", pass)
		if got := strings.TrimSpace(text(t, path+".pub")); got != public {
			t.Errorf("the public key of %s is %s, by openssl %s", name, got, public)
		}
	}

	// Keys encrypted by openssl can be read, with each digest and length.
	openssl(t, "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", dir+"/plain")
	for _, way := range [][]string{{"-v2", "aes-256-cbc"}, {"-v2", "aes-128-cbc", "-v2prf", "hmacWithSHA1"},
		{"-v2", "aes-192-cbc", "-v2prf", "hmacWithSHA512"}} {
		openssl(t, append([]string{"pkcs8", "-topk8", "-in", dir + "/plain", "-out", key, "-passout", "pass:" + pass},
			way...)...)
		r := once(t, "openssl_privatekey", "path", key, "type", "ECC", "curve", "secp256r1", "passphrase", pass)
		if r.Changed {
			t.Errorf("%q: %+v", way, r)
		}
	}
	keep(t, "openssl_csr", "path", dir+"/web.csr", "privatekey_path", key, "privatekey_passphrase", pass, "common_name",
		"web")
	keep(t, "x509_certificate", "path", dir+"/web.crt", "provider", "selfsigned", "csr_path", dir+"/web.csr",
		"privatekey_path", key, "privatekey_passphrase", pass)
	openssl(t, "verify", "-CAfile", dir+"/web.crt", dir+"/web.crt")
	keep(t, "openssl_privatekey", "path", dir+"/ca.key", "type", "Ed25519", "passphrase", pass)
	keep(t, "openssl_csr", "path", dir+"/ca.csr", "privatekey_path", dir+"/ca.key", "privatekey_passphrase", pass,
		"common_name", "ca", "basic_constraints", "CA:TRUE")
	keep(t, "x509_certificate", "path", dir+"/ca.crt", "provider", "selfsigned", "csr_path", dir+"/ca.csr",
		"privatekey_path", dir+"/ca.key", "privatekey_passphrase", pass)
	keep(t, "x509_certificate", "path", dir+"/own.crt", "provider", "ownca", "csr_path", dir+"/web.csr", "ownca_path", dir+
		"/ca.crt",
		"ownca_privatekey_path", dir+"/ca.key", "ownca_privatekey_passphrase", pass)
	openssl(t, "verify", "-CAfile", dir+"/ca.crt", dir+"/own.crt")

	refuses(t, "passphrase is wrong", "openssl_csr", "path", dir+"/x", "privatekey_path", key, "privatekey_passphrase",
		"wrong")
	refuses(t, "encrypted with a passphrase: give it", "openssl_csr", "path", dir+"/x", "privatekey_path", key)
	refuses(t, "the key is not encrypted", "openssl_csr", "path", dir+"/x", "privatekey_path", dir+"/plain",
		"privatekey_passphrase", pass)
	refuses(t, "passphrase is wrong", "openssl_privatekey", "path", key, "type", "ECC", "curve", "secp256r1", "passphrase",
		"wrong", "regenerate", "fail")
	refuses(t, "no pkcs1 form", "openssl_privatekey", "path", key, "passphrase", pass, "format", "pkcs1")
	refuses(t, "the passphrase is empty", "openssl_privatekey", "path", key, "passphrase", "")
	openssl(t, "rsa", "-in", dir+"/RSA", "-passin", "pass:"+pass, "-aes256", "-traditional", "-passout", "pass:"+pass,
		"-out", dir+"/old")
	refuses(t, "openssl pkcs8 -topk8", "openssl_csr", "path", dir+"/x", "privatekey_path", dir+"/old",
		"privatekey_passphrase", pass)
	if r := once(t, "openssl_privatekey", "path", key, "type", "ECC", "curve", "secp256r1", "passphrase",
		"another"); !r.Changed {
		t.Error("a key with another passphrase is not regenerated")
	}
}
