package config

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// formats returns the text formats that a schema can require. Empty text matches every format: a schema rejects it
// with minLength.
func formats() map[string]func(string) error {
	return map[string]func(string) error{
		"address":   address,
		"cidr":      cidr,
		"cidrs":     cidrs,
		"host-name": hostName,
		"host-path": hostPath,
		"version":   version,
		"duration":  duration,
		"calendar":  calendar,
	}
}

// text converts a check of text to a check of any value.
func text(check func(string) error) func(any) error {
	return func(v any) error {
		s, ok := v.(string)
		if !ok || s == "" || IsTemplate(s) {
			return nil
		}
		return check(s)
	}
}

func address(s string) error {
	if _, err := netip.ParseAddr(s); err != nil {
		return errors.New("is no IPv4 or IPv6 address")
	}
	return nil
}

// cidr checks a network range. Bits set beyond the prefix are an error.
func cidr(s string) error {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil && !strings.Contains(s, "/"):
		return errors.New("is no range of addresses: a prefix length is missing, as in 10.233.64.0/18")
	case err != nil:
		return errors.New("is no range of addresses, as in 10.233.64.0/18 or fd85::/56")
	case p != p.Masked():
		return fmt.Errorf("has bits set beyond its prefix: the range is %s", p.Masked())
	}
	return nil
}

// cidrs checks one range, or one per address family for dual stack: v4,v6 or v4/v6.
func cidrs(s string) error {
	parts := strings.Split(s, ",")
	if len(parts) == 1 {
		if f := strings.Split(s, "/"); len(f) == 4 {
			parts = []string{f[0] + "/" + f[1], f[2] + "/" + f[3]}
		}
	}
	var four, six int
	for _, p := range parts {
		p = strings.TrimSpace(p)
		err := cidr(p)
		if err == nil {
			err = usable(p)
		}
		if err != nil {
			if len(parts) == 1 {
				return err
			}
			return fmt.Errorf("holds %s, which %s", p, err)
		}
		if strings.Contains(p, ":") {
			six++
		} else {
			four++
		}
	}
	if four > 1 || six > 1 {
		return errors.New("has two ranges of one family: dual stack is one of each, as in 10.233.64.0/18,fd85::/56")
	}
	return nil
}

// usable rejects ranges with addresses that no machine can have.
func usable(s string) error {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return err
	}
	for _, r := range []struct{ prefix, what string }{
		{"0.0.0.0/8", "of this network"}, {"127.0.0.0/8", "of the host itself (loopback)"},
		{"169.254.0.0/16", "of a single link"},
		{"224.0.0.0/4", "of groups (multicast)"}, {"240.0.0.0/4", "that are reserved"},
		{"::/127", "of the host itself (loopback)"}, {"::ffff:0:0/96", "of IPv4"}, {"fe80::/10", "of a single link"},
		{"ff00::/8", "of groups (multicast)"},
	} {
		if reserved := netip.MustParsePrefix(r.prefix); p.Overlaps(reserved) {
			return fmt.Errorf("has addresses %s, in %s: choose a private range, as 10.233.64.0/18 or fd85::/56", r.what,
				reserved)
		}
	}
	return nil
}

func hostName(s string) error {
	pattern := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)
	if len(s) > 253 || !pattern.MatchString(s) {
		return errors.New(`is no host name: lower-case letters, digits, "." and "-", with a letter or digit first and last`)
	}
	return nil
}

func hostPath(s string) error {
	if !strings.HasPrefix(s, "/") {
		return errors.New("is no absolute path")
	}
	return nil
}

func version(s string) error {
	if regexp.MustCompile(`^v?\d+\.\d+(\.(\d+([-+.][0-9A-Za-z.-]+)?|x))?$`).MatchString(s) {
		return nil
	}
	return errors.New("is no version, as in v1.34.4")
}

func duration(s string) error {
	if regexp.MustCompile(`^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h))+$`).MatchString(s) {
		return nil
	}
	return errors.New("is no duration, as in 30s, 10m or 8h")
}
