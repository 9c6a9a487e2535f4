package ssh

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the form of hashed names
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// keyList is the content of known_hosts files, in the order of their lines. The library can
// read them too, but gives up at the first bad line; ssh skips such a line, and so does
// keyList.
type keyList struct {
	lines   []keyLine
	revoked map[string]knownhosts.KnownKey // by the key's bytes, for all hosts
	skipped []skippedLine
}

// keyLine is one host key, or the key of a CA that signs host keys.
type keyLine struct {
	knownhosts.KnownKey
	authority bool
	hosts     hostMatcher
}

// skippedLine is a line that could not be read.
type skippedLine struct {
	file string
	line int
	err  error
}

// The markers of lines that are not plain host keys.
const (
	markAuthority = "@cert-authority"
	markRevoked   = "@revoked"
)

// read adds the lines of a file.
func (l *keyList) read(file string, text []byte) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if err := l.readLine(file, n, string(line)); err != nil {
			l.skipped = append(l.skipped, skippedLine{file, n, err})
		}
	}
}

func (l *keyList) readLine(file string, n int, line string) error {
	words := strings.Fields(line)
	mark := ""
	if words[0][0] == '@' {
		if mark = words[0]; mark != markAuthority && mark != markRevoked {
			return errors.New("it begins with a marker other than @cert-authority and @revoked")
		}
		words = words[1:]
	}
	if len(words) < 3 {
		return errors.New("expected hosts, key type and key")
	}
	blob, err := base64.StdEncoding.DecodeString(words[2])
	if err != nil {
		return errors.New("its key is not base64")
	}
	key, err := ssh.ParsePublicKey(blob)
	if err != nil {
		return fmt.Errorf("its key cannot be read: %w", err)
	}
	known := knownhosts.KnownKey{Key: key, Filename: file, Line: n}
	if mark == markRevoked { // for any host
		l.revoked[string(key.Marshal())] = known
		return nil
	}
	hosts, err := readHosts(words[0])
	if err != nil {
		return err
	}
	l.lines = append(l.lines, keyLine{known, mark == markAuthority, hosts})
	return nil
}

// hostMatcher reports whether a line applies to a host.
type hostMatcher interface{ match(host, port string) bool }

func readHosts(text string) (hostMatcher, error) {
	if text[0] == '|' {
		return readHashed(text)
	}
	var all namedHosts
	for _, p := range strings.Split(text, ",") {
		p, not := strings.CutPrefix(p, "!")
		if p == "" {
			if not {
				return nil, errors.New("a ! in its host list has no name")
			}
			continue
		}
		host, port, err := net.SplitHostPort(p)
		if err != nil { // without a port
			host, port = strings.Trim(p, "[]"), "22"
		}
		all = append(all, namedHost{strings.ToLower(host), port, not})
	}
	return all, nil
}

// namedHosts are patterns; one with a ! excludes a host.
type namedHosts []namedHost

type namedHost struct {
	pattern, port string
	not           bool
}

func (l namedHosts) match(host, port string) bool {
	found := false
	for _, h := range l {
		if h.port != port || !wild(h.pattern, strings.ToLower(host)) {
			continue
		}
		if h.not {
			return false
		}
		found = true
	}
	return found
}

// wild matches a pattern with * and ?; all characters of text are literal.
func wild(pattern, text string) bool {
	star, from := -1, 0 // the last *, and the end of what it matches
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// hashedHost is a host name that is stored only as a hash.
type hashedHost struct{ salt, hash []byte }

func readHashed(text string) (hostMatcher, error) {
	parts := strings.Split(text, "|")
	if len(parts) != 4 || parts[1] != "1" {
		return nil, errors.New("its hashed host is not |1|salt|hash")
	}
	salt, err := base64.StdEncoding.DecodeString(parts[2])
	hash, err2 := base64.StdEncoding.DecodeString(parts[3])
	if err != nil || err2 != nil {
		return nil, errors.New("its hashed host is not base64")
	}
	return hashedHost{salt, hash}, nil
}

func (h hashedHost) match(host, port string) bool {
	mac := hmac.New(sha1.New, h.salt)
	mac.Write([]byte(knownhosts.Normalize(net.JoinHostPort(host, port))))
	return hmac.Equal(mac.Sum(nil), h.hash)
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// check is the callback of the list: nil for a key that is known for the host.
func (l *keyList) check() ssh.HostKeyCallback {
	c := ssh.CertChecker{IsHostAuthority: l.isAuthority, IsRevoked: l.isRevoked, HostKeyFallback: l.verdict}
	return c.CheckHostKey
}

func (l *keyList) isAuthority(key ssh.PublicKey, addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || l.isRevokedKey(key) {
		return false
	}
	for _, line := range l.lines {
		if line.authority && sameKey(line.Key, key) && line.hosts.match(host, port) {
			return true
		}
	}
	return false
}

// isRevoked reports whether the certificate, its key, or the key that signed it is revoked.
func (l *keyList) isRevoked(cert *ssh.Certificate) bool {
	return l.isRevokedKey(cert) || l.isRevokedKey(cert.Key) || l.isRevokedKey(cert.SignatureKey)
}

func (l *keyList) isRevokedKey(key ssh.PublicKey) bool {
	_, ok := l.revoked[string(key.Marshal())]
	return ok
}

// verdict compares a key that is not a certificate with the known ones.
func (l *keyList) verdict(addr string, _ net.Addr, key ssh.PublicKey) error {
	if r, ok := l.revoked[string(key.Marshal())]; ok {
		return &knownhosts.RevokedError{Revoked: r}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("the address %s: %w", addr, err)
	}
	bad := &knownhosts.KeyError{}
	for _, line := range l.lines {
		switch {
		case !line.hosts.match(host, port):
		case sameKey(line.Key, key) && !line.authority:
			return nil
		default:
			bad.Want = append(bad.Want, line.KnownKey)
		}
	}
	return bad
}
