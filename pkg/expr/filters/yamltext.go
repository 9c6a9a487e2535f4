package filters

import (
	"fmt"
	"strings"
)

// yamlStyles are the styles in which a text can be written.
type yamlStyles struct {
	multiline, flowPlain, blockPlain, single bool
}

func isBreak(r rune) bool { return r == '\n' || r == 0x85 || r == 0x2028 || r == 0x2029 }

func isBlankOrBreak(r rune) bool {
	return r == 0 || r == ' ' || r == '\t' || r == '\r' || isBreak(r)
}

// isPrintable reports whether a character needs no escape. libyaml, which Ansible's PyYAML uses, escapes U+0085 and
// everything above U+FFFF.
func isPrintable(r rune, unicode bool) bool {
	switch {
	case r == '\n' || r >= 0x20 && r <= 0x7e:
		return true
	case r == 0xfeff || !unicode:
		return false
	}
	return r >= 0xa0 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd
}

// analyze excludes the styles that cannot represent the text.
func analyze(text []rune, unicode bool) yamlStyles {
	if len(text) == 0 {
		return yamlStyles{blockPlain: true, single: true}
	}
	s := yamlStyles{flowPlain: true, blockPlain: true, single: true}
	if head := string(text[:min(3, len(text))]); head == "---" || head == "..." {
		s.flowPlain, s.blockPlain = false, false
	}
	for i, r := range text {
		s.indicator(text, i)
		s.multiline = s.multiline || isBreak(r)
		if !isPrintable(r, unicode) {
			s.flowPlain, s.blockPlain, s.single = false, false, false
		}
		if i > 0 {
			s.neighbours(text[i-1], r)
		}
	}
	first, last := text[0], text[len(text)-1]
	if s.multiline || first == ' ' || last == ' ' || isBreak(first) || isBreak(last) {
		s.flowPlain, s.blockPlain = false, false
	}
	return s
}

// neighbours checks blanks next to line breaks: a blank before a break needs escapes, and single quotes lose a
// blank after a break.
func (s *yamlStyles) neighbours(before, r rune) {
	if before == ' ' && isBreak(r) || isBreak(before) && r == ' ' {
		s.flowPlain, s.blockPlain, s.single = false, false, false
	}
}

// indicator checks characters that have a meaning at the start of a text or inside it.
func (s *yamlStyles) indicator(text []rune, i int) {
	r := text[i]
	blankNext := i+1 >= len(text) || isBlankOrBreak(text[i+1])
	if i == 0 {
		if strings.ContainsRune("#,[]{}&*!|>'\"%@`", r) || r == '-' && blankNext {
			s.flowPlain, s.blockPlain = false, false
		}
		if r == '?' || r == ':' {
			s.flowPlain, s.blockPlain = false, s.blockPlain && !blankNext
		}
		return
	}
	if strings.ContainsRune(",?[]{}", r) {
		s.flowPlain = false
	}
	if r == ':' {
		s.flowPlain, s.blockPlain = false, s.blockPlain && !blankNext
	}
	if r == '#' && isBlankOrBreak(text[i-1]) {
		s.flowPlain, s.blockPlain = false, false
	}
}

func (w *yamlWriter) scalar(n *yamlNode, at yamlPlace) {
	s := analyze(n.text, w.unicode)
	plain := s.blockPlain
	if w.flowLevel > 0 {
		plain = s.flowPlain
	}
	if n.str && w.resolvesToOthers.MatchString(string(n.text)) || at == asKey && s.multiline {
		plain = false
	}
	switch {
	case plain || !n.str:
		w.plain(n.text, at)
	case s.single && !(at == asKey && s.multiline):
		w.singleQuoted(n.text, at != asKey)
	default:
		w.doubleQuoted(n.text, at != asKey)
	}
}

func (w *yamlWriter) plain(text []rune, at yamlPlace) {
	if !w.blank {
		w.put(" ")
	}
	w.blank, w.fresh = false, false
	for start := 0; start < len(text); {
		end := start + run(text[start:], func(r rune) bool { return r != ' ' })
		w.put(string(text[start:end]))
		start = end
		end += run(text[start:], func(r rune) bool { return r == ' ' })
		if end-start == 1 && w.column > w.width && at != asKey {
			w.newline()
			w.blank, w.fresh = false, false
		} else {
			w.put(string(text[start:end]))
		}
		start = end
	}
}

// run returns the number of leading characters of a kind.
func run(text []rune, kind func(rune) bool) int {
	n := 0
	for n < len(text) && kind(text[n]) {
		n++
	}
	return n
}

func (w *yamlWriter) singleQuoted(text []rune, split bool) {
	w.indicator("'", true, false, false)
	for start := 0; start < len(text); {
		end := start
		switch r := text[start]; {
		case r == ' ':
			end += run(text[start:], func(r rune) bool { return r == ' ' })
			if end-start == 1 && w.column > w.width && split && start > 0 && end < len(text) {
				w.newline()
			} else {
				w.put(string(text[start:end]))
			}
		case isBreak(r):
			end += run(text[start:], isBreak)
			w.breaks(text[start:end])
		case r == '\'':
			end++
			w.put("''")
		default:
			end += run(text[start:], func(r rune) bool { return r != ' ' && r != '\'' && !isBreak(r) })
			w.put(string(text[start:end]))
		}
		start = end
	}
	w.blank = false
	w.indicator("'", false, false, false)
}

// breaks writes line breaks inside quotes. The first break of a series is doubled.
func (w *yamlWriter) breaks(row []rune) {
	if row[0] == '\n' {
		w.lineBreak('\n')
	}
	for _, r := range row {
		w.lineBreak(r)
	}
	w.newline()
}

// yamlEscape returns the escape of a character in double quotes.
func yamlEscape(r rune) string {
	const from, to = "\x00\a\b\t\n\v\f\r\x1b\"\\\u0085\u00a0\u2028\u2029", "0abtnvfre\"\\N_LP"
	if i := strings.IndexRune(from, r); i >= 0 {
		return `\` + to[len([]rune(from[:i])):][:1]
	}
	switch {
	case r <= 0xff:
		return fmt.Sprintf(`\x%02X`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}

// plainInQuotes reports whether the character needs no escape inside double quotes.
func (w *yamlWriter) plainInQuotes(r rune) bool {
	switch {
	case r == '"' || r == '\\' || r == 0xfeff || isBreak(r):
		return false
	case r >= 0x20 && r <= 0x7e:
		return true
	}
	return w.unicode && (r >= 0xa0 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd)
}

func (w *yamlWriter) doubleQuoted(text []rune, split bool) {
	w.indicator(`"`, true, false, false)
	for i, r := range text {
		switch {
		case !w.plainInQuotes(r):
			w.put(yamlEscape(r))
		case r == ' ' && split && w.column > w.width && i > 0 && i < len(text)-1 && text[i-1] != ' ':
			w.newline()
			w.blank, w.fresh = false, false
			if text[i+1] == ' ' {
				w.put(`\`)
			}
		default:
			w.put(string(r))
		}
	}
	w.indicator(`"`, false, false, false)
}
