package crypto

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/certs"
)

func TestOpenSSHKeysAreReadBySSH(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ed, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]crypto.PublicKey{"(RSA)": &rsaKey.PublicKey, "(ED25519)": ed}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		k, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys[fmt.Sprintf("%d ", curve.Params().BitSize)] = &k.PublicKey
	}
	for kind, key := range keys {
		text, err := certs.EncodeOpenSSH(key)
		if err != nil {
			t.Fatal(err)
		}
		p := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(p, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("ssh-keygen", "-l", "-f", p).CombinedOutput(); err != nil ||
			!strings.Contains(string(out), kind) {
			t.Errorf("of %s ssh-keygen says %s, %v", text, out, err)
		}
		if kind == "(ED25519)" {
			continue // ssh-keygen cannot convert it
		}
		sealed, err := certs.EncodePublic(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, sealed, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("ssh-keygen", "-i", "-m", "PKCS8", "-f", p).CombinedOutput(); err != nil ||
			string(out) != string(text) {
			t.Errorf("%s is %s, and ssh-keygen makes %s of it, %v", kind, text, out, err)
		}
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certs.EncodeOpenSSH(&small.PublicKey); err == nil || !strings.Contains(err.Error(), "P-224") {
		t.Errorf("a curve that OpenSSH does not know: %v", err)
	}
}

func TestPublicKeyOfOpenSSH(t *testing.T) {
	dir := t.TempDir()
	keep(t, "openssl_privatekey", "path", dir+"/key", "type", "Ed25519")
	keep(t, "openssl_publickey", "path", dir+"/pub", "privatekey_path", dir+"/key", "format", "OpenSSH")
	text, err := os.ReadFile(dir + "/pub")
	if err != nil || !strings.HasPrefix(string(text), "ssh-ed25519 AAAA") {
		t.Errorf("got %s, %v", text, err)
	}
	commented := strings.TrimSpace(string(text)) + " web\n"
	if err := os.WriteFile(dir+"/pub", []byte(commented), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := once(t, "openssl_publickey", "path", dir+"/pub", "privatekey_path", dir+"/key", "format",
		"OpenSSH"); r.Changed {
		t.Error("a comment after the key is a change")
	}
	keep(t, "openssl_publickey", "path", dir+"/pub", "privatekey_path", dir+"/key")
}
