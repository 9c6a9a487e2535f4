package ansibleutils

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/ipnet"
	"kubekey/pkg/value"
)

// addressTests returns the address tests of ansible.utils. Invalid addresses fail them.
func addressTests() []expr.Test {
	specs := []expr.Test{
		ofNetwork("ip", func(netip.Prefix) bool { return true }),
		ofNetwork("ipv4", func(p netip.Prefix) bool { return p.Addr().Is4() }),
		ofNetwork("ipv6", func(p netip.Prefix) bool { return p.Addr().Is6() }),
		ofAddress("ip_address", func(netip.Addr) bool { return true }),
		ofAddress("ipv4_address", netip.Addr.Is4),
		ofAddress("ipv6_address", netip.Addr.Is6),
		ofAddress("ipv6_ipv4_mapped", within("::ffff:0:0/96")),
		ofAddress("ipv6_sixtofour", within("2002::/16")),
		ofAddress("ipv6_teredo", within("2001::/32")),
		ofAddress("loopback", within("127.0.0.0/8", "::1/128")),
		ofAddress("multicast", netip.Addr.IsMulticast),
		ofAddress("unspecified", netip.Addr.IsUnspecified),
		ofAddress("reserved", within("240.0.0.0/4", "::/8", "100::/8", "200::/7", "400::/6", "800::/5", "1000::/4",
			"4000::/3",
			"6000::/3", "8000::/3", "a000::/3", "c000::/3", "e000::/4", "f000::/5", "f800::/6", "fe00::/9")),
		ofText("ipv4_netmask", func(s string) bool { return isMask(s, ipnet.Net.Netmask) }),
		ofText("ipv4_hostmask", func(s string) bool { return isMask(s, ipnet.Net.Hostmask) }),
		ofText("mac", regexp.MustCompile(`(?i)^(?:(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}[0-9a-f]{4}|[0-9a-f]{12})$`).MatchString),
	}
	shared := within("100.64.0.0/10")
	isPrivate := privateTest()
	return append(specs,
		ofAddress("private", isPrivate),
		ofAddress("public", func(a netip.Addr) bool { return !isPrivate(a) && !shared(a.Unmap()) }),
		ofTwo("in_network subnet_of", "network!", func(a, b netip.Prefix) bool { return holds(b, a) }),
		ofTwo("supernet_of", "network!", holds),
		inNetworks("in_any_network", func(n int) bool { return n > 0 }),
		inNetworks("in_one_network", func(n int) bool { return n == 1 }),
	)
}

// privateTest returns a test for the addresses that are not globally reachable according to the IANA registries,
// with the same result as Python's ipaddress.
func privateTest() func(netip.Addr) bool {
	private := within("0.0.0.0/8", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
		"192.0.0.170/31",
		"192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"::/127", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "fc00::/7",
		"fe80::/10")
	reachable := within("192.0.0.9/32", "192.0.0.10/32", "2001:1::1/128", "2001:1::2/128", "2001:3::/32",
		"2001:4:112::/48", "2001:20::/28", "2001:30::/28")
	return func(a netip.Addr) bool {
		a = a.Unmap()
		return private(a) && !reachable(a)
	}
}

func ofText(name string, is func(string) bool) expr.Test {
	return expr.Test{Names: name, Of: "ansible.utils", Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) {
		s, ok := in.(string)
		return ok && is(s), nil
	}}
}

func ofAddress(name string, is func(netip.Addr) bool) expr.Test {
	return ofText(name, func(s string) bool {
		a, err := netip.ParseAddr(s)
		return err == nil && is(a)
	})
}

func ofNetwork(name string, is func(netip.Prefix) bool) expr.Test {
	return ofText(name, func(s string) bool {
		p, ok := strictNetwork(s)
		return ok && is(p)
	})
}

func ofTwo(names, params string, is func(in, other netip.Prefix) bool) expr.Test {
	return expr.Test{Names: names, Of: "ansible.utils", Params: params,
		Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
			a, ok := strictNetwork(value.Str(in))
			b, fine := strictNetwork(p.Str("network", ""))
			return ok && fine && is(a, b), nil
		}}
}

func inNetworks(name string, enough func(int) bool) expr.Test {
	return expr.Test{Names: name, Of: "ansible.utils", Params: "networks!",
		Do: func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
			a, ok := strictNetwork(value.Str(in))
			found := 0
			for _, v := range p.List("networks") {
				if b, fine := strictNetwork(value.Str(v)); ok && fine && holds(b, a) {
					found++
				}
			}
			return enough(found), nil
		}}
}

// strictNetwork parses a network or an address. Bits set beyond the prefix make it invalid.
func strictNetwork(s string) (netip.Prefix, bool) {
	n, ok := ipnet.Parse(s)
	if !ok || strings.TrimSpace(s) != s {
		return netip.Prefix{}, false
	}
	p := netip.PrefixFrom(n.Addr, n.Bits)
	return p, p == p.Masked()
}

// holds reports whether a network contains all addresses of another.
func holds(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// within returns a test for the addresses in some networks.
func within(networks ...string) func(netip.Addr) bool {
	all := make([]netip.Prefix, len(networks))
	for i, n := range networks {
		all[i] = netip.MustParsePrefix(n)
	}
	return func(a netip.Addr) bool {
		return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
	}
}

// isMask reports whether a text is the mask of a prefix length, written in full.
func isMask(s string, mask func(ipnet.Net) netip.Addr) bool {
	n, ok := ipnet.Parse("10.0.0.0/" + s)
	return ok && mask(n).String() == s
}
