package settings

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"kubekey/pkg/source"
)

// ansibleCfg reads the first ansible.cfg that is there.
func (r *reader) ansibleCfg() {
	f := r.first("ANSIBLE_CONFIG", false,
		filepath.Join(r.places.Dir, "ansible.cfg"),
		r.home(".ansible.cfg"),
		filepath.Join(r.places.Etc, "ansible/ansible.cfg"))
	if f == nil {
		return
	}
	r.cfg = f.path
	entries, ds := parseINI(f.File)
	r.ds.Add(ds...)
	for _, s := range r.table {
		for _, key := range s.INI {
			for _, e := range entries {
				if e.key == key && e.text != "" {
					r.add(s, candidate{raw: e.text, origin: e.val.String(), at: e.val, width: utf8.RuneCountInString(e.text), dir: f.dir, theirs: true})
				}
			}
		}
	}
	for _, e := range entries {
		if !r.means(e) {
			r.meaningless(e)
		}
	}
}

// means reports whether a key sets something here, or need not.
func (r *reader) means(e entry) bool {
	for _, s := range r.table {
		if slices.Contains(s.INI, e.key) {
			return true
		}
	}
	return quietKey(e.key) || fixedBy(e.text, func(f fixed) bool { return f.ini == e.key })
}

func (r *reader) meaningless(e entry) {
	var near []string
	for _, s := range r.table {
		for _, k := range s.INI {
			if k.Section == e.key.Section {
				near = append(near, k.Name)
			}
		}
	}
	help := instead(e.key.String())
	if help == "" {
		help = source.DidYouMean(e.key.Name, near)
	}
	d := source.Warningf(e.at, "kk has no setting %s, it is ignored", e.key).WithHelp("%s", help)
	d.Width = utf8.RuneCountInString(e.key.Name)
	r.ds.Add(d)
}

// entry is one key of an INI file.
type entry struct {
	key     Key
	text    string
	at, val source.Pos
}

// parseINI reads a file as Ansible does (Python's configparser): sections,
// "key = value" or "key: value", lines that begin with # or ;, the rest of a
// line after " ;", and lines that go on with a value since they are indented.
func parseINI(f *source.File) (entries []entry, ds source.Diagnostics) {
	if !utf8.Valid(f.Text) {
		return nil, source.Diagnostics{source.Errorf(source.Pos{File: f}, "the file is not valid UTF-8")}
	}
	section, seen, open := "", map[Key]int{}, false
	for n := range strings.Count(string(f.Text), "\n") + 1 {
		line := f.Line(n + 1)
		at := source.Pos{File: f, Line: n + 1, Col: 1}
		text := strings.TrimSpace(uncommented(line))
		indented := text != "" && (line[0] == ' ' || line[0] == '\t')
		switch {
		case text == "":
			open = open && strings.TrimSpace(line) != "" // a comment may stand within a value
		case indented && open:
			last := &entries[len(entries)-1]
			last.text = strings.TrimSpace(last.text + "\n" + text)
		case text[0] == '[' && strings.HasSuffix(text, "]"):
			section, open = strings.TrimSpace(text[1:len(text)-1]), false
		default:
			e, d := parseEntry(line, text, section, at)
			if d == nil && seen[e.key] > 0 {
				d = source.Errorf(e.at, "%s stands twice (first on line %d)", e.key, seen[e.key]).WithHelp("remove one")
			}
			if d != nil {
				ds.Add(d)
				open = false
				continue
			}
			seen[e.key] = n + 1
			entries, open = append(entries, e), true
		}
	}
	return entries, ds
}

func parseEntry(line, text, section string, at source.Pos) (entry, *source.Diagnostic) {
	i := strings.IndexAny(text, "=:")
	switch {
	case i <= 0:
		return entry{}, source.Errorf(at, "a line must be [section] or key = value, not %q", text)
	case section == "":
		return entry{}, source.Errorf(at, "%q stands before the first section", text).WithHelp("most keys belong under [defaults]")
	}
	name, val := strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+1:])
	begin := len(line) - len(strings.TrimLeft(line, " \t"))
	at.Col = utf8.RuneCountInString(line[:begin]) + 1
	e := entry{key: Key{section, strings.ToLower(name)}, text: val, at: at, val: at}
	if val != "" {
		behind := begin + i + 1
		e.val.Col = utf8.RuneCountInString(line[:behind+strings.Index(line[behind:], val)]) + 1
	}
	return e, nil
}

// uncommented is a line without its comment.
func uncommented(line string) string {
	if t := strings.TrimSpace(line); t == "" || t[0] == '#' || t[0] == ';' {
		return ""
	}
	for i := 1; i < len(line); i++ {
		if line[i] == ';' && (line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}
