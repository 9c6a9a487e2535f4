package packages

import (
	"bytes"
	"strings"
	"testing"
)

// somePGPKey is an Ed25519 key with a subkey, as GnuPG exports it.
const somePGPKey = `-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawHbwxYJKwYBBAHaRw8BAQdAJ1IUponl825B25AAxeCxQ0mczSJy5NLLGtaq
i4mSnmW0FFRlc3QgPHRAZXhhbXBsZS5vcmc+iJAEExYIADgWIQSunBhOLUqa4DvH
LS8nTCrbwhjZWgUCawHbwwIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAKCRAn
TCrbwhjZWkLAAP42W5oL/orTqERHsoiqk1Aob0b/FM829ZMHUDXwfGUo1QD+KgYr
7uJ6b9QCl8VWOIalLVJyvvBA9rScRx32uIzgbwK4OARrAdvDEgorBgEEAZdVAQUB
AQdApyL2Zn0/FW2tQmihihQC2h6l4dWY6rPq1F8gdx9u+30DAQgHiHgEGBYIACAW
IQSunBhOLUqa4DvHLS8nTCrbwhjZWgUCawHbwwIbDAAKCRAnTCrbwhjZWnp3AQCr
KFowFqi0KLmABvxX8GJdn+QYQovwOhPXuAf0x0tJ2gD+KzHZK92v7ja4Y/GGfx2i
RVTPYNNYS35BAz59+aUKTQo=
=Fa9r
-----END PGP PUBLIC KEY BLOCK-----
`

func TestPGPKeys(t *testing.T) {
	const fingerprint = "AE9C184E2D4A9AE03BC72D2F274C2ADBC218D95A"
	keys, err := pgpKeys([]byte(somePGPKey))
	if err != nil || len(keys) != 1 || keys[0].fingerprint != fingerprint || keys[0].id() != "274C2ADBC218D95A" {
		t.Fatalf("got %+v, %v", keys, err)
	}
	for id, want := range map[string]bool{fingerprint: true, "C218D95A": true, "0E4E5CB8FF585461": true,
		"7988BCF5A77763ADBC1374430E4E5CB8FF585461": true, "DEADBEEF": false} {
		if keys[0].has(id) != want {
			t.Errorf("the key has %s: %v", id, !want)
		}
	}
	if again := string(armored(keys[0].packets)); again != somePGPKey {
		t.Errorf("armored again it is\n%s", again)
	}
	two, err := pgpKeys([]byte(somePGPKey + "\r\nnote\r\n" + strings.ReplaceAll(somePGPKey, "\n", "\r\n")))
	if err != nil || len(two) != 2 || !bytes.Equal(two[1].packets, keys[0].packets) {
		t.Errorf("of two blocks: %d keys, %v", len(two), err)
	}
}

func TestPGPKeysThatAreNone(t *testing.T) {
	keys, err := pgpKeys([]byte(somePGPKey))
	if err != nil {
		t.Fatal(err)
	}
	whole := keys[0].packets
	for want, data := range map[string]string{
		"not an OpenPGP key":     "root:x:0:0",
		"it is not an OpenPGP":   string(whole[:len(whole)-1]),
		"has no end":             somePGPKey[:200],
		"decode the armored key": strings.Replace(somePGPKey, "mDME", "mD!E", 1),
		"keybox":                 "\x00\x00\x00\x20\x01\x01\x00\x02KBXf\x00",
		"type 13":                "\xb4\x01x",
		"version 3":              "\x98\x01\x03",
	} {
		if _, err := pgpKeys([]byte(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q in it", data, err, want)
		}
	}
	for _, id := range []string{"", "ABC", "nonsense!", "0x1234567"} {
		if got, err := parseKeyID(id); err == nil {
			t.Errorf("%q is read as %s", id, got)
		}
	}
	if got, err := parseKeyID("0xae9c 184e 2d4a 9ae0"); err != nil || got != "AE9C184E2D4A9AE0" {
		t.Errorf("got %s, %v", got, err)
	}
}

func FuzzPGPKeys(f *testing.F) {
	f.Add([]byte(somePGPKey))
	f.Add([]byte("\x98\x01\x04\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := pgpKeys(data)
		for _, k := range keys {
			if err == nil && len(k.fingerprint) < 40 {
				t.Errorf("a key has the fingerprint %q", k.fingerprint)
			}
		}
	})
}

func TestKeyserverURL(t *testing.T) {
	for server, want := range map[string]string{
		"keys.example.org":             "http://keys.example.org:11371/pks/lookup?op=get&options=mr&search=0xAB",
		"hkp://keys.example.org:80":    "http://keys.example.org:80/pks/lookup?op=get&options=mr&search=0xAB",
		"hkps://keys.example.org":      "https://keys.example.org/pks/lookup?op=get&options=mr&search=0xAB",
		"https://keys.example.org/any": "https://keys.example.org/pks/lookup?op=get&options=mr&search=0xAB",
	} {
		if got := keyserverURL(server, "AB"); got != want {
			t.Errorf("%s: %s", server, got)
		}
	}
}
