package inventory

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"kubekey/pkg/source"
)

// regexTimeout bounds one match of a regular expression that backtracks.
const regexTimeout = time.Second

// MatchOptions is what Match needs in addition to a pattern.
type MatchOptions struct {
	// RunID seeds group|random: within a run it always picks the same host.
	RunID string
}

// Matched is the hosts that a pattern matches, each once: in the order of the pattern's parts,
// within a part in inventory order.
type Matched struct {
	Hosts     []string
	Unmatched []Unmatched
	Random    []string // the picks of |random, as "group|random = host"
}

// Unmatched is a part of a pattern that matches no group and no host.
type Unmatched struct {
	Pattern string
	Near    string // a group or host with a similar name, may be ""
}

func (u Unmatched) String() string {
	if u.Near == "" {
		return fmt.Sprintf("%q matches no host and no group", u.Pattern)
	}
	return fmt.Sprintf("%q matches no host and no group (did you mean %q?)", u.Pattern, u.Near)
}

// Match returns the hosts that patterns match together. Regardless of their order, unions are
// applied first, then intersections (&), then exclusions (!); without a union, they start from
// all. "localhost" is this machine even if it is not in the inventory. An invalid pattern is
// an error; one that matches nothing is not.
func (inv *Inventory) Match(patterns []string, o MatchOptions) (Matched, error) {
	parsed, err := inv.parse(patterns)
	if err != nil || len(parsed) == 0 {
		return Matched{}, err
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	m := matcher{inv: inv, o: o}
	found, err := m.evaluate(parsed)
	if err != nil {
		return Matched{}, err
	}
	m.out.Hosts = hostNames(found)
	return m.out, nil
}

func (inv *Inventory) parse(patterns []string) ([]pattern, error) {
	known := func(name string) bool { return inv.Has(name) }
	var out []pattern
	for _, text := range patterns {
		for _, part := range splitPatterns(text, known) {
			p, err := parsePattern(part)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

type matcher struct {
	inv *Inventory
	o   MatchOptions
	out Matched
}

func (m *matcher) evaluate(ps []pattern) ([]*host, error) {
	var hosts []*host
	seen := map[string]bool{}
	unions := 0
	for _, p := range ps {
		if p.op != 0 {
			continue
		}
		unions++
		matched, err := m.one(p)
		if err != nil {
			return nil, err
		}
		for _, h := range matched {
			if !seen[h.name] {
				seen[h.name] = true
				hosts = append(hosts, h)
			}
		}
	}
	if unions == 0 {
		hosts = append(hosts, m.inv.membersOf(All)...)
	}
	for _, op := range []byte{'&', '!'} {
		for _, p := range ps {
			if p.op != op {
				continue
			}
			matched, err := m.one(p)
			if err != nil {
				return nil, err
			}
			hosts = keep(hosts, matched, op == '&')
		}
	}
	return hosts, nil
}

// keep returns the hosts that are among others, or those that are not.
func keep(hosts, others []*host, among bool) []*host {
	in := make(map[string]bool, len(others))
	for _, h := range others {
		in[h.name] = true
	}
	var out []*host
	for _, h := range hosts {
		if in[h.name] == among {
			out = append(out, h)
		}
	}
	return out
}

func (m *matcher) one(p pattern) ([]*host, error) {
	found, ok, err := m.named(p)
	if err != nil {
		return nil, err
	}
	if !ok {
		m.out.Unmatched = append(m.out.Unmatched, Unmatched{p.text, m.near(p)})
		return nil, nil
	}
	found = p.sub.pick(found)
	if p.random && len(found) > 0 {
		h := found[m.draw(p.text, len(found))]
		m.out.Random = append(m.out.Random, p.text+" = "+h.name)
		return []*host{h}, nil
	}
	return found, nil
}

// named returns the hosts before subscripts; ok is false if no group and no host has the name.
// A group without hosts is a match.
func (m *matcher) named(p pattern) (found []*host, ok bool, err error) {
	if p.match == nil {
		found, ok = m.plain(p.base)
		return found, ok, nil
	}
	if p.base == "*" {
		return m.inv.membersOf(All), true, nil
	}
	seen := map[*host]bool{}
	add := func(name string, hosts ...*host) error {
		matches, err := p.match(name)
		if err != nil || !matches {
			return err
		}
		ok = true
		for _, h := range hosts {
			if !seen[h] {
				seen[h] = true
				found = append(found, h)
			}
		}
		return nil
	}
	for _, g := range m.inv.groupOrder {
		if err := add(g.name, m.inv.membersOf(g.name)...); err != nil {
			return nil, false, err
		}
	}
	for _, h := range m.inv.membersOf(All) {
		if err := add(h.name, h); err != nil {
			return nil, false, err
		}
	}
	return found, ok, nil
}

func (m *matcher) plain(name string) ([]*host, bool) {
	if m.inv.groups[name] != nil {
		return m.inv.membersOf(name), true
	}
	if h := m.inv.hosts[name]; h != nil {
		return []*host{h}, true
	}
	if isLocal(name) {
		return []*host{{name: name}}, true
	}
	return nil, false
}

func (m *matcher) near(p pattern) string {
	if p.match != nil {
		return ""
	}
	return source.Nearest(p.base, append(groupNames(m.inv.groupOrder), hostNames(m.inv.membersOf(All))...))
}

func (m *matcher) draw(text string, n int) int {
	sum := sha256.Sum256([]byte(m.o.RunID + "\x00" + text))
	return int(binary.BigEndian.Uint64(sum[:8]) % uint64(n))
}

// LimitOptions is what resolving a --limit may need.
type LimitOptions struct {
	MatchOptions
	// ReadFile reads the file of @file: one pattern per line. nil rejects @file.
	ReadFile func(path string) ([]byte, error)
	// Failed returns the hosts of @failed. nil rejects @failed.
	Failed func() ([]string, error)
}

// Limit returns the hosts that remain with a --limit, in the order of hosts. An empty limit
// keeps them all.
func (inv *Inventory) Limit(hosts []string, limit []string, o LimitOptions) (Matched, error) {
	patterns, err := inv.limitPatterns(limit, o)
	if err != nil {
		return Matched{}, err
	}
	if len(limit) == 0 {
		return Matched{Hosts: hosts}, nil
	}
	m, err := inv.Match(patterns, o.MatchOptions)
	if err != nil {
		return Matched{}, err
	}
	in := make(map[string]bool, len(m.Hosts))
	for _, h := range m.Hosts {
		in[h] = true
	}
	m.Hosts = nil
	for _, h := range hosts {
		if in[h] {
			m.Hosts = append(m.Hosts, h)
		}
	}
	return m, nil
}

// limitPatterns replaces @file and @failed by their contents.
func (inv *Inventory) limitPatterns(limit []string, o LimitOptions) ([]string, error) {
	var out []string
	for _, text := range limit {
		for _, part := range splitAt(text, ",") {
			name, isRef := strings.CutPrefix(part, "@")
			if !isRef {
				out = append(out, part)
				continue
			}
			name, rest := cutReference(name)
			if rest != "" {
				out = append(out, rest)
			}
			more, err := o.resolve(name)
			if err != nil {
				return nil, fmt.Errorf("limit %s: %w", part, err)
			}
			out = append(out, more...)
		}
	}
	return out, nil
}

// cutReference splits a reference from what follows, as in "@failed:web" and "@file:!web". A
// path may contain colons: after one that belongs to @file, & or ! must follow.
func cutReference(name string) (ref, rest string) {
	if rest, ok := strings.CutPrefix(name, "failed:"); ok {
		return "failed", rest
	}
	for i := range name {
		if strings.HasPrefix(name[i:], ":!") || strings.HasPrefix(name[i:], ":&") {
			return name[:i], name[i+1:]
		}
	}
	return name, ""
}

func (o LimitOptions) resolve(name string) ([]string, error) {
	if name == "failed" {
		if o.Failed == nil {
			return nil, fmt.Errorf("no previous run is available here")
		}
		return o.Failed()
	}
	if o.ReadFile == nil {
		return nil, fmt.Errorf("files cannot be read here")
	}
	text, err := o.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out, nil
}
