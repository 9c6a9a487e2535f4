package methods

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/value"
)

// strSpec is a row for a method without arguments.
func strSpec(name string, do func(s string) any) expr.Method {
	return expr.Method{Name: name, Do: func(v any, _ *expr.Bound) (any, error) { return do(v.(string)), nil }}
}

func stringMethods() []expr.Method {
	rows := []expr.Method{
		strSpec("upper", func(s string) any { return strings.ToUpper(s) }),
		strSpec("lower", func(s string) any { return strings.ToLower(s) }),
		strSpec("casefold", func(s string) any { return strings.ToLower(s) }),
		strSpec("capitalize", func(s string) any { return filters.Capitalize(s) }),
		strSpec("title", func(s string) any { return pyTitle(s) }),
		strSpec("swapcase", func(s string) any { return strings.Map(swapCase, s) }),
		strSpec("isdigit", func(s string) any { return every(s, unicode.IsDigit) }),
		strSpec("isdecimal", func(s string) any { return every(s, unicode.IsDigit) }),
		strSpec("isnumeric", func(s string) any { return every(s, unicode.IsNumber) }),
		strSpec("isalpha", func(s string) any { return every(s, unicode.IsLetter) }),
		strSpec("isalnum", func(s string) any { return every(s, isAlphanumeric) }),
		strSpec("isspace", func(s string) any { return every(s, unicode.IsSpace) }),
		strSpec("isupper", func(s string) any { return filters.IsUpper(s) }),
		strSpec("islower", func(s string) any { return filters.IsLower(s) }),
		strSpec("isidentifier", func(s string) any { return isIdentifier(s) }),
		{Name: "format", Params: "* **", UndefinedToo: true, Do: func(v any, p *expr.Bound) (any, error) {
			return expr.FormatBraces(v.(string), expr.Args{Positional: p.Rest, Named: p.Named})
		}},
		{Name: "encode", Params: "encoding errors", Do: func(v any, _ *expr.Bound) (any, error) { return v, nil }},
		{Name: "decode", Params: "encoding errors", Do: func(v any, _ *expr.Bound) (any, error) { return v, nil }},
	}
	rows = append(rows, splitMethods()...)
	rows = append(rows, searchMethods()...)
	return append(rows, padMethods()...)
}

func splitMethods() []expr.Method {
	return []expr.Method{
		{Name: "split", Params: "sep maxsplit", Do: func(v any, p *expr.Bound) (any, error) {
			return pySplit(v.(string), p.Value("sep", nil), p.Int("maxsplit", -1))
		}},
		{Name: "rsplit", Params: "sep maxsplit", Do: func(v any, p *expr.Bound) (any, error) {
			return pySplitRight(v.(string), p.Value("sep", nil), p.Int("maxsplit", -1))
		}},
		{Name: "splitlines", Params: "keepends", Do: func(v any, p *expr.Bound) (any, error) {
			return value.SplitLines(v.(string), p.Flag("keepends", false)), nil
		}},
		{Name: "partition", Params: "sep!", Do: func(v any, p *expr.Bound) (any, error) {
			sep := textArg(p, "sep")
			return partition(v.(string), sep, strings.Index(v.(string), sep), false)
		}},
		{Name: "rpartition", Params: "sep!", Do: func(v any, p *expr.Bound) (any, error) {
			sep := textArg(p, "sep")
			return partition(v.(string), sep, strings.LastIndex(v.(string), sep), true)
		}},
		{Name: "join", Params: "iterable!", Do: func(v any, p *expr.Bound) (any, error) { return pyJoin(v.(string), p.Value("iterable", nil)) }},
	}
}

func searchMethods() []expr.Method {
	return []expr.Method{
		{Name: "startswith", Params: "prefix! start end", Do: affix(strings.HasPrefix, "prefix")},
		{Name: "endswith", Params: "suffix! start end", Do: affix(strings.HasSuffix, "suffix")},
		{Name: "removeprefix", Params: "prefix!", Do: func(v any, p *expr.Bound) (any, error) {
			return strings.TrimPrefix(v.(string), textArg(p, "prefix")), nil
		}},
		{Name: "removesuffix", Params: "suffix!", Do: func(v any, p *expr.Bound) (any, error) {
			return strings.TrimSuffix(v.(string), textArg(p, "suffix")), nil
		}},
		{Name: "replace", Params: "old! new! count", Do: pyReplace},
		{Name: "count", Params: "sub! start end", Do: func(v any, p *expr.Bound) (any, error) {
			s, _, err := window(v.(string), p)
			return strings.Count(s, textArg(p, "sub")), err
		}},
		{Name: "find", Params: "sub! start end", Do: finder(strings.Index, false)},
		{Name: "rfind", Params: "sub! start end", Do: finder(strings.LastIndex, false)},
		{Name: "index", Params: "sub! start end", Do: finder(strings.Index, true)},
		{Name: "rindex", Params: "sub! start end", Do: finder(strings.LastIndex, true)},
	}
}

func padMethods() []expr.Method {
	return []expr.Method{
		{Name: "strip", Params: "chars", Do: strip(true, true)},
		{Name: "lstrip", Params: "chars", Do: strip(true, false)},
		{Name: "rstrip", Params: "chars", Do: strip(false, true)},
		{Name: "zfill", Params: "width!", Do: func(v any, p *expr.Bound) (any, error) { return zfill(v.(string), p.Int("width", 0)) }},
		{Name: "center", Params: "width! fillchar", Do: padded(func(fill, width int) (int, int) {
			left := fill/2 + (fill & width & 1)
			return left, fill - left
		})},
		{Name: "ljust", Params: "width! fillchar", Do: padded(func(fill, _ int) (int, int) { return 0, fill })},
		{Name: "rjust", Params: "width! fillchar", Do: padded(func(fill, _ int) (int, int) { return fill, 0 })},
		{Name: "expandtabs", Params: "tabsize", Do: func(v any, p *expr.Bound) (any, error) { return expandTabs(v.(string), p.Int("tabsize", 8)) }},
	}
}

// textArg returns a required argument that must be a string, as in Python.
func textArg(p *expr.Bound, name string) string {
	v := p.Value(name, nil)
	s, ok := v.(string)
	if !ok {
		p.Fail(fmt.Errorf("the argument %s must be a string, not '%s'", name, value.TypeName(v)))
	}
	return s
}

func every(s string, ok func(rune) bool) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0
}

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }

func isIdentifier(s string) bool {
	return every(s, func(r rune) bool { return r == '_' || isAlphanumeric(r) }) && !unicode.IsDigit(rune(s[0]))
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

// pyTitle capitalizes the first letter of every run of letters, as str.title does.
func pyTitle(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		inWord = unicode.IsLetter(r)
		if inWord && !was {
			return unicode.ToTitle(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func separator(sep any) (string, error) {
	s, ok := sep.(string)
	switch {
	case !ok:
		return "", fmt.Errorf("a separator must be a string, not '%s'", value.TypeName(sep))
	case s == "":
		return "", errors.New("empty separator")
	}
	return s, nil
}

func pySplit(s string, sep any, n int) (any, error) {
	if sep == nil {
		parts := filters.SplitBlanks(s, n)
		if n >= 0 && len(parts) > n { // the rest keeps its trailing blanks
			rest := strings.TrimLeftFunc(s, unicode.IsSpace)
			for range n {
				rest = strings.TrimLeftFunc(rest[strings.IndexFunc(rest, unicode.IsSpace):], unicode.IsSpace)
			}
			parts[n] = rest
		}
		return value.Of(parts), nil
	}
	text, err := separator(sep)
	if err != nil {
		return nil, err
	}
	if n >= 0 {
		n = min(n, len(s)) + 1
	}
	return value.Of(strings.SplitN(s, text, n)), nil
}

func pySplitRight(s string, sep any, n int) (any, error) {
	if n < 0 {
		return pySplit(s, sep, -1)
	}
	cut := func(s string) (head, tail string, ok bool) {
		i := strings.LastIndexFunc(s, unicode.IsSpace)
		if i < 0 {
			return "", s, false
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		return strings.TrimRightFunc(s[:i], unicode.IsSpace), s[i+size:], true
	}
	if sep == nil {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
	} else {
		text, err := separator(sep)
		if err != nil {
			return nil, err
		}
		cut = func(s string) (head, tail string, ok bool) {
			i := strings.LastIndex(s, text)
			if i < 0 {
				return "", s, false
			}
			return s[:i], s[i+len(text):], true
		}
	}
	return splitRight(s, n, sep == nil, cut), nil
}

func splitRight(s string, n int, blanks bool, cut func(string) (string, string, bool)) []any {
	var tails []any
	for ; n > 0; n-- {
		head, tail, ok := cut(s)
		if !ok {
			break
		}
		tails = append(tails, tail)
		s = head
	}
	out := []any{}
	if s != "" || !blanks {
		out = append(out, s)
	}
	for i := len(tails) - 1; i >= 0; i-- {
		if !blanks || tails[i] != "" {
			out = append(out, tails[i])
		}
	}
	return out
}

func partition(s, sep string, i int, right bool) (any, error) {
	switch {
	case sep == "":
		return nil, errors.New("empty separator")
	case i >= 0:
		return []any{s[:i], sep, s[i+len(sep):]}, nil
	case right:
		return []any{"", "", s}, nil
	}
	return []any{s, "", ""}, nil
}

func pyJoin(sep string, v any) (any, error) {
	list, err := expr.Iterate(v)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, e := range list {
		if e, err = expr.Defined(e); err != nil {
			return nil, err
		}
		s, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("sequence item %d: expected str instance, %s found", i, value.TypeName(e))
		}
		if i > 0 {
			b.WriteString(sep)
		}
		if b.WriteString(s); b.Len() > expr.MaxSize {
			return nil, expr.ErrTooBig
		}
	}
	return b.String(), nil
}

// window returns the part of s between start and end (runes), and its byte offset.
func window(s string, p *expr.Bound) (string, int, error) {
	start, end := p.Value("start", nil), p.Value("end", nil)
	if start == nil && end == nil {
		return s, 0, p.Err
	}
	runes := []rune(s)
	n := len(runes)
	low, err := expr.SliceBound(start, 0, n, 0, n)
	if err != nil {
		return "", 0, err
	}
	high, err := expr.SliceBound(end, n, n, 0, n)
	if err != nil || high < low {
		return "", 0, err
	}
	return string(runes[low:high]), low, nil
}

// affix tests for a prefix or suffix, or for one of a list of them.
func affix(has func(s, affix string) bool, name string) func(any, *expr.Bound) (any, error) {
	return func(v any, p *expr.Bound) (any, error) {
		s, _, err := window(v.(string), p)
		if err != nil {
			return nil, err
		}
		candidates, ok := p.Value(name, nil).([]any)
		if !ok {
			candidates = []any{p.Value(name, nil)}
		}
		for _, c := range candidates {
			text, ok := c.(string)
			if !ok {
				return nil, fmt.Errorf("the %s must be a string or a list of strings, not '%s'", name, value.TypeName(c))
			}
			if has(s, text) {
				return true, nil
			}
		}
		return false, nil
	}
}

func pyReplace(v any, p *expr.Bound) (any, error) {
	s := v.(string)
	from, okFrom := p.Value("old", nil).(string)
	to, okTo := p.Value("new", nil).(string)
	if !okFrom || !okTo {
		return nil, errors.New("replace() needs two strings")
	}
	n := p.Int("count", -1)
	if found := strings.Count(s, from); len(to) > 0 && found > expr.MaxSize/len(to) {
		return nil, expr.ErrTooBig
	}
	return strings.Replace(s, from, to, n), nil
}

func finder(find func(s, sub string) int, must bool) func(any, *expr.Bound) (any, error) {
	return func(v any, p *expr.Bound) (any, error) {
		s, offset, err := window(v.(string), p)
		if err != nil {
			return nil, err
		}
		i := find(s, textArg(p, "sub"))
		switch {
		case i >= 0:
			return offset + utf8.RuneCountInString(s[:i]), nil
		case must:
			return nil, errors.New("substring not found")
		}
		return -1, nil
	}
}

func strip(left, right bool) func(any, *expr.Bound) (any, error) {
	return func(v any, p *expr.Bound) (any, error) {
		s, drop := v.(string), unicode.IsSpace
		if chars, ok := p.Value("chars", nil).(string); ok {
			drop = func(r rune) bool { return strings.ContainsRune(chars, r) }
		}
		if left {
			s = strings.TrimLeftFunc(s, drop)
		}
		if right {
			s = strings.TrimRightFunc(s, drop)
		}
		return s, nil
	}
}

func zfill(s string, width int) (any, error) {
	if width > expr.MaxSize {
		return nil, expr.ErrTooBig
	}
	fill := max(0, width-utf8.RuneCountInString(s))
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[:1] + strings.Repeat("0", fill) + s[1:], nil
	}
	return strings.Repeat("0", fill) + s, nil
}

// padded pads to a width; share returns the padding on the left and on the right.
func padded(share func(fill, width int) (left, right int)) func(any, *expr.Bound) (any, error) {
	return func(v any, p *expr.Bound) (any, error) {
		s, width, char := v.(string), p.Int("width", 0), p.Str("fillchar", " ")
		switch {
		case width > expr.MaxSize:
			return nil, expr.ErrTooBig
		case utf8.RuneCountInString(char) != 1:
			return nil, errors.New("the fill character must be exactly one character long")
		}
		left, right := share(max(0, width-utf8.RuneCountInString(s)), width)
		return strings.Repeat(char, left) + s + strings.Repeat(char, right), nil
	}
}

func expandTabs(s string, size int) (any, error) {
	if size > 0 && strings.Count(s, "\t") > expr.MaxSize/size {
		return nil, expr.ErrTooBig
	}
	var b strings.Builder
	col := 0
	for _, r := range s {
		switch {
		case r == '\t' && size > 0:
			fill := size - col%size
			b.WriteString(strings.Repeat(" ", fill))
			col += fill
		case r == '\t':
		case r == '\n' || r == '\r':
			b.WriteRune(r)
			col = 0
		default:
			b.WriteRune(r)
			col++
		}
	}
	return b.String(), nil
}
