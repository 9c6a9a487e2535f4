package expr

import (
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"kubekey/pkg/value"
)

func addressFilters() []filterSpec {
	return []filterSpec{
		{names: "ipaddr", params: "query version alias", do: filterIPAddr(0)},
		{names: "ipv4", params: "query", do: filterIPAddr(4)},
		{names: "ipv6", params: "query", do: filterIPAddr(6)},
		{names: "ipwrap", params: "query", do: filterIPWrap},
		{names: "ipsubnet", params: "query index", do: filterIPSubnet},
		{names: "nthhost", params: "query", do: filterNthHost},
		{names: "cidr_merge", params: "action", do: filterCIDRMerge},
		{names: "network_in_network", params: "test!", do: filterNetworkIn(false)},
		{names: "network_in_usable", params: "test!", do: filterNetworkIn(true)},
		{names: "next_nth_usable", params: "offset!", do: filterNthUsable(1)},
		{names: "previous_nth_usable", params: "offset!", do: filterNthUsable(-1)},
		{names: "reduce_on_network", params: "network!", do: filterReduceOnNetwork},
		{names: "slaac", params: "query!", do: filterSLAAC},
		{names: "hwaddr macaddr", params: "query", do: filterHWAddr},
	}
}

// bigInt is an int when it fits, and its digits otherwise.
func bigInt(i *big.Int) any {
	if i.IsInt64() {
		return int(i.Int64())
	}
	return i.String()
}

// ipValue reads what stands before the bar: a text or a number.
func ipValue(v any, version int) (ipNet, string, bool) {
	s, ok := v.(string)
	if i, isInt := v.(int); isInt {
		s, ok = strconv.Itoa(i), true
	}
	if !ok || s == "" {
		return ipNet{}, "", false
	}
	if i, ok := new(big.Int).SetString(s, 10); ok && strings.Trim(s, "0123456789") == "" {
		n, ok := numberAddr(i, version)
		return n, n.String(), ok
	}
	n, ok := parseIPNet(s)
	if number, prefix, cut := strings.Cut(s, "/"); !ok && cut {
		if i, isInt := new(big.Int).SetString(number, 10); isInt {
			if n, ok = numberAddr(i, version); ok {
				n, ok = parseIPNet(n.ip.String() + "/" + prefix)
			}
			s = n.String()
		}
	}
	return n, s, ok
}

// numberAddr is the address with a number: of IPv4 when it is small enough.
func numberAddr(i *big.Int, version int) (ipNet, bool) {
	like := netip.IPv4Unspecified()
	if version == 6 || version == 0 && i.BitLen() > 32 {
		like = netip.IPv6Unspecified()
	}
	a, ok := addrOf(i, like)
	return ipNet{ip: a, bits: like.BitLen()}, ok
}

func filterIPAddr(version int) func(*Call, any, *bound) (any, error) {
	return func(_ *Call, in any, p *bound) (any, error) {
		version := version
		if version == 0 && value.Truth(p.value("version", nil)) {
			version = p.int("version", 0)
		}
		query := p.str("query", "")
		if p.err != nil {
			return nil, p.err
		}
		list, ok := in.([]any)
		if !ok {
			return queryIP(in, query, version)
		}
		out := []any{}
		for _, v := range list {
			v, err := defined(v)
			if err != nil {
				return nil, err
			}
			found, err := queryIP(v, query, version)
			if err != nil {
				return nil, err
			}
			if value.Truth(found) {
				out = append(out, found)
			}
		}
		return out, nil
	}
}

// queryIP is false for what is no address; nil where the query has no answer.
func queryIP(v any, query string, version int) (any, error) {
	n, text, ok := ipValue(v, version)
	if !ok || version != 0 && n.version() != version {
		return false, nil
	}
	q := ipQuery{ipNet: n, text: text}
	for _, ask := range []func(string) (any, bool, error){q.part, q.kind, q.host, q.usableQuery, q.number} {
		if out, known, err := ask(query); known || err != nil {
			return out, err
		}
	}
	if in, ok := parseIPNet(query); ok {
		if in.contains(n) {
			return text, nil
		}
		return nil, nil
	}
	return nil, fmt.Errorf("unknown query %q (there are address, host, net, network, netmask, prefix, subnet, broadcast, first_usable, size, type and more)", truncateText(query))
}

// contains reports whether all of m is in n.
func (n ipNet) contains(m ipNet) bool {
	return n.version() == m.version() && n.prefix().Contains(m.network()) && n.prefix().Contains(m.last())
}

// ipQuery answers the queries of ipaddr about one address, whose text is as
// it was written. known is false when another method answers the query.
type ipQuery struct {
	ipNet
	text string
}

// when is v if the condition holds, nil otherwise.
func when(cond bool, v any) any {
	if cond {
		return v
	}
	return nil
}

// part answers what the address is made of.
func (q ipQuery) part(query string) (out any, known bool, err error) {
	switch query {
	case "":
		if q.isNetwork {
			return q.String(), true, nil
		}
		return q.ip.String(), true, nil
	case "bool":
		return true, true, nil
	case "cidr":
		return q.String(), true, nil
	case "prefix":
		return q.bits, true, nil
	case "netmask":
		return q.netmask().String(), true, nil
	case "hostmask", "wildcard":
		return q.hostmask().String(), true, nil
	case "network", "network_id":
		return q.network().String(), true, nil
	case "network/prefix", "subnet":
		return q.with(q.network()), true, nil
	case "network_netmask":
		return q.network().String() + " " + q.netmask().String(), true, nil
	case "network_wildcard":
		return q.network().String() + " " + q.hostmask().String(), true, nil
	case "broadcast":
		return when(q.free() > 1, q.last().String()), true, nil
	case "size":
		return bigInt(q.size()), true, nil
	case "version":
		return q.version(), true, nil
	case "revdns":
		return reverseName(q.ip), true, nil
	}
	return nil, false, nil
}

// kind answers what the address is for: itself, or nil when it is not.
func (q ipQuery) kind(query string) (out any, known bool, err error) {
	switch query {
	case "private":
		return when(isPrivate(q.ip), q.text), true, nil
	case "public":
		public := !q.ip.IsMulticast() && !isPrivate(q.ip) && !q.ip.IsLoopback() && !q.ip.IsUnspecified()
		if _, isMask := maskBits(q.ip); isMask {
			public = false
		}
		return when(public, q.text), true, nil
	case "unicast":
		return when(!q.ip.IsMulticast(), q.text), true, nil
	case "multicast":
		return when(q.ip.IsMulticast(), q.text), true, nil
	case "loopback", "lo":
		return when(q.ip.IsLoopback(), q.text), true, nil
	case "link-local":
		return when(q.ip.IsLinkLocalUnicast(), q.text), true, nil
	case "ipv4", "v4":
		return q.asIPv4(), true, nil
	case "ipv6", "v6":
		if q.version() == 4 {
			return netip.AddrFrom16(q.ip.As16()).String() + "/" + strconv.Itoa(96+q.bits), true, nil
		}
		return q.text, true, nil
	case "type":
		if q.free() == 0 || q.ip != q.network() {
			return "address", true, nil
		}
		return "network", true, nil
	case "wrap":
		return q.wrapped(), true, nil
	}
	return nil, false, nil
}

func (q ipQuery) asIPv4() any {
	switch {
	case q.version() == 4:
		return q.text
	case q.ip.Is4In6() && q.bits >= 96:
		return q.ip.Unmap().String() + "/" + strconv.Itoa(q.bits-96)
	}
	return false
}

func (q ipQuery) wrapped() any {
	switch {
	case q.version() == 4:
		return q.text
	case q.isNetwork:
		return "[" + q.ip.String() + "]/" + strconv.Itoa(q.bits)
	}
	return "[" + q.ip.String() + "]"
}

func isPrivate(a netip.Addr) bool {
	if a.IsPrivate() || a.IsLinkLocalUnicast() {
		return true
	}
	for _, p := range []string{"100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "239.0.0.0/8", "fec0::/10"} {
		if netip.MustParsePrefix(p).Contains(a) {
			return true
		}
	}
	return false
}

func reverseName(a netip.Addr) string {
	parts, zone := strings.Split(a.String(), "."), "in-addr.arpa."
	if !a.Is4() {
		parts, zone = strings.Split(strings.ReplaceAll(a.StringExpanded(), ":", ""), ""), "ip6.arpa."
		if a.Is4In6() {
			parts = strings.Split(fmt.Sprintf("%x", a.AsSlice()), "")
		}
	}
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i] + ".")
	}
	return b.String() + zone
}

// host answers with the address of a host, nil when it is the network's own.
func (q ipQuery) host(query string) (out any, known bool, err error) {
	ip := q.ip.String()
	ofHost := q.free() > 0 && q.ip != q.network()
	switch query {
	case "address", "ip":
		return when(q.free() <= 1 || ofHost, ip), true, nil
	case "host", "hostnet", "gateway", "gw", "router":
		if query != "host" {
			return when(ofHost, q.String()), true, nil
		}
		return when(q.free() == 0 || ofHost, q.String()), true, nil
	case "address/prefix", "host/prefix":
		if q.free() > 1 && (q.ip == q.network() || q.ip == q.last()) {
			return false, true, nil
		}
		return q.String(), true, nil
	case "ip/prefix":
		return when(q.free() == 1 || ofHost, q.String()), true, nil
	case "ip_netmask":
		return when(q.free() == 1 || ofHost, ip+" "+q.netmask().String()), true, nil
	case "ip_wildcard":
		return when(q.free() == 1 || ofHost, ip+" "+q.hostmask().String()), true, nil
	case "net":
		return when(q.free() > 0 && !ofHost, q.String()), true, nil
	case "int":
		if q.isNetwork {
			return intOf(q.ip).String() + "/" + strconv.Itoa(q.bits), true, nil
		}
		return bigInt(intOf(q.ip)), true, nil
	}
	return nil, false, nil
}

// usableQuery answers about the addresses that hosts of the network may have.
func (q ipQuery) usableQuery(query string) (out any, known bool, err error) {
	switch query {
	case "size_usable":
		n := q.size()
		if q.free() != 1 {
			n.Sub(n, big.NewInt(int64(min(2, 1+q.free()))))
		}
		return bigInt(n), true, nil
	case "first_usable", "last_usable", "range_usable", "next_usable", "previous_usable", "peer":
	default:
		return nil, false, nil
	}
	if !q.isNetwork {
		return nil, true, fmt.Errorf("%s is not a network address (%s needs a prefix, as in 10.0.0.1/24)", q.text, query)
	}
	if query == "peer" {
		out, err = q.peer()
		return out, true, err
	}
	if q.free() == 0 {
		return nil, true, nil
	}
	first, last := q.usable()
	switch query {
	case "first_usable":
		return first.String(), true, nil
	case "last_usable":
		return last.String(), true, nil
	case "range_usable":
		return first.String() + "-" + last.String(), true, nil
	case "next_usable":
		return q.shifted(1), true, nil
	}
	return q.shifted(-1), true, nil
}

// shifted is the usable address so many further on, nil when there is none.
func (n ipNet) shifted(by int64) any {
	first, last := n.usable()
	a, ok := plusInt(n.ip, by)
	if !ok || n.free() == 0 || a.Less(first) || last.Less(a) {
		return nil
	}
	return a.String()
}

// peer is the other end of a point-to-point network.
func (q ipQuery) peer() (any, error) {
	flip := int64(1)
	switch q.free() {
	case 1:
	case 2:
		if q.ip == q.network() || q.ip == q.last() {
			return nil, fmt.Errorf("%s is the network or broadcast address and has no peer", q.text)
		}
		flip = 3
	default:
		return nil, fmt.Errorf("%s is not in a point-to-point network", q.text)
	}
	a, _ := addrOf(new(big.Int).Xor(intOf(q.ip), big.NewInt(flip)), q.ip)
	return a.String(), nil
}

// number answers a number: that address of the network, counted from 0 or from the end.
func (q ipQuery) number(query string) (out any, known bool, err error) {
	i, err := strconv.ParseInt(query, 10, 64)
	if err != nil {
		return nil, false, nil
	}
	if q.free() == 0 {
		out, _, _ = q.part("")
		return out, true, nil
	}
	a, ok := q.nth(i)
	if !ok {
		return false, true, nil
	}
	return q.with(a), true, nil
}

func (n ipNet) nth(i int64) (netip.Addr, bool) {
	var a netip.Addr
	var ok bool
	if i < 0 {
		a, ok = plusInt(n.last(), i+1)
	} else {
		a, ok = plusInt(n.network(), i)
	}
	return a, ok && n.prefix().Contains(a)
}
