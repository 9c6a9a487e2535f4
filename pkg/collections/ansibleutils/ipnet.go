package ansibleutils

import (
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/ipnet"
	"kubekey/pkg/value"
)

// filterIPSubnet counts subnets, selects one, or returns the position of one.
func filterIPSubnet(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	n, ok := filters.NetworkOf(in)
	if !ok {
		return false, nil
	}
	query, hasIndex, index := p.Str("query", ""), p.Value("index", nil) != nil, p.Int("index", 0)
	if p.Err != nil {
		return nil, p.Err
	}
	if query == "" {
		return n.String(), nil
	}
	if bits, err := strconv.Atoi(query); err == nil && bits >= 0 {
		return subnetQuery(n, bits, hasIndex, int64(index)), nil
	}
	outer, ok := filters.NetworkOf(query)
	if !ok {
		return nil, fmt.Errorf("%q is neither a prefix length nor a subnet or address", expr.Shorten(query))
	}
	outer, n = outer.Subnet(), n.Subnet()
	if n.Bits < outer.Bits || !outer.Contains(n) {
		return nil, fmt.Errorf("%s is not in the subnet %s", n, outer)
	}
	place := new(big.Int).Sub(ipnet.Int(n.Addr), ipnet.Int(outer.Addr))
	place.Rsh(place, uint(n.Free()))
	return place.Add(place, big.NewInt(1)).String(), nil
}

func subnetQuery(n ipnet.Net, bits int, hasIndex bool, index int64) any {
	if n.Free() == 0 {
		return supernet(n, bits, index)
	}
	if bits > n.Addr.BitLen() || bits < n.Bits {
		if hasIndex {
			return false
		}
		return "0"
	}
	count := new(big.Int).Lsh(big.NewInt(1), uint(bits-n.Bits))
	if !hasIndex {
		return count.String()
	}
	at := big.NewInt(index)
	if index < 0 {
		at.Add(at, count)
	}
	if at.Sign() < 0 || at.Cmp(count) >= 0 {
		return false
	}
	at.Lsh(at, uint(n.Addr.BitLen()-bits))
	a, _ := ipnet.FromInt(at.Add(at, ipnet.Int(n.Network())), n.Addr)
	return ipnet.Net{Addr: a, Bits: bits}.String()
}

// supernet returns one of the networks that contain an address. Index 0 is the network with the given prefix
// length; higher indexes are smaller networks.
func supernet(n ipnet.Net, bits int, index int64) any {
	count := int64(n.Bits - bits)
	if index < 0 {
		index += count
	}
	if index < 0 || index >= count {
		return false
	}
	return ipnet.Net{Addr: n.Addr, Bits: bits + int(index)}.Subnet().String()
}

func filterNthHost(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	n, ok := filters.NetworkOf(in)
	if !ok || !p.Has("query") {
		return false, nil
	}
	a, ok := n.Nth(int64(p.Int("query", 0)))
	if !ok {
		return false, nil
	}
	return a.String(), nil
}

func ipList(in any) ([]ipnet.Net, error) {
	list, err := expr.ListItems(in)
	if err != nil {
		return nil, err
	}
	out := make([]ipnet.Net, len(list))
	for i, v := range list {
		v, err := expr.Defined(v)
		if err != nil {
			return nil, err
		}
		n, _, ok := filters.ParseAddress(v, 0)
		if !ok {
			return nil, fmt.Errorf("%s is not an address or network", value.Repr(v))
		}
		out[i] = n.Subnet()
	}
	return out, nil
}

// filterCIDRMerge returns the smallest number of networks that cover the same addresses, or with "span" the one
// network that contains all of them.
func filterCIDRMerge(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	nets, err := ipList(in)
	if err != nil {
		return nil, err
	}
	switch action := p.Str("action", "merge"); action {
	case "merge":
		out := []any{}
		for _, n := range mergeNets(nets) {
			out = append(out, n.String())
		}
		return out, nil
	case "span":
		return spanning(nets)
	default:
		return nil, fmt.Errorf("argument action must be merge or span, not %q", action)
	}
}

func mergeNets(nets []ipnet.Net) []ipnet.Net {
	slices.SortFunc(nets, func(a, b ipnet.Net) int {
		if c := a.Addr.Compare(b.Addr); c != 0 {
			return c
		}
		return a.Bits - b.Bits
	})
	var out []ipnet.Net
	for _, n := range nets {
		if len(out) > 0 && out[len(out)-1].Contains(n) {
			continue
		}
		out = append(out, n)
		for len(out) > 1 {
			a, b := out[len(out)-2], out[len(out)-1]
			both := ipnet.Net{Addr: a.Addr, Bits: a.Bits - 1, IsNetwork: true}
			if a.Bits != b.Bits || a.Bits == 0 || a.Version() != b.Version() || both.Network() != a.Addr || !both.Contains(b) {
				break
			}
			out = append(out[:len(out)-2], both)
		}
	}
	return out
}

func spanning(nets []ipnet.Net) (any, error) {
	if len(nets) < 2 {
		return nil, fmt.Errorf("span needs two or more networks")
	}
	span := nets[0]
	for _, n := range nets {
		if n.Version() != span.Version() {
			return nil, fmt.Errorf("IPv4 and IPv6 have no network in common")
		}
		span.Bits = min(span.Bits, n.Bits)
		for !span.Contains(n) {
			span.Bits--
		}
	}
	return span.Subnet().String(), nil
}

func filterNthUsable(sign int64) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
		n, ok := filters.NetworkOf(in)
		if !ok {
			return false, nil
		}
		return n.Shifted(sign * int64(p.Int("offset", 0))), nil
	}
}

// filterReduceOnNetwork returns the addresses that are in a network.
func filterReduceOnNetwork(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.ListItems(in)
	if err != nil {
		return nil, err
	}
	outer, _, ok := filters.ParseAddress(p.Value("network", nil), 0)
	if !ok {
		return nil, fmt.Errorf("argument network must be a network, not %s", value.Repr(p.Raw("network", nil)))
	}
	out := []any{}
	for _, v := range list {
		v, err := expr.Defined(v)
		if err != nil {
			return nil, err
		}
		if n, _, ok := filters.ParseAddress(v, 0); ok && outer.Contains(n) {
			out = append(out, v)
		}
	}
	return out, nil
}

// filterSLAAC returns the address that a network interface assigns itself in a network.
func filterSLAAC(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	n, ok := filters.NetworkOf(in)
	if !ok || n.Version() != 6 {
		return false, nil
	}
	mac, ok := parseMAC(p.Str("query", ""))
	if !ok {
		return nil, fmt.Errorf("%q is not a hardware address", p.Str("query", ""))
	}
	a := n.Network().As16()
	copy(a[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	return netip.AddrFrom16(a).String(), nil
}

// parseMAC parses the usual notations of a six-byte hardware address.
func parseMAC(s string) (net.HardwareAddr, bool) {
	digits := strings.NewReplacer(":", "", "-", "", ".", "").Replace(s)
	n, err := strconv.ParseUint(digits, 16, 48)
	if mac, err := net.ParseMAC(s); err == nil {
		return mac, len(mac) == 6
	}
	pgsql := strings.Count(s, ":") == 1 && len(s) == 13
	if err != nil || len(digits) != 12 || len(s) != 12 && !pgsql {
		return nil, false
	}
	out := make(net.HardwareAddr, 6)
	for i := range out {
		out[i] = byte(n >> (8 * (5 - i)))
	}
	return out, true
}

func filterHWAddr(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	query := p.Str("query", "")
	mac, ok := parseMAC(s)
	switch {
	case !ok && (query == "" || query == "bool"):
		return false, nil
	case !ok:
		return nil, fmt.Errorf("%q is not a hardware address", expr.Shorten(s))
	case query == "":
		return s, nil
	case query == "bool":
		return true, nil
	}
	return formatMAC(mac, query)
}

func formatMAC(mac net.HardwareAddr, query string) (any, error) {
	hex := fmt.Sprintf("%x", []byte(mac))
	switch query {
	case "int":
		n, _ := strconv.ParseInt(hex, 16, 64)
		return int(n), nil
	case "bare":
		return strings.ToUpper(hex), nil
	case "cisco":
		return hex[:4] + "." + hex[4:8] + "." + hex[8:], nil
	case "pgsql", "postgresql", "psql":
		return hex[:6] + ":" + hex[6:], nil
	case "linux":
		return mac.String(), nil
	case "unix":
		parts := make([]string, len(mac))
		for i, b := range mac {
			parts[i] = strconv.FormatUint(uint64(b), 16)
		}
		return strings.Join(parts, ":"), nil
	case "win", "eui48":
		return strings.ToUpper(strings.ReplaceAll(mac.String(), ":", "-")), nil
	}
	return nil, fmt.Errorf("unknown query %q (there are bool, int, bare, cisco, linux, unix, pgsql, win, eui48)", query)
}
