package signature

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/artifact"
)

var manifest = []byte(`{"format": 1}` + "\n")

// shell is a directory with keys, and the programs of OpenSSH.
type shell struct {
	*testing.T
	dir string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	s := &shell{t, t.TempDir()}
	s.write("manifest", string(manifest))
	return s
}

func (s *shell) path(name string) string { return filepath.Join(s.dir, name) }

func (s *shell) write(name, text string) {
	s.Helper()
	s.must(os.WriteFile(s.path(name), []byte(text), 0o600))
}

func (s *shell) read(name string) []byte {
	s.Helper()
	text, err := os.ReadFile(s.path(name))
	s.must(err)
	return text
}

func (s *shell) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// try runs a program in the directory with a standard input.
func (s *shell) try(stdin string, words ...string) (string, error) {
	cmd := exec.CommandContext(s.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Stdin = s.dir, strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *shell) run(words ...string) string {
	s.Helper()
	out, err := s.try("", words...)
	if err != nil {
		s.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return out
}

// key makes a key with a passphrase.
func (s *shell) key(name, kind, passphrase string) {
	s.Helper()
	s.run("ssh-keygen", "-q", "-t", kind, "-f", name, "-N", passphrase, "-C", name)
}

// allow writes allowed_signers: lines in which KEY(name) is the public key in a file.
func (s *shell) allow(lines ...string) *Allowed {
	s.Helper()
	text := strings.Join(lines, "\n") + "\n"
	for _, name := range []string{"ada", "bob", "ca"} {
		if public, err := os.ReadFile(s.path(name + ".pub")); err == nil {
			text = strings.ReplaceAll(text, "KEY("+name+")", strings.TrimSpace(string(public)))
		}
	}
	s.write("allowed_signers", text)
	a, err := ParseAllowed("allowed_signers", []byte(text))
	s.must(err)
	return a
}

func (s *shell) keys() Keys {
	return Keys{
		Read:       os.ReadFile,
		Passphrase: func(context.Context, string) (string, error) { return "open it", nil },
	}
}

// sign returns a signature by kk.
func (s *shell) sign(k Keys, key string) []byte {
	s.Helper()
	path := key
	if key != "" {
		path = s.path(key)
	}
	signer, err := k.Open(s.Context(), path)
	s.must(err)
	defer func() { s.must(signer.Close()) }()
	text, err := signer.Sign(manifest)
	s.must(err)
	return text
}

// keygenVerifies reports whether ssh-keygen accepts a signature for a principal.
func (s *shell) keygenVerifies(text []byte, principal string) error {
	s.Helper()
	s.write("manifest.sig", string(text))
	out, err := s.try(string(manifest), "ssh-keygen", "-Y", "verify", "-f", "allowed_signers", "-I", principal,
		"-n", Namespace, "-s", "manifest.sig")
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// keygenSigns returns a signature by ssh-keygen.
func (s *shell) keygenSigns(key, namespace string) []byte {
	s.Helper()
	_ = os.Remove(s.path("manifest.sig"))
	s.run("ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", namespace, "manifest")
	return s.read("manifest.sig")
}

// ssh-keygen verifies what kk signs, and kk what ssh-keygen signs, with each kind of key.
func TestBothWays(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			s := newShell(t)
			s.key("ada", kind, "")
			allowed := s.allow("ada@example.com KEY(ada)")
			ours := s.sign(s.keys(), "ada")
			if err := s.keygenVerifies(ours, "ada@example.com"); err != nil {
				t.Error(err)
			}
			for name, text := range map[string][]byte{"ours": ours, "theirs": s.keygenSigns("ada", Namespace)} {
				got, err := Verify(manifest, [][]byte{text}, allowed, time.Now())
				if err != nil || got != "ada@example.com" {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
}

func TestEncryptedKey(t *testing.T) {
	s := newShell(t)
	s.key("ada", "ed25519", "open it")
	s.allow("ada KEY(ada)")
	if err := s.keygenVerifies(s.sign(s.keys(), "ada"), "ada"); err != nil {
		t.Error(err)
	}
	k := s.keys()
	k.Passphrase = func(context.Context, string) (string, error) { return "guess", nil }
	if _, err := k.Open(t.Context(), s.path("ada")); err == nil ||
		!strings.Contains(err.Error(), "the passphrase is wrong") {
		t.Error(err)
	}
}

// agent starts an agent with keys.
func (s *shell) agent(keys ...string) string {
	s.Helper()
	socket := s.path("agent.sock")
	cmd := exec.CommandContext(s.Context(), "ssh-agent", "-D", "-a", socket)
	s.must(cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 100 {
		if _, err := os.Stat(socket); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, k := range keys {
		s.run("env", "SSH_AUTH_SOCK="+socket, "ssh-add", "-q", k)
	}
	return socket
}

func TestAgent(t *testing.T) {
	s := newShell(t)
	s.key("ada", "rsa", "")
	s.key("bob", "ed25519", "")
	s.allow("ada KEY(ada)", "bob KEY(bob)")
	k := s.keys()
	k.Agent = s.agent("ada")
	s.must(os.Remove(s.path("ada")))
	for _, key := range []string{"", "ada.pub"} {
		if err := s.keygenVerifies(s.sign(k, key), "ada"); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	if err := s.keygenVerifies(s.sign(k, "bob.pub"), "bob"); err != nil { // it is in a file next to it
		t.Error(err)
	}
	s.run("env", "SSH_AUTH_SOCK="+k.Agent, "ssh-add", "-q", "bob")
	if _, err := k.Open(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "the agent has 2 keys (SHA256:") {
		t.Error(err)
	}
	k.Agent = ""
	if _, err := k.Open(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "no key to sign with") {
		t.Error(err)
	}
	if _, err := k.Open(t.Context(), s.path("ada.pub")); err == nil ||
		!strings.Contains(err.Error(), "is neither in the agent nor in") {
		t.Error(err)
	}
}

// An agent that does not answer, such as one that waits for a touch, is waited for until the context ends.
func TestSilentAgent(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	opened := make(chan error, 1)
	go func() {
		_, err := Keys{Agent: socket}.Open(ctx, "")
		opened <- err
	}()
	select {
	case err := <-opened:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it still waits")
	}
}

// Certificates of a CA that is listed are accepted for the principals of both, both ways.
func TestCertificates(t *testing.T) {
	for _, kind := range []string{"ed25519", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			s := newShell(t)
			s.key("ca", "ed25519", "")
			s.key("ada", kind, "")
			s.run("ssh-keygen", "-q", "-s", "ca", "-I", "ada", "-n", "ada@example.com", "-V", "-1d:+1d", "ada.pub")
			allowed := s.allow("*@example.com cert-authority KEY(ca)")
			ours := s.sign(s.keys(), "ada-cert.pub")
			if err := s.keygenVerifies(ours, "ada@example.com"); err != nil {
				t.Error(err)
			}
			for name, text := range map[string][]byte{"ours": ours, "theirs": s.keygenSigns("ada-cert.pub", Namespace)} {
				got, err := Verify(manifest, [][]byte{text}, allowed, time.Now())
				if err != nil || got != "ada@example.com" {
					t.Errorf("%s: %q, %v", name, got, err)
				}
				_, err = Verify(manifest, [][]byte{text}, allowed, time.Now().Add(48*time.Hour))
				if err == nil || !strings.Contains(err.Error(), "cert has expired") {
					t.Errorf("%s: later: %v", name, err)
				}
				_, err = Verify(manifest, [][]byte{text}, s.allow("*@example.org cert-authority KEY(ca)"), time.Now())
				if err == nil ||
					!strings.Contains(err.Error(), `a certificate for ["ada@example.com"], none of which is allowed`) {
					t.Errorf("%s: another principal: %v", name, err)
				}
				s.allow("*@example.com cert-authority KEY(ca)")
			}
		})
	}
}

// What is not accepted has the reason, and ssh-keygen does not accept it either.
func TestRefused(t *testing.T) {
	s := newShell(t)
	s.key("ada", "ed25519", "")
	s.key("bob", "ed25519", "")
	good := s.sign(s.keys(), "ada")
	other := s.keygenSigns("ada", "file")
	fingerprint := strings.Fields(s.run("ssh-keygen", "-l", "-f", "ada.pub"))[1]
	for _, c := range []struct {
		name string
		text []byte
		line string
		want string
	}{
		{"stranger", good, "bob KEY(bob)",
			"it is signed by the key " + fingerprint + ", which allowed_signers does not list"},
		{"expired", good, "ada valid-before=20200101Z KEY(ada)", "allowed_signers:1: the key " + fingerprint +
			" expired on 2020-01-01T00:00:00Z"},
		{"not yet", good, "ada valid-after=29991231Z KEY(ada)", "is valid from 2999-12-31T00:00:00Z on only"},
		{"namespace of the line", good, `ada namespaces="git,file" KEY(ada)`, "may not sign for the namespace kk-artifact"},
		{"namespace of the signature", other, "ada KEY(ada)", `is for the namespace "file", not for kk-artifact`},
		{"not a CA's", good, "ada cert-authority KEY(ada)", "which allowed_signers does not list"},
		{"damaged", bytes.Replace(good, []byte("\nU1NI"), []byte("\nU1NJ"), 1), "ada KEY(ada)", "the signature is damaged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			allowed := s.allow(c.line)
			got, err := Verify(manifest, [][]byte{c.text}, allowed, time.Now())
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q, %v", got, err)
			}
			if s.keygenVerifies(c.text, "ada") == nil {
				t.Error("ssh-keygen accepts it")
			}
		})
	}
	allowed := s.allow(`a* namespaces="kk-*,!kk-other" KEY(ada)`)
	if _, err := Verify(manifest, nil, allowed, time.Now()); !errors.Is(err, ErrUnsigned) {
		t.Error(err)
	}
	_, err := Verify([]byte("another"), [][]byte{good}, allowed, time.Now())
	if err == nil || !strings.Contains(err.Error(), "is wrong: it is not for this manifest") {
		t.Error(err)
	}
	// One that is good is enough.
	if got, err := Verify(manifest, [][]byte{other, good}, allowed, time.Now()); err != nil || got != "a*" {
		t.Error(got, err)
	}
	if err := s.keygenVerifies(good, "ada"); err != nil {
		t.Error(err)
	}
}

func TestWrongLines(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINNwMHM8lLcve+HMdKmjaanRnkdOE0Sm3ZUxkjv5LTgg"
	_, err := ParseAllowed("signers", []byte(strings.Join([]string{
		"# a comment", "", "ada@example.com " + key + " comment",
		"ada", "ada ssh-ed25519 AAAA", "ada unknown " + key, "ada valid-after=2020 " + key,
		"ada valid-after=20200230 " + key, "ada valid-after=20210101,valid-before=20200101 " + key,
		`"ada grace",b ` + key, `"ada grace,bob" NameSpaces="kk-*",cert-authority ` + key, `ada namespaces="" ` + key,
		"ada valid-before=00010101Z " + key, "ada valid-before=20200101,Valid-Before=20300101 " + key,
	}, "\n")))
	if err == nil {
		t.Fatal("no error")
	}
	var lines []string
	for _, l := range strings.Split(err.Error(), "\n") {
		lines = append(lines, strings.Join(strings.SplitN(l, ":", 3)[:2], ":"))
	}
	const want = "signers:4 signers:5 signers:6 signers:7 signers:8 signers:9 signers:10 signers:12 signers:13 signers:14"
	if strings.Join(lines, " ") != want {
		t.Error(err)
	}
	if _, err := ParseAllowed("signers", []byte("# nothing\n")); err == nil ||
		!strings.Contains(err.Error(), "lists no signer") {
		t.Error(err)
	}
}

// A file is signed in place, again by another, and detached; ssh-keygen verifies what is extracted.
func TestSignFile(t *testing.T) {
	s := newShell(t)
	s.key("ada", "ecdsa", "")
	s.key("bob", "ed25519", "")
	b := artifact.NewBuilder(s.dir, artifact.Covers{}, nil)
	s.must(b.AddFile(t.Context(), artifact.Item{Kind: artifact.KindFile, Name: "manifest"}, s.path("manifest")))
	path := s.path("out.tar")
	_, err := b.Write(t.Context(), path, artifact.Options{})
	s.must(err)
	before := s.read("out.tar")
	for _, c := range []struct {
		key      string
		detached bool
		changed  bool
	}{{"ada", false, true}, {"ada", false, false}, {"bob", false, true}, {"ada", true, true}, {"bob", true, true},
		{"ada", true, false}} {
		signer, err := s.keys().Open(t.Context(), s.path(c.key))
		s.must(err)
		changed, err := signer.SignFile(path, c.detached)
		if err != nil || changed != c.changed {
			t.Errorf("%+v: %v, %v", c, changed, err)
		}
	}
	if after := s.read("out.tar"); !bytes.HasPrefix(after, before[:len(before)-1024]) {
		t.Error("signing has changed what is signed")
	}
	f, err := artifact.Open(path)
	s.must(err)
	defer func() { s.must(f.Close()) }()
	s.must(f.Verify(t.Context(), nil, nil))
	all, err := f.Signatures()
	if err != nil || len(all) != 4 {
		t.Fatal(len(all), err)
	}
	s.allow("ada KEY(ada)", "bob KEY(bob)")
	for i, text := range all {
		s.write("manifest.sig", string(text))
		out, err := s.try(string(f.ManifestBytes()), "ssh-keygen", "-Y", "verify", "-f", "allowed_signers", "-I",
			[]string{"ada", "bob"}[i%2], "-n", Namespace, "-s", "manifest.sig")
		if err != nil {
			t.Errorf("signature %d: %v %s", i, err, out)
		}
	}
	listed, err := os.ReadFile(s.path("allowed_signers"))
	s.must(err)
	key, err := Check(f.ManifestBytes(), all[0])
	if line := key.Line("ada"); err != nil || !strings.HasPrefix(line, `ada namespaces="kk-artifact" ecdsa-`) ||
		!strings.Contains(string(listed), strings.TrimSpace(strings.SplitN(line, " ", 3)[2])) {
		t.Error(line, err)
	}
}

func FuzzAllowed(f *testing.F) {
	f.Add("ada@example.com,b* namespaces=\"kk-*\",valid-after=20200101Z,cert-authority ssh-ed25519 " +
		"AAAAC3NzaC1lZDI1NTE5AAAAINNwMHM8lLcve+HMdKmjaanRnkdOE0Sm3ZUxkjv5LTgg c\n# c\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAllowed("signers", []byte(text))
		if err != nil {
			return
		}
		for _, s := range a.signers {
			if len(s.principals) == 0 || s.key == nil {
				t.Errorf("%+v", s)
			}
			_, _ = a.find(s.key, time.Now())
		}
	})
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte("-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQAAADMAAAALc3NoLWVkMjU1MTkAAAAg\n" +
		"-----END SSH SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if key, err := Check(manifest, text); err == nil {
			t.Logf("a valid signature of %s", key.Fingerprint())
		}
	})
}
