package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Places is where settings are read from.
type Places struct {
	Environ []string // NAME=value, as of os.Environ
	Dir     string   // working folder: of kk.yaml and ansible.cfg, and base of relative paths in the environment
	Home    string   // home folder; "" if there is none
	Etc     string   // /etc of the control node
	Files   source.Tree
}

// Loaded is the result of Load.
type Loaded struct {
	Settings
	Values []Value  // in the order of the table
	Files  []string // that were read
	// AnsibleCfg is the ansible.cfg among them, "" if there is none.
	AnsibleCfg string
}

// Get returns a setting by its name.
func (l *Loaded) Get(name string) Value {
	for _, v := range l.Values {
		if v.Setting.Name == name {
			return v
		}
	}
	return Value{}
}

// Load reads all places. If several set the same setting, the first wins: KK_* of the
// environment, ANSIBLE_*, kk.yaml, ansible.cfg, the default. The diagnostics are the errors of
// all places, and warnings about settings that change what Ansible does but not what kk does.
func Load(p Places) (*Loaded, source.Diagnostics) {
	r := reader{places: p, env: environment(p.Environ), table: Table(), found: map[string][]candidate{}}
	r.environ()
	r.kkYAML()
	r.ansibleCfg()
	return r.decide(), r.ds.Sort()
}

// candidate is one place that sets a setting.
type candidate struct {
	raw    any
	origin string
	at     source.Pos // of the value; nowhere for the environment
	width  int
	dir    string // base of relative paths; "" keeps them
	theirs bool   // in Ansible's terms
}

// reader collects the settings of all places.
type reader struct {
	places Places
	env    map[string]string
	table  []Setting
	found  map[string][]candidate // by setting, the winner first
	files  []string
	cfg    string // the ansible.cfg among them
	ds     source.Diagnostics
}

func environment(environ []string) map[string]string {
	env := map[string]string{}
	for _, e := range environ {
		if k, v, ok := strings.Cut(e, "="); ok && v != "" {
			env[k] = v
		}
	}
	return env
}

func (r *reader) add(s Setting, c candidate) {
	r.found[s.Name] = append(r.found[s.Name], c)
}

func (r *reader) row(name string) (Setting, bool) {
	for _, s := range r.table {
		if s.Name == name {
			return s, true
		}
	}
	return Setting{}, false
}

func (r *reader) names() []string {
	names := make([]string, len(r.table))
	for i, s := range r.table {
		names[i] = s.Name
	}
	return names
}

// decide converts the candidates. Those that do not win must be valid, too.
func (r *reader) decide() *Loaded {
	out := &Loaded{Files: r.files, AnsibleCfg: r.cfg}
	all := value.NewDict()
	for _, s := range r.table {
		v := Value{Setting: s, Origin: byDefault}
		for i, c := range r.found[s.Name] {
			got, ok := r.convert(s, c, i == 0)
			if ok && i == 0 {
				v.Value, v.Origin = got, c.origin
				all.Set(s.Name, value.Of(got))
			}
		}
		out.Values = append(out.Values, v)
	}
	if err := schema.Decode(&out.Settings, all, &redact.Set{}); err != nil {
		r.ds.Add(source.Errorf(source.Pos{}, "settings: %s", err))
	}
	for i, def := range fields(&out.Settings) {
		if v := &out.Values[i]; !v.Changed() {
			v.Value = r.located(v.Setting, def, "")
			setField(&out.Settings, i, v.Value)
		}
	}
	return out
}

// convert validates a candidate and converts it to the setting's type.
func (r *reader) convert(s Setting, c candidate, wins bool) (any, bool) {
	raw := c.raw
	if text, ok := raw.(string); ok && c.theirs {
		var known bool
		if raw, known = s.translate(text); !known && wins {
			r.warn(c, "kk has no %s %q: %v is used", s.Name, text, raw)
		}
	}
	if text, ok := raw.(string); ok && s.isList() {
		raw = split(text, s.sep)
	}
	var one Settings
	args := value.NewDict(s.Name, raw)
	if problems := schema.Check(&one, args, &redact.Set{}, schema.Unsure{}); len(problems) > 0 {
		r.fail(c, problems[0])
		return nil, false
	}
	if err := schema.Decode(&one, args, &redact.Set{}); err != nil {
		return nil, false // reported by Check
	}
	v := valueOf(&one, s.Name, r.names())
	if n, ok := v.(int); ok && s.min != nil && n < *s.min {
		r.fail(c, schema.Problem{Msg: fmt.Sprintf("value of %s must be at least %d, got %d", s.Name, *s.min, n)})
		return nil, false
	}
	if n, ok := v.(int); ok && s.max != nil && n > *s.max {
		r.fail(c, schema.Problem{Msg: fmt.Sprintf("value of %s must be at most %d, got %d", s.Name, *s.max, n)})
		return nil, false
	}
	return r.located(s, v, c.dir), true
}

// located makes relative paths absolute, with a file's folder as the base, and expands ~ and $NAME.
func (r *reader) located(s Setting, v any, dir string) any {
	if !s.isPath() {
		return v
	}
	switch v := v.(type) {
	case string:
		return r.path(v, dir)
	case []string:
		return r.paths(v, dir)
	}
	return v
}

func (r *reader) paths(list []string, dir string) []string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = r.path(p, dir)
	}
	return out
}

func (r *reader) path(p, dir string) string {
	if strings.HasSuffix(p, ",") { // a list of hosts
		return p
	}
	p = strings.ReplaceAll(p, "{{CWD}}", r.places.Dir)
	p = os.Expand(p, func(name string) string { return r.env[name] })
	if r.places.Home != "" && (p == "~" || strings.HasPrefix(p, "~/")) {
		p = filepath.Join(r.places.Home, p[1:])
	}
	if p == "" || dir == "" || filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, p)
}

func (r *reader) fail(c candidate, p schema.Problem) {
	if !c.at.IsValid() {
		r.ds.Add(source.Errorf(source.Pos{}, "%s: %s", c.origin, p.Msg).WithHelp("%s", p.Help))
		return
	}
	d := source.Errorf(c.at, "%s", p.Msg).WithHelp("%s", p.Help)
	d.Width = c.width
	r.ds.Add(d)
}

func (r *reader) warn(c candidate, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if !c.at.IsValid() {
		msg = c.origin + ": " + msg
	}
	d := source.Warningf(c.at, "%s", msg)
	d.Width = c.width
	r.ds.Add(d)
}

// split splits a list. A text that ends in a comma is a list of hosts, and one element.
func split(text, sep string) []any {
	if sep == "," && strings.HasSuffix(strings.TrimSpace(text), ",") {
		return []any{strings.TrimSpace(text)}
	}
	out := []any{}
	for _, part := range strings.Split(text, sep) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// translate maps one of Ansible's values to kk's; known is false if kk has no equivalent.
func (s Setting) translate(text string) (word string, known bool) {
	text = strings.TrimSpace(text)
	key := strings.ToLower(text)
	switch key {
	case "yes", "on", "1", "t", "y":
		key = "true"
	case "no", "off", "0", "f", "n":
		key = "false"
	}
	for _, k := range []string{text, key} {
		if to, ok := s.words[k]; ok {
			return to, true
		}
	}
	for _, c := range s.Choices {
		if c == text {
			return text, true
		}
	}
	if other, ok := s.words["*"]; ok {
		return other, false
	}
	return text, true
}
