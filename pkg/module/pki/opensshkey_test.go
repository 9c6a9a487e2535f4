package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestOpenSSHKeysAreReadByOthers(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	keys := []crypto.PublicKey{&rsaKey.PublicKey}
	for _, curve := range []elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()} {
		k, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, &k.PublicKey)
	}
	ed, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range append(keys, ed) {
		text, err := encodeOpenSSH(key)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := ssh.NewPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		if want := string(ssh.MarshalAuthorizedKey(theirs)); string(text) != want {
			t.Errorf("%T is %s, want %s", key, text, want)
		}
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encodeOpenSSH(&small.PublicKey); err == nil || !strings.Contains(err.Error(), "P-224") {
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
	if r := once(t, "openssl_publickey", "path", dir+"/pub", "privatekey_path", dir+"/key", "format", "OpenSSH"); r.Changed {
		t.Error("a comment after the key is a change")
	}
	keep(t, "openssl_publickey", "path", dir+"/pub", "privatekey_path", dir+"/key")
}
