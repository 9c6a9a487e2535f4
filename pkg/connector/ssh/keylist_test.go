package ssh

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKey returns the key of a number, which is always the same.
func hostKey(t testing.TB, n byte) (ssh.PublicKey, ssh.Signer) {
	t.Helper()
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(n), ed25519.SeedSize))))
	if err != nil {
		t.Fatal(err)
	}
	return signer.PublicKey(), signer
}

func keyText(key ssh.PublicKey) string {
	return key.Type() + " " + base64.StdEncoding.EncodeToString(key.Marshal())
}

func listOf(text string) *keyList {
	l := &keyList{revoked: map[string]knownhosts.KnownKey{}}
	l.read("known_hosts", []byte(text))
	return l
}

// TestBadLinesAreSkipped puts each bad line before good ones, which must still apply.
func TestBadLinesAreSkipped(t *testing.T) {
	one, _ := hostKey(t, '1')
	two, _ := hostKey(t, '2')
	gone, _ := hostKey(t, '3')
	good := "node1 " + keyText(one) + " a comment of words\r\n" +
		knownhosts.Line([]string{knownhosts.HashHostname("node2")}, two) + "\n@revoked * " + keyText(gone) + "\n"
	wide := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune("node9 " + keyText(one) + "\n")) {
		wide = append(wide, byte(u), byte(u>>8))
	}
	for what, bad := range map[string]string{
		"garbage": "%&/(", "one word": "node1", "two words": "node1 ssh-ed25519", "mark alone": "@revoked",
		"unknown mark":     "@foo node1 " + keyText(two),
		"unknown type":     "node1 ssh-new AAAAB3NzaC1uZXc=",
		"not base64":       "node1 ssh-ed25519 ????",
		"cut key":          "node1 " + keyText(two)[:40],
		"empty key":        "node1 ssh-ed25519 AAAA",
		"NUL bytes":        "node1\x00 ssh-ed25519 \x00\x00\x00",
		"long line":        strings.Repeat("x", 1<<20),
		"UTF-16":           string(wide),
		"bad hash":         "|1|x|y " + keyText(two),
		"other hash":       "|2|AAAA|AAAA " + keyText(two),
		"negation of none": "node1,! " + keyText(two),
		"conflict":         "<<<<<<< HEAD",
	} {
		t.Run(what, func(t *testing.T) {
			l := listOf(bad + "\n" + good)
			if len(l.skipped) == 0 || l.skipped[0].line != 1 {
				t.Errorf("skipped: %v", l.skipped)
			}
			check := l.check()
			var revoked *knownhosts.RevokedError
			var bad *knownhosts.KeyError
			for addr, key := range map[string]ssh.PublicKey{"node1:22": one, "node2:22": two} {
				if err := check(addr, &net.TCPAddr{}, key); err != nil {
					t.Errorf("%s: %v", addr, err)
				}
			}
			if err := check("node1:22", &net.TCPAddr{}, two); !errors.As(err, &bad) || len(bad.Want) != 1 {
				t.Errorf("another key: %v", err)
			}
			if err := check("node1:22", &net.TCPAddr{}, gone); !errors.As(err, &revoked) {
				t.Errorf("revoked key: %v", err)
			}
		})
	}
}

func TestHostPatterns(t *testing.T) {
	key, _ := hostKey(t, '1')
	for _, c := range []struct {
		hosts, addr string
		known       bool
	}{
		{"node1", "node1:22", true}, {"node1", "node1:23", false}, {"[node1]:23", "node1:23", true},
		{"a,node1,b", "node1:22", true}, {"NODE1", "node1:22", true}, {"node?", "node1:22", true},
		{"*.x,!b.x", "a.x:22", true}, {"*.x,!b.x", "b.x:22", false}, {"!b.x", "a.x:22", false},
		{"*", "x:22", true}, {"**a**", "cab:22", true}, {"*a", "ab:22", false}, {"?", "ab:22", false},
		{"::1", "[::1]:22", true}, {"[::1]", "[::1]:22", true}, {"[::1]:23", "[::1]:23", true},
		{strings.Repeat("*a", 40), strings.Repeat("a", 39) + "b:22", false},
		{knownhosts.HashHostname("[node1]:23"), "node1:23", true}, {knownhosts.HashHostname("node1"), "node2:22", false},
	} {
		l := listOf(c.hosts + " " + keyText(key))
		if err := l.check()(c.addr, &net.TCPAddr{}, key); (err == nil) != c.known || len(l.skipped) > 0 {
			t.Errorf("%s for %s: %v, skipped %v", c.addr, c.hosts, err, l.skipped)
		}
	}
}

func TestAuthorities(t *testing.T) {
	caKey, ca := hostKey(t, 'c')
	key, _ := hostKey(t, '1')
	cert := &ssh.Certificate{
		Key: key, CertType: ssh.HostCert, ValidPrincipals: []string{"node1"}, ValidBefore: ssh.CertTimeInfinity,
	}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	authority := "@cert-authority node* " + keyText(caKey) + "\n"
	for _, c := range []struct {
		what, text, addr string
		key              ssh.PublicKey
		accepted         bool
	}{
		{"signed", authority, "node1:22", cert, true},
		{"after a bad line", "???\n" + authority, "node1:22", cert, true},
		{"of another host", authority, "other:22", cert, false},
		{"authority revoked", authority + "@revoked * " + keyText(caKey), "node1:22", cert, false},
		{"key revoked", authority + "@revoked * " + keyText(key), "node1:22", cert, false},
		{"key of the authority", authority, "node1:22", caKey, false},
		{"no authority", "node1 " + keyText(caKey), "node1:22", cert, false},
	} {
		if err := listOf(c.text).check()(c.addr, &net.TCPAddr{}, c.key); (err == nil) != c.accepted {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func TestSkippedLinesAreWarnedOfOnce(t *testing.T) {
	key, _ := hostKey(t, '1')
	file := filepath.Join(t.TempDir(), "known_hosts")
	var warned []string
	s := NewShared()
	s.Warn = func(text string) { warned = append(warned, text) }
	for _, text := range []string{"???\nnode1 " + keyText(key) + "\n!!!\n", "???\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.knownHosts([]string{file}); err != nil {
			t.Fatal(err)
		}
	}
	want := file + ":1: this line is skipped: expected hosts, key type and key (and 1 more)"
	if len(warned) != 1 || warned[0] != want {
		t.Errorf("%q, want %q", warned, want)
	}
}

// FuzzKeyList compares with the library, whose readers give up where this one skips a line:
// files that the library accepts as a whole are accepted here.
func FuzzKeyList(f *testing.F) {
	key, _ := hostKey(f, '1')
	other, _ := hostKey(f, '2')
	for _, text := range []string{
		"node1 " + keyText(key), "@revoked * " + keyText(key), "@cert-authority node1 " + keyText(key), "node1,!node2 " +
			keyText(other),
		knownhosts.Line([]string{knownhosts.HashHostname("node1")}, key), "# x\n\nnode? " + keyText(key) + " c c c\r\n",
		"[node1]:23 " + keyText(key), "???",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l := listOf(string(text))
		file := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		library, broken := knownhosts.New(file)
		for _, addr := range []string{"node1:22", "node1:23"} {
			err := l.check()(addr, &net.TCPAddr{}, key)
			if broken != nil {
				continue
			}
			want := library(addr, &net.TCPAddr{}, key)
			var revoked *knownhosts.RevokedError
			if errors.As(want, &revoked) && !errors.As(err, &revoked) {
				t.Errorf("%s: %v, and the library says %v", addr, err, want)
			}
		}
		for _, line := range l.lines {
			if line.Line < 1 || line.Key == nil {
				t.Errorf("%+v", line)
			}
		}
	})
}
