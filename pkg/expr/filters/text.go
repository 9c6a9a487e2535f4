package filters

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"kubekey/pkg/expr"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

func textFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "lower", Do: onText(strings.ToLower)},
		{Names: "upper", Do: onText(strings.ToUpper)},
		{Names: "capitalize", Do: onText(Capitalize)},
		{Names: "title", Do: onText(title)},
		{Names: "string", Do: onText(func(s string) string { return s })},
		{Names: "trim", Params: "chars", Do: filterTrim},
		{Names: "replace", Params: "old! new! count", Do: filterReplace},
		{Names: "length count", Do: filterLength},
		{Names: "reverse", Do: filterReverse},
		{Names: "center", Params: "width", Do: filterCenter},
		{Names: "indent", Params: "width first blank", Do: filterIndent},
		{Names: "truncate", Params: "length killwords end leeway", Do: filterTruncate},
		{Names: "wordcount", Do: filterWordCount},
		{Names: "wordwrap", Params: "width break_long_words wrapstring break_on_hyphens", Do: filterWordWrap},
		{Names: "format", Params: "* **", Do: filterFormat},
		{Names: "split", Params: "sep maxsplit", Do: filterSplit},
		{Names: "quote", Do: filterQuote},
		{Names: "comment", Params: "style **", Do: filterComment},
		{Names: "pprint", Do: func(_ *expr.Call, in any, _ *expr.Bound) (any, error) { return value.Repr(in), nil }},
		{Names: "type_debug", UndefinedToo: true, Do: filterTypeDebug},
		{Names: "ternary", Params: "true_val! false_val! none_val", Do: filterTernary},
		{Names: "mandatory", Params: "msg", UndefinedToo: true, Do: filterMandatory},
		{Names: "bool", Do: filterBool},
	}
}

// onText makes a filter from a function of the input's text.
func onText(f func(string) string) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
		s, err := expr.Text(in)
		return f(s), err
	}
}

// Capitalize is Python's str.capitalize.
func Capitalize(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return ""
	}
	return string(unicode.ToTitle(r)) + strings.ToLower(s[size:])
}

// title capitalizes the first letter of every word. Words end at blanks, dashes and opening brackets.
func title(s string) string {
	var b strings.Builder
	start := true
	for _, r := range s {
		switch {
		case unicode.IsSpace(r) || strings.ContainsRune("-({[<", r):
			start = true
			b.WriteRune(r)
			continue
		case start:
			b.WriteRune(unicode.ToUpper(r))
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		start = false
	}
	return b.String()
}

func filterTrim(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	if p.Value("chars", nil) == nil {
		return strings.TrimSpace(s), nil
	}
	return strings.Trim(s, p.Str("chars", "")), nil
}

func filterReplace(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	from, to, n := p.Str("old", ""), p.Str("new", ""), p.Int("count", -1)
	if p.Err != nil {
		return nil, p.Err
	}
	if times := strings.Count(s, from); len(to) > 0 && times > expr.MaxText/len(to) {
		return nil, expr.ErrTextTooBig
	}
	return strings.Replace(s, from, to, n), nil
}

func filterLength(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	switch v := in.(type) {
	case string:
		return utf8.RuneCountInString(v), nil
	case []any:
		return len(v), nil
	case *value.Dict:
		return v.Len(), nil
	}
	return nil, fmt.Errorf("object of type '%s' has no len()", value.TypeName(in))
}

func filterReverse(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return nil, err
	}
	out := make([]any, len(list))
	for i, v := range list {
		out[len(list)-1-i] = v
	}
	if _, ok := in.(string); ok {
		return joinText(out, "")
	}
	return out, nil
}

func filterCenter(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	width := max(p.Int("width", 80), 0)
	if width > expr.MaxText {
		return nil, expr.ErrTextTooBig
	}
	pad := width - utf8.RuneCountInString(s)
	if pad <= 0 {
		return s, nil
	}
	left := pad/2 + (pad & width & 1)
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", pad-left), nil
}

func filterIndent(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	by, err := indentation(p.Value("width", 4))
	if err != nil {
		return nil, err
	}
	lines := SplitLines(s)
	if len(by) > 0 && len(lines) > expr.MaxText/len(by) {
		return nil, expr.ErrTextTooBig
	}
	first, blank := p.Flag("first", false), p.Flag("blank", false)
	for i, line := range lines {
		if i == 0 && first || i > 0 && (blank || line != "") {
			lines[i] = by + line
		}
	}
	return strings.Join(lines, "\n"), nil
}

// indentation returns width blanks, or width itself when it is a text.
func indentation(width any) (string, error) {
	if s, ok := width.(string); ok {
		if _, err := fmt.Sscanf(s, "%d", new(int)); err != nil {
			return s, nil
		}
	}
	n, ok := expr.WholeNumber(width)
	if !ok {
		return "", fmt.Errorf("argument width must be a whole number or a text, not %s", value.Repr(width))
	}
	if n > expr.MaxText {
		return "", expr.ErrTextTooBig
	}
	return strings.Repeat(" ", max(n, 0)), nil
}

// SplitLines splits a text at line ends of any kind.
func SplitLines(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Split(strings.ReplaceAll(s, "\r", "\n"), "\n")
}

func filterTruncate(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	length, end, leeway := p.Int("length", 255), p.Str("end", "..."), p.Int("leeway", 5)
	runes, tail := []rune(s), utf8.RuneCountInString(end)
	if length < tail || leeway < 0 {
		return nil, fmt.Errorf("argument length must be at least the length of %q, and leeway not negative", end)
	}
	if len(runes) <= length || len(runes)-length <= leeway {
		return s, nil
	}
	cut := string(runes[:length-tail])
	if i := strings.LastIndexByte(cut, ' '); i >= 0 && !p.Flag("killwords", false) {
		cut = cut[:i]
	}
	return cut + end, nil
}

func filterWordCount(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	return len(regexp.MustCompile(`[\pL\pN_]+`).FindAllString(s, -1)), err
}

func filterWordWrap(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	width, newline := p.Int("width", 79), p.Str("wrapstring", "\n")
	if width < 1 {
		return nil, fmt.Errorf("argument width must be above 0, not %d", width)
	}
	w := wrapper{width: width, breakLong: p.Flag("break_long_words", true), hyphens: p.Flag("break_on_hyphens", true)}
	if len(newline) > 0 && len(s) > expr.MaxText/len(newline) {
		return nil, expr.ErrTextTooBig
	}
	lines := strings.Split(strings.TrimSuffix(strings.Join(SplitLines(s), "\n"), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(w.wrap(line), newline)
	}
	return strings.Join(lines, newline), nil
}

// wrapper fills lines of at most width characters, as Python's textwrap does.
type wrapper struct {
	width     int
	breakLong bool
	hyphens   bool
}

func (w wrapper) wrap(line string) []string {
	var out []string
	chunks := w.chunks([]rune(line))
	for len(chunks) > 0 {
		if len(out) > 0 && isBlank(chunks[0]) {
			chunks = chunks[1:]
			continue
		}
		var cur []rune
		cur, chunks = w.fill(chunks)
		if text := strings.TrimRightFunc(string(cur), unicode.IsSpace); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// fill returns the characters of one line and the remaining chunks.
func (w wrapper) fill(chunks [][]rune) ([]rune, [][]rune) {
	var cur []rune
	for len(chunks) > 0 && len(cur)+len(chunks[0]) <= w.width {
		cur = append(cur, chunks[0]...)
		chunks = chunks[1:]
	}
	if len(chunks) == 0 || len(chunks[0]) <= w.width {
		return cur, chunks
	}
	if w.breakLong {
		n := w.width - len(cur)
		cur = append(cur, chunks[0][:n]...)
		return cur, append([][]rune{chunks[0][n:]}, chunks[1:]...)
	}
	if len(cur) == 0 {
		return chunks[0], chunks[1:]
	}
	return cur, chunks
}

func isBlank(r []rune) bool { return strings.TrimSpace(string(r)) == "" }

// chunks splits a text into words and blanks. Words can be split after a hyphen between letters.
func (w wrapper) chunks(text []rune) [][]rune {
	var out [][]rune
	start := 0
	for i := 1; i < len(text); i++ {
		hyphen := w.hyphens && i >= 2 && text[i-1] == '-' && unicode.IsLetter(text[i-2]) && unicode.IsLetter(text[i])
		if hyphen || unicode.IsSpace(text[i]) != unicode.IsSpace(text[i-1]) {
			out = append(out, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}

func filterSplit(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("needs a text, not %s", expr.DescribeType(in))
	}
	n := p.Int("maxsplit", -1)
	if p.Value("sep", nil) == nil {
		return value.Of(SplitBlanks(s, n)), nil
	}
	sep := p.Str("sep", "")
	if sep == "" {
		return nil, fmt.Errorf("argument sep must not be empty")
	}
	if n >= 0 {
		n = min(n, len(s)) + 1
	}
	return value.Of(strings.SplitN(s, sep, n)), nil
}

// SplitBlanks splits around runs of blanks, at most n times unless n is negative.
func SplitBlanks(s string, n int) []string {
	out := []string{}
	for s = strings.TrimLeftFunc(s, unicode.IsSpace); s != ""; s = strings.TrimLeftFunc(s, unicode.IsSpace) {
		i := strings.IndexFunc(s, unicode.IsSpace)
		if i < 0 || n >= 0 && len(out) >= n {
			return append(out, strings.TrimRightFunc(s, unicode.IsSpace))
		}
		out = append(out, s[:i])
		s = s[i:]
	}
	return out
}

func filterQuote(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	if in == nil {
		return shell.Quote(""), nil
	}
	s, err := expr.Text(in)
	// A quote inside is written as Python's shlex.quote does.
	return strings.ReplaceAll(shell.Quote(s), `'\''`, `'"'"'`), err
}

func filterTypeDebug(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	if value.IsUndefined(in) {
		return "AnsibleUndefined", nil
	}
	return value.TypeName(in), nil
}

func filterTernary(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	if none := p.Raw("none_val", nil); in == nil && none != nil {
		return none, nil
	}
	if value.Truth(in) {
		return p.Raw("true_val", nil), nil
	}
	return p.Raw("false_val", nil), nil
}

func filterMandatory(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	u, ok := in.(*value.Undefined)
	if !ok {
		return in, nil
	}
	if msg := p.Str("msg", ""); msg != "" {
		return nil, fmt.Errorf("%s", msg)
	}
	return nil, fmt.Errorf("Mandatory variable '%s' not defined", u.Name)
}

// filterBool behaves like Ansible's: every value that does not mean yes is false.
func filterBool(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	switch v := in.(type) {
	case nil, bool:
		return v, nil
	case string:
		switch strings.ToLower(v) {
		case "yes", "on", "1", "true":
			return true, nil
		}
	case int:
		return v == 1, nil
	case float64:
		return v == 1, nil
	}
	return false, nil
}

// IsUpper reports whether a text has upper case letters and no lower case letters.
func IsUpper(s string) bool {
	return strings.IndexFunc(s, unicode.IsUpper) >= 0 && strings.IndexFunc(s, unicode.IsLower) < 0
}

// IsLower reports whether a text has lower case letters and no upper case letters.
func IsLower(s string) bool {
	return strings.IndexFunc(s, unicode.IsLower) >= 0 && strings.IndexFunc(s, unicode.IsUpper) < 0
}
