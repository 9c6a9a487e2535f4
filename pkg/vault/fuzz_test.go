package vault

import (
	"bytes"
	"testing"
)

// FuzzParse feeds hostile vaults; what is a vault is one again when it is written.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"plain.yml.vault", "plain.yml.prod.vault", "empty.vault"} {
		f.Add(read(f, name))
		f.Add(read(f, name)[:100])
	}
	f.Add([]byte("$ANSIBLE_VAULT;1.2;AES256;\n\n0a0a"))
	f.Add([]byte("$ANSIBLE_VAULT;1.1;AES256\n300a30\r\n0a30"))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := parse(text)
		if err != nil {
			return
		}
		again, err := parse(e.format())
		if err != nil || again.id != e.id && e.id != "" || !bytes.Equal(again.payload, e.payload) ||
			!bytes.Equal(again.salt, e.salt) {
			t.Errorf("%q is written as %q: %v", text, e.format(), err)
		}
	})
}

// FuzzRoundTrip encrypts and decrypts; no other password opens the text.
func FuzzRoundTrip(f *testing.F) {
	f.Add([]byte("text"), "password", "")
	f.Add([]byte("exactly sixteen!"), "p", "dev")
	f.Add([]byte{}, "\xff", "a b")
	f.Fuzz(func(t *testing.T, plain []byte, text, id string) {
		p, err := NewPassword(id, text)
		if err != nil {
			return
		}
		sealed, err := Encrypt(plain, p)
		if err != nil {
			return
		}
		got, err := NewKeyring([]Password{p}, Options{}).Decrypt(sealed)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("%q comes back as %q, %v", plain, got, err)
		}
		if other, err := NewPassword(id, text+"x"); err == nil {
			if _, err := NewKeyring([]Password{other}, Options{}).Decrypt(sealed); err == nil {
				t.Error("another password opens it")
			}
		}
	})
}
