// Package source handles the positions of things in files that users write. It provides files, positions, and
// diagnostics with a position, a problem and a hint.
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

// File is a text that positions refer to. It does not change after NewFile.
type File struct {
	Name string // as shown to users: relative to the working folder when below it
	Text []byte
	// Secret prevents diagnostics from showing lines of the file.
	Secret bool

	once  sync.Once
	lines []int // offset of the first byte of each line
}

// NewFile returns a file. Its lines are indexed on first use.
func NewFile(name string, text []byte) *File { return &File{Name: name, Text: text} }

// Line returns line n (1-based) without its line break, or "" if there is no such line.
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

// Pos is a position in a file. Line and Col are 1-based; Col counts runes. The zero Pos means no position, such as
// for a value on the command line.
type Pos struct {
	File      *File
	Line, Col int
}

// IsValid reports whether p is a position in a file.
func (p Pos) IsValid() bool { return p.File != nil && p.Line > 0 }

// String returns file:line:col, or "" for no position.
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

// Frame is one step on the path from the play to the position of a diagnostic.
type Frame struct {
	What string // "role web", "include_tasks install.yml"
	At   Pos
}

// Severity distinguishes errors from warnings. The zero value is Error.
type Severity int

// An Error stops the run. A Warning is only shown.
const (
	Error Severity = iota
	Warning
)

// Diagnostic is one problem in an input, with its position.
type Diagnostic struct {
	Severity Severity
	Pos      Pos
	Width    int     // number of runes that the caret line underlines; 0 means one
	Summary  string  // the problem, on one line without a final period
	Help     string  // what to do: `did you mean "dest"?`; may be empty
	Trace    []Frame // from the innermost include outwards
	Rule     string  // the ID of the warning in kk lint; may be empty
}

// Errorf returns an error diagnostic.
func Errorf(at Pos, format string, args ...any) *Diagnostic {
	return &Diagnostic{Pos: at, Summary: fmt.Sprintf(format, args...)}
}

// Warningf returns a warning diagnostic.
func Warningf(at Pos, format string, args ...any) *Diagnostic {
	return &Diagnostic{Severity: Warning, Pos: at, Summary: fmt.Sprintf(format, args...)}
}

// WithHelp sets the hint what to do about the problem, and returns d.
func (d *Diagnostic) WithHelp(format string, args ...any) *Diagnostic {
	d.Help = fmt.Sprintf(format, args...)
	return d
}

// Error returns "file:line:col: summary (help)" on one line.
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

// Render formats the diagnostic for display: the first line as a compiler prints it, the source line with the line
// before it, a caret, the help and the trace.
func (d *Diagnostic) Render() string { return d.RenderHiding(func(text string) string { return text }) }

// RenderHiding is Render with secrets masked by hide. Source lines are masked before they are shortened, so that no
// part of a secret is shown.
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

// hanging indents all lines except the first, so that text quoted from a host does not look like a diagnostic.
func hanging(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// maxSnippet is the maximum length of a source line in the output.
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

// secretValue matches a value after a name of a secret.
var secretValue = regexp.MustCompile(`(?i)([\w-]*(?:passw|passphrase|secret|token|credential|private_key|api_?key)[\w-]*["']?(?::\s+|=))("[^"]*"?|'[^']*'?|[^\s"'={,}\]!|>&*][^,}]*)`)

// hideSecret masks such values. A file with a syntax error has not been read yet, so its secrets are not
// registered.
func hideSecret(line string) string {
	return secretValue.ReplaceAllStringFunc(line, func(m string) string {
		part := secretValue.FindStringSubmatch(m)
		if strings.Contains(part[2], "{{") {
			return m
		}
		return part[1] + strings.Repeat("*", utf8.RuneCountInString(part[2]))
	})
}

// window shortens a long line around column col and returns the column in the shortened line. Every character gets
// one column so that the caret is at the right place: control characters become blanks, and other invisible
// characters are replaced.
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

// Diagnostics are all problems that a pass found, in the order in which it found them.
type Diagnostics []*Diagnostic

// Add appends non-nil diagnostics.
func (ds *Diagnostics) Add(more ...*Diagnostic) {
	for _, d := range more {
		if d != nil {
			*ds = append(*ds, d)
		}
	}
}

// DiagnosticsOf returns the diagnostics in an error. Any other error becomes a diagnostic without a position.
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

// Errors returns the diagnostics that stop the run.
func (ds Diagnostics) Errors() Diagnostics { return ds.only(Error) }

// Warnings returns the diagnostics that are only shown.
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

// Err returns the errors among ds as one error, or nil if there are none.
func (ds Diagnostics) Err() error {
	if errs := ds.Errors(); len(errs) > 0 {
		return errs
	}
	return nil
}

// Error joins the diagnostics, one per line.
func (ds Diagnostics) Error() string {
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}

// Sort sorts by file, line and column, and removes exact duplicates. Of an error and a warning with the same text,
// the error is kept.
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

// repeated reports whether a kept diagnostic at the same position has the same text.
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
