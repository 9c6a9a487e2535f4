package inventory

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/pyregex"
)

// splitPatterns splits "a:b,&c" into its parts: at commas, colons and blanks that are not in
// brackets nor, in a regular expression, in parentheses or braces. An IPv6 address is not
// split, nor is any text that known reports as a name.
func splitPatterns(text string, known func(string) bool) []string {
	var out []string
	for _, part := range splitAt(text, ",") {
		bare := strings.TrimLeft(part, "&!")
		if _, err := netip.ParseAddr(bare); err == nil || known(bare) {
			out = append(out, part)
			continue
		}
		out = append(out, splitAt(part, ": \t\n")...)
	}
	return out
}

func splitAt(text, separators string) []string {
	var out []string
	var depth, start int
	add := func(end int) {
		if part := strings.TrimSpace(text[start:end]); part != "" {
			out = append(out, part)
		}
	}
	for i := 0; i < len(text); i++ {
		isRegexp := strings.HasPrefix(strings.TrimLeft(text[start:i], " &!"), "~")
		switch c := text[i]; {
		case c == '\\' && isRegexp:
			i++
		case c == '[' || isRegexp && (c == '(' || c == '{'):
			depth++
		case c == ']' || isRegexp && (c == ')' || c == '}'):
			depth = max(0, depth-1)
		case depth == 0 && strings.IndexByte(separators, c) >= 0:
			add(i)
			start = i + 1
		}
	}
	add(len(text))
	return out
}

// pattern is one part of a host pattern.
type pattern struct {
	text   string // as written, without & or !
	op     byte   // '&', '!', or 0 for union
	base   string // compared with names
	sub    subscript
	random bool
	match  func(name string) (bool, error) // nil for a plain name
}

// subscript picks from the hosts that a pattern matches, as in g[0] or g[1:3].
type subscript struct {
	given, slice bool
	from, to     int // to is inclusive; -1 in a slice is the last
}

var subscripted = regexp.MustCompile(`^(.+)\[(?:(-?[0-9]+)|([0-9]*)[:-]([0-9]*))\]$`)

func parsePattern(text string) (pattern, error) {
	p := pattern{text: text}
	if text[0] == '&' || text[0] == '!' {
		p.op, p.text = text[0], strings.TrimSpace(text[1:])
	}
	p.base = p.text
	if p.base == "" {
		return p, fmt.Errorf("host pattern %q has nothing after %c", text, p.op)
	}
	p.base, p.random = strings.CutSuffix(p.base, "|random")
	if p.base == "" {
		return p, fmt.Errorf("host pattern %q has no group before |random", text)
	}
	var err error
	if p.base[0] == '~' {
		p.match, err = matchRegexp(p.base[1:])
		return p, err
	}
	if err := p.subscript(); err != nil {
		return p, err
	}
	if strings.ContainsAny(p.base, "*?[") {
		p.match, err = matchGlob(p.base)
	}
	return p, err
}

func (p *pattern) subscript() error {
	m := subscripted.FindStringSubmatch(p.base)
	if m == nil {
		return nil
	}
	var err error
	p.base, p.sub = m[1], subscript{given: true, to: -1}
	for _, part := range []struct {
		text string
		to   *int
	}{{m[2], &p.sub.from}, {m[3], &p.sub.from}, {m[4], &p.sub.to}} {
		if part.text == "" {
			continue
		}
		if *part.to, err = strconv.Atoi(part.text); err != nil {
			return fmt.Errorf("host pattern %q: %s is not a valid index", p.text, part.text)
		}
	}
	p.sub.slice = m[2] == ""
	return nil
}

// pick applies the subscript; an index beyond the end selects nothing.
func (s subscript) pick(hosts []*host) []*host {
	if !s.given {
		return hosts
	}
	from, to := s.from, s.from
	if from < 0 {
		from += len(hosts)
		to = from
	}
	if s.slice {
		to = s.to
		if to < 0 || to >= len(hosts) {
			to = len(hosts) - 1
		}
	}
	if from < 0 || from > to || to >= len(hosts) {
		return nil
	}
	return hosts[from : to+1]
}

// matchRegexp compiles the regular expression of a ~pattern, which is anchored only at the
// start.
func matchRegexp(expr string) (func(string) (bool, error), error) {
	re, err := pyregex.Compile(expr, pyregex.AtStart, regexTimeout)
	if err != nil {
		return nil, fmt.Errorf("host pattern \"~%s\" is not a valid regular expression: %w", expr, err)
	}
	return func(name string) (bool, error) {
		found, err := re.Matches(name)
		if err != nil {
			return false, fmt.Errorf("match host pattern \"~%s\" against %q: %w", expr, name, err)
		}
		return found, nil
	}, nil
}

// matchGlob compiles a shell pattern: * ? [abc] [!abc].
func matchGlob(glob string) (func(string) (bool, error), error) {
	var b strings.Builder
	b.WriteString(`(?s)^`)
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '*':
			b.WriteString(`.*`)
		case '?':
			b.WriteByte('.')
		case '[':
			end := classEnd(glob, i)
			if end < 0 {
				b.WriteString(`\[`)
				continue
			}
			b.WriteString(class(glob[i+1 : end]))
			i = end
		default:
			b.WriteString(regexp.QuoteMeta(string([]byte{c})))
		}
	}
	re, err := regexp.Compile(b.String() + `$`)
	if err != nil {
		return nil, fmt.Errorf("host pattern %q is malformed: check its brackets", glob)
	}
	return func(name string) (bool, error) { return re.MatchString(name), nil }, nil
}

// classEnd finds the ] of the class that opens at i; one directly after the [ is a member.
func classEnd(glob string, i int) int {
	from := i + 1
	if from < len(glob) && glob[from] == '!' {
		from++
	}
	if from >= len(glob) {
		return -1
	}
	if end := strings.IndexByte(glob[from+1:], ']'); end >= 0 {
		return from + 1 + end
	}
	return -1
}

func class(members string) string {
	not := ""
	if rest, ok := strings.CutPrefix(members, "!"); ok {
		not, members = "^", rest
	}
	return "[" + not + strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(members) + "]"
}
