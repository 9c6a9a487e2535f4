package schema

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// OneLine accepts texts without line ends.
func OneLine(text string) bool { return !strings.ContainsAny(text, "\r\n\x00") }

// NoDash accepts words that a command does not read as an option.
func NoDash(text string) bool { return OneLine(text) && !strings.HasPrefix(text, "-") }

// Absolute accepts absolute paths.
func Absolute(text string) bool { return strings.HasPrefix(text, "/") && OneLine(text) }

// Text is an optional text, "" when it was not given.
func Text(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// Address requires a URL with a host and one of the given schemes, or any scheme when none are given. Only file
// URLs need no host.
func Address(arg string, schemes ...string) Rule {
	what := "an address such as https://host/path"
	if len(schemes) > 0 && !slices.Contains(schemes, "https") {
		what = "an address such as " + schemes[0] + "://host/path"
	}
	return Parses(what, func(text string) error { return checkURL(arg, what, text, schemes) }, arg)
}

// AddressOr is Address that also accepts texts that are not URLs: those that do not begin with SCHEME://.
func AddressOr(other, arg string, schemes ...string) Rule {
	what := other + ", or " + Address(arg, schemes...).What
	return Parses(what, func(text string) error {
		if !beginsURL.MatchString(text) {
			return nil
		}
		return checkURL(arg, what, text, schemes)
	}, arg)
}

func checkURL(arg, what, text string, schemes []string) error {
	why := wrongURL(text, schemes)
	if why == "" {
		return nil
	}
	if !strings.ContainsAny(text, "@?") { // otherwise it can contain a password
		why += ", got " + got(text)
	}
	return errors.New(arg + " must be " + what + ": " + why)
}

var beginsURL = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`)

// wrongURL describes the problem of a URL without quoting any part of it.
func wrongURL(text string, schemes []string) string {
	scheme, _, _ := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	u, err := url.Parse(text)
	switch {
	case !beginsURL.MatchString(text) && scheme != "file":
		return "it does not begin with a scheme and ://"
	case len(schemes) > 0 && !slices.Contains(schemes, scheme):
		return "the scheme is none of " + strings.Join(schemes, ", ")
	case err != nil && strings.Contains(err.Error(), "invalid port"):
		return "the port is no number"
	case err != nil:
		return "it cannot be parsed"
	case u.Hostname() == "" && u.Scheme != "file":
		return "it has no host"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "the port is none from 1 to 65535"
		}
	}
	return ""
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// Host reports whether a text is a host name or an IP address, without a port.
func Host(text string) bool { return hostName.MatchString(text) || net.ParseIP(text) != nil }
