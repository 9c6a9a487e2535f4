package inventory

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

var sectionHead = regexp.MustCompile(`^\[([^:\]\s]+)(?::(\w+))?\]\s*(?:[#;].*)?$`)

// ini reads an INI inventory.
func (l *loader) ini(f *source.File, path string) {
	p := &iniParser{loader: l, file: f, path: path, group: Ungrouped, kind: "hosts", named: map[string]bool{}}
	for name := range l.inv.groups {
		p.named[name] = true
	}
	rest := string(f.Text)
	for p.line = 1; rest != ""; p.line++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		p.take(strings.TrimRight(line, " \t\r"))
	}
	p.flush()
	p.check()
}

type iniParser struct {
	*loader
	file  *source.File
	path  string
	line  int
	group string // of the section
	kind  string // of the section: hosts, children or vars

	vars    *VarSet         // of the section, when kind is vars
	named   map[string]bool // groups that are defined
	pending []groupUse      // groups that must be defined somewhere
}

type groupUse struct {
	name, section string
	at            source.Pos
}

func (p *iniParser) at(col int) source.Pos { return source.Pos{File: p.file, Line: p.line, Col: col} }

func (p *iniParser) fail(col int, format string, args ...any) *source.Diagnostic {
	d := source.Errorf(p.at(col), format, args...)
	p.ds.Add(d)
	return d
}

func (p *iniParser) take(line string) {
	text := strings.TrimLeft(line, " \t")
	col := 1 + len(line) - len(text)
	switch {
	case text == "" || text[0] == '#' || text[0] == ';':
	case text[0] == '[' && (p.kind != "hosts" || !strings.Contains(text, "]") || sectionLine.MatchString(text)):
		p.section(text, col)
	case p.kind == "hosts":
		p.hostLine(text, col)
	case p.kind == "children":
		p.childLine(text, col)
	default:
		p.varLine(text, col)
	}
}

func (p *iniParser) section(text string, col int) {
	m := sectionHead.FindStringSubmatch(text)
	if m == nil {
		p.fail(col, "section header %q is malformed", text).WithHelp("write [group], [group:children] or [group:vars]")
		return
	}
	p.flush()
	p.group, p.kind = m[1], "hosts"
	if m[2] != "" {
		p.kind = m[2]
	}
	switch p.kind {
	case "hosts", "children":
		p.named[p.group] = true
		p.inv.group(p.group, p.at(col))
	case "vars":
		p.pending = append(p.pending, groupUse{p.group, text, p.at(col + 1)})
		p.vars = &VarSet{Name: p.file.Name, Values: value.NewDict()}
	default:
		p.fail(col+len(p.group)+2, "unknown section kind %q", p.kind).
			WithHelp("%s", orElse(source.DidYouMean(p.kind, []string{"hosts", "children", "vars"}),
				"use hosts, children or vars"))
		p.kind = "vars" // its lines are read and discarded
		p.vars = nil
	}
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

func (p *iniParser) flush() {
	if p.vars != nil {
		p.inv.group(p.group, p.at(1)).setVars(p.sealed(p.vars))
		p.vars = nil
	}
}

func (p *iniParser) hostLine(text string, col int) {
	words, err := splitWords(text)
	if err != nil {
		p.fail(col+err.at, "%s", err.msg).WithHelp("quote the whole value: name='...'")
		return
	}
	if len(words) == 0 {
		return
	}
	names, port, bad := expandHosts(words[0].text)
	if bad != nil {
		p.fail(col, "%v", bad)
		return
	}
	if i := strings.IndexByte(words[0].text, '='); i >= 0 && len(words) == 1 {
		p.fail(col, "host line starts with %q, which looks like a variable", words[0].text).
			WithHelp("a host line begins with the name of the host; put group variables under [%s:vars]", p.group)
		return
	}
	set := p.hostVars(words[1:], col, port)
	g := p.inv.group(p.group, p.at(col))
	for _, name := range names {
		h := p.inv.hostAt(name, p.path, p.at(col))
		if g.name == Ungrouped {
			p.inv.groups[All].join(h)
		}
		g.join(h)
		if set != nil {
			h.vars = append(h.vars, set)
		}
	}
}

func (p *iniParser) hostVars(words []word, col, port int) *VarSet {
	if len(words) == 0 && port == 0 {
		return nil
	}
	set := &VarSet{Name: p.file.Name, Values: value.NewDict()}
	if port > 0 {
		set.Values.Set("ansible_port", port)
		set.at = append(set.at, keyPos{"ansible_port", p.at(col)})
	}
	for _, w := range words {
		key, val, ok := strings.Cut(w.text, "=")
		if !ok || key == "" {
			p.fail(col+w.at, "expected key=value, found %q", w.text).
				WithHelp("write one host per line; quote values with blanks: key='a b'")
			continue
		}
		p.set(set, key, val, col+w.at)
	}
	return p.sealed(set)
}

func (p *iniParser) childLine(text string, col int) {
	name, rest, _ := strings.Cut(text, " ")
	if name = strings.TrimSpace(name); strings.TrimSpace(rest) != "" && !strings.HasPrefix(strings.TrimSpace(rest), "#") {
		p.fail(col+len(name)+1, "expected one group per line, found %q after %q", strings.TrimSpace(rest), name)
		return
	}
	p.pending = append(p.pending, groupUse{name, fmt.Sprintf("[%s:children]", p.group), p.at(col)})
	g := p.inv.group(p.group, p.at(col))
	if err := g.addChild(p.inv.group(name, p.at(col))); err != nil {
		p.fail(col, "%v", err).WithHelp("remove one of the two lines")
	}
}

func (p *iniParser) varLine(text string, col int) {
	key, val, ok := strings.Cut(text, "=")
	if !ok {
		p.fail(col, "expected key=value under [%s:vars], found %q", p.group, text).
			WithHelp("put hosts under [%s], and groups under [%s:children]", p.group, p.group)
		return
	}
	if p.vars == nil {
		return
	}
	key = strings.TrimSpace(key)
	p.set(p.vars, key, strings.TrimSpace(val), col)
}

// set adds a variable that the set does not have yet.
func (p *iniParser) set(s *VarSet, key, val string, col int) {
	if s.Values.Has(key) {
		p.fail(col, "variable %q is set twice (first at %s)", key, s.At(key)).
			WithHelp("remove or rename one of them: the last would silently win")
		return
	}
	s.Values.Set(key, typed(val))
	s.at = append(s.at, keyPos{key, p.at(col)})
}

// typed parses a value as Ansible does: a Python literal has its value, anything else is text.
func typed(text string) any {
	if v, err := value.FromLiteral(text, value.PythonNames()); err == nil {
		return v
	}
	return text
}

// check reports groups that are used and not defined, neither by a section here nor by a source
// that was read before.
func (p *iniParser) check() {
	for _, use := range p.pending {
		g := p.inv.groups[use.name]
		if p.named[use.name] || strings.HasSuffix(use.section, ":vars]") && g != nil && len(g.parents) > 0 {
			continue
		}
		known := slices.Sorted(maps.Keys(p.named))
		p.ds.Add(source.Errorf(use.at, "%s uses group %q, which is not defined", use.section, use.name).
			WithHelp("%s", orElse(source.DidYouMean(use.name, known), fmt.Sprintf("add a section [%s]", use.name))))
	}
}

// word is a word of a line, with its offset in runes.
type word struct {
	text string
	at   int
}

type wordError struct {
	msg string
	at  int
}

// splitWords splits a line as a POSIX shell does, with quotes, backslashes, and comments that
// start with #.
func splitWords(line string) ([]word, *wordError) {
	s := splitter{line: []rune(line), start: -1}
	for s.pos < len(s.line) && s.line[s.pos] != '#' {
		switch r := s.line[s.pos]; r {
		case ' ', '\t':
			s.end()
			s.pos++
		case '"', '\'':
			if err := s.quoted(r); err != nil {
				return nil, err
			}
		case '\\':
			s.escaped("")
		default:
			s.add(r)
		}
	}
	s.end()
	return s.words, nil
}

// splitter is at a rune of a line; start is the beginning of the current word, -1 between
// words.
type splitter struct {
	line       []rune
	pos, start int
	b          strings.Builder
	words      []word
}

func (s *splitter) begin() {
	if s.start < 0 {
		s.start = s.pos
	}
}

func (s *splitter) add(r rune) {
	s.begin()
	s.b.WriteRune(r)
	s.pos++
}

func (s *splitter) end() {
	if s.start >= 0 {
		s.words = append(s.words, word{s.b.String(), s.start})
		s.b.Reset()
		s.start = -1
	}
}

// escaped reads a backslash and the rune after it. The backslash is kept unless the rune is one
// of special ("" is any).
func (s *splitter) escaped(special string) {
	if s.pos+1 == len(s.line) || special != "" && !strings.ContainsRune(special, s.line[s.pos+1]) {
		s.add('\\')
		return
	}
	s.begin()
	s.pos++
	s.add(s.line[s.pos])
}

func (s *splitter) quoted(quote rune) *wordError {
	s.begin()
	from := s.pos
	for s.pos++; s.pos < len(s.line); {
		switch r := s.line[s.pos]; {
		case r == quote:
			s.pos++
			return nil
		case r == '\\' && quote == '"':
			s.escaped(`"\`)
		default:
			s.add(r)
		}
	}
	return &wordError{fmt.Sprintf("quote %c is not closed", quote), from}
}
