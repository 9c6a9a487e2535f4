// Package configparser reads INI files as Python's configparser does, without interpolation.
package configparser

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Rules relax the defaults of Python's ConfigParser.
type Rules struct {
	Inline string // characters that start a comment after a blank
	Bare   bool   // an option may have no delimiter and no value
	Exact  bool   // option names are case-sensitive
}

// DefaultSection is the section whose options are in all others.
const DefaultSection = "DEFAULT"

// Option is one option of a file. Positions count from 1, columns in characters.
type Option struct {
	Section, Name, Value string
	Bare                 bool // it has no delimiter
	Line, Col, ValueCol  int
}

// File is a parsed file; sections and options are in the order of the file.
type File struct {
	Sections []string // without DefaultSection
	Options  []*Option
	sections map[string][]*Option
}

// Kind is the kind of a Problem.
type Kind int

const (
	NoSection        Kind = iota // an option before the first section
	NoOption                     // neither a section nor an option
	DuplicateSection             // Of is the section
	DuplicateOption
)

// Problem is an invalid line.
type Problem struct {
	Kind      Kind
	Of        string
	Line, Col int
	First     int // line of the first definition, for duplicates
}

// Error describes the problem, without the line number.
func (p *Problem) Error() string {
	switch p.Kind {
	case NoSection:
		return fmt.Sprintf("%q comes before the first section", p.Of)
	case NoOption:
		return fmt.Sprintf("a line must be [section] or key = value, not %q", p.Of)
	}
	return fmt.Sprintf("%s is defined twice (first on line %d)", p.Of, p.First)
}

// parser is at a line of a text.
type parser struct {
	Rules
	file    *File
	line    int
	section string
	started bool           // a section has begun
	open    *Option        // whose value may continue on the next line
	value   []string       // the lines of it
	indent  int            // of the option that is open
	seen    map[string]int // the line of each section and option
	wrong   []*Problem
}

// Parse reads a text. It continues after a problem, so that all problems are reported at once.
func Parse(text string, rules Rules) (*File, []*Problem) {
	p := &parser{Rules: rules, file: &File{sections: map[string][]*Option{}}, seen: map[string]int{}}
	for line := range strings.SplitSeq(text, "\n") {
		p.line++
		p.read(line)
	}
	p.close()
	return p.file, p.wrong
}

// Section returns the options of a section, preceded by those of DefaultSection.
func (f *File) Section(name string) (options []*Option, found bool) {
	at := map[string]int{}
	for _, of := range []string{DefaultSection, name} {
		for _, o := range f.sections[of] {
			if i, twice := at[o.Name]; twice {
				options[i] = o
				continue
			}
			at[o.Name] = len(options)
			options = append(options, o)
		}
	}
	_, found = f.sections[name]
	return options, found || name == DefaultSection
}

func (p *parser) read(line string) {
	code := p.uncommented(line)
	text := strings.TrimSpace(code)
	if text == "" {
		if p.open != nil && !p.open.Bare && code == line {
			p.value = append(p.value, "") // an empty line may stand within a value
		}
		return
	}
	start := strings.IndexFunc(code, func(r rune) bool { return !unicode.IsSpace(r) })
	indent := utf8.RuneCountInString(code[:start])
	if p.open != nil && indent > p.indent {
		if p.open.Bare {
			p.fail(NoOption, text, indent, 0)
		}
		p.value = append(p.value, text)
		return
	}
	p.close()
	p.indent = indent
	if end := strings.LastIndexByte(text, ']'); text[0] == '[' && end > 1 {
		p.begin(text[1:end])
		return
	}
	sign := strings.IndexAny(text, "=:")
	switch {
	case !p.started:
		p.fail(NoSection, text, indent, 0)
	case sign == 0, sign < 0 && !p.Bare:
		p.fail(NoOption, text, indent, 0)
	default:
		p.option(code, text, sign)
	}
}

// close completes the value of the open option.
func (p *parser) close() {
	if p.open != nil {
		p.open.Value = strings.TrimRightFunc(strings.Join(p.value, "\n"), unicode.IsSpace)
	}
	p.open, p.value = nil, nil
}

// uncommented is a line without its comment.
func (p *parser) uncommented(line string) string {
	if t := strings.TrimSpace(line); t != "" && (t[0] == '#' || t[0] == ';') {
		return ""
	}
	last := ' '
	for i, r := range line {
		if strings.ContainsRune(p.Inline, r) && unicode.IsSpace(last) {
			return line[:i]
		}
		last = r
	}
	return line
}

func (p *parser) fail(kind Kind, of string, indent, first int) {
	p.wrong = append(p.wrong, &Problem{Kind: kind, Of: of, Line: p.line, Col: indent + 1, First: first})
}

func (p *parser) begin(name string) {
	p.started, p.section = true, name
	head := "[" + name + "]"
	switch first := p.seen[head]; {
	case name == DefaultSection:
	case first > 0:
		p.fail(DuplicateSection, head, p.indent, first)
	default:
		p.seen[head] = p.line
		p.file.Sections = append(p.file.Sections, name)
		p.file.sections[name] = nil
	}
}

func (p *parser) option(code, text string, sign int) {
	o := &Option{Section: p.section, Line: p.line, Col: p.indent + 1, ValueCol: p.indent + 1, Bare: sign < 0, Name: text}
	if sign >= 0 {
		o.Name, o.Value = strings.TrimSpace(text[:sign]), strings.TrimSpace(text[sign+1:])
	}
	if o.Value != "" {
		o.ValueCol = utf8.RuneCountInString(code[:strings.LastIndex(code, o.Value)]) + 1
	}
	if !p.Exact {
		o.Name = strings.ToLower(o.Name)
	}
	p.open, p.value = o, []string{o.Value}
	key := "[" + p.section + "] " + o.Name
	if first := p.seen[key]; first > 0 {
		p.fail(DuplicateOption, key, p.indent, first)
		return
	}
	p.seen[key] = p.line
	p.file.Options = append(p.file.Options, o)
	p.file.sections[p.section] = append(p.file.sections[p.section], o)
}
