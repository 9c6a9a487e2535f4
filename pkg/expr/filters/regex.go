package filters

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/value"
)

func regexFilters(re *Patterns) []expr.Filter {
	return []expr.Filter{
		{Names: "regex_replace", Params: "pattern replacement ignorecase multiline count mandatory_count",
			Do: re.filterReplace},
		{Names: "regex_search", Params: "regex! * **", Do: re.filterSearch},
		{Names: "regex_findall", Params: "regex! multiline ignorecase", Do: re.filterFindAll},
		{Names: "regex_escape", Params: "re_type", Do: filterRegexEscape},
	}
}

func (ps *Patterns) filterReplace(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := Subject(in)
	if err != nil {
		return nil, err
	}
	limit, mandatory := p.Int("count", 0), p.Int("mandatory_count", 0)
	pattern, replacement := p.Str("pattern", ""), p.Str("replacement", "")
	re, err := ps.Get(pattern, PatternFlags(p))
	if p.Err != nil {
		return nil, p.Err
	}
	if err != nil {
		return nil, err
	}
	template, err := re.Template(replacement)
	if err != nil {
		return nil, fmt.Errorf("bad replacement %q: %w", expr.Shorten(replacement), err)
	}
	var found []pyregex.Match
	if limit >= 0 { // a negative count replaces nothing
		if found, err = re.FindAll(s, cmp.Or(limit, expr.MaxItems)); err != nil {
			return nil, err
		}
	}
	if mandatory > 0 && len(found) != mandatory {
		return nil, fmt.Errorf("'%s' should match %d times, but matches %d times in '%s'", pattern, mandatory, len(found),
			expr.Shorten(s))
	}
	out, ok := template.Replace(s, found, expr.MaxText)
	if !ok {
		return nil, expr.ErrTextTooBig
	}
	return out, nil
}

// filterSearch returns the first match, or a list of its groups when some are requested ('\\1', '\\g<name>'); None
// without a match.
func (ps *Patterns) filterSearch(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := Subject(in)
	if err != nil {
		return nil, err
	}
	flags, err := searchFlags(p)
	if err != nil {
		return nil, err
	}
	re, err := ps.Get(p.Str("regex", ""), flags)
	if err != nil {
		return nil, err
	}
	groups, err := askedGroups(p.Rest)
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

func searchFlags(p *expr.Bound) (pyregex.Flags, error) {
	var flags pyregex.Flags
	for k, v := range p.Named.All() {
		v, err := expr.Defined(v)
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

// askedGroups parses '\1' and '\g<name>'. In strings without escapes, '\\1' arrives with both backslashes and has
// the same meaning. Whether the pattern has such a group is checked after the match.
func askedGroups(args []any) ([]string, error) {
	var out []string
	for _, a := range args {
		text, err := expr.Text(a)
		if err != nil {
			return nil, err
		}
		name := strings.TrimLeft(text, `\`)
		if inner, ok := strings.CutPrefix(name, "g<"); ok {
			name = strings.TrimSuffix(inner, ">")
		} else if _, err := strconv.Atoi(name); err != nil || name == text {
			return nil, fmt.Errorf(`Unknown argument %q (groups are asked for as '\\1' or '\\g<name>')`, expr.Shorten(text))
		}
		out = append(out, name)
	}
	return out, nil
}

// filterFindAll lists the matches, or their groups when the pattern has any.
func (ps *Patterns) filterFindAll(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := Subject(in)
	if err != nil {
		return nil, err
	}
	re, err := ps.Get(p.Str("regex", ""), PatternFlags(p))
	if err != nil {
		return nil, err
	}
	found, err := re.FindAll(s, expr.MaxItems)
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

func filterRegexEscape(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	special := "\t\n\v\f\r #$&()*+-.?[\\]^{|}~"
	switch kind := p.Str("re_type", "python"); kind {
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
