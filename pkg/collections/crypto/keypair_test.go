package crypto

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// sshKeygen runs ssh-keygen as an independent check.
func sshKeygen(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	out, err := exec.Command("ssh-keygen", args...).CombinedOutput()
	if err != nil {
		t.Errorf("ssh-keygen %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func mode(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm().String()
}

func TestKeyPair(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []any
		said string // text of ssh-keygen around the fingerprint
		form string
	}{
		"rsa":   {[]any{"size", 1024, "comment", "it's me"}, "1024 FP it's me (RSA)", "OPENSSH PRIVATE KEY"},
		"pkcs1": {[]any{"size", 2048, "private_key_format", "pkcs1"}, "2048 FP no comment (RSA)", "RSA PRIVATE KEY"},
		"pkcs8": {[]any{"type", "ecdsa", "private_key_format", "pkcs8"}, "256 FP no comment (ECDSA)", "PRIVATE KEY"},
		"ecdsa": {[]any{"type", "ecdsa", "size", 521}, "521 FP no comment (ECDSA)", "OPENSSH PRIVATE KEY"},
		"ed":    {[]any{"type", "ed25519", "size", 7, "comment", "c"}, "256 FP c (ED25519)", "OPENSSH PRIVATE KEY"},
	} {
		p := dir + "/" + name
		r := keep(t, "openssh_keypair", append(c.args, "path", p)...)
		print := r.Data.String("fingerprint")
		if got := sshKeygen(t, "-l", "-f", p+".pub"); print == "" || got != strings.Replace(c.said, "FP", print, 1) {
			t.Errorf("%s: of what has the fingerprint %q ssh-keygen says %q", name, print, got)
		}
		if got := sshKeygen(t, "-y", "-P", "", "-f", p); publicLine(got).key != r.Data.String("public_key") {
			t.Errorf("%s: ssh-keygen makes %s of the private key, not %s", name, got, r.Data.String("public_key"))
		}
		if !strings.HasPrefix(text(t, p), "-----BEGIN "+c.form+"-----\n") || len(r.Diff) != 1 ||
			strings.Contains(value.Repr(r.Data)+value.Repr(r.Diff[0].After), "PRIVATE") {
			t.Errorf("%s: %s, %+v", name, value.Repr(r.Data), r.Diff)
		}
		if mode(t, p)+mode(t, p+".pub") != "-rw-------"+"-rw-r--r--" {
			t.Errorf("%s: the modes are %s and %s", name, mode(t, p), mode(t, p+".pub"))
		}
	}
}

func TestKeyPairIsKept(t *testing.T) {
	p := t.TempDir() + "/key"
	ed := []any{"path", p, "type", "ed25519"}
	first := keep(t, "openssh_keypair", append(ed, "comment", "one")...)
	if r := once(t, "openssh_keypair", ed...); r.Changed || r.Data.String("comment") != "one" {
		t.Errorf("without a comment: %+v", r)
	}
	r := keep(t, "openssh_keypair", append(ed, "comment", "two")...)
	if r.Data.String("fingerprint") != first.Data.String("fingerprint") || r.Data.String("comment") != "two" {
		t.Errorf("another comment made %s", value.Repr(r.Data))
	}
	if got := sshKeygen(t, "-y", "-f", p); !strings.HasSuffix(got, " two") {
		t.Errorf("the private key has the line %s", got)
	}
	if err := errors.Join(os.WriteFile(p+".pub", []byte("ssh-ed25519 AAAA x\n"), 0o640),
		os.Chmod(p+".pub", 0o640)); err != nil {
		t.Fatal(err)
	}
	if r := keep(t, "openssh_keypair", ed...); r.Data.String("public_key") != first.Data.String("public_key") ||
		r.Data.String("comment") != "" || mode(t, p+".pub") != "-rw-r-----" {
		t.Errorf("the public key is now %s", value.Repr(r.Data))
	}
	keep(t, "openssh_keypair", append(ed, "mode", "0400")...)
	if mode(t, p)+mode(t, p+".pub") != "-r--------"+"-r--------" {
		t.Errorf("the modes are %s and %s", mode(t, p), mode(t, p+".pub"))
	}
	rsa := []any{"path", p, "size", 1024}
	refuses(t, "the key is ed25519 256", "openssh_keypair", append(rsa, "regenerate", "fail")...)
	if r := once(t, "openssh_keypair", append(rsa, "regenerate", "never")...); r.Changed ||
		r.Data.String("fingerprint") != first.Data.String("fingerprint") {
		t.Errorf("never made %+v", r)
	}
	keep(t, "openssh_keypair", rsa...)
	before := text(t, p)
	for _, args := range [][]any{{"force", true}, {"regenerate", "always"}} {
		if r := once(t, "openssh_keypair", append(rsa, args...)...); !r.Changed || text(t, p) == before {
			t.Errorf("%v left the key", args)
		}
	}
	if r := keep(t, "openssh_keypair", "path", p, "state", "absent"); r.Data.String("fingerprint") == "" ||
		len(r.Diff) != 1 {
		t.Errorf("removed: %+v", r)
	}
	for _, name := range []string{p, p + ".pub"} {
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", name, err)
		}
	}
}

func TestKeyPairWithAPassphrase(t *testing.T) {
	p := t.TempDir() + "/key"
	args := []any{"path", p, "type", "ecdsa", "passphrase", "a secret"}
	keep(t, "openssh_keypair", args...)
	if out, err := exec.Command("ssh-keygen", "-y", "-P", "", "-f", p).CombinedOutput(); err == nil {
		t.Errorf("the key is plain: %s", out)
	}
	sshKeygen(t, "-y", "-P", "a secret", "-f", p)
	keep(t, "openssh_keypair", append(args, "comment", "new")...)
	sshKeygen(t, "-y", "-P", "a secret", "-f", p)
	refuses(t, "encrypted with a passphrase", "openssh_keypair", "path", p, "type", "ecdsa")
	refuses(t, "Will not proceed", "openssh_keypair", "path", p, "type", "ecdsa", "passphrase", "another", "regenerate",
		"never")
	keep(t, "openssh_keypair", "path", p, "type", "ecdsa", "passphrase", "", "regenerate", "full_idempotence")
	sshKeygen(t, "-y", "-P", "", "-f", p)
	refuses(t, "not password protected", "openssh_keypair", args...)
	sshKeygen(t, "-q", "-p", "-N", "a secret", "-f", p)
	if r := once(t, "openssh_keypair", args...); r.Changed {
		t.Errorf("a key of ssh-keygen with this passphrase became %s", value.Repr(r.Data))
	}
	keep(t, "openssh_keypair", append(args, "private_key_format", "pkcs8")...)
	sshKeygen(t, "-y", "-P", "a secret", "-f", p)

	counter := moduletest.Count(moduletest.Shell())
	if _, err := moduletest.Try(t, keyPairSpec(), value.NewDict(append(args, "force", true)...),
		moduletest.Options{Conn: counter}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Join(counter.Lines(), "\n"); lines == "" || strings.Contains(lines, "a secret") {
		t.Errorf("the host was told %s", lines)
	}
}

func TestKeyPairRefuses(t *testing.T) {
	dir := t.TempDir()
	refuses(t, "1024 to 16384", "openssh_keypair", "path", dir+"/k", "size", 512)
	refuses(t, "256, 384, 521", "openssh_keypair", "path", dir+"/k", "type", "ecdsa", "size", 224)
	refuses(t, "no pkcs1 form", "openssh_keypair", "path", dir+"/k", "type", "ed25519", "private_key_format", "pkcs1")
	refuses(t, "no pkcs1 form here", "openssh_keypair", "path", dir+"/k", "passphrase", "secret", "private_key_format",
		"pkcs1")
	refuses(t, "one line", "openssh_keypair", "path", dir+"/k", "comment", "a\nssh-rsa AAAA")
	refuses(t, "is a folder", "openssh_keypair", "path", dir)
	if err := os.WriteFile(dir+"/k", []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, "holds no key in PEM form", "openssh_keypair", "path", dir+"/k", "size", 1024)
	keep(t, "openssh_keypair", "path", dir+"/k", "size", 1024, "regenerate", "full_idempotence")
}

// A key on the host must not keep kk busy forever.
func TestKeyOfManyRounds(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	usual := pem.EncodeToMemory(block)
	rounds := opensshRounds(usual)
	if rounds < 1 || rounds > 100 {
		t.Fatalf("a usual key takes %d rounds", rounds)
	}
	at := bytes.Index(block.Bytes, []byte{0, 0, 0, byte(rounds), 0, 0, 0, 1}) // before the number of keys
	copy(block.Bytes[at:], []byte{0xff, 0xff, 0xff, 0xff})
	p := t.TempDir() + "/k"
	if err := os.WriteFile(p, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	refuses(t, "more than 2000 rounds", "openssh_keypair",
		"path", p, "type", "ed25519", "passphrase", "secret", "regenerate", "never")
}
