// Package ipnet implements IP addresses together with their networks, and arithmetic on both, for IPv4 and IPv6.
package ipnet

import (
	"math/big"
	"net/netip"
	"strconv"
	"strings"
)

// Net is an address and its network.
type Net struct {
	Addr      netip.Addr
	Bits      int
	IsNetwork bool // written with a prefix or a netmask
}

// Parse parses 10.0.0.1, 10.0.0.1/8, 10.0.0.1/255.0.0.0 and the IPv6 equivalents.
func Parse(s string) (Net, bool) {
	text, prefix, isNetwork := strings.Cut(strings.TrimSpace(s), "/")
	ip, err := netip.ParseAddr(text)
	if err != nil || ip.Zone() != "" {
		return Net{}, false
	}
	n := Net{Addr: ip, Bits: ip.BitLen(), IsNetwork: isNetwork}
	if !isNetwork {
		return n, true
	}
	if bits, err := strconv.ParseUint(prefix, 10, 8); err == nil {
		n.Bits = int(bits)
		return n, n.Bits <= ip.BitLen()
	}
	mask, err := netip.ParseAddr(prefix)
	if err != nil || mask.BitLen() != ip.BitLen() {
		return Net{}, false
	}
	bits, ok := MaskBits(mask)
	n.Bits = bits
	return n, ok
}

// MaskBits returns the prefix length of a netmask or a host mask.
func MaskBits(mask netip.Addr) (int, bool) {
	for bits := range mask.BitLen() + 1 {
		n := Net{Addr: mask, Bits: bits}
		if n.Netmask() == mask {
			return bits, true
		}
	}
	for bits := range mask.BitLen() + 1 {
		n := Net{Addr: mask, Bits: bits}
		if n.Hostmask() == mask {
			return bits, true
		}
	}
	return 0, false
}

// Int returns the address as a number.
func Int(a netip.Addr) *big.Int { return new(big.Int).SetBytes(a.AsSlice()) }

// FromInt returns the address with the given number, in the address family of like.
func FromInt(i *big.Int, like netip.Addr) (netip.Addr, bool) {
	size := like.BitLen() / 8
	if i.Sign() < 0 || i.BitLen() > like.BitLen() {
		return netip.Addr{}, false
	}
	return netip.AddrFromSlice(i.FillBytes(make([]byte, size)))
}

// Add returns the address plus by; ok is false when the result is outside the address family.
func Add(a netip.Addr, by int64) (netip.Addr, bool) {
	return FromInt(new(big.Int).Add(Int(a), big.NewInt(by)), a)
}

// Prefix returns the address with its prefix as a netip.Prefix.
func (n Net) Prefix() netip.Prefix { return netip.PrefixFrom(n.Addr, n.Bits) }

// Network returns the first address of the network.
func (n Net) Network() netip.Addr { return n.Prefix().Masked().Addr() }

// Size returns the number of addresses in the network.
func (n Net) Size() *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(n.Addr.BitLen()-n.Bits)) }

// Last returns the highest address of the network.
func (n Net) Last() netip.Addr {
	i := new(big.Int).Add(Int(n.Network()), n.Size())
	a, _ := FromInt(i.Sub(i, big.NewInt(1)), n.Addr)
	return a
}

// Hostmask returns the mask with the host bits set.
func (n Net) Hostmask() netip.Addr {
	i := n.Size()
	a, _ := FromInt(i.Sub(i, big.NewInt(1)), n.Addr)
	return a
}

// Netmask returns the mask with the network bits set.
func (n Net) Netmask() netip.Addr {
	all := new(big.Int).Lsh(big.NewInt(1), uint(n.Addr.BitLen()))
	a, _ := FromInt(all.Sub(all, n.Size()), n.Addr)
	return a
}

// Free returns the number of host bits: 0 means one address, 1 means two.
func (n Net) Free() int { return n.Addr.BitLen() - n.Bits }

// Usable returns the first and the last address that hosts can have.
func (n Net) Usable() (first, last netip.Addr) {
	first, last = n.Network(), n.Last()
	if n.Free() > 1 {
		first, _ = Add(first, 1)
		last, _ = Add(last, -1)
	}
	return first, last
}

// Version returns 4 or 6.
func (n Net) Version() int {
	if n.Addr.Is4() {
		return 4
	}
	return 6
}

// String returns the address with its prefix length.
func (n Net) String() string { return n.With(n.Addr) }

// With returns another address with the prefix length of n.
func (n Net) With(a netip.Addr) string { return a.String() + "/" + strconv.Itoa(n.Bits) }

// Subnet returns the network without the host part of the address.
func (n Net) Subnet() Net { return Net{Addr: n.Network(), Bits: n.Bits, IsNetwork: true} }

// Contains reports whether all of m is in n.
func (n Net) Contains(m Net) bool {
	return n.Version() == m.Version() && n.Prefix().Contains(m.Network()) && n.Prefix().Contains(m.Last())
}

// Shifted returns the address plus by, or nil when that is not a usable address of the network.
func (n Net) Shifted(by int64) any {
	first, last := n.Usable()
	a, ok := Add(n.Addr, by)
	if !ok || n.Free() == 0 || a.Less(first) || last.Less(a) {
		return nil
	}
	return a.String()
}

// Nth returns the address at index i of the network; negative indexes count from its end.
func (n Net) Nth(i int64) (netip.Addr, bool) {
	var a netip.Addr
	var ok bool
	if i < 0 {
		a, ok = Add(n.Last(), i+1)
	} else {
		a, ok = Add(n.Network(), i)
	}
	return a, ok && n.Prefix().Contains(a)
}
