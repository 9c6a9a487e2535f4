package vault

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func password(t testing.TB, id, text string) Password {
	t.Helper()
	p, err := NewPassword(id, text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The files .vault were written by ansible-vault of ansible-core 2.14.
func TestReadsWhatAnsibleWrote(t *testing.T) {
	k := NewKeyring([]Password{password(t, "", "letmein"), password(t, "prod", "prodpw\n")}, Options{})
	for file, want := range map[string]struct {
		plain []byte
		id    string
	}{
		"plain.yml.vault":      {read(t, "plain.yml"), "default"},
		"plain.yml.prod.vault": {read(t, "plain.yml"), "prod"},
		"binary.vault":         {read(t, "binary"), "default"},
		"empty.vault":          {nil, "default"},
	} {
		got, err := k.Decrypt(read(t, file))
		by, _ := k.Opened(read(t, file))
		if err != nil || !bytes.Equal(got, want.plain) || by.Password.ID != want.id || by.ID != want.id {
			t.Errorf("%s: %q by %v, %v", file, got, by, err)
		}
		crlf := bytes.ReplaceAll(read(t, file), []byte("\n"), []byte("\r\n"))
		if got, err := k.Decrypt(crlf); err != nil || !bytes.Equal(got, want.plain) {
			t.Errorf("%s with CRLF: %v", file, err)
		}
	}
}

// Password and salt make one text only: the one that Ansible made.
func TestWritesWhatAnsibleWrote(t *testing.T) {
	for file, p := range map[string]Password{
		"plain.yml.vault":      password(t, "", "letmein"),
		"plain.yml.prod.vault": password(t, "prod", "prodpw"),
	} {
		want := read(t, file)
		e, err := parse(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := EncryptWithSalt(read(t, "plain.yml"), p, e.salt)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n%s", file, err, got)
		}
	}
}

// peer is the real ansible-vault.
func peer(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("ansible-vault")
	if err != nil {
		t.Skip("there is no ansible-vault here to compare with: install ansible-core")
	}
	return path
}

func TestWithAnsible(t *testing.T) {
	program := peer(t)
	dir := t.TempDir()
	pass := filepath.Join(dir, "pass")
	if err := os.WriteFile(pass, []byte(" p ä s s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ansible := func(stdin []byte, args ...string) []byte {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "ANSIBLE_HOME="+dir)
		cmd.Stdin = bytes.NewReader(stdin)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("ansible-vault %v: %v\n%s", args, err, errs.String())
		}
		return out
	}
	for _, c := range []struct{ id, plain string }{
		{"", "exactly sixteen!"}, {"dev", strings.Repeat("0123456789abcdef\n", 500)}, {"", "\x00\xff binary"},
	} {
		p := password(t, c.id, " p ä s s\n")
		source := pass
		if c.id != "" {
			source = c.id + "@" + pass
		}
		ours, err := Encrypt([]byte(c.plain), p)
		if err != nil {
			t.Fatal(err)
		}
		if got := ansible(ours, "decrypt", "--vault-id", source, "--output", "-"); string(got) != c.plain {
			t.Errorf("ansible-vault reads %q, not %q", got, c.plain)
		}
		theirs := ansible([]byte(c.plain), "encrypt", "--vault-id", source, "--output", "-")
		k := NewKeyring([]Password{password(t, "other", "other"), p}, Options{})
		got, err := k.Decrypt(theirs)
		if by, _ := k.Opened(theirs); err != nil || string(got) != c.plain || by.Password.ID != p.ID {
			t.Errorf("%q by %v, %v; want %q by %s", got, by, err, c.plain, p.ID)
		}
	}
}

func TestWrongPasswords(t *testing.T) {
	prod := read(t, "plain.yml.prod.vault")
	for _, c := range []struct {
		passwords []Password
		exact     bool
		want      string
	}{
		{nil, false, "no vault password was given"},
		{[]Password{password(t, "prod", "old"), password(t, "dev", "x"), password(t, "dev", "y")}, false,
			`vault ID is "prod", tried the passwords of prod, dev`},
		{[]Password{password(t, "dev", "prodpw")}, true, "no password has this ID"},
		{[]Password{password(t, "dev", "prodpw")}, false, ""},
	} {
		_, err := NewKeyring(c.passwords, Options{Exact: c.exact}).Decrypt(prod)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %q", c.passwords, err, c.want)
		}
	}
	var none *Keyring
	if _, err := none.Decrypt(prod); !errors.Is(err, NoPasswordError{}) {
		t.Error(err)
	}
}

func TestDamaged(t *testing.T) {
	good := string(read(t, "plain.yml.vault"))
	lines := strings.Split(good, "\n")
	k := NewKeyring([]Password{password(t, "", "letmein")}, Options{})
	for _, c := range []struct{ text, want string }{
		{"$ANSIBLE_VAULT", "line 1: the header is not"},
		{"$ANSIBLE_VAULT;1.0;AES\n00", "line 1: unknown format 1.0"},
		{"$ANSIBLE_VAULT;1.1;AES\n00", "line 1: unknown cipher AES"},
		{strings.Replace(good, lines[2], "x"+lines[2][1:], 1), "line 3: 'x' is not a hexadecimal digit"},
		{strings.Replace(good, lines[2], lines[2][1:], 1), "a digit is missing"},
		{lines[0] + "\n" + lines[1] + "\n", "line 2: the end is missing"},
		{strings.Join(lines[:5], "\n") + "\n", "line 5: the data is truncated"},
	} {
		_, err := k.Decrypt([]byte(c.text))
		var bad *FormatError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	other := strings.Replace(good, lines[3], lines[4]+lines[3][len(lines[4]):], 1)
	if _, err := k.Decrypt([]byte(other)); err == nil {
		t.Error("a vault whose data was changed opens")
	}
}

func TestKeyringLearnsOnce(t *testing.T) {
	var learned []string
	k := NewKeyring([]Password{password(t, "", "letmein")}, Options{Learned: func(p []byte) {
		learned = append(learned,
			string(p))
	}})
	text := read(t, "plain.yml.vault")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _, _ = k.Decrypt(text) })
	}
	wg.Wait()
	if len(learned) != 1 || learned[0] != string(read(t, "plain.yml")) {
		t.Errorf("%q", learned)
	}
}

func TestPasswordsAreNotPrinted(t *testing.T) {
	p := password(t, "dev", "hunter2")
	all := fmt.Sprintf("%v %+v %#v %s %q %x %d %v", p, p, p, p, p, p, p, []Password{p})
	if strings.Contains(all, "hunter2") || strings.Contains(all, "68756e") || strings.Contains(all, "104 117") {
		t.Error(all)
	}
	if _, err := NewPassword("dev", " \n"); err == nil {
		t.Error("an empty password is one")
	}
	if _, err := Encrypt(nil, Password{ID: "a;b", secret: []byte("x")}); err == nil {
		t.Error("an ID with a semicolon makes a header")
	}
}
