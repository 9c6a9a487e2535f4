package signature

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Allowed says who may sign.
type Allowed struct {
	name    string
	signers []signer
}

// signer is a line of an allowed_signers file.
type signer struct {
	line                    int
	principals              patterns
	key                     ssh.PublicKey
	authority               bool     // signs certificates
	namespaces              patterns // none: all
	validAfter, validBefore time.Time
}

// ParseAllowed reads a file in the format of ALLOWED SIGNERS in ssh-keygen(1). Name is that of the file. All
// wrong lines are reported.
func ParseAllowed(name string, text []byte) (*Allowed, error) {
	a := &Allowed{name: name}
	var problems []error
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		s, err := parseSigner(line)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s:%d: %w", name, i+1, err))
			continue
		}
		s.line = i + 1
		a.signers = append(a.signers, s)
	}
	if len(problems) == 0 && len(a.signers) == 0 {
		problems = append(problems, fmt.Errorf("%s lists no signer: write lines such as "+
			"`ada@example.com namespaces=%q ssh-ed25519 AAAA...`", name, Namespace))
	}
	return a, errors.Join(problems...)
}

func parseSigner(line string) (signer, error) {
	principals, rest, err := word(line)
	if err != nil {
		return signer{}, err
	}
	s := signer{principals: split(strings.Trim(principals, `"`))}
	if len(s.principals) == 0 {
		return s, errors.New("it has no principal")
	}
	// ParseAuthorizedKey reads options, key type and key. It ignores lines that it cannot read.
	key, _, options, more, err := ssh.ParseAuthorizedKey([]byte(rest))
	if err != nil || len(bytes.TrimSpace(more)) > 0 {
		return s, errors.New("it has no key: write `PRINCIPALS [OPTIONS] KEYTYPE BASE64`")
	}
	s.key = key
	given := map[string]bool{}
	for _, o := range options {
		name, v, assigned := strings.Cut(o, "=")
		if name = strings.ToLower(name); given[name] {
			return s, fmt.Errorf("the option %s is given twice", name)
		}
		given[name] = true
		if err := s.option(name, strings.Trim(v, `"`), assigned); err != nil {
			return s, err
		}
	}
	if !s.validAfter.IsZero() && !s.validBefore.IsZero() && s.validBefore.Before(s.validAfter) {
		return s, errors.New("valid-before is before valid-after")
	}
	return s, nil
}

// word cuts the first word off a line; it can be in double quotes.
func word(line string) (first, rest string, err error) {
	end := strings.IndexAny(line, " \t")
	if strings.HasPrefix(line, `"`) {
		if end = strings.IndexByte(line[1:], '"'); end >= 0 {
			end += 2
		}
	}
	if end < 0 {
		return "", "", errors.New("it has one word only, or an open quote: write `PRINCIPALS [OPTIONS] KEYTYPE BASE64`")
	}
	return line[:end], strings.TrimSpace(line[end:]), nil
}

func (s *signer) option(name, v string, assigned bool) error {
	var err error
	switch {
	case name == "cert-authority" && !assigned:
		s.authority = true
	case name == "namespaces" && v != "":
		s.namespaces = split(v)
	case name == "valid-after" && assigned:
		s.validAfter, err = parseTime(v)
	case name == "valid-before" && assigned:
		s.validBefore, err = parseTime(v)
	default:
		err = fmt.Errorf("unknown option %q: cert-authority, namespaces=, valid-after= and valid-before= are known", name)
	}
	return err
}

// parseTime reads YYYYMMDD or YYYYMMDDHHMM[SS], in UTC with a Z at the end, otherwise in local time.
func parseTime(text string) (time.Time, error) {
	digits, utc := strings.CutSuffix(text, "Z")
	zone := time.Local
	if utc {
		zone = time.UTC
	}
	layouts := []string{"20060102", "200601021504", "20060102150405"}
	i := slices.IndexFunc(layouts, func(l string) bool { return len(l) == len(digits) })
	if i < 0 {
		return time.Time{}, fmt.Errorf("%q is not a time: write YYYYMMDD or YYYYMMDDHHMM, with Z at the end for UTC", text)
	}
	if _, err := strconv.ParseUint(digits, 10, 64); err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time: it has other characters than digits", text)
	}
	at, err := time.ParseInLocation(layouts[i], digits, zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time: no such day or hour", text)
	}
	if at.Unix() <= 0 {
		return time.Time{}, fmt.Errorf("%q is not a time after 1970", text)
	}
	return at, nil
}

// patterns is a pattern list as in ssh_config(5): with * and ?, and ! for exceptions.
type patterns []string

func split(text string) patterns {
	return slices.DeleteFunc(strings.Split(text, ","), func(p string) bool { return p == "" })
}

func (ps patterns) match(text string) bool {
	matched := false
	for _, p := range ps {
		p, except := strings.CutPrefix(p, "!")
		if !like(p, text) {
			continue
		}
		if except {
			return false
		}
		matched = true
	}
	return matched
}

// like matches one pattern.
func like(pattern, text string) bool {
	// Of the special characters of path.Match only * and ? are any here, and * matches slashes.
	escape := strings.NewReplacer(`\`, `\\`, `[`, `\[`, "/", "\x00")
	ok, err := path.Match(escape.Replace(pattern), strings.ReplaceAll(text, "/", "\x00"))
	return ok && err == nil
}

// find returns the principal that a key may sign for at a time.
func (a *Allowed) find(key ssh.PublicKey, at time.Time) (string, error) {
	var problems []error
	for _, s := range a.signers {
		principal, ours, err := s.allows(key, at)
		switch {
		case ours && err == nil:
			return principal, nil
		case ours:
			problems = append(problems, fmt.Errorf("%s:%d: the key %s %w", a.name, s.line, Key{key}.Fingerprint(), err))
		}
	}
	if len(problems) > 0 {
		return "", errors.Join(problems...)
	}
	return "", fmt.Errorf("it is signed by the key %s, which %s does not list: add the key if you trust its owner",
		Key{key}.Fingerprint(), a.name)
}

// allows reports whether the line is about a key, and if so for which principal it signs or why it may not.
func (s signer) allows(key ssh.PublicKey, at time.Time) (principal string, ours bool, err error) {
	cert, certified := key.(*ssh.Certificate)
	switch {
	case s.authority && certified:
		ours = bytes.Equal(cert.SignatureKey.Marshal(), s.key.Marshal())
	case !s.authority:
		// ssh-keygen accepts a certificate only by its CA, or where the certificate itself is listed.
		ours = bytes.Equal(key.Marshal(), s.key.Marshal())
	}
	if !ours {
		return "", false, nil
	}
	switch {
	case len(s.namespaces) > 0 && !s.namespaces.match(Namespace):
		return "", true, fmt.Errorf("may not sign for the namespace %s", Namespace)
	case !s.validAfter.IsZero() && at.Before(s.validAfter):
		return "", true, fmt.Errorf("is valid from %s on only", s.validAfter.Format(time.RFC3339))
	case !s.validBefore.IsZero() && at.After(s.validBefore):
		return "", true, fmt.Errorf("expired on %s", s.validBefore.Format(time.RFC3339))
	}
	if s.authority {
		principal, err = s.certified(cert, at)
		return principal, true, err
	}
	return strings.Join(s.principals, ","), true, nil
}

// certified checks a certificate of the line's CA, and returns its first principal that the line matches.
func (s signer) certified(cert *ssh.Certificate, at time.Time) (string, error) {
	if cert.CertType != ssh.UserCert {
		return "", errors.New("has a certificate that is not one of a user")
	}
	i := slices.IndexFunc(cert.ValidPrincipals, s.principals.match)
	if i < 0 {
		return "", fmt.Errorf("has a certificate for %q, none of which is allowed", cert.ValidPrincipals)
	}
	checker := ssh.CertChecker{Clock: func() time.Time { return at }}
	if err := checker.CheckCert(cert.ValidPrincipals[i], cert); err != nil {
		return "", fmt.Errorf("has a certificate that is not valid: %w", err)
	}
	return cert.ValidPrincipals[i], nil
}
