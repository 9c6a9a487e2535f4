package certs

import (
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Names are the subject alternative names of one certificate, by type and without duplicates.
type Names struct {
	DNS, Email []string
	IP         []net.IP
	URI        []*url.URL
}

// ParseNames determines the types of names. The error names the entry.
func ParseNames(texts []string) (Names, error) {
	var n Names
	for i, text := range texts {
		if err := n.add(text); err != nil {
			return Names{}, fmt.Errorf("sans[%d]: %w", i, err)
		}
	}
	return n, nil
}

func (n *Names) add(text string) error {
	kind, rest := kindOf(text)
	switch kind {
	case "ip":
		return n.addIP(rest)
	case "uri":
		return n.addURI(rest)
	case "email":
		return n.addEmail(rest)
	}
	return n.addDNS(rest)
}

// kindOf determines the type of a name.
func kindOf(text string) (kind, rest string) {
	text = strings.TrimSpace(text)
	if prefix, rest, ok := strings.Cut(text, ":"); ok {
		switch p := strings.ToLower(prefix); p {
		case "dns", "ip", "uri", "email":
			return p, strings.TrimSpace(rest)
		}
	}
	switch {
	case strings.Contains(text, "://"):
		return "uri", text
	case strings.Contains(text, "@"):
		return "email", text
	case looksLikeIP(text):
		return "ip", text
	}
	return "dns", text
}

// looksLikeIP accepts everything that was probably meant as an address, so that the error is about
// an address.
func looksLikeIP(text string) bool {
	last := text[strings.LastIndexByte(text, '.')+1:]
	return strings.Contains(text, ":") || last != "" && strings.Trim(last, "0123456789/") == ""
}

func (n *Names) addIP(text string) error {
	a, err := netip.ParseAddr(text)
	switch {
	case strings.Contains(text, "/"):
		return fmt.Errorf("%q is a network; a certificate names single addresses", text)
	case err != nil:
		return fmt.Errorf("%q is not an IP address", text)
	case a.Zone() != "":
		return fmt.Errorf("%q has a zone, which a certificate cannot contain", text)
	}
	ip := net.IP(a.Unmap().AsSlice())
	if !slices.ContainsFunc(n.IP, ip.Equal) {
		n.IP = append(n.IP, ip)
	}
	return nil
}

func (n *Names) addURI(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" && u.Opaque == "" && u.Path == "" || !printable(text) {
		return fmt.Errorf("%q is not a URI", text)
	}
	if host := u.Hostname(); u.Host != "" && !isAddress(host) && CheckDNS(host) != nil {
		return fmt.Errorf("%q names the host %q, which is neither a DNS name nor an IP address", text, host)
	}
	if !slices.ContainsFunc(n.URI, func(have *url.URL) bool { return have.String() == u.String() }) {
		n.URI = append(n.URI, u)
	}
	return nil
}

// isAddress reports whether a URI's host is an address: one without a zone.
func isAddress(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Zone() == ""
}

func (n *Names) addEmail(text string) error {
	a, err := mail.ParseAddress(text)
	if err != nil || a.Address != text || !printable(text) {
		return fmt.Errorf("%q is not an email address", text)
	}
	if !slices.Contains(n.Email, text) {
		n.Email = append(n.Email, text)
	}
	return nil
}

func (n *Names) addDNS(text string) error {
	if err := CheckDNS(text); err != nil {
		return err
	}
	if text = strings.ToLower(text); !slices.Contains(n.DNS, text) {
		n.DNS = append(n.DNS, text)
	}
	return nil
}

// CheckDNS reports why a text is not a DNS name.
func CheckDNS(text string) error {
	switch {
	case text == "":
		return fmt.Errorf("is empty")
	case !printable(text):
		return fmt.Errorf("%q has characters beyond ASCII; write such a name as punycode (xn--...)", text)
	case len(text) > 253:
		return fmt.Errorf("%q is longer than 253 characters", text)
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(text, "*."), ".") {
		if len(label) == 0 || len(label) > 63 || strings.Trim(strings.ToLower(label),
			"abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || !wordEdges(label) {
			return fmt.Errorf("%q is not a DNS name", text)
		}
	}
	return nil
}

// wordEdges reports whether a label neither begins nor ends with a hyphen.
func wordEdges(label string) bool {
	return !strings.HasPrefix(label, "-") && !strings.HasSuffix(label, "-")
}

// printable reports whether text is ASCII without spaces and control characters, as required for
// names in certificates.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
