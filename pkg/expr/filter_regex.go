package expr

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/pyregex"
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
	pattern, replacement := p.str("pattern", ""), p.str("replacement", "")
	re, err := ps.get(pattern, patternFlags(p))
	if p.err != nil {
		return nil, p.err
	}
	if err != nil {
		return nil, err
	}
	template, err := re.Template(replacement)
	if err != nil {
		return nil, fmt.Errorf("bad replacement %q: %w", truncateText(replacement), err)
	}
	var found []pyregex.Match
	if limit >= 0 { // a count below 0 replaces nothing
		if found, err = re.FindAll(s, cmp.Or(limit, maxItems)); err != nil {
			return nil, err
		}
	}
	if mandatory > 0 && len(found) != mandatory {
		return nil, fmt.Errorf("'%s' should match %d times, but matches %d times in '%s'", pattern, mandatory, len(found), truncateText(s))
	}
	out, ok := template.Replace(s, found, maxText)
	if !ok {
		return nil, errTextTooBig
	}
	return out, nil
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
	re, err := ps.get(p.str("regex", ""), flags)
	if err != nil {
		return nil, err
	}
	groups, err := askedGroups(p.rest)
	if err != nil {
		return nil, err
	}
	found, err := re.Find(s)
	if err != nil || found == nil {
		return nil, err
	}
	if len(groups) == 0 {
		return found.Text(s, 0), nil
	}
	out := make([]any, len(groups))
	for i, name := range groups {
		g, err := re.Group(name)
		if err != nil {
			return nil, err
		}
		if found.Has(g) {
			out[i] = found.Text(s, g)
		}
	}
	return out, nil
}

func searchFlags(p *bound) (pyregex.Flags, error) {
	var flags pyregex.Flags
	for k, v := range p.named.All() {
		v, err := defined(v)
		if err != nil {
			return flags, err
		}
		flag, ok := map[any]pyregex.Flags{"ignorecase": pyregex.IgnoreCase, "multiline": pyregex.Multiline}[k]
		if !ok {
			return flags, fmt.Errorf("regex_search has no argument %q (it takes ignorecase, multiline)", value.Str(k))
		}
		if value.Truth(v) {
			flags |= flag
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
	re, err := ps.get(p.str("regex", ""), patternFlags(p))
	if err != nil {
		return nil, err
	}
	found, err := re.FindAll(s, maxItems)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(found))
	for i, f := range found {
		switch n := re.Groups(); n {
		case 0, 1:
			out[i] = f.Text(s, n)
		default:
			row := make([]any, n)
			for g := range row {
				row[g] = f.Text(s, g+1)
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
