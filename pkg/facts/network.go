package facts

import (
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/value"
)

// link is one network interface.
type link struct {
	name, mac, state, kind string
	mtu, flags, speed      int
	bridge, bonding        bool
	bridgeID, pci          string
	stp                    bool
	members                []any
	v4, v6                 []address
}

// address is one address of an interface.
type address struct {
	prefix    netip.Prefix
	broadcast string
	scope     string
}

func network(f *value.Dict, s sections) {
	links := readLinks(s.lines("links"))
	if len(links) == 0 {
		return
	}
	addresses(links, s)
	names, v4, v6 := []any{}, []any{}, []any{}
	for _, l := range links {
		names = append(names, l.name)
		f.Set(strings.NewReplacer("-", "_", ":", "_").Replace(l.name), l.dict())
		for _, a := range l.v4 {
			if !a.prefix.Addr().IsLoopback() {
				v4 = append(v4, a.prefix.Addr().String())
			}
		}
		for _, a := range l.v6 {
			if !a.prefix.Addr().IsLoopback() {
				v6 = append(v6, a.prefix.Addr().String())
			}
		}
	}
	f.Set("interfaces", names)
	f.Set("all_ipv4_addresses", v4)
	f.Set("all_ipv6_addresses", v6)
	f.Set("default_ipv4", default4(links, s))
	f.Set("default_ipv6", default6(links, s))
}

func readLinks(lines []string) []*link {
	var links []*link
	for _, line := range lines {
		k, v, _ := strings.Cut(line, "=")
		if k == "link" {
			links = append(links, &link{name: v})
			continue
		}
		if len(links) == 0 {
			continue
		}
		l := links[len(links)-1]
		switch k {
		case "mac":
			l.mac = v
		case "mtu":
			l.mtu = number(v)
		case "state":
			l.state = v
		case "flags":
			n, _ := strconv.ParseInt(v, 0, 64) // an invalid number means no flags
			l.flags = int(n)
		case "kind":
			l.kind = v
		case "speed":
			l.speed = number(v)
		case "bridge":
			l.bridge = true
		case "bridgeid":
			l.bridgeID = v
		case "stp":
			l.stp = v != "0"
		case "pciid":
			l.pci = v
		case "bonding":
			l.bonding = true
		case "member":
			l.members = append(l.members, v)
		}
	}
	return links
}

// addresses assigns the addresses of the host to their interfaces.
func addresses(links []*link, s sections) {
	byName := map[string]*link{}
	for _, l := range links {
		byName[l.name] = l
	}
	lines := s.lines("addr")
	if len(lines) > 0 && lines[0] == "none" {
		localFromTrie(byName, lines[1:], routes4(s))
	} else {
		for _, l := range lines {
			readAddr(byName, strings.Fields(l))
		}
	}
	for _, l := range s.lines("if_inet6") {
		readInet6(byName, strings.Fields(l))
	}
}

// readAddr reads a line of `ip -o addr`: 2: eth0 inet 10.0.0.1/24 brd 10.0.0.255 scope global eth0
func readAddr(links map[string]*link, w []string) {
	if len(w) < 4 || w[2] != "inet" {
		return
	}
	l := links[before(strings.TrimSuffix(w[1], ":"), "@")]
	text := w[3]
	if !strings.Contains(text, "/") {
		text += "/32"
	}
	prefix, err := netip.ParsePrefix(text)
	if l == nil || err != nil {
		return
	}
	a := address{prefix: prefix}
	if i := slices.Index(w, "brd"); i > 0 && i+1 < len(w) {
		a.broadcast = w[i+1]
	}
	l.v4 = append(l.v4, a)
}

// readInet6 reads a line of /proc/net/if_inet6: address index prefix scope flags name.
func readInet6(links map[string]*link, w []string) {
	if len(w) < 6 || links[w[5]] == nil {
		return
	}
	raw, err := hex.DecodeString(w[0])
	addr, ok := netip.AddrFromSlice(raw)
	bits, bitsErr := strconv.ParseInt(w[2], 16, 32)
	if err != nil || !ok || bitsErr != nil {
		return
	}
	scopes := map[string]string{"00": "global", "10": "host", "20": "link", "40": "site"}
	links[w[5]].v6 = append(links[w[5]].v6, address{prefix: netip.PrefixFrom(addr, int(bits)), scope: scopes[w[3]]})
}

// localFromTrie finds the addresses of a host without the ip command: the kernel lists them in
// /proc/net/fib_trie, and the routes give their networks.
func localFromTrie(links map[string]*link, lines []string, routes []route) {
	first := map[netip.Prefix]int{} // the first route to a network
	for i, r := range routes {
		if to := r.to.Masked(); r.to.Bits() > 0 && links[r.dev] != nil {
			if _, known := first[to]; !known {
				first[to] = i
			}
		}
	}
	last, seen := "", map[string]bool{}
	for _, l := range lines {
		if text, ok := strings.CutPrefix(l, "|-- "); ok {
			last = text
			continue
		}
		if l != "/32 host LOCAL" || seen[last] {
			continue
		}
		seen[last] = true
		addr, err := netip.ParseAddr(last)
		if err != nil {
			continue
		}
		if addr.IsLoopback() && links["lo"] != nil {
			links["lo"].v4 = append(links["lo"].v4, address{prefix: netip.PrefixFrom(addr, 8)})
		}
		best := len(routes)
		for bits := 1; bits <= addr.BitLen(); bits++ {
			to, _ := addr.Prefix(bits)
			if i, known := first[to]; known {
				best = min(best, i)
			}
		}
		if best < len(routes) {
			r := routes[best]
			links[r.dev].v4 = append(links[r.dev].v4, address{prefix: netip.PrefixFrom(addr, r.to.Bits())})
		}
	}
}

// route is an entry of the kernel's routing table.
type route struct {
	dev    string
	to     netip.Prefix
	via    netip.Addr
	metric int
}

// routes4 reads /proc/net/route: name destination gateway flags refs use metric mask.
func routes4(s sections) []route {
	var routes []route
	for _, l := range s.lines("route") {
		w := strings.Fields(l)
		if len(w) < 8 {
			continue
		}
		dst, dstOK := littleEndian(w[1])
		via, viaOK := littleEndian(w[2])
		mask, maskOK := littleEndian(w[7])
		if !dstOK || !viaOK || !maskOK {
			continue
		}
		routes = append(routes, route{w[0], netip.PrefixFrom(dst, maskBits(mask)), via, number(w[6])})
	}
	return routes
}

func littleEndian(text string) (netip.Addr, bool) {
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != 4 {
		return netip.Addr{}, false
	}
	slices.Reverse(raw)
	return netip.AddrFrom4([4]byte(raw)), true
}

func maskBits(mask netip.Addr) int {
	n := 0
	for _, b := range mask.As4() {
		for ; b&0x80 != 0; b <<= 1 {
			n++
		}
	}
	return n
}

// default4 describes the address that the default route uses.
func default4(links []*link, s sections) *value.Dict {
	best := route{metric: -1}
	for _, r := range routes4(s) {
		if r.to.Bits() == 0 && (best.metric < 0 || r.metric < best.metric) {
			best = r
		}
	}
	d := value.NewDict()
	source := sourceAddress(s)
	for _, l := range links {
		if best.metric < 0 || l.name != best.dev || len(l.v4) == 0 {
			continue
		}
		a := l.v4[0]
		for _, other := range l.v4 {
			if other.prefix.Addr().String() == source {
				a = other
			}
		}
		d.Set("gateway", best.via.String())
		d.Set("interface", l.name)
		d.Merge(a.dict4())
		d.Set("macaddress", l.mac)
		d.Set("mtu", l.mtu)
		d.Set("type", l.typeName())
		d.Set("alias", l.name)
	}
	return d
}

// sourceAddress is the word after src in the output of `ip route get`.
func sourceAddress(s sections) string {
	w := strings.Fields(s.line("src", 0))
	if i := slices.Index(w, "src"); i >= 0 && i+1 < len(w) {
		return w[i+1]
	}
	return ""
}

// default6 reads /proc/net/ipv6_route: dst bits src bits via metric refs use flags name.
func default6(links []*link, s sections) *value.Dict {
	d := value.NewDict()
	const zero = "00000000000000000000000000000000"
	for _, line := range s.lines("route6") {
		w := strings.Fields(line)
		if len(w) < 10 || w[0] != zero || w[1] != "00" || w[4] == zero {
			continue
		}
		raw, err := hex.DecodeString(w[4])
		via, ok := netip.AddrFromSlice(raw)
		if err != nil || !ok {
			continue
		}
		for _, l := range links {
			i := slices.IndexFunc(l.v6, func(a address) bool { return a.scope == "global" })
			if l.name != w[9] || i < 0 {
				continue
			}
			d.Set("gateway", via.String())
			d.Set("interface", l.name)
			d.Merge(l.v6[i].dict6())
			d.Set("macaddress", l.mac)
			d.Set("mtu", l.mtu)
			d.Set("type", l.typeName())
			return d
		}
	}
	return d
}

func (a address) dict4() *value.Dict {
	bits := a.prefix.Bits()
	mask := netip.AddrFrom4([4]byte{255, 255, 255, 255})
	masked, err := mask.Prefix(bits)
	if err == nil {
		mask = masked.Addr()
	}
	return value.NewDict("address", a.prefix.Addr().String(), "broadcast", a.broadcast, "netmask", mask.String(),
		"network", a.prefix.Masked().Addr().String(), "prefix", strconv.Itoa(bits))
}

func (a address) dict6() *value.Dict {
	return value.NewDict("address", a.prefix.Addr().String(), "prefix", strconv.Itoa(a.prefix.Bits()), "scope", a.scope)
}

func (l *link) typeName() string {
	switch {
	case l.bridge:
		return "bridge"
	case l.bonding:
		return "bonding"
	case l.kind == "1":
		return "ether"
	case l.kind == "772":
		return "loopback"
	case l.kind == "32":
		return "infiniband"
	case l.kind == "768", l.kind == "776", l.kind == "778":
		return "tunnel"
	}
	return "unknown"
}

func (l *link) dict() *value.Dict {
	const up, promiscuous = 1, 0x100
	d := value.NewDict("device", l.name, "active", l.state == "up" || (l.state == "unknown" && l.flags&up != 0),
		"mtu", l.mtu, "type", l.typeName(), "promisc", l.flags&promiscuous != 0)
	if l.mac != "" && l.typeName() != "loopback" {
		d.Set("macaddress", l.mac)
	}
	if l.speed > 0 {
		d.Set("speed", l.speed)
	}
	put(d, "pciid", l.pci)
	if l.bridge {
		d.Set("id", l.bridgeID)
		d.Set("stp", l.stp)
	}
	if len(l.members) > 0 {
		d.Set("interfaces", l.members)
	}
	var more []any
	for i, a := range l.v4 {
		if i == 0 {
			d.Set("ipv4", a.dict4())
		} else {
			more = append(more, a.dict4())
		}
	}
	if len(more) > 0 {
		d.Set("ipv4_secondaries", more)
	}
	var v6 []any
	for _, a := range l.v6 {
		v6 = append(v6, a.dict6())
	}
	if len(v6) > 0 {
		d.Set("ipv6", v6)
	}
	return d
}
