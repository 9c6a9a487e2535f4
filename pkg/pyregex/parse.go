package pyregex

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// op is the kind of a node.
type op byte

const (
	opChar   op = iota // a single character
	opSet              // a character of a set, or the dot with or without DotAll
	opAt               // a position: ^ $ A Z b B
	opSeq              // all of subs in order
	opBranch           // one of subs
	opGroup            // a capturing group
	opRef              // the text that a group has captured
	opIf               // subs[0] if a group has captured, subs[1] otherwise
	opRepeat
	opLook   // lookaround
	opAtomic // only the first match of subs[0]
)

// node is a part of a pattern.
type node struct {
	op         op
	flags      Flags // flags that apply here
	char       rune  // the character of opChar; the kind of opAt
	set        set
	subs       []*node
	group      int // of opGroup, opRef, opIf
	min, max   int // of opRepeat; max is unbounded when there is no upper bound
	lazy       bool
	back, not  bool // of opLook
	least, top int  // the minimum and maximum number of characters that it matches
	captures   bool // contains a group
	nodes      int  // number of nodes, including this one
}

// unbounded means no upper bound, for repetitions and widths.
const unbounded = math.MaxInt

// maxNesting limits the depth of nested groups.
const maxNesting = 300

// source reads a pattern or a template character by character. A backslash and the character after it are one
// token. After an error the source is at its end.
type source struct {
	text  []rune
	index int // position after next
	next  string
	err   error
}

func newSource(text string) source {
	s := source{text: []rune(text)}
	s.advance()
	return s
}

func (s *source) advance() {
	s.next = ""
	if s.err != nil || s.index == len(s.text) {
		return
	}
	end := s.index + 1
	if s.text[s.index] == '\\' {
		if end == len(s.text) {
			s.failAt(s.index, "bad escape (end of pattern)")
			return
		}
		end++
	}
	s.next = string(s.text[s.index:end])
	s.index = end
}

func (s *source) get() string {
	this := s.next
	s.advance()
	return this
}

func (s *source) accept(token string) bool {
	if s.next != token {
		return false
	}
	s.advance()
	return true
}

// tell returns the position of next.
func (s *source) tell() int { return s.index - utf8.RuneCountInString(s.next) }

// seek moves back to a position.
func (s *source) seek(at int) {
	s.index = at
	s.advance()
}

// fail records an error at the position that is offset before next.
func (s *source) fail(offset int, format string, args ...any) {
	s.failAt(s.tell()-offset, format, args...)
}

// failAt records an error with Python's wording. Only the first error counts.
func (s *source) failAt(at int, format string, args ...any) {
	if s.err != nil {
		return
	}
	msg := fmt.Sprintf(format, args...) + fmt.Sprintf(" at position %d", at)
	if all := string(s.text); strings.Contains(all, "\n") {
		before := string(s.text[:max(at, 0)])
		line := strings.Count(before, "\n") + 1
		column := utf8.RuneCountInString(before[strings.LastIndex(before, "\n")+1:]) + 1
		msg += fmt.Sprintf(" (line %d, column %d)", line, column)
	}
	s.stop(errors.New(msg))
}

// stop stops reading with an error that has no position.
func (s *source) stop(err error) {
	if s.err == nil {
		s.err, s.next, s.index = err, "", len(s.text)
	}
}

// while reads up to n tokens of a set of characters.
func (s *source) while(n int, chars string) string {
	var b strings.Builder
	for ; n > 0 && len(s.next) == 1 && strings.Contains(chars, s.next); n-- {
		b.WriteString(s.get())
	}
	return b.String()
}

// until reads a name up to an end token.
func (s *source) until(end, what string) string {
	var b strings.Builder
	for {
		switch c := s.get(); {
		case c == "" && b.Len() == 0:
			s.fail(0, "missing %s", what)
			return ""
		case c == "":
			s.fail(utf8.RuneCountInString(b.String()), "missing %s, unterminated name", end)
			return ""
		case c == end && b.Len() == 0:
			s.fail(1, "missing %s", what)
			return ""
		case c == end:
			return b.String()
		default:
			b.WriteString(c)
		}
	}
}

const (
	digits    = "0123456789"
	octal     = "01234567"
	hexDigits = "0123456789abcdefABCDEF"
)

// parser parses a pattern as Python's re does, with the same errors.
type parser struct {
	source
	flags  Flags          // of the whole pattern
	names  map[string]int // of groups
	widths [][2]int       // minimum and maximum of closed groups, by number; {-1} for others
	behind int            // the first group in the outermost lookbehind; 0 outside of lookbehinds
	refs   map[int]int    // groups that conditions refer to, with their positions
	wide   bool           // a lookbehind does not have a fixed width
}

func parse(text string, flags Flags) (*parser, *node, error) {
	p := &parser{source: newSource(text), flags: flags, names: map[string]int{}, refs: map[int]int{}}
	p.widths = [][2]int{{-1}}
	n := p.alternatives(flags, 0)
	if p.flags&ASCII != 0 && p.flags&unicodeFlag != 0 {
		p.stop(errors.New("ASCII and UNICODE flags are incompatible"))
	}
	if p.next != "" {
		p.fail(0, "unbalanced parenthesis")
	}
	for group, at := range p.refs {
		if group >= len(p.widths) {
			p.failAt(at, "invalid group reference %d", group)
		}
	}
	if p.wide {
		p.stop(errors.New("look-behind requires fixed-width pattern"))
	}
	return p, n, p.err
}

// alternatives parses a|b|c.
func (p *parser) alternatives(flags Flags, depth int) *node {
	if depth > maxNesting {
		p.fail(0, "groups nest too deep")
	}
	n := &node{op: opBranch}
	for first := true; first || p.accept("|"); first = false {
		if depth == 0 {
			flags = p.flags
		}
		n.subs = append(n.subs, p.sequence(flags, depth, depth == 0 && first))
	}
	if len(n.subs) == 1 {
		return n.subs[0]
	}
	return n.measured()
}

func (p *parser) sequence(flags Flags, depth int, first bool) *node {
	seq := &node{op: opSeq}
	for p.next != "" && p.next != "|" && p.next != ")" {
		this := p.get()
		verbose := flags&Verbose != 0
		n := &node{op: opChar, flags: flags, least: 1, top: 1}
		switch this {
		case " ", "\t", "\n", "\r", "\v", "\f":
			if verbose {
				continue
			}
			n.char = rune(this[0])
		case "#":
			n.char = '#'
			if verbose {
				for this != "" && this != "\n" {
					this = p.get()
				}
				continue
			}
		case "[":
			p.class(n)
		case "*", "+", "?", "{":
			if p.repeat(seq, this) {
				continue
			}
			n.char = '{'
		case ".":
			n.op = opSet
			if n.set = (set{ranges: []rune{'\n', '\n'}, negate: true}); flags&DotAll != 0 {
				n.set.ranges = nil
			}
		case "(":
			if n = p.group(flags, depth, first && len(seq.subs) == 0); depth == 0 {
				flags = p.flags
			}
			if n == nil {
				continue
			}
		case "^", "$":
			*n = node{op: opAt, flags: flags, char: rune(this[0])}
		default:
			if this[0] == '\\' {
				p.escape(n, this)
				break
			}
			n.char, _ = utf8.DecodeRuneInString(this)
		}
		seq.subs = append(seq.subs, n)
	}
	return seq.measured()
}

// measured computes the minimum and maximum length of a node from its parts.
func (n *node) measured() *node {
	n.nodes = 1
	for i, s := range n.subs {
		n.captures = n.captures || s.captures
		n.nodes += max(s.nodes, 1)
		switch {
		case n.op == opSeq:
			n.least, n.top = plus(n.least, s.least), plus(n.top, s.top)
		case i == 0:
			n.least, n.top = s.least, s.top
		default:
			n.least, n.top = min(n.least, s.least), max(n.top, s.top)
		}
	}
	switch n.op {
	case opGroup:
		n.captures = true
	case opLook:
		n.least, n.top = 0, 0
	case opIf:
		if len(n.subs) == 1 {
			n.least = 0
		}
	case opRepeat:
		n.least, n.top = times(n.least, n.min), times(n.top, n.max)
	}
	return n
}

func plus(a, b int) int {
	if a > unbounded-b {
		return unbounded
	}
	return a + b
}

func times(a, b int) int {
	if a != 0 && b > unbounded/a {
		return unbounded
	}
	return a * b
}

// repeat replaces the last node of a sequence by its repetition. A brace that does not begin a repetition is a
// literal.
func (p *parser) repeat(seq *node, sign string) bool {
	at := p.tell() - 1
	n := &node{op: opRepeat, max: unbounded}
	switch sign {
	case "?":
		n.max = 1
	case "+":
		n.min = 1
	case "{":
		if !p.bounds(n) {
			p.seekUnlessFailed(at + 1)
			return false
		}
	}
	if len(seq.subs) == 0 || seq.subs[len(seq.subs)-1].op == opAt {
		p.failAt(at, "nothing to repeat")
		return true
	}
	last := &seq.subs[len(seq.subs)-1]
	if (*last).op == opRepeat || (*last).op == opAtomic && (*last).subs[0].op == opRepeat {
		p.failAt(at, "multiple repeat")
		return true
	}
	n.subs = []*node{*last}
	n.lazy = p.accept("?")
	possessive := !n.lazy && p.accept("+")
	if possessive { // only the first match counts, for the repeated part as well
		n.subs[0] = atomic(n.subs[0])
	}
	if *last = n.measured(); possessive {
		*last = atomic(n)
	}
	return true
}

func atomic(n *node) *node { return (&node{op: opAtomic, subs: []*node{n}}).measured() }

func (p *parser) seekUnlessFailed(at int) {
	if p.err == nil {
		p.seek(at)
	}
}

// bounds parses the bounds of a repetition after the brace: 2} or 2,3} or 2,} or ,3} or ,}
func (p *parser) bounds(n *node) bool {
	here := p.tell()
	if p.next == "}" {
		return false
	}
	low := p.while(len(p.text), digits)
	high := low
	if p.accept(",") {
		high = p.while(len(p.text), digits)
	}
	if !p.accept("}") {
		return false
	}
	for _, one := range []struct {
		text string
		to   *int
	}{{low, &n.min}, {high, &n.max}} {
		if one.text == "" {
			continue
		}
		bound, err := strconv.ParseUint(one.text, 10, 32)
		if err != nil || bound == math.MaxUint32 {
			p.stop(errors.New("the repetition number is too large"))
		}
		*one.to = int(bound)
	}
	if n.max < n.min {
		p.failAt(here, "min repeat greater than max repeat")
	}
	return true
}

// class parses a set after its opening bracket.
func (p *parser) class(n *node) {
	at := p.tell() - 1
	n.op = opSet
	n.set.negate = p.accept("^")
	for first := true; ; first = false {
		this := p.get()
		if this == "]" && !first {
			return
		}
		low, kind := p.member(this)
		if p.next != "-" {
			if n.set.add(low, low, kind); this == "" {
				break
			}
			continue
		}
		p.advance()
		that := p.get()
		if that == "]" {
			n.set.add(low, low, kind)
			n.set.add('-', '-', 0)
			return
		}
		high, kind2 := p.member(that)
		if this == "" || that == "" {
			break
		}
		if kind != 0 || kind2 != 0 || high < low {
			p.fail(utf8.RuneCountInString(this+that)+1, "bad character range %s-%s", this, that)
		}
		n.set.add(low, high, 0)
	}
	p.failAt(at, "unterminated character set")
}

// member parses a single character of a set or range, or a class such as \d.
func (p *parser) member(this string) (char rune, kind byte) {
	if this == "" || this[0] != '\\' {
		char, _ = utf8.DecodeRuneInString(this)
		return char, 0
	}
	switch this[1] {
	case 'd', 'D', 's', 'S', 'w', 'W':
		return 0, this[1]
	case 'b':
		return '\b', 0
	}
	if strings.Contains(octal, this[1:]) {
		return p.octal(this + p.while(2, octal)), 0
	}
	return p.character(this), 0
}

func (s *source) octal(escape string) rune {
	n, _ := strconv.ParseUint(escape[1:], 8, 16) // at most three digits
	if n > 0o377 {
		s.fail(len(escape), "octal escape value %s outside of range 0-0o377", escape)
	}
	return rune(n)
}

// escape parses a backslash outside of sets.
func (p *parser) escape(n *node, this string) {
	switch c := this[1]; c {
	case 'A', 'Z', 'b', 'B':
		*n = node{op: opAt, flags: n.flags, char: rune(c)}
	case 'd', 'D', 's', 'S', 'w', 'W':
		n.op, n.set = opSet, set{kinds: string(c)}
	case '0':
		n.char = p.octal(this + p.while(2, octal))
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		p.reference(n, this)
	default:
		n.char = p.character(this)
	}
}

// reference parses \1, or the three digits of an octal number.
func (p *parser) reference(n *node, this string) {
	number, octal := p.number(this)
	switch {
	case octal:
		n.char = p.octal(number)
		return
	case p.refer(n, atoi(number[1:]), len(number)):
		return
	}
	p.fail(len(number)-1, "invalid group reference %s", number[1:])
}

// number reads the digits after a backslash: one or two for a group, three for an octal number.
func (s *source) number(this string) (number string, isOctal bool) {
	this += s.while(1, digits)
	if len(this) == 3 && strings.Trim(this[1:], octal) == "" {
		if third := s.while(1, octal); third != "" {
			return this + third, true
		}
	}
	return this, false
}

// refer turns a node into a reference to a group. It returns false if the group does not exist.
func (p *parser) refer(n *node, group, offset int) bool {
	if group >= len(p.widths) {
		return false
	}
	if p.widths[group][0] < 0 {
		p.fail(offset, "cannot refer to an open group")
		return true
	}
	p.fixed(group)
	*n = node{op: opRef, flags: n.flags, group: group, least: p.widths[group][0], top: p.widths[group][1]}
	return true
}

// fixed rejects a reference in a lookbehind to an open group, or to a group of the same lookbehind.
func (p *parser) fixed(group int) {
	switch {
	case p.behind == 0:
	case group >= len(p.widths) || p.widths[group][0] < 0:
		p.fail(0, "cannot refer to an open group")
	case group >= p.behind:
		p.fail(0, "cannot refer to group defined in the same lookbehind subpattern")
	}
}

// character parses an escape for a single character, inside and outside of sets.
func (p *parser) character(this string) rune {
	c, _ := utf8.DecodeRuneInString(this[1:])
	if r := simpleEscape(this); r >= 0 {
		return r
	}
	switch c {
	case 'x':
		return p.hex(this, 2)
	case 'u':
		return p.hex(this, 4)
	case 'U':
		return p.hex(this, 8)
	case 'N':
		if !p.accept("{") {
			p.fail(0, "missing {")
		}
		name := p.until("}", "character name")
		const msg = `\N{%s} is not supported: write the character itself, or \u and its number`
		p.fail(utf8.RuneCountInString(name)+4, msg, name)
		return 0
	}
	if c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c)) {
		p.fail(2, "bad escape %s", this)
	}
	return c
}

// simpleEscape returns the character for \n and similar escapes, -1 for other escapes.
func simpleEscape(this string) rune {
	if i := strings.Index(`\afnrtv`, this[1:]); i >= 0 {
		return rune("\\\a\f\n\r\t\v"[i])
	}
	return -1
}

func (p *parser) hex(this string, size int) rune {
	this += p.while(size, hexDigits)
	if len(this) != size+2 {
		p.fail(len(this), "incomplete escape %s", this)
		return 0
	}
	n, _ := strconv.ParseUint(this[2:], 16, 32)
	if n > unicode.MaxRune {
		p.fail(len(this), "bad escape %s", this)
	}
	return rune(n)
}

// group parses a group after its opening parenthesis. Comments and flags for the whole pattern yield no node.
func (p *parser) group(flags Flags, depth int, first bool) *node {
	at := p.tell() - 1
	n := &node{op: opGroup, flags: flags}
	name := ""
	if p.accept("?") {
		n.op = opSeq
		switch char := p.get(); char {
		case "":
			p.fail(0, "unexpected end of pattern")
		case "P":
			switch {
			case p.accept("<"):
				n.op, name = opGroup, p.groupName(">")
			case p.accept("="):
				p.namedReference(n)
				return n
			default:
				if char = p.get(); char == "" {
					p.fail(0, "unexpected end of pattern")
				}
				p.fail(utf8.RuneCountInString(char)+2, "unknown extension ?P%s", char)
			}
		case ":":
		case "#":
			for p.next != "" && p.next != ")" {
				p.advance()
			}
			if !p.accept(")") {
				p.failAt(at, "missing ), unterminated comment")
			}
			return nil
		case "=", "!", "<":
			p.look(n, char, depth)
			p.closed(at)
			return n.measured()
		case "(":
			p.condition(n, depth)
			p.closed(at)
			return n.measured()
		case ">":
			n.op = opAtomic
		default:
			if !strings.Contains(flagLetters+"-", char) {
				p.fail(utf8.RuneCountInString(char)+1, "unknown extension ?%s", char)
				return n
			}
			on, off, global := p.inline(char)
			if global {
				if !first {
					p.failAt(at, "global flags not at the start of the expression")
				}
				p.flags |= on
				return nil
			}
			if on&typeFlags != 0 {
				flags &^= typeFlags
			}
			flags = (flags | on) &^ off
		}
	}
	if n.op == opGroup {
		n.group = p.open(name)
	}
	n.subs = []*node{p.alternatives(flags, depth+1)}
	p.closed(at)
	n.measured()
	if n.op == opGroup {
		p.widths[n.group] = [2]int{n.least, n.top}
	}
	return n
}

func (p *parser) closed(at int) {
	if !p.accept(")") {
		p.failAt(at, "missing ), unterminated subpattern")
	}
}

// open assigns a number to a group.
func (p *parser) open(name string) int {
	group := len(p.widths)
	if name != "" {
		if was, twice := p.names[name]; twice {
			const msg = "redefinition of group name %s as group %d; was group %d"
			p.fail(utf8.RuneCountInString(name)+1, msg, quote(name), group, was)
		}
		p.names[name] = group
	}
	p.widths = append(p.widths, [2]int{-1})
	return group
}

func (s *source) groupName(end string) string {
	name := s.until(end, "group name")
	if !isIdentifier(name) {
		s.fail(utf8.RuneCountInString(name)+1, "bad character in group name %s", quote(name))
	}
	return name
}

func (p *parser) namedReference(n *node) {
	name := p.groupName(")")
	offset := utf8.RuneCountInString(name) + 1
	group, ok := p.names[name]
	if !ok {
		p.fail(offset, "unknown group name %s", quote(name))
		return
	}
	p.refer(n, group, offset)
}

func (p *parser) look(n *node, char string, depth int) {
	n.op = opLook
	if char == "<" {
		n.back = true
		if char = p.get(); char == "" {
			p.fail(0, "unexpected end of pattern")
		}
		if char != "=" && char != "!" {
			p.fail(utf8.RuneCountInString(char)+2, "unknown extension ?<%s", char)
		}
	}
	n.not = char == "!"
	outer := p.behind
	if n.back && outer == 0 {
		p.behind = len(p.widths)
	}
	sub := p.alternatives(n.flags, depth+1)
	p.behind = outer
	p.wide = p.wide || n.back && sub.least != sub.top
	n.subs = []*node{sub}
}

// condition parses (?(1)yes|no) after its second parenthesis.
func (p *parser) condition(n *node, depth int) {
	n.op = opIf
	name := p.until(")", "group name")
	offset := utf8.RuneCountInString(name) + 1
	switch group, named := p.names[name]; {
	case named:
		n.group = group
	case isIdentifier(name):
		p.fail(offset, "unknown group name %s", quote(name))
	case strings.Trim(name, digits) != "":
		p.fail(offset, "bad character in group name %s", quote(name))
	default:
		if n.group = atoi(name); n.group == 0 {
			p.fail(offset, "bad group number")
		}
		if _, seen := p.refs[n.group]; !seen {
			p.refs[n.group] = p.tell() - offset
		}
	}
	p.fixed(n.group)
	n.subs = []*node{p.sequence(n.flags, depth+1, false)}
	if p.accept("|") {
		n.subs = append(n.subs, p.sequence(n.flags, depth+1, false))
		if p.next == "|" {
			p.fail(0, "conditional backref with more than two branches")
		}
	}
}

// atoi parses digits. A number that is too large becomes a group number that no pattern has.
func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return math.MaxInt32
	}
	return n
}

// inline parses flags: (?im) for the whole pattern, (?im-s: for a group.
func (p *parser) inline(char string) (on, off Flags, global bool) {
	if char != "-" {
		on, char = p.letters(char, "missing -, : or )", ")-:", "bad inline flags: flags 'a', 'u' and 'L' are incompatible")
		if char == ")" {
			return on, 0, true
		}
	}
	if char == "-" {
		if char = p.get(); char == "" {
			p.fail(0, "missing flag")
		}
		if !strings.Contains(flagLetters, char) {
			p.unknownFlag(char, "missing flag")
		}
		off, _ = p.letters(char, "missing :", ":", "bad inline flags: cannot turn off flags 'a', 'u' and 'L'")
	}
	if on&off != 0 {
		p.fail(1, "bad inline flags: flag turned on and off")
	}
	return on, off, false
}

// letters reads flags up to one of the characters in ends, which it returns.
func (p *parser) letters(char, missing, ends, typed string) (all Flags, end string) {
	for p.err == nil {
		if char == "L" && ends != ":" {
			p.fail(0, "bad inline flags: cannot use 'L' flag with a str pattern")
		}
		flag := flagOf(char)
		if all |= flag; flag&typeFlags != 0 && (ends == ":" || all&typeFlags != flag) {
			p.fail(0, "%s", typed)
		}
		if char = p.get(); char == "" {
			p.fail(0, "%s", missing)
		}
		if len(char) == 1 && strings.Contains(ends, char) {
			return all, char
		}
		if !strings.Contains(flagLetters, char) {
			p.unknownFlag(char, missing)
		}
	}
	return all, ""
}

func (p *parser) unknownFlag(char, missing string) {
	msg := missing
	if r, size := utf8.DecodeRuneInString(char); size == len(char) && unicode.IsLetter(r) {
		msg = "unknown flag"
	}
	p.fail(utf8.RuneCountInString(char), "%s", msg)
}

func isIdentifier(name string) bool {
	for i, r := range name {
		start := r == '_' || unicode.In(r, unicode.L, unicode.Nl)
		if !start && (i == 0 || !unicode.In(r, unicode.Nd, unicode.Mn, unicode.Mc, unicode.Pc)) {
			return false
		}
	}
	return name != ""
}

// quote quotes names as Python does.
func quote(name string) string {
	q := strconv.Quote(name)
	q = strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
	if strings.Contains(name, "'") && !strings.Contains(name, `"`) {
		return `"` + q + `"`
	}
	return "'" + strings.ReplaceAll(q, "'", `\'`) + "'"
}
