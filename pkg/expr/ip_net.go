package expr

import (
	"math/big"
	"net/netip"
	"strconv"
	"strings"
)

// ipNet is an address and the network it is in.
type ipNet struct {
	ip        netip.Addr
	bits      int
	isNetwork bool // written with a prefix
}

// parseIPNet reads 10.0.0.1, 10.0.0.1/8, 10.0.0.1/255.0.0.0 and their like of IPv6.
func parseIPNet(s string) (ipNet, bool) {
	text, prefix, isNetwork := strings.Cut(strings.TrimSpace(s), "/")
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" {
		return ipNet{}, false
	}
	n := ipNet{ip: ip, bits: ip.BitLen(), isNetwork: isNetwork}
	if !isNetwork {
		return n, true
	}
	if bits, err := strconv.ParseUint(prefix, 10, 8); err == nil {
		n.bits = int(bits)
		return n, n.bits <= ip.BitLen()
	}
	mask, err := netip.ParseAddr(prefix)
	if err != nil || mask.BitLen() != ip.BitLen() {
		return ipNet{}, false
	}
	bits, ok := maskBits(mask)
	n.bits = bits
	return n, ok
}

// maskBits is the prefix length of a netmask, or of a host mask.
func maskBits(mask netip.Addr) (int, bool) {
	for bits := range mask.BitLen() + 1 {
		n := ipNet{ip: mask, bits: bits}
		if n.netmask() == mask {
			return bits, true
		}
	}
	for bits := range mask.BitLen() + 1 {
		n := ipNet{ip: mask, bits: bits}
		if n.hostmask() == mask {
			return bits, true
		}
	}
	return 0, false
}

func intOf(a netip.Addr) *big.Int { return new(big.Int).SetBytes(a.AsSlice()) }

// addrOf is the address with a number, in the family of like.
func addrOf(i *big.Int, like netip.Addr) (netip.Addr, bool) {
	size := like.BitLen() / 8
	if i.Sign() < 0 || i.BitLen() > like.BitLen() {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(i.FillBytes(make([]byte, size)))
}

func plusInt(a netip.Addr, by int64) (netip.Addr, bool) {
	return addrOf(new(big.Int).Add(intOf(a), big.NewInt(by)), a)
}

func (n ipNet) prefix() netip.Prefix { return netip.PrefixFrom(n.ip, n.bits) }

func (n ipNet) network() netip.Addr { return n.prefix().Masked().Addr() }

func (n ipNet) size() *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(n.ip.BitLen()-n.bits)) }

// last is the highest address of the network.
func (n ipNet) last() netip.Addr {
	i := new(big.Int).Add(intOf(n.network()), n.size())
	a, _ := addrOf(i.Sub(i, big.NewInt(1)), n.ip)
	return a
}

func (n ipNet) hostmask() netip.Addr {
	i := n.size()
	a, _ := addrOf(i.Sub(i, big.NewInt(1)), n.ip)
	return a
}

func (n ipNet) netmask() netip.Addr {
	all := new(big.Int).Lsh(big.NewInt(1), uint(n.ip.BitLen()))
	a, _ := addrOf(all.Sub(all, n.size()), n.ip)
	return a
}

// free is how many bits are left for hosts: 0 is one address, 1 two.
func (n ipNet) free() int { return n.ip.BitLen() - n.bits }

// usable are the first and last address that hosts may have.
func (n ipNet) usable() (first, last netip.Addr) {
	first, last = n.network(), n.last()
	if n.free() > 1 {
		first, _ = plusInt(first, 1)
		last, _ = plusInt(last, -1)
	}
	return first, last
}

func (n ipNet) version() int {
	if n.ip.Is4() {
		return 4
	}
	return 6
}

// String is the address with its prefix.
func (n ipNet) String() string { return n.with(n.ip) }

func (n ipNet) with(a netip.Addr) string { return a.String() + "/" + strconv.Itoa(n.bits) }

func (n ipNet) subnet() ipNet { return ipNet{ip: n.network(), bits: n.bits, isNetwork: true} }
