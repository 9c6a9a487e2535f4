package filters

import (
	"fmt"
	"math/big"
	"net/netip"
	"strconv"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/ipnet"
	"kubekey/pkg/value"
)

// UtilsCollections are the collections that have the filters for addresses. The filters were in the second one
// first.
const UtilsCollections = "ansible.utils ansible.netcommon"

func addressFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "ipaddr", Of: UtilsCollections, Params: "query version alias", Do: filterIPAddr(0)},
		{Names: "ipv4", Of: UtilsCollections, Params: "query", Do: filterIPAddr(4)},
		{Names: "ipv6", Of: UtilsCollections, Params: "query", Do: filterIPAddr(6)},
		{Names: "ipwrap", Of: UtilsCollections, Params: "query", Do: filterIPWrap},
		{Names: "network_in_network", Of: UtilsCollections, Params: "test!", Do: FilterNetworkIn(false)},
	}
}

// bigInt returns an int when the number fits, and its digits otherwise.
func bigInt(i *big.Int) any {
	if i.IsInt64() {
		return int(i.Int64())
	}
	return i.String()
}

// ParseAddress parses the value before the bar: a text or a number.
func ParseAddress(v any, version int) (ipnet.Net, string, bool) {
	s, ok := v.(string)
	if i, isInt := v.(int); isInt {
		s, ok = strconv.Itoa(i), true
	}
	if !ok || s == "" {
		return ipnet.Net{}, "", false
	}
	if i, ok := new(big.Int).SetString(s, 10); ok && strings.Trim(s, "0123456789") == "" {
		n, ok := numberAddr(i, version)
		return n, n.String(), ok
	}
	n, ok := ipnet.Parse(s)
	if number, prefix, cut := strings.Cut(s, "/"); !ok && cut {
		if i, isInt := new(big.Int).SetString(number, 10); isInt {
			if n, ok = numberAddr(i, version); ok {
				n, ok = ipnet.Parse(n.Addr.String() + "/" + prefix)
			}
			s = n.String()
		}
	}
	return n, s, ok
}

// numberAddr returns the address with a number; an IPv4 address when the number is small enough and no version is
// given.
func numberAddr(i *big.Int, version int) (ipnet.Net, bool) {
	like := netip.IPv4Unspecified()
	if version == 6 || version == 0 && i.BitLen() > 32 {
		like = netip.IPv6Unspecified()
	}
	a, ok := ipnet.FromInt(i, like)
	return ipnet.Net{Addr: a, Bits: like.BitLen()}, ok
}

func filterIPAddr(version int) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
		version := version
		if version == 0 && value.Truth(p.Value("version", nil)) {
			version = p.Int("version", 0)
		}
		query := p.Str("query", "")
		if p.Err != nil {
			return nil, p.Err
		}
		list, ok := in.([]any)
		if !ok {
			return queryIP(in, query, version)
		}
		out := []any{}
		for _, v := range list {
			v, err := expr.Defined(v)
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

// queryIP returns false for a value that is not an address, and nil when the query has no answer.
func queryIP(v any, query string, version int) (any, error) {
	n, text, ok := ParseAddress(v, version)
	if !ok || version != 0 && n.Version() != version {
		return false, nil
	}
	q := ipQuery{Net: n, text: text}
	for _, ask := range []func(string) (any, bool, error){q.part, q.kind, q.host, q.usableQuery, q.number} {
		if out, known, err := ask(query); known || err != nil {
			return out, err
		}
	}
	if in, ok := ipnet.Parse(query); ok {
		if in.Contains(n) {
			return text, nil
		}
		return nil, nil
	}
	return nil, fmt.Errorf("unknown query %q (there are address, host, net, network, netmask, prefix, subnet, "+
		"broadcast, first_usable, size, type and more)", expr.Shorten(query))
}

// ipQuery answers the queries of ipaddr about one address; text is the address as it was written. known is false
// when another method answers the query.
type ipQuery struct {
	ipnet.Net
	text string
}

// when returns v if the condition holds, nil otherwise.
func when(cond bool, v any) any {
	if cond {
		return v
	}
	return nil
}

// part returns a part of the address.
func (q ipQuery) part(query string) (out any, known bool, err error) {
	switch query {
	case "":
		if q.IsNetwork {
			return q.String(), true, nil
		}
		return q.Addr.String(), true, nil
	case "bool":
		return true, true, nil
	case "cidr":
		return q.String(), true, nil
	case "prefix":
		return q.Bits, true, nil
	case "netmask":
		return q.Netmask().String(), true, nil
	case "hostmask", "wildcard":
		return q.Hostmask().String(), true, nil
	case "network", "network_id":
		return q.Network().String(), true, nil
	case "network/prefix", "subnet":
		return q.With(q.Network()), true, nil
	case "network_netmask":
		return q.Network().String() + " " + q.Netmask().String(), true, nil
	case "network_wildcard":
		return q.Network().String() + " " + q.Hostmask().String(), true, nil
	case "broadcast":
		return when(q.Free() > 1, q.Last().String()), true, nil
	case "size":
		return bigInt(q.Size()), true, nil
	case "version":
		return q.Version(), true, nil
	case "revdns":
		return reverseName(q.Addr), true, nil
	}
	return nil, false, nil
}

// kind returns the address if it is of the kind in the query, nil otherwise.
func (q ipQuery) kind(query string) (out any, known bool, err error) {
	switch query {
	case "private":
		return when(isPrivate(q.Addr), q.text), true, nil
	case "public":
		public := !q.Addr.IsMulticast() && !isPrivate(q.Addr) && !q.Addr.IsLoopback() && !q.Addr.IsUnspecified()
		if _, isMask := ipnet.MaskBits(q.Addr); isMask {
			public = false
		}
		return when(public, q.text), true, nil
	case "unicast":
		return when(!q.Addr.IsMulticast(), q.text), true, nil
	case "multicast":
		return when(q.Addr.IsMulticast(), q.text), true, nil
	case "loopback", "lo":
		return when(q.Addr.IsLoopback(), q.text), true, nil
	case "link-local":
		return when(q.Addr.IsLinkLocalUnicast(), q.text), true, nil
	case "ipv4", "v4":
		return q.asIPv4(), true, nil
	case "ipv6", "v6":
		if q.Version() == 4 {
			return netip.AddrFrom16(q.Addr.As16()).String() + "/" + strconv.Itoa(96+q.Bits), true, nil
		}
		return q.text, true, nil
	case "type":
		if q.Free() == 0 || q.Addr != q.Network() {
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
	case q.Version() == 4:
		return q.text
	case q.Addr.Is4In6() && q.Bits >= 96:
		return q.Addr.Unmap().String() + "/" + strconv.Itoa(q.Bits-96)
	}
	return false
}

func (q ipQuery) wrapped() any {
	switch {
	case q.Version() == 4:
		return q.text
	case q.IsNetwork:
		return "[" + q.Addr.String() + "]/" + strconv.Itoa(q.Bits)
	}
	return "[" + q.Addr.String() + "]"
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

// host returns the address as that of a host, or nil when it is the address of the network itself.
func (q ipQuery) host(query string) (out any, known bool, err error) {
	ip := q.Addr.String()
	ofHost := q.Free() > 0 && q.Addr != q.Network()
	switch query {
	case "address", "ip":
		return when(q.Free() <= 1 || ofHost, ip), true, nil
	case "host", "hostnet", "gateway", "gw", "router":
		if query != "host" {
			return when(ofHost, q.String()), true, nil
		}
		return when(q.Free() == 0 || ofHost, q.String()), true, nil
	case "address/prefix", "host/prefix":
		if q.Free() > 1 && (q.Addr == q.Network() || q.Addr == q.Last()) {
			return false, true, nil
		}
		return q.String(), true, nil
	case "ip/prefix":
		return when(q.Free() == 1 || ofHost, q.String()), true, nil
	case "ip_netmask":
		return when(q.Free() == 1 || ofHost, ip+" "+q.Netmask().String()), true, nil
	case "ip_wildcard":
		return when(q.Free() == 1 || ofHost, ip+" "+q.Hostmask().String()), true, nil
	case "net":
		return when(q.Free() > 0 && !ofHost, q.String()), true, nil
	case "int":
		if q.IsNetwork {
			return ipnet.Int(q.Addr).String() + "/" + strconv.Itoa(q.Bits), true, nil
		}
		return bigInt(ipnet.Int(q.Addr)), true, nil
	}
	return nil, false, nil
}

// usableQuery answers queries about the addresses that hosts of the network can have.
func (q ipQuery) usableQuery(query string) (out any, known bool, err error) {
	switch query {
	case "size_usable":
		n := q.Size()
		if q.Free() != 1 {
			n.Sub(n, big.NewInt(int64(min(2, 1+q.Free()))))
		}
		return bigInt(n), true, nil
	case "first_usable", "last_usable", "range_usable", "next_usable", "previous_usable", "peer":
	default:
		return nil, false, nil
	}
	if !q.IsNetwork {
		return nil, true, fmt.Errorf("%s is not a network address (%s needs a prefix, as in 10.0.0.1/24)", q.text, query)
	}
	if query == "peer" {
		out, err = q.peer()
		return out, true, err
	}
	if q.Free() == 0 {
		return nil, true, nil
	}
	first, last := q.Usable()
	switch query {
	case "first_usable":
		return first.String(), true, nil
	case "last_usable":
		return last.String(), true, nil
	case "range_usable":
		return first.String() + "-" + last.String(), true, nil
	case "next_usable":
		return q.Shifted(1), true, nil
	}
	return q.Shifted(-1), true, nil
}

// peer returns the other end of a point-to-point network.
func (q ipQuery) peer() (any, error) {
	flip := int64(1)
	switch q.Free() {
	case 1:
	case 2:
		if q.Addr == q.Network() || q.Addr == q.Last() {
			return nil, fmt.Errorf("%s is the network or broadcast address and has no peer", q.text)
		}
		flip = 3
	default:
		return nil, fmt.Errorf("%s is not in a point-to-point network", q.text)
	}
	a, _ := ipnet.FromInt(new(big.Int).Xor(ipnet.Int(q.Addr), big.NewInt(flip)), q.Addr)
	return a.String(), nil
}

// number answers a query that is a number: the address of the network at that index, counted from 0 or from the
// end.
func (q ipQuery) number(query string) (out any, known bool, err error) {
	i, err := strconv.ParseInt(query, 10, 64)
	if err != nil {
		return nil, false, nil
	}
	if q.Free() == 0 {
		out, _, _ = q.part("")
		return out, true, nil
	}
	a, ok := q.Nth(i)
	if !ok {
		return false, true, nil
	}
	return q.With(a), true, nil
}

// filterIPWrap puts IPv6 addresses into brackets and returns everything else unchanged.
func filterIPWrap(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	query := p.Str("query", "")
	if p.Err != nil {
		return nil, p.Err
	}
	list, ok := in.([]any)
	if !ok {
		return wrapIP(in, query), nil
	}
	out := make([]any, len(list))
	for i, v := range list {
		v, err := expr.Defined(v)
		if err != nil {
			return nil, err
		}
		out[i] = wrapIP(v, query)
	}
	return out, nil
}

func wrapIP(v any, query string) any {
	found, err := queryIP(v, query, 0)
	if err != nil || !value.Truth(found) {
		return v
	}
	wrapped, err := queryIP(found, "wrap", 0)
	if err != nil {
		return v
	}
	return wrapped
}

// NetworkOf returns the network of an address or network; ok is false for other values.
func NetworkOf(v any) (ipnet.Net, bool) {
	n, _, ok := ParseAddress(v, 0)
	if !ok {
		return n, false
	}
	if n.Free() > 0 && n.Addr != n.Network() {
		n.IsNetwork = true // an address keeps its host part
		return n, true
	}
	return n.Subnet(), true
}

// FilterNetworkIn reports whether a network, or its usable addresses, contain all of another network.
func FilterNetworkIn(usable bool) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
		test := p.Value("test", nil)
		outer, _, ok := ParseAddress(in, 0)
		inner, _, ok2 := ParseAddress(test, 0)
		if !ok || !ok2 {
			return nil, fmt.Errorf("%s and %s must be addresses or networks", value.Repr(in), value.Repr(test))
		}
		if outer.Version() != inner.Version() {
			return false, nil
		}
		first, last := outer.Network(), outer.Last()
		if usable {
			first, last = outer.Usable()
		}
		return !inner.Network().Less(first) && !last.Less(inner.Last()), nil
	}
}
