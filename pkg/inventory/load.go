package inventory

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
)

// Options are the environment in which an inventory is loaded.
type Options struct {
	Tree    source.Tree // reads the files
	Dir     string      // base of relative paths; "" is the working folder
	Secrets *redact.Set // receives the passwords and keys found; may be nil
	Env     []string    // environment of executable sources; nil is this process's
	// Edited has texts that are used in place of those of files, by absolute path: edits that are not written yet.
	Edited map[string][]byte
}

// Load reads sources in order; later ones win. A source is a file, a folder of sources, an
// executable that prints JSON, or a list of hosts with a comma in it. The inventory is never
// nil, but must not be used if the diagnostics contain errors.
func Load(ctx context.Context, sources []string, o Options) (*Inventory, source.Diagnostics) {
	l := newLoader(ctx, o)
	for _, s := range sources {
		l.inv.sources = append(l.inv.sources, s)
		l.source(s)
	}
	l.finish()
	l.inv.reload = func(ctx context.Context) (*Inventory, source.Diagnostics) { return Load(ctx, sources, o) }
	return l.inv, l.ds
}

type loader struct {
	ctx  context.Context
	inv  *Inventory
	o    Options
	ds   source.Diagnostics
	dirs map[string]bool // whose group_vars and host_vars are read
}

func newLoader(ctx context.Context, o Options) *loader {
	if o.Dir == "" {
		o.Dir, _ = os.Getwd()
	}
	return &loader{ctx: ctx, inv: newInventory(o), o: o, dirs: map[string]bool{}}
}

func (l *loader) finish() {
	l.inv.finalize()
	l.ds.Add(l.inv.clashes()...)
	for _, d := range l.inv.dirs {
		l.ds.Add(d.needed(l.inv)...)
	}
	l.ds = l.ds.Sort()
}

func (l *loader) source(s string) {
	if strings.Contains(s, ",") {
		l.hostList(s)
		return
	}
	path := source.Join(l.o.Dir, s)
	info, err := l.o.Tree.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.ds.Add(source.Errorf(source.Pos{}, "inventory %s does not exist", s).
			WithHelp("pass a file, a folder, or a list of hosts with a comma to -i: -i host1,"))
	case err != nil:
		l.ds.Add(source.Errorf(source.Pos{}, "read inventory: %v", err))
	case info.IsDir():
		l.folder(path)
		l.varsBeside(path)
	default:
		l.file(path, info)
		l.varsBeside(source.Dir(path))
	}
}

// hostList reads "a,b," as the names of hosts.
func (l *loader) hostList(s string) {
	for _, part := range splitCommas(s) {
		names, port, err := expandHosts(part)
		if err != nil {
			l.ds.Add(source.Errorf(source.Pos{}, "host list %q: %v", s, err))
			continue
		}
		for _, name := range names {
			h := l.inv.host(name, "")
			l.inv.groups[All].join(h)
			if port > 0 {
				h.vars = append(h.vars, portVar("host list", port, source.Pos{}))
			}
		}
	}
}

// splitCommas splits at commas outside of brackets, and drops empty parts.
func splitCommas(s string) []string {
	var out []string
	depth := 0
	for _, part := range strings.FieldsFunc(s, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return r == ',' && depth <= 0
	}) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// folder loads the sources in a folder in the order of their names.
func (l *loader) folder(path string) {
	entries, err := l.o.Tree.ReadDir(path)
	if err != nil {
		l.ds.Add(source.Errorf(source.Pos{}, "read inventory folder: %v", err))
		return
	}
	for _, e := range entries {
		if !isSource(e.Name()) {
			continue
		}
		child := source.Join(path, e.Name())
		info, err := l.o.Tree.Stat(child)
		switch {
		case err != nil:
			l.ds.Add(source.Errorf(source.Pos{}, "read inventory: %v", err))
		case info.IsDir():
			l.folder(child)
		default:
			l.file(child, info)
		}
	}
}

// isSource reports whether a file in an inventory folder is a source: variable folders, hidden
// files, editor backups and documentation are not.
func isSource(name string) bool {
	if name == "group_vars" || name == "host_vars" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, "~") {
		return false
	}
	ignored := []string{".pyc", ".pyo", ".swp", ".bak", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry"}
	return !slices.Contains(ignored, filepath.Ext(name))
}

func (l *loader) file(path string, info fs.FileInfo) {
	if path == os.DevNull {
		return
	}
	f, d := readText(l.o.Tree, path, l.show(path), "inventory")
	if d != nil {
		l.ds.Add(d)
		return
	}
	if text, ok := l.o.Edited[path]; ok {
		f.Text = bytes.TrimPrefix(text, bom)
	}
	if isProgram(info, f.Text) {
		l.script(path, f)
		return
	}
	l.inv.files = append(l.inv.files, path)
	l.text(f, path)
}

func isProgram(info fs.FileInfo, text []byte) bool {
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 == 0 {
		return false
	}
	return bytes.HasPrefix(text, []byte("#!")) || bytes.HasPrefix(text, []byte("\x7fELF"))
}

// show is how a path is shown: relative to the working folder when below it.
func (l *loader) show(path string) string { return source.ShownFrom(l.o.Dir, path) }

func readText(tree source.Tree, path, name, what string) (*source.File, *source.Diagnostic) {
	f, err := tree.Load(path, name)
	var d *source.Diagnostic
	if errors.As(err, &d) {
		return nil, d
	}
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, source.Errorf(source.Pos{File: source.NewFile(name, nil)}, "read %s: %v", what, err)
	}
	f.Text = bytes.TrimPrefix(f.Text, bom)
	return f, nil
}

// maxLine bounds a line, in bytes: a longer one is data, not written by a person.
const maxLine = 1 << 20

// checkText rejects files that are not an inventory, judging by its lines.
func checkText(f *source.File) *source.Diagnostic {
	line := 1
	for rest := f.Text; len(rest) > 0; line++ {
		text := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			text, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		at := source.Pos{File: f, Line: line, Col: 1}
		switch {
		case len(text) > maxLine:
			return source.Errorf(at, "this line has %d bytes: the file is not an inventory", len(text))
		case bytes.IndexByte(text, 0) >= 0:
			return source.Errorf(at, "this line contains a NUL byte: the file is not an inventory").
				WithHelp("save the file as UTF-8 text")
		case !utf8.Valid(text):
			return source.Errorf(at, "this line is not UTF-8").WithHelp("save the file as UTF-8 text")
		}
	}
	return nil
}

var (
	sectionLine = regexp.MustCompile(`^\[[^\[\],]+\]\s*([#;].*)?$`)
	yamlKeyLine = regexp.MustCompile(`^("[^"]*"|'[^']*'|[^\s:#=\[\]{},][^:#=]*):(\s|$)`)
)

// text loads a static inventory; its first line that is not a comment determines the format.
func (l *loader) text(f *source.File, path string) {
	switch {
	case firstLine(f.Text) == "":
	case isYAML(f.Text, path):
		l.yaml(f, path)
	default:
		l.lines(f, path)
	}
}

// isYAML reports whether a static inventory is YAML or JSON, not INI.
func isYAML(text []byte, path string) bool {
	line := firstLine(text)
	if sectionLine.MatchString(line) {
		return false
	}
	return slices.Contains([]string{".yml", ".yaml", ".json"}, filepath.Ext(path)) ||
		strings.HasPrefix(line, "---") || strings.HasPrefix(line, "{") || yamlKeyLine.MatchString(line)
}

func (l *loader) lines(f *source.File, path string) {
	if d := checkText(f); d != nil {
		l.ds.Add(d)
		return
	}
	l.ini(f, path)
}

func firstLine(text []byte) string {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		text = rest
		if s := strings.TrimSpace(string(line)); s != "" && s[0] != '#' && s[0] != ';' {
			return s
		}
	}
	return ""
}
