package crypto

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// pairOf creates a key and a self-signed certificate, NAME.key and NAME.crt.
func pairOf(t *testing.T, dir, name string, key ...any) {
	t.Helper()
	once(t, "openssl_privatekey", append(key, "path", dir+"/"+name+".key")...)
	once(t, "openssl_csr", "path", dir+"/"+name+".csr", "privatekey_path", dir+"/"+name+".key", "common_name", name)
	once(t, "x509_certificate", "path", dir+"/"+name+".crt", "csr_path", dir+"/"+name+".csr", "privatekey_path", dir+"/"+
		name+".key", "provider", "selfsigned")
}

func ecc() []any { return []any{"type", "ECC", "curve", "prime256v1"} }

func TestPKCS12IsReadByOpenSSL(t *testing.T) {
	dir := t.TempDir()
	pairOf(t, dir, "web", ecc()...)
	pairOf(t, dir, "ca", "type", "Ed25519")
	pairOf(t, dir, "old", "size", 2048)
	t.Setenv("P12_TEST", "a secret $x'")
	p := dir + "/it's web.p12"
	base := []any{"path", p, "friendly_name", "it's wëb", "privatekey_path", dir + "/web.key", "certificate_path", dir +
		"/web.crt", "passphrase", "a secret $x'"}
	r := keep(t, "openssl_pkcs12", base...)
	if r.Data.String("mode") != "0400" || mode(t, p) != "-r--------" || r.Data.String("privatekey_path") != dir+
		"/web.key" {
		t.Errorf("%s, %s", mode(t, p), value.Repr(r.Data))
	}
	if got := openssl(t, "pkcs12", "-in", p, "-passin", "env:P12_TEST", "-info", "-noout"); !strings.Contains(got,
		"AES-256-CBC, Iteration 50000, PRF hmacWithSHA256") || !strings.Contains(got, "MAC: sha256") {
		t.Errorf("openssl tells of it %s", got)
	}
	got := openssl(t, "pkcs12", "-in", p, "-passin", "env:P12_TEST", "-nodes")
	for _, name := range []string{"web.key", "web.crt"} {
		pem := text(t, dir+"/"+name)
		if strings.HasSuffix(name, ".key") {
			pem = openssl(t, "pkey", "-in", dir+"/"+name)
		}
		if !strings.Contains(got, strings.TrimSpace(pem)) {
			t.Errorf("%s is not in %s", name, got)
		}
	}
	with := append(base, "other_certificates", []any{dir + "/ca.crt"})
	keep(t, "openssl_pkcs12", with...)
	if got := openssl(t, "pkcs12", "-in", p, "-passin", "env:P12_TEST", "-nokeys"); strings.Count(got,
		"BEGIN CERTIFICATE") != 2 {
		t.Errorf("with another certificate it has %s", got)
	}
	keep(t, "openssl_pkcs12", append(with, "friendly_name", "other", "encryption_level", "compatibility2022", "iter_size",
		2048, "mode", "0440")...)
	if got := openssl(t, "pkcs12", "-in", p, "-passin", "env:P12_TEST", "-info", "-noout"); !strings.Contains(got,
		"pbeWithSHA1And3-KeyTripleDES-CBC, Iteration 2048") {
		t.Errorf("openssl tells of it %s", got)
	}
	keep(t, "openssl_pkcs12", append(with, "passphrase", "new")...)
	r = keep(t, "openssl_pkcs12", append(with, "passphrase", nil, "backup", true, "return_content", true)...)
	if content, err := base64.StdEncoding.DecodeString(r.Data.String("pkcs12")); err != nil ||
		string(content) != text(t, p) || r.Data.String("backup_file") == "" {
		t.Errorf("%s, %v", value.Repr(r.Data), err)
	}
	if r := once(t, "openssl_pkcs12", append(with, "passphrase", "", "force", true)...); !r.Changed {
		t.Error("force left the file")
	}
	keep(t, "openssl_pkcs12", "path", p, "state", "absent")
}

func TestPKCS12OfParts(t *testing.T) {
	dir := t.TempDir()
	pairOf(t, dir, "web", ecc()...)
	pairOf(t, dir, "ca", "type", "Ed25519")
	if err := os.WriteFile(dir+"/all.pem", []byte(text(t, dir+"/web.crt")+text(t, dir+"/ca.crt")), 0o600); err != nil {
		t.Fatal(err)
	}
	bundle := []any{"path", dir + "/b.p12", "friendly_name", "b", "other_certificates", dir + "/all.pem", "passphrase",
		"x"}
	keep(t, "openssl_pkcs12", bundle...)
	keep(t, "openssl_pkcs12", append(bundle, "other_certificates_parse_all", true)...)
	keep(t, "openssl_pkcs12", "action", "parse", "src", dir+"/b.p12", "path", dir+"/b.pem", "passphrase", "x")
	if got := text(t, dir+"/b.pem"); strings.Count(got, "BEGIN CERTIFICATE") != 2 || strings.Contains(got, "KEY") {
		t.Errorf("it holds %s", got)
	}
	keep(t, "openssl_pkcs12", "path", dir+"/k.p12", "friendly_name", "k", "privatekey_content", text(t, dir+"/web.key"),
		"passphrase", "x")
	once(t, "openssl_privatekey", append(ecc(), "path", dir+"/locked.key", "passphrase", "of the key")...)
	locked := []any{"path", dir + "/l.p12", "friendly_name", "l", "privatekey_path", dir + "/locked.key", "passphrase",
		"x"}
	refuses(t, "encrypted with a passphrase", "openssl_pkcs12", locked...)
	keep(t, "openssl_pkcs12", append(locked, "privatekey_passphrase", "of the key")...)
	keep(t, "openssl_pkcs12", "path", dir+"/c.p12", "friendly_name", "c", "certificate_path", dir+"/web.crt", "passphrase",
		"x")

	keep(t, "openssl_pkcs12", "path", dir+"/w.p12", "friendly_name", "w", "privatekey_path", dir+"/web.key",
		"certificate_path", dir+"/web.crt", "other_certificates", dir+"/ca.crt")
	keep(t, "openssl_pkcs12", "action", "parse", "src", dir+"/w.p12", "path", dir+"/w.pem", "mode", "0600")
	if got := text(t, dir+"/w.pem"); got != text(t, dir+"/web.key")+text(t, dir+"/web.crt")+text(t, dir+"/ca.crt") {
		t.Errorf("it holds %s", got)
	}
	refuses(t, "another passphrase", "openssl_pkcs12", "action", "parse", "src", dir+"/b.p12", "path", dir+"/b.pem",
		"passphrase", "y")
}

func TestPKCS12OfOldPrograms(t *testing.T) {
	dir := t.TempDir()
	pairOf(t, dir, "web", ecc()...)
	if out := openssl(t, "pkcs12", "-export", "-legacy", "-inkey", dir+"/web.key", "-in", dir+"/web.crt", "-name", "web",
		"-passout", "pass:x", "-out", dir+"/web.p12"); t.Failed() {
		t.Skip("openssl here has no such forms: ", out)
	}
	r := once(t, "openssl_pkcs12", "path", dir+"/web.p12", "friendly_name", "web", "privatekey_path", dir+"/web.key",
		"certificate_path", dir+"/web.crt", "passphrase", "x", "mode", "0600")
	if r.Changed {
		t.Errorf("a file with RC2 is regenerated: %s", value.Repr(r.Data))
	}
}

func TestPKCS12KeepsSecrets(t *testing.T) {
	dir := t.TempDir()
	pairOf(t, dir, "web", ecc()...)
	openssl(t, "version")
	counter := moduletest.Count(moduletest.Shell())
	args := value.NewDict("path", dir+"/web.p12", "friendly_name", "web", "privatekey_path", dir+"/web.key",
		"certificate_path", dir+"/web.crt", "passphrase", "a secret")
	for range 2 {
		if _, err := moduletest.Try(t, pkcs12Spec(), args, moduletest.Options{Conn: counter}); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Join(counter.Lines(), "\n"); !strings.Contains(lines, "pkcs12_open") ||
		strings.Contains(lines, "a secret") || strings.Contains(lines, "PRIVATE KEY") {
		t.Errorf("the host was told %s", lines)
	}
}

func TestPKCS12Refuses(t *testing.T) {
	dir := t.TempDir()
	pairOf(t, dir, "web", ecc()...)
	pairOf(t, dir, "ca", ecc()...)
	for text, args := range map[string][]any{
		"friendly_name is needed": {"certificate_path", dir + "/web.crt"},
		"nothing to export":       {"friendly_name", "x"},
		"missing: src":            {"action", "parse"},
		"not of the private key": {"friendly_name", "x", "privatekey_path", dir + "/web.key", "certificate_path", dir +
			"/ca.crt"},
		"mutually exclusive":         {"friendly_name", "x", "privatekey_path", dir + "/web.key", "privatekey_content", "x"},
		"no.crt does not exist":      {"friendly_name", "x", "certificate_path", dir + "/no.crt"},
		"no.key: does not exist":     {"friendly_name", "x", "privatekey_path", dir + "/no.key"},
		"no.p12 does not exist":      {"action", "parse", "src", dir + "/no.p12"},
		"is no PKCS #12 file":        {"action", "parse", "src", dir + "/web.crt"},
		"holds no certificate":       {"friendly_name", "x", "certificate_path", dir + "/web.key"},
		"iter_size must be at least": {"friendly_name", "x", "certificate_path", dir + "/web.crt", "iter_size", 0},
	} {
		refuses(t, text, "openssl_pkcs12", append(args, "path", dir+"/x")...)
	}
	r := moduletest.Run(t, pkcs12Spec(), value.NewDict("path", dir+"/x", "friendly_name", "x", "certificate_path", dir+
		"/no.crt"), moduletest.Options{Check: true})
	if !r.Changed || len(r.Warnings) != 1 {
		t.Errorf("in check mode a task before may make it: %+v", r)
	}
}
