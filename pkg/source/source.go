// Package source knows where things stand in the files a person wrote: files,
// positions in them, and diagnostics that name a position, say what is wrong
// and what to do about it.
package source

import (
	"errors"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// File is one text that positions point into. It does not change after NewFile.
type File struct {
	Name string // as shown to people: relative to the working folder when below it
	Text []byte
	// Secret keeps diagnostics from showing lines of the file.
	Secret bool

	once  sync.Once
	lines []int // offset of the first byte of each line
}

// NewFile returns a file whose lines are indexed when they are first asked for.
func NewFile(name string, text []byte) *File { return &File{Name: name, Text: text} }

// Line returns line n (1-based) without its line end, "" when there is none.
func (f *File) Line(n int) string {
	f.once.Do(f.index)
	if n < 1 || n > len(f.lines) {
		return ""
	}
	end := len(f.Text)
	if n < len(f.lines) {
		end = f.lines[n]
	}
	return strings.TrimRight(string(f.Text[f.lines[n-1]:end]), "\r\n")
}

func (f *File) index() {
	f.lines = append(f.lines, 0)
	for i, b := range f.Text {
		last := i+1 == len(f.Text)
		if !last && (b == '\n' || b == '\r' && f.Text[i+1] != '\n') {
			f.lines = append(f.lines, i+1)
		}
	}
}

// Pos is a place in a file. Line and Col are 1-based, Col counts runes; the
// zero Pos is nowhere (a value given on the command line, say).
type Pos struct {
	File      *File
	Line, Col int
}

// IsValid reports whether the position names a place in a file.
func (p Pos) IsValid() bool { return p.File != nil && p.Line > 0 }

// String is file:line:col, or "" when the position is nowhere.
func (p Pos) String() string {
	switch {
	case p.File == nil:
		return ""
	case p.Line == 0:
		return p.File.Name
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File.Name, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File.Name, p.Line, p.Col)
}

// Frame is one step of the way from the play to the place of a diagnostic.
type Frame struct {
	What string // "role web", "include_tasks install.yml"
	At   Pos
}

// Severity tells an error from a warning. The zero value is Error.
type Severity int

// A diagnostic stops the run (Error) or is only shown (Warning).
const (
	Error Severity = iota
	Warning
)

// Diagnostic is one problem of an input, with its place.
type Diagnostic struct {
	Severity Severity
	Pos      Pos
	Width    int     // how many runes the caret line underlines; 0 means one
	Summary  string  // what is wrong, one line, no final stop
	Help     string  // what to do: `did you mean "dest"?`; may be empty
	Trace    []Frame // from the nearest include outwards
	Rule     string  // the id that kk lint knows the warning by; may be empty
}

// Errorf makes an error diagnostic.
func Errorf(at Pos, format string, args ...any) *Diagnostic {
	return &Diagnostic{Pos: at, Summary: fmt.Sprintf(format, args...)}
}

// Warningf makes a warning diagnostic.
func Warningf(at Pos, format string, args ...any) *Diagnostic {
	return &Diagnostic{Severity: Warning, Pos: at, Summary: fmt.Sprintf(format, args...)}
}

// WithHelp sets what to do about it, and returns d.
func (d *Diagnostic) WithHelp(format string, args ...any) *Diagnostic {
	d.Help = fmt.Sprintf(format, args...)
	return d
}

// Error is "file:line:col: summary (help)" on one line.
func (d *Diagnostic) Error() string {
	var b strings.Builder
	if s := d.Pos.String(); s != "" {
		b.WriteString(s + ": ")
	}
	b.WriteString(d.Summary)
	if d.Help != "" {
		b.WriteString(" (" + d.Help + ")")
	}
	return b.String()
}

// Render lays the diagnostic out for people: the first line as a compiler
// prints it, the source line with the line before it, a caret, the help and the trace.
func (d *Diagnostic) Render() string { return d.RenderHiding(func(text string) string { return text }) }

// RenderHiding is Render of texts with their secrets hidden, source lines
// before they are cut to a width that shows them in part.
func (d *Diagnostic) RenderHiding(hide func(string) string) string {
	var b strings.Builder
	if s := d.Pos.String(); s != "" {
		b.WriteString(hanging(s) + ": ")
	}
	if d.Severity == Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(hanging(d.Summary) + "\n")
	if d.Pos.IsValid() && !d.Pos.File.Secret {
		d.snippet(&b, hide)
	}
	if d.Help != "" {
		b.WriteString(hanging(d.Help) + "\n")
	}
	for i, f := range d.Trace {
		if i == 0 {
			b.WriteString("in ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(hanging(f.What))
		if f.At.IsValid() {
			fmt.Fprintf(&b, " (%s:%d)", hanging(f.At.File.Name), f.At.Line)
		}
	}
	if len(d.Trace) > 0 {
		b.WriteString("\n")
	}
	return hide(b.String())
}

// hanging indents the lines after the first: what quotes a host must not look
// like a diagnostic of its own.
func hanging(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// maxSnippet bounds how much of one source line is shown.
const maxSnippet = 160

func (d *Diagnostic) snippet(b *strings.Builder, hide func(string) string) {
	num := len(fmt.Sprint(d.Pos.Line))
	if d.Pos.Line > 1 {
		line, _ := window(hide(hideSecret(d.Pos.File.Line(d.Pos.Line-1))), 1)
		fmt.Fprintf(b, "  %*d | %s\n", num, d.Pos.Line-1, line)
	}
	line, col := window(hide(hideSecret(d.Pos.File.Line(d.Pos.Line))), d.Pos.Col)
	fmt.Fprintf(b, "  %*d | %s\n", num, d.Pos.Line, line)
	if d.Pos.Col == 0 {
		return
	}
	left := utf8.RuneCountInString(line) - col + 1
	width := max(1, min(d.Width, left))
	fmt.Fprintf(b, "  %*s   %s%s\n", num, "", strings.Repeat(" ", col-1), strings.Repeat("^", width))
}

// secretValue matches what stands behind a name that says it is a secret.
var secretValue = regexp.MustCompile(`(?i)([\w-]*(?:passw|passphrase|secret|token|credential|private_key|api_?key)[\w-]*["']?(?::\s+|=))("[^"]*"?|'[^']*'?|[^\s"'={,}\]!|>&*][^,}]*)`)

// hideSecret stars the values of such names: a file with a mistake in it was
// not read yet, so that its secrets are not known otherwise.
func hideSecret(line string) string {
	return secretValue.ReplaceAllStringFunc(line, func(m string) string {
		part := secretValue.FindStringSubmatch(m)
		if strings.Contains(part[2], "{{") {
			return m
		}
		return part[1] + strings.Repeat("*", utf8.RuneCountInString(part[2]))
	})
}

// window cuts a long line around column col, and returns the column in what is
// left. Each character has one column, so that the caret stands where it should:
// control characters are blanks, and others that draw nothing show as replaced.
func window(line string, col int) (string, int) {
	runes := []rune(strings.ToValidUTF8(line, "\uFFFD"))
	for i, r := range runes {
		switch {
		case r < ' ' || r == 0x7f:
			runes[i] = ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			runes[i] = '\uFFFD'
		}
	}
	col = max(1, min(col, len(runes)+1))
	if len(runes) <= maxSnippet {
		return string(runes), col
	}
	start := max(0, min(col-maxSnippet/2, len(runes)-maxSnippet))
	cut := string(runes[start:min(len(runes), start+maxSnippet)])
	return cut, col - start
}

// Diagnostics is everything a pass found, in the order it was found.
type Diagnostics []*Diagnostic

// Add appends non-nil diagnostics.
func (ds *Diagnostics) Add(more ...*Diagnostic) {
	for _, d := range more {
		if d != nil {
			*ds = append(*ds, d)
		}
	}
}

// DiagnosticsOf is an error as the diagnostics that it is or holds, or else as one without a place.
func DiagnosticsOf(err error) Diagnostics {
	var ds Diagnostics
	var d *Diagnostic
	switch {
	case errors.As(err, &ds):
		return ds
	case errors.As(err, &d):
		return Diagnostics{d}
	}
	return Diagnostics{Errorf(Pos{}, "%s", err)}
}

// Errors returns those that stop the run.
func (ds Diagnostics) Errors() Diagnostics { return ds.only(Error) }

// Warnings returns those that are only shown.
func (ds Diagnostics) Warnings() Diagnostics { return ds.only(Warning) }

func (ds Diagnostics) only(s Severity) Diagnostics {
	var out Diagnostics
	for _, d := range ds {
		if d.Severity == s {
			out = append(out, d)
		}
	}
	return out
}

// Err returns the errors among ds as one error, nil when there are none.
func (ds Diagnostics) Err() error {
	if errs := ds.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}

// Error joins the diagnostics, a line each.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort orders by file, line and column, and drops exact repetitions; of an
// error and a warning that say the same the error stays.
func (ds Diagnostics) Sort() Diagnostics {
	out := append(Diagnostics(nil), ds...)
	sort.SliceStable(out, func(i, j int) bool {
		a, b := out[i].Pos, out[j].Pos
		if an, bn := fileName(a), fileName(b); an != bn {
			return an < bn
		}
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		if a.Col != b.Col {
			return a.Col < b.Col
		}
		return out[i].Severity < out[j].Severity
	})
	n := 0
	for _, d := range out {
		if repeated(out[:n], d) {
			continue
		}
		out[n] = d
		n++
	}
	return out[:n]
}

// repeated reports whether one of those at the same place says the same.
func repeated(kept Diagnostics, d *Diagnostic) bool {
	for i := len(kept) - 1; i >= 0 && kept[i].Pos.String() == d.Pos.String(); i-- {
		if kept[i].Error() == d.Error() {
			return true
		}
	}
	return false
}

func fileName(p Pos) string {
	if p.File == nil {
		return ""
	}
	return p.File.Name
}
