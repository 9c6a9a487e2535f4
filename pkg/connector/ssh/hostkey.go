package ssh

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKeyError is a rejected host key; its text says what to do.
type hostKeyError struct{ text string }

func (e *hostKeyError) Error() string { return e.text }

// hostKeys returns the check of t's host key, and the key types that known_hosts has for
// it. These are requested first: otherwise a host with a second, unknown key would look
// changed.
func (s *Shared) hostKeys(t *target) (ssh.HostKeyCallback, []string, error) {
	if t.HostKey == Insecure {
		return ssh.InsecureIgnoreHostKey(), nil, nil
	}
	known, err := s.knownHosts(t.KnownHosts)
	if err != nil {
		return nil, nil, err
	}
	check := func(hostname string, remote net.Addr, key ssh.PublicKey) error {
		return t.verify(known, known.verdict(hostname, remote, key), hostname, key)
	}
	return check, knownAlgorithms(known.verdict, t.addr()), nil
}

// noKey matches no line of known_hosts: looking it up lists the expected keys.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }

func knownAlgorithms(known ssh.HostKeyCallback, addr string) []string {
	var unknown *knownhosts.KeyError
	if err := known(addr, &net.TCPAddr{}, noKey{}); !errors.As(err, &unknown) || len(unknown.Want) == 0 {
		return nil
	}
	var first []string
	seen := map[string]bool{}
	add := func(names ...string) {
		for _, n := range names {
			if !seen[n] {
				seen[n] = true
				first = append(first, n)
			}
		}
	}
	for _, k := range unknown.Want {
		if k.Key.Type() == ssh.KeyAlgoRSA {
			add(ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		add(k.Key.Type())
	}
	// The others remain possible: certificates, and keys that replaced the known one.
	add(ssh.SupportedAlgorithms().HostKeys...)
	return first
}

// verify turns the result of known_hosts into acceptance or an error that says what to do.
func (t *target) verify(known *known, verdict error, hostname string, key ssh.PublicKey) error {
	var bad *knownhosts.KeyError
	switch {
	case verdict == nil:
		return nil
	case !errors.As(verdict, &bad):
		return &hostKeyError{fmt.Sprintf("the host key of %s is rejected: %v", t.name(), verdict)}
	case len(bad.Want) > 0:
		return t.changed(bad.Want, key)
	case t.HostKey == AcceptNew:
		return known.accept(t, hostname, key)
	}
	return &hostKeyError{fmt.Sprintf("the host key of %s is not known: %s %s is not in %s; "+
		"compare the fingerprint, then accept it with `%s`, or accept every new host with --ssh-host-key accept-new",
		t.name(), key.Type(), ssh.FingerprintSHA256(key), strings.Join(t.KnownHosts, " or "), t.scanCommand())}
}

func (t *target) scanCommand() string {
	return fmt.Sprintf("ssh-keyscan -p %d %s >> %s", t.Port, t.Address, t.KnownHosts[0])
}

func (t *target) changed(want []knownhosts.KnownKey, key ssh.PublicKey) error {
	var old []string
	for _, k := range want {
		old = append(old, fmt.Sprintf("%s:%d (%s %s)", k.Filename, k.Line, k.Key.Type(), ssh.FingerprintSHA256(k.Key)))
	}
	return &hostKeyError{fmt.Sprintf("THE HOST KEY OF %s HAS CHANGED: it is now %s %s, known is %s; "+
		"either the host was reinstalled or somebody intercepts the connection: "+
		"if it was reinstalled, remove the old key with `ssh-keygen -f %s -R '%s'`",
		t.name(), key.Type(), ssh.FingerprintSHA256(key), strings.Join(old, ", "),
		want[0].Filename, knownhosts.Normalize(t.addr()))}
}

// appendLine adds a line, after a line feed if the file does not end with one.
func appendLine(f *os.File, line string) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("store the host key: %w", err)
	}
	last := []byte{'\n'}
	if info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err != nil {
			return fmt.Errorf("store the host key: %w", err)
		}
	}
	if last[0] != '\n' {
		line = "\n" + line
	}
	if _, err := f.WriteString(line + "\n"); err != nil {
		return fmt.Errorf("store the host key: %w", err)
	}
	return nil
}
