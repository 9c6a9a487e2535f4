package settings

import (
	"path/filepath"
	"slices"
	"unicode/utf8"

	"kubekey/pkg/configparser"
	"kubekey/pkg/source"
)

// ansibleCfg reads the first ansible.cfg that exists.
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
					r.add(s, candidate{raw: e.text, origin: e.val.String(), at: e.val, width: utf8.RuneCountInString(e.text),
						dir: f.dir, theirs: true})
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

// means reports whether a key sets something, or can be ignored silently.
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
	d := source.Warningf(e.at, "setting %s is ignored: kk has no such setting", e.key).WithHelp("%s", help)
	d.Width = utf8.RuneCountInString(e.key.Name)
	r.ds.Add(d)
}

// entry is one key of an INI file.
type entry struct {
	key     Key
	text    string
	at, val source.Pos
}

// parseINI reads a file as Ansible does: comments as in Python's configparser, and those after " ;".
func parseINI(f *source.File) (entries []entry, ds source.Diagnostics) {
	if !utf8.Valid(f.Text) {
		return nil, source.Diagnostics{source.Errorf(source.Pos{File: f}, "the file is not valid UTF-8")}
	}
	file, wrong := configparser.Parse(string(f.Text), configparser.Rules{Inline: ";"})
	for _, p := range wrong {
		d := source.Errorf(source.Pos{File: f, Line: p.Line, Col: p.Col}, "%s", p)
		switch p.Kind {
		case configparser.NoSection:
			d.WithHelp("put most keys under [defaults]")
		case configparser.DuplicateSection, configparser.DuplicateOption:
			d.WithHelp("remove one of them")
		}
		ds.Add(d)
	}
	for _, o := range file.Options {
		at := source.Pos{File: f, Line: o.Line, Col: o.Col}
		val := at
		val.Col = o.ValueCol
		entries = append(entries, entry{key: Key{o.Section, o.Name}, text: o.Value, at: at, val: val})
	}
	return entries, ds
}
