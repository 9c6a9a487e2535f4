package certs

import "testing"

func FuzzDecryptKey(f *testing.F) {
	key, err := KeyKind{Algorithm: "Ed25519"}.Generate()
	if err != nil {
		f.Fatal(err)
	}
	der, err := EncryptKey(key, "x", 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Fuzz(func(t *testing.T, der []byte) {
		if key, err := DecryptKey(der, "x"); (key == nil) == (err == nil) {
			t.Errorf("%v, %v", key, err)
		}
	})
}
