package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/value"
)

// folder is where a test keeps its files.
type folder struct {
	t   *testing.T
	dir string
	now time.Time
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir(), time.Now().Truncate(time.Second)} }

func (f folder) path(name string) string { return filepath.Join(f.dir, name) }

// args are those of gen_cert for the pair NAME, signed by the pair ca unless it is "".
func (f folder) args(name, ca string, more ...any) *value.Dict {
	d := value.NewDict("cert", f.path(name+".crt"), "key", f.path(name+".key"), "common_name", name)
	if ca != "" {
		d.Merge(value.NewDict("ca_cert", f.path(ca+".crt"), "ca_key", f.path(ca+".key")))
	}
	d.Merge(value.NewDict(more...))
	return d
}

func (f folder) options() moduletest.Options {
	return moduletest.Options{Now: func() time.Time { return f.now }}
}

func (f folder) try(name, ca string, more ...any) (module.Result, error) {
	f.t.Helper()
	return moduletest.Try(f.t, moduletest.Find(f.t, pki.Modules(), "gen_cert"), f.args(name, ca, more...), f.options())
}

func (f folder) gen(name, ca string, more ...any) module.Result {
	f.t.Helper()
	r, err := f.try(name, ca, more...)
	if err != nil || r.Failed {
		f.t.Fatalf("%s: %v, %+v", name, err, r)
	}
	return r
}

// renews fails the test unless the call regenerates the pair for that reason.
func (f folder) renews(reason, name, ca string, more ...any) {
	f.t.Helper()
	r := f.gen(name, ca, more...)
	if got := get(r, "reason"); !r.Changed || !strings.Contains(got, reason) {
		f.t.Errorf("changed=%v for %q, want %q", r.Changed, got, reason)
	}
	if r := f.gen(name, ca, more...); r.Changed {
		f.t.Errorf("the next run changes it again: %s", get(r, "reason"))
	}
}

func (f folder) keeps(name, ca string, more ...any) {
	f.t.Helper()
	if r := f.gen(name, ca, more...); r.Changed {
		f.t.Errorf("regenerated: %s", get(r, "reason"))
	}
}

func (f folder) text(name string) string {
	f.t.Helper()
	text, err := os.ReadFile(f.path(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(text)
}

func (f folder) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) cert(name string) *x509.Certificate {
	f.t.Helper()
	block, _ := pem.Decode([]byte(f.text(name + ".crt")))
	crt, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		f.t.Fatal(err)
	}
	return crt
}

func (f folder) openssl(args ...string) string {
	f.t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		f.t.Skip("openssl is not installed")
	}
	cmd := exec.Command("openssl", args...)
	cmd.Dir = f.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Errorf("openssl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func get(r module.Result, key string) string {
	v, _ := r.Data.Get(key)
	return value.Str(v)
}

func TestChainsVerify(t *testing.T) {
	for _, kind := range [][]any{
		{"key_type", "RSA"}, {"key_type", "RSA", "key_size", 3072}, {"key_type", "ECDSA"},
		{"key_type", "ECDSA", "curve", "P-384"}, {"key_type", "Ed25519"},
	} {
		f := newFolder(t)
		with := func(more ...any) []any { return append(more, kind...) }
		f.gen("root", "", with("is_ca", true, "path_length", 1)...)
		f.gen("middle", "root", with("is_ca", true, "path_length", 0)...)
		f.gen("server", "middle", with("sans", []any{"www.example.org", "*.apps.example.org", "10.0.0.1", "fd00::1",
			"spiffe://kk/x", "a@example.org"})...)
		f.gen("client", "root", with("organization", "system:masters")...)
		for _, purpose := range []string{"sslserver", "sslclient"} {
			f.openssl("verify", "-x509_strict", "-purpose", purpose, "-CAfile", "root.crt", "-untrusted", "middle.crt",
				"server.crt")
		}
		f.openssl("verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", "root.crt", "client.crt")
		f.openssl("pkey", "-in", "server.key", "-check", "-noout")
		if out := f.openssl("x509", "-in", "server.crt", "-noout", "-checkhost", "www.example.org"); !strings.Contains(out,
			"does match") {
			t.Error(out)
		}
		if out := f.openssl("x509", "-in", "server.crt", "-noout", "-checkip", "10.0.0.1"); !strings.Contains(out,
			"does match") {
			t.Error(out)
		}
		if out := f.openssl("x509", "-in", "server.crt", "-noout", "-text"); !strings.Contains(out, "URI:spiffe://kk/x") ||
			!strings.Contains(out, "email:a@example.org") || !strings.Contains(out, "IP Address:FD00:0:0:0:0:0:0:1") {
			t.Error(out)
		}
		if out, err := exec.Command("openssl", "verify", "-purpose", "sslserver", "-CAfile", f.path("root.crt"),
			f.path("client.crt")).CombinedOutput(); err == nil {
			t.Errorf("a client's certificate serves as a server's: %s", out)
		}
	}
}

func TestSelfSignedLeaf(t *testing.T) {
	f := newFolder(t)
	f.gen("web", "", "sans", "web.example.org")
	f.openssl("verify", "-x509_strict", "-CAfile", "web.crt", "web.crt")
	f.keeps("web", "", "sans", "web.example.org")
}

func TestTwiceAndCheckMode(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true)
	spec := moduletest.Find(t, pki.Modules(), "gen_cert")
	args := f.args("new/server", "ca", "sans", "a.example.org", "common_name", "a")
	first, second := moduletest.RunTwice(t, spec, args, f.options())
	if get(first, "fingerprint") != get(second, "fingerprint") ||
		!strings.HasPrefix(get(second, "spki_sha256"), "sha256:") {
		t.Errorf("got %v and %v", first.Data, second.Data)
	}
	if info, err := os.Stat(f.path("new")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v %v", info.Mode(), err)
	}
	if info, err := os.Stat(f.path("new/server.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v %v", info.Mode(), err)
	}
}

func TestCheckModeTouchesNothing(t *testing.T) {
	f := newFolder(t)
	spec := moduletest.Find(t, pki.Modules(), "gen_cert")
	o := f.options()
	o.Check = true
	for _, args := range []*value.Dict{f.args("x/ca", "", "is_ca", true), f.args("x/leaf", "x/ca")} {
		if r := moduletest.Run(t, spec, args, o); !r.Changed {
			t.Errorf("predicts no change: %+v", r)
		}
	}
	if left, _ := os.ReadDir(f.dir); len(left) > 0 {
		t.Errorf("made %v", left)
	}
}

func TestRenewal(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true)
	f.gen("other", "", "is_ca", true, "common_name", "ca") // the same name, another key
	leaf := []any{"sans", []any{"a.example.org", "10.0.0.1"}}
	f.gen("leaf", "ca", leaf...)
	// order, case and doubles mean nothing
	f.keeps("leaf", "ca", "sans", []any{"10.0.0.1", "A.example.org", "a.example.org"})
	f.renews("subject alternative names", "leaf", "ca", "sans", "b.example.org")
	f.renews("common name", "leaf", "ca", "sans", "b.example.org", "common_name", "b")
	f.renews("organization", "leaf", "ca", "sans", "b.example.org", "common_name", "b", "organization", "o")
	f.renews("subject alternative names", "leaf", "ca", leaf...)
	f.renews("issuer", "leaf", "other", leaf...)
	f.renews("the key is ECDSA P-256 and not RSA 2048", "leaf", "other", append(leaf, "key_type", "RSA")...)
	f.renews("the key is RSA 2048 and not ECDSA P-384", "leaf", "other", append(leaf, "curve", "P-384")...)
	f.renews("extended key usage", "leaf", "other", append(leaf, "curve", "P-384", "extended_key_usage", "server_auth")...)
	before := f.text("leaf.key")
	f.now = f.now.AddDate(0, 0, 336)
	f.renews("in 29 days", "leaf", "other", append(leaf, "curve", "P-384", "extended_key_usage", "server_auth")...)
	if f.text("leaf.key") == before {
		t.Error("renewed with the old key")
	}
	f.now = f.now.AddDate(2, 0, 0)
	f.renews("it ended on", "leaf", "other", append(leaf, "curve", "P-384", "extended_key_usage", "server_auth")...)
	f.now = f.now.AddDate(-3, 0, 0)
	f.renews("begins only on", "leaf", "other", append(leaf, "curve", "P-384", "extended_key_usage", "server_auth")...)
}

func TestPolicies(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true)
	f.gen("leaf", "ca", "sans", "a")
	f.keeps("leaf", "ca", "sans", "b", "policy", "if_not_present")
	for range 2 {
		if r := f.gen("leaf", "ca", "sans", "a", "policy", "always"); !r.Changed {
			t.Error("always made nothing")
		}
	}
}

// An authority that is renewed stays the same to those who trust its key.
func TestAuthorityKeepsItsKey(t *testing.T) {
	f := newFolder(t)
	pin := get(f.gen("ca", "", "is_ca", true), "spki_sha256")
	f.gen("leaf", "ca", "sans", "a")
	f.now = f.now.AddDate(0, 0, 3640)
	f.renews("it expires on", "ca", "", "is_ca", true)
	if got := get(f.gen("ca", "", "is_ca", true), "spki_sha256"); got != pin {
		t.Errorf("the pin changed: %s, %s", pin, got)
	}
	out := f.openssl("x509", "-in", "ca.crt", "-noout", "-enddate")
	if !strings.Contains(out, f.now.AddDate(0, 0, 3650).UTC().Format("2006")) {
		t.Error(out)
	}
}

func TestLeafEndsWithItsAuthority(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true, "days", 40)
	f.gen("leaf", "ca", "sans", "a")
	if !f.cert("leaf").NotAfter.Equal(f.cert("ca").NotAfter) {
		t.Errorf("%s outlives %s", f.cert("leaf").NotAfter, f.cert("ca").NotAfter)
	}
	f.now = f.now.AddDate(0, 0, 20)
	f.keeps("leaf", "ca", "sans", "a")
}

// A certificate that was made for other days is replaced once where the task names the days.
func TestOtherDays(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true)
	f.gen("leaf", "ca")
	f.now = f.now.Add(100 * 24 * time.Hour)
	f.keeps("leaf", "ca")
	f.renews("validity differs", "leaf", "ca", "days", 3650)
	f.now = f.now.Add(400 * 24 * time.Hour)
	f.keeps("leaf", "ca", "days", 3650)
	if leaf, ca := f.cert("leaf"), f.cert("ca"); !leaf.NotAfter.Equal(ca.NotAfter) {
		t.Errorf("it lasts until %s, its CA until %s", leaf.NotAfter, ca.NotAfter)
	}
	f.renews("validity differs", "leaf", "ca", "days", 365)
	f.keeps("leaf", "ca")
}

// What a crash or a person left is repaired, and the reason says what it was.
func TestMends(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true)
	f.gen("leaf", "ca", "sans", "a")
	key, crt := f.text("leaf.key"), f.text("leaf.crt")
	f.gen("leaf", "ca", "sans", "a", "policy", "always")
	f.write("leaf.crt", crt) // as a run that ended after its key
	f.renews("the key is not that of the certificate", "leaf", "ca", "sans", "a")
	for name, text := range map[string]string{"leaf.crt": crt[:len(crt)/2], "leaf.key": key[:len(key)/2]} {
		f.write(name, text)
		f.renews("PEM form", "leaf", "ca", "sans", "a")
	}
	f.write("leaf.crt", "")
	f.renews("no certificate in PEM form", "leaf", "ca", "sans", "a")
	f.write("leaf.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
	f.renews("x509: ", "leaf", "ca", "sans", "a")
	if err := os.Remove(f.path("leaf.key")); err != nil {
		t.Fatal(err)
	}
	f.renews("the key does not exist", "leaf", "ca", "sans", "a")
	f.openssl("verify", "-x509_strict", "-CAfile", "ca.crt", "leaf.crt")
	key = f.text("leaf.key")
	if err := os.Remove(f.path("leaf.crt")); err != nil {
		t.Fatal(err)
	}
	f.renews("the certificate does not exist", "leaf", "ca", "sans", "a")
	if f.text("leaf.key") != key {
		t.Error("a key that had no certificate was thrown away")
	}
	if err := os.Chmod(f.path("leaf.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	f.renews("others could read the key", "leaf", "ca", "sans", "a")
	if info, _ := os.Stat(f.path("leaf.key")); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
}

// A cluster has one authority: a half of one is for a person to fix.
func TestNeverASecondAuthority(t *testing.T) {
	f := newFolder(t)
	ca := []any{"is_ca", true, "policy", "if_not_present"}
	f.gen("ca", "", ca...)
	f.gen("other", "", "is_ca", true)
	f.keeps("ca", "", append(ca, "common_name", "else", "key_type", "RSA")...)
	key, crt := f.text("ca.key"), f.text("ca.crt")
	for _, broken := range [][2]string{{"ca.key", f.text("other.key")}, {"ca.key", "no key"},
		{"ca.crt", "no certificate"}} {
		f.write(broken[0], broken[1])
		if _, err := f.try("ca", "", ca...); err == nil || !strings.Contains(err.Error(), "not replaced") {
			t.Errorf("%s: got %v", broken, err)
		}
		f.write("ca.key", key)
		f.write("ca.crt", crt)
	}
	if err := os.Remove(f.path("ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.try("ca", "", ca...); err == nil || !strings.Contains(err.Error(), "has no key") {
		t.Errorf("got %v", err)
	}
}

func TestNamesDoNotLeak(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true)
	f.gen("a", "ca", "sans", []any{"a.example.org", "10.0.0.1", "a@example.org", "urn://a"})
	f.gen("b", "ca", "sans", "b.example.org")
	crt := f.cert("b")
	if len(crt.DNSNames) != 1 || len(crt.IPAddresses)+len(crt.EmailAddresses)+len(crt.URIs) != 0 {
		t.Errorf("b has %v %v %v %v", crt.DNSNames, crt.IPAddresses, crt.EmailAddresses, crt.URIs)
	}
}

func TestKeyPair(t *testing.T) {
	f := newFolder(t)
	args := value.NewDict("key", f.path("sa.key"), "pub", f.path("sa.pub"), "key_type", "RSA", "policy", "if_not_present")
	spec := moduletest.Find(t, pki.Modules(), "gen_cert")
	moduletest.RunTwice(t, spec, args, f.options())
	if out := f.openssl("pkey", "-in", "sa.key", "-pubout"); out != f.text("sa.pub") {
		t.Errorf("got %s\nwant %s", f.text("sa.pub"), out)
	}
	key := f.text("sa.key")
	f.write("sa.pub", "x")
	if r := moduletest.Run(t, spec, args, f.options()); !r.Changed || f.text("sa.key") != key || f.text("sa.pub") == "x" {
		t.Errorf("the public key was not repaired alone: %+v", r)
	}
}

func TestForeignKeys(t *testing.T) {
	f := newFolder(t)
	f.openssl("genrsa", "-traditional", "-out", "ca.key", "2048")
	f.openssl("req", "-x509", "-new", "-key", "ca.key", "-subj", "/CN=foreign", "-days", "99", "-out", "ca.crt")
	f.keeps("ca", "", "is_ca", true, "policy", "if_not_present")
	f.gen("leaf", "ca", "sans", "a")
	f.openssl("verify", "-CAfile", "ca.crt", "leaf.crt")
	f.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "ec.key")
	key := f.text("ec.key")
	f.gen("ec", "ca", "sans", "a")
	if f.text("ec.key") != key {
		t.Error("an EC key was not used")
	}
	f.openssl("genrsa", "-aes128", "-passout", "pass:x", "-out", "locked.key", "2048")
	if _, err := f.try("locked", "ca", "sans", "a"); err == nil || !strings.Contains(err.Error(), "passphrase") {
		t.Errorf("got %v", err)
	}
}

func TestRefuses(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true, "path_length", 0)
	f.gen("leaf", "ca", "sans", "a")
	for want, args := range map[string][]any{
		"sans[1]: is empty":                 {"ca", "sans", []any{"a", ""}},
		"is a network":                      {"ca", "sans", "10.0.0.0/24"},
		`"10.0.0.256" is not an IP address`: {"ca", "sans", "10.0.0.256"},
		"has a zone":                        {"ca", "sans", "fe80::1%eth0"},
		"is not a DNS name":                 {"ca", "sans", "a_b..c"},
		"punycode":                          {"ca", "sans", "bücher.example"},
		"is not an email address":           {"ca", "sans", "a b@example.org"},
		"is not a URI":                      {"ca", "sans", "URI:nothing at all"},
		"key_size must be":                  {"ca", "sans", "a", "key_type", "RSA", "key_size", 1024},
		"must be less than days":            {"ca", "sans", "a", "days", 10},
		"days must be":                      {"ca", "sans", "a", "days", 0},
		"allows no CA below it":             {"ca", "is_ca", true},
		"is not a CA":                       {"leaf", "sans", "a"},
		"is for CAs":                        {"ca", "sans", "a", "key_usage", "cert_sign"},
		"needs a common_name":               {"ca", "common_name", ""},
		"certificates allow 64":             {"ca", "common_name", strings.Repeat("x", 65)},
		"named for two files":               {"ca", "sans", "a", "pub", f.path("bad.key")},
		"path_length must be":               {"ca", "sans", "a", "path_length", 1},
	} {
		r, err := f.try("bad", args[0].(string), args[1:]...)
		if err == nil && r.Failed {
			err = errors.New(r.Msg)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if !strings.Contains(f.text("ca.crt"), "BEGIN") {
		t.Error("the CA is gone")
	}
	if _, err := os.Stat(f.path("bad.key")); err == nil {
		t.Error("a refused call left a key")
	}
}

func TestTwoRunsAtOnce(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 5 {
				if r, err := f.try("leaf", "ca", "sans", "a", "policy", "always"); err != nil || r.Failed {
					t.Errorf("%v %+v", err, r)
				}
			}
		})
	}
	wait.Wait()
	f.keeps("leaf", "ca", "sans", "a")
	left, _ := filepath.Glob(f.path(".*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSecret(t *testing.T) {
	f := newFolder(t)
	spec := moduletest.Find(t, pki.Modules(), "gen_secret")
	args := value.NewDict("dest", f.path("new/secret"), "encoding", "base64")
	first, _ := moduletest.RunTwice(t, spec, args, f.options())
	secret := f.text("new/secret")
	if len(secret) != 44 || strings.Contains(value.Repr(first.Data), secret) {
		t.Errorf("got %q in %v", secret, first.Data)
	}
	if info, _ := os.Stat(f.path("new/secret")); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	f.write("empty", "")
	if _, err := moduletest.Try(t, spec, value.NewDict("dest", f.path("empty")), f.options()); err == nil {
		t.Error("an empty file passed for a secret")
	}
}

func TestInfo(t *testing.T) {
	f := newFolder(t)
	f.gen("ca", "", "is_ca", true)
	f.gen("leaf", "ca", "sans", []any{"a", "10.0.0.1"}, "organization", "o", "days", 40)
	spec := moduletest.Find(t, pki.Modules(), "x509_certificate_info")
	info := func(more ...any) module.Result { return moduletest.Run(t, spec, value.NewDict(more...), f.options()) }
	r := info("content", f.text("leaf.key")+f.text("leaf.crt")+f.text("ca.crt"))
	for key, want := range map[string]string{"days_left": "40", "expiring": "False",
		"subject_alt_name": "['DNS:a', 'IP:10.0.0.1']", "subject": "{'organizationName': 'o', 'commonName': 'leaf'}",
		"issuer": "{'commonName': 'ca'}", "public_key_type": "ECC", "is_ca": "False"} {
		if got := get(r, key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if r := info("path", f.path("leaf.crt"), "before_days", 41); get(r, "expiring") != "True" ||
		get(r, "expired") != "False" {
		t.Errorf("got %v", r.Data)
	}
	f.now = f.now.AddDate(0, 0, 50)
	if r := info("path", f.path("leaf.crt")); get(r, "expired") != "True" || get(r, "days_left") != "-10" {
		t.Errorf("got %v", r.Data)
	}
	if _, err := moduletest.Try(t, spec, value.NewDict("content", "x"), f.options()); err == nil ||
		!strings.Contains(err.Error(), "no certificate") {
		t.Errorf("got %v", err)
	}
}
