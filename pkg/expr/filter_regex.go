package expr

import (
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/value"
)

func regexFilters(re *patterns) []filterSpec {
	return []filterSpec{
		{names: "regex_replace", params: "pattern replacement ignorecase multiline count mandatory_count", do: re.filterReplace},
		{names: "regex_search", params: "regex! * **", do: re.filterSearch},
		{names: "regex_findall", params: "regex! multiline ignorecase", do: re.filterFindAll},
		{names: "regex_escape", params: "re_type", do: filterRegexEscape},
	}
}

func (ps *patterns) filterReplace(_ *Call, in any, p *bound) (any, error) {
	s, err := subject(in)
	if err != nil {
		return nil, err
	}
	limit, mandatory := p.int("count", 0), p.int("mandatory_count", 0)
	flags := matchFlags{ignoreCase: p.flag("ignorecase", false), multiline: p.flag("multiline", false)}
	pattern, replacement := p.str("pattern", ""), p.str("replacement", "")
	if p.err != nil {
		return nil, p.err
	}
	m, err := ps.get(pattern, flags)
	if err != nil {
		return nil, err
	}
	found, err := m.all(s, limit)
	if err != nil {
		return nil, err
	}
	if mandatory > 0 && len(found) != mandatory {
		return nil, fmt.Errorf("'%s' should match %d times, but matches %d times in '%s'", pattern, mandatory, len(found), truncateText(s))
	}
	return substitute(m, s, replacement, found)
}

func substitute(m *matcher, s, replacement string, found []match) (any, error) {
	parts, err := parseReplacement(replacement, m)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	last := 0
	for _, f := range found {
		b.WriteString(s[last:f.start()])
		for _, part := range parts {
			b.WriteString(part.text)
			if part.group >= 0 {
				b.WriteString(f.group(s, part.group))
			}
		}
		if b.Len() > maxText {
			return nil, errTextTooBig
		}
		last = f.end()
	}
	b.WriteString(s[last:])
	return b.String(), nil
}

// replacementPart is a text and then a group; group is -1 for none.
type replacementPart struct {
	text  string
	group int
}

// parseReplacement reads \1, \g<1>, \g<name> and Python's escapes.
func parseReplacement(r string, m *matcher) ([]replacementPart, error) {
	var parts []replacementPart
	var text strings.Builder
	for i := 0; i < len(r); {
		if r[i] != '\\' || i+1 == len(r) {
			text.WriteByte(r[i])
			i++
			continue
		}
		size, literal, group, err := m.escape(r[i+1:])
		if err != nil {
			return nil, err
		}
		text.WriteString(literal)
		if group >= 0 {
			parts = append(parts, replacementPart{text.String(), group})
			text.Reset()
		}
		i += 1 + size
	}
	return append(parts, replacementPart{text.String(), -1}), nil
}

// escape reads what follows a backslash of a replacement.
func (m *matcher) escape(s string) (size int, literal string, group int, err error) {
	switch ch := s[0]; {
	case ch == 'g' && strings.HasPrefix(s, "g<"):
		name, _, ok := strings.Cut(s[2:], ">")
		if !ok {
			return 0, "", -1, fmt.Errorf(`missing > after \g< in the replacement`)
		}
		group, err = m.groupNumber(name)
		return len(name) + 3, "", group, err
	case ch >= '1' && ch <= '9':
		size = 1
		if len(s) > 1 && s[1] >= '0' && s[1] <= '9' {
			size = 2
		}
		group, err = m.groupNumber(s[:size])
		return size, "", group, err
	case ch == '0':
		return 1, "\x00", -1, nil
	case strings.IndexByte("abfnrtv\\", ch) >= 0:
		i := strings.IndexByte("abfnrtv\\", ch)
		return 1, "\a\b\f\n\r\t\v\\"[i : i+1], -1, nil
	case ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z':
		return 0, "", -1, fmt.Errorf(`bad escape \%c in the replacement (write \\%c for a backslash)`, ch, ch)
	}
	return 0, `\`, -1, nil
}

func (m *matcher) groupNumber(name string) (int, error) {
	if n, err := strconv.Atoi(name); err == nil {
		if n < 0 || n > m.groups {
			return 0, fmt.Errorf("the pattern has %d groups, so there is no group %d", m.groups, n)
		}
		return n, nil
	}
	if n, ok := m.names[name]; ok {
		return n, nil
	}
	return 0, fmt.Errorf("the pattern has no group named %q", name)
}

// filterSearch is the first match, or a list of its groups when some are
// asked for ('\\1', '\\g<name>'); None without a match.
func (ps *patterns) filterSearch(_ *Call, in any, p *bound) (any, error) {
	s, err := subject(in)
	if err != nil {
		return nil, err
	}
	flags, err := searchFlags(p)
	if err != nil {
		return nil, err
	}
	m, err := ps.get(p.str("regex", ""), flags)
	if err != nil {
		return nil, err
	}
	groups, err := askedGroups(p.rest)
	if err != nil {
		return nil, err
	}
	found, err := m.all(s, 1)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	if len(groups) == 0 {
		return s[found[0].start():found[0].end()], nil
	}
	out := make([]any, len(groups))
	for i, name := range groups {
		g, err := m.groupNumber(name)
		if err != nil {
			return nil, err
		}
		if found[0].has(g) {
			out[i] = found[0].group(s, g)
		}
	}
	return out, nil
}

func searchFlags(p *bound) (matchFlags, error) {
	var flags matchFlags
	for k, v := range p.named.All() {
		v, err := defined(v)
		if err != nil {
			return flags, err
		}
		switch k {
		case "ignorecase":
			flags.ignoreCase = value.Truth(v)
		case "multiline":
			flags.multiline = value.Truth(v)
		default:
			return flags, fmt.Errorf("regex_search has no argument %q (it takes ignorecase, multiline)", value.Str(k))
		}
	}
	return flags, nil
}

// askedGroups reads '\1' and '\g<name>'. Where a backslash is only a
// backslash, '\\1' arrives with both; it means the same. Whether the pattern has
// such a group is asked where it matched.
func askedGroups(args []any) ([]string, error) {
	var out []string
	for _, a := range args {
		text, err := plainText(a)
		if err != nil {
			return nil, err
		}
		name := strings.TrimLeft(text, `\`)
		if inner, ok := strings.CutPrefix(name, "g<"); ok {
			name = strings.TrimSuffix(inner, ">")
		} else if _, err := strconv.Atoi(name); err != nil || name == text {
			return nil, fmt.Errorf(`Unknown argument %q (groups are asked for as '\\1' or '\\g<name>')`, truncateText(text))
		}
		out = append(out, name)
	}
	return out, nil
}

// filterFindAll lists the matches, or their groups when the pattern has some.
func (ps *patterns) filterFindAll(_ *Call, in any, p *bound) (any, error) {
	s, err := subject(in)
	if err != nil {
		return nil, err
	}
	flags := matchFlags{ignoreCase: p.flag("ignorecase", false), multiline: p.flag("multiline", false)}
	m, err := ps.get(p.str("regex", ""), flags)
	if err != nil {
		return nil, err
	}
	found, err := m.all(s, 0)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(found))
	for i, f := range found {
		switch m.groups {
		case 0, 1:
			out[i] = f.group(s, m.groups)
		default:
			row := make([]any, m.groups)
			for g := range row {
				row[g] = f.group(s, g+1)
			}
			out[i] = row
		}
	}
	return out, nil
}

func filterRegexEscape(_ *Call, in any, p *bound) (any, error) {
	s, err := plainText(in)
	if err != nil {
		return nil, err
	}
	special := "\t\n\v\f\r #$&()*+-.?[\\]^{|}~"
	switch kind := p.str("re_type", "python"); kind {
	case "python":
	case "posix_basic":
		special = "].[^$*\\"
	case "posix_extended":
		special = "].[^$*\\?+{}()|"
	default:
		return nil, fmt.Errorf("Invalid regex type (%s): there are python, posix_basic and posix_extended", kind)
	}
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(special, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String(), nil
}
