package source

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

var lineInError = regexp.MustCompile(`(?s)^yaml: (?:unmarshal errors:\s*)?line (\d+): (.*)$`)

// SyntaxError turns an error of the YAML parser into a diagnostic at the position of the mistake, with a guess at
// the intended text.
func SyntaxError(f *File, err error) *Diagnostic {
	named, why := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	m := lineInError.FindStringSubmatch(err.Error())
	if m != nil {
		named, _ = strconv.Atoi(m[1])
		why = m[2]
	}
	if name, ok := unknownAnchor(why); ok {
		return anchorError(f, name)
	}
	line := 1
	if m != nil {
		line = locate(f, err, named)
	}
	d := Errorf(Pos{}, "Syntax Error while loading YAML: %s", why)
	g := guess(f, line, why)
	d.Help = g.help
	d.Pos = Pos{File: f, Line: g.line, Col: utf8.RuneCountInString(f.Line(g.line)[:g.at]) + 1}
	return d
}

// maxReparsed is the maximum number of bytes that are parsed again to find the line of an error.
const maxReparsed = 8 << 20

// locate finds the line of a syntax error. The parser reports the line where the unfinished construct began. The
// error follows the longest run of whole lines that can be parsed.
func locate(f *File, err error, named int) int {
	f.once.Do(f.index)
	left := maxReparsed
	parse := func(lines int) error {
		text := f.Text[:f.lines[lines]]
		left -= len(text) + 1
		return parseError(text)
	}
	// Once the parser has reached the error, more text does not change the result.
	low, high := 0, len(f.lines)-1
	for low < high && left > 0 {
		mid := (low + high) / 2
		if e := parse(mid); e != nil && e.Error() == err.Error() {
			high = mid
		} else {
			low = mid + 1
		}
	}
	good := high
	for good > 0 && left > 0 && parse(good) != nil {
		good--
	}
	if left <= 0 {
		return max(1, min(named, len(f.lines)))
	}
	for n := good + 1; n <= len(f.lines); n++ {
		if text := strings.TrimSpace(f.Line(n)); text != "" && !strings.HasPrefix(text, "#") {
			return n
		}
	}
	return max(1, min(named, len(f.lines)))
}

// parseError returns the parser's error, or nil if it can read the text.
func parseError(text []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		err := decodeNode(dec, new(yaml.Node))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// mistake is the most likely mistake: its line, its byte in the line, and what to do about it.
type mistake struct {
	line, at int
	help     string
}

var (
	template = regexp.MustCompile(`[:-] +\{\{`)
	noBlank  = regexp.MustCompile(`^[\s-]*[A-Za-z_]\w*:[^\s/]`)
	mark     = regexp.MustCompile(`^(<<<<<<<|=======|>>>>>>>)( |$)`)
)

// guess determines the mistake in a line that cannot be parsed.
func guess(f *File, n int, why string) mistake {
	line := f.Line(n)
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	open, at := openIn(line)
	switch {
	case mark.MatchString(line):
		return mistake{n, 0, "this is the mark of a merge conflict: resolve it"}
	case strings.Contains(line[:indent], "\t"):
		return mistake{n, strings.IndexByte(line, '\t'), "indent with spaces: YAML allows no tabs there"}
	case template.MatchString(line):
		return mistake{n, template.FindStringIndex(line)[1] - 2, `a value that starts with {{ needs quotes: "{{ ... }}"`}
	case strings.Contains(why, "hexdecimal") || strings.Contains(why, "unknown escape"):
		return mistake{n, badEscape(line), `in double quotes \ begins an escape: write \\, or use single quotes`}
	case open == '\'' || open == '"':
		return mistake{n, at, "this quote is not closed"}
	case open == '[' || open == '{':
		return mistake{n, at, "this bracket is not closed"}
	case open == behindQuote:
		return mistake{n, at, `text behind a closing quote: put the quotes around the whole value`}
	case open == '*' || open == '&' || open == '@' || open == '`' || open == '%':
		return mistake{n, at, "quote a text that starts with " + string(open)}
	case strings.Contains(why, "',' or '") && strings.Contains(line, "?"):
		return mistake{n, strings.IndexByte(line, '?'), "quote a text with ? in it, inside { } and [ ]"}
	case strings.Contains(why, "mapping values are not allowed"):
		return mappingMistake(f, n, indent)
	case strings.Contains(why, "could not find expected ':'"):
		return mistake{n, indent, "a key needs a colon and a space: `key: value`"}
	case strings.Contains(why, "did not find expected"):
		return mistake{n, indent, "check the indentation, and that every quote and bracket is closed"}
	}
	return mistake{n, indent, ""}
}

// mappingMistake explains "mapping values are not allowed in this context": either the colon is part of a text, or
// the line continues the text of the line above.
func mappingMistake(f *File, n, indent int) mistake {
	line := f.Line(n)
	for m := n - 1; m > 0; m-- {
		above := f.Line(m)
		if text := strings.TrimSpace(above); text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		if i := noBlank.FindStringIndex(above); i != nil && strings.Count(above, ": ") == 0 {
			return mistake{m, i[1] - 1, "a key needs a space behind its colon"}
		}
		if strings.Count(line, ": ") < 2 && strings.Contains(above, ": ") &&
			indent > len(above)-len(strings.TrimLeft(above, " -")) {
			return mistake{n, indent, "this line goes on with the text above it: indent it as the key above"}
		}
		break
	}
	at := indent
	if i := strings.LastIndex(line, ": "); i >= 0 {
		at = i
	} else if strings.HasSuffix(line, ":") {
		at = len(line) - 1
	}
	return mistake{n, at, `quote a text that has ": " in it, or check the indentation of the line above`}
}

func badEscape(line string) int {
	for i := 0; i+1 < len(line); i++ {
		if line[i] != '\\' {
			continue
		}
		i++
		if strings.IndexByte("0abt\tnvfer \"/\\N_LP", line[i]) < 0 {
			return i - 1
		}
	}
	return 0
}

func unknownAnchor(why string) (string, bool) {
	rest, ok := strings.CutPrefix(why, "unknown anchor '")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "'")
	return name, ok
}

// anchorError finds the alias of an undefined anchor, because the parser does not report its position.
func anchorError(f *File, name string) *Diagnostic {
	d := Errorf(Pos{File: f, Line: 1, Col: 1}, "alias *%s has no anchor", name).
		WithHelp("define &%s above its use, or quote a text that starts with *", name)
	alias := regexp.MustCompile(`(?:^|[\s\[{,])\*` + regexp.QuoteMeta(name) + `(?:$|[\s\]},])`)
	f.once.Do(f.index)
	for n := 1; n <= len(f.lines); n++ {
		line := f.Line(n)
		if i := alias.FindStringIndex(line); i != nil {
			star := i[0] + strings.IndexByte(line[i[0]:], '*')
			d.Pos = Pos{File: f, Line: n, Col: utf8.RuneCountInString(line[:star]) + 1}
			d.Width = utf8.RuneCountInString(name) + 1
			break
		}
	}
	return d
}
