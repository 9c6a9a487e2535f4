package file

import (
	"context"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// LineInFile is the module lineinfile.
type LineInFile struct {
	Attributes
	Path         string  `kk:"path,required,path,alias=dest|destfile|name" doc:"file on the host"`
	Line         *string `kk:"line,alias=value" doc:"line that should exist (or, with state: absent and no regexp, should not)"`
	Regexp       *string `kk:"regexp,alias=regex" doc:"Python regular expression; the last line that matches is replaced, or with state: absent all are removed"`
	SearchString *string `kk:"search_string" doc:"like regexp, but plain text"`
	State        string  `kk:"state" default:"present" choices:"absent,present" doc:"whether the line should exist"`
	Backrefs     bool    `kk:"backrefs" default:"no" doc:"line may use \\1 and \\g<name> of regexp; nothing is added if nothing matches"`
	InsertAfter  string  `kk:"insertafter" doc:"position of a new line: EOF, or after the last line that matches this regular expression. Default: EOF"`
	InsertBefore string  `kk:"insertbefore" doc:"position of a new line: BOF, or before the last line that matches this regular expression"`
	Create       bool    `kk:"create" default:"no" doc:"create the file if it does not exist"`
	Backup       bool    `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	FirstMatch   bool    `kk:"firstmatch" default:"no" doc:"use the first line that matches insertafter, insertbefore or regexp instead of the last"`
	Validate     string  `kk:"validate" doc:"command that must accept the new file before it is put in place; %s is its path"`
}

func lineInFileSpec() module.Spec {
	return module.Spec{
		Name:    "lineinfile",
		Summary: "Manages a line in a file.",
		Notes: []string{"The file is read once and written only if it was not changed in the meantime; links are " +
			"followed."},
		Examples: []string{
			"- name: Disable root login\n  lineinfile:\n    path: /etc/ssh/sshd_config\n    regexp: '^#?PermitRootLogin'\n" +
				"    line: PermitRootLogin no\n    validate: sshd -t -f %s",
			"- name: Remove a host\n  lineinfile:\n    path: /etc/hosts\n    regexp: '\\sold\\.example\\.org$'\n" +
				"    state: absent",
		},
		Returns: []module.Return{
			{Key: "msg", Type: "str", Doc: "line added, line replaced, N line(s) removed, or empty"},
			{Key: "backup", Type: "str", Doc: "path of the backup, or empty"},
			{Key: "rc", Type: "int", Doc: "of a failure: 257 if the file is missing, and 256 if it is a folder"},
			{Key: "found", Type: "int", Doc: "number of removed lines, for state: absent"},
		},
		New: func() module.Runner { return new(LineInFile) },
	}
}

// Rules implements schema.Ruled.
func (*LineInFile) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("regexp", "search_string"),
		schema.AtMostOne("insertbefore", "insertafter"),
		schema.Needs("line").If("state", "present").Says("line is required with state=present"),
		schema.Needs("regexp").If("state", "present").If("backrefs", true).Says("regexp is required with backrefs=true"),
		schema.AtLeastOne("line", "regexp", "search_string").If("state", "absent").
			Says("one of line, search_string, or regexp is required with state=absent"),
		ValidateRule(),
	}
}

// Run implements module.Runner.
func (m *LineInFile) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	p, err := m.patterns()
	if err != nil {
		return module.Result{}, err
	}
	e, err := OpenEdit(ctx, c, m.Path, &m.Attributes, m.Create || m.State == "absent")
	if err != nil {
		return NotEdited(err)
	}
	if m.State == "absent" && !e.Exists {
		return module.Result{Msg: "file not present"}, nil
	}
	data := value.NewDict("backup", "")
	var text, msg string
	if m.State == "absent" {
		found := 0
		if text, found, err = m.remove(e.Text, p); found > 0 {
			msg = fmt.Sprintf("%d line(s) removed", found)
		}
		data.Set("found", found)
	} else {
		text, msg, err = m.present(e.Text, p)
	}
	if err != nil {
		return module.Result{}, err
	}
	res, err := e.Save(ctx, c, &m.Attributes,
		Edited{Text: text, Msg: msg, Touched: true, Backup: m.Backup, Validate: m.Validate, Data: data})
	res.Warnings = m.warnings()
	return res, err
}

// warnings warns about an expression that probably matches more than intended.
func (m *LineInFile) warnings() []string {
	for _, one := range []struct {
		kind, name string
		text       *string
	}{{"regular expression", "regexp", m.Regexp}, {"search string", "search_string", m.SearchString}} {
		if one.text != nil && *one.text == "" {
			return []string{fmt.Sprintf("The %s is an empty string, which will match every line in the file: with %s empty "+
				"the last line is replaced, and no line is added", one.kind, one.name)}
		}
	}
	return nil
}

// linePatterns are the compiled arguments; nil if not set.
type linePatterns struct{ line, after, before *pyregex.Regexp }

func (m *LineInFile) patterns() (p linePatterns, err error) {
	if m.Regexp != nil {
		if p.line, err = compilePattern(*m.Regexp, pyregex.ASCII); err != nil {
			return p, err
		}
	}
	for _, one := range []struct {
		text string
		into **pyregex.Regexp
	}{{place(place(m.InsertAfter, "EOF"), "BOF"), &p.after}, {place(m.InsertBefore, "BOF"), &p.before}} {
		if one.text == "" {
			continue
		}
		if *one.into, err = compilePattern(one.text, pyregex.ASCII); err != nil {
			return p, err
		}
	}
	return p, nil
}

// place returns a regular expression, or "" for the keyword word.
func place(s, word string) string {
	if s == word {
		return ""
	}
	return s
}

// matches reports whether a line matches the task's arguments, and returns the match.
func (m *LineInFile) matches(line string, p linePatterns) (pyregex.Match, bool, error) {
	if p.line != nil {
		found, err := p.line.Find(Chomp(line))
		return found, found != nil, err
	}
	return nil, m.SearchString != nil && strings.Contains(line, *m.SearchString), nil
}

// remove removes all matching lines.
func (m *LineInFile) remove(text string, p linePatterns) (string, int, error) {
	var kept []string
	found := 0
	for _, line := range SplitLines(text) {
		_, hit, err := m.matches(line, p)
		if err != nil {
			return "", 0, err
		}
		if p.line == nil && m.SearchString == nil {
			hit = strings.TrimRight(line, "\r\n") == strings.TrimRight(*m.Line, "\r\n")
		}
		if hit {
			found++
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept, ""), found, nil
}

// places are line indexes; -1 for none.
type places struct {
	hit, exact int
	match      pyregex.Match
	insert     int // position of a new line according to insertafter or insertbefore
}

func (m *LineInFile) locate(lines []string, p linePatterns) (places, error) {
	at := places{hit: -1, exact: -1, insert: -1}
	want := strings.TrimRight(*m.Line, "\r\n")
	for i, line := range lines {
		found, hit, err := m.matches(line, p)
		if err != nil {
			return at, err
		}
		switch {
		case hit:
			if !m.FirstMatch || at.hit < 0 {
				at.hit, at.match = i, found
			}
		case strings.TrimRight(line, "\r\n") == want:
			at.exact = i
		}
		if err := m.insertion(&at, i, line, p); err != nil {
			return at, err
		}
	}
	return at, nil
}

func (m *LineInFile) insertion(at *places, i int, line string, p linePatterns) error {
	if m.FirstMatch && at.insert >= 0 {
		return nil
	}
	for _, one := range []struct {
		p    *pyregex.Regexp
		step int
	}{{p.after, 1}, {p.before, 0}} {
		if one.p == nil {
			continue
		}
		found, err := one.p.Find(Chomp(line))
		if err != nil {
			return err
		}
		if found != nil {
			at.insert = i + one.step
		}
	}
	return nil
}

// present makes sure that the line exists.
func (m *LineInFile) present(text string, p linePatterns) (string, string, error) {
	lines := SplitLines(text)
	at, err := m.locate(lines, p)
	if err != nil {
		return "", "", err
	}
	if at.hit < 0 {
		at.hit = at.exact
	}
	switch {
	case at.hit >= 0:
		return m.replace(lines, at, p)
	case m.Backrefs:
		return text, "", nil
	case m.InsertBefore == "BOF" || m.InsertAfter == "BOF":
		return Ended(*m.Line) + text, "line added", nil
	case at.insert >= 0 && at.insert < len(lines):
		lines[at.insert] = Ended(*m.Line) + lines[at.insert]
		return strings.Join(lines, ""), "line added", nil
	}
	if text != "" {
		text = Ended(text)
	}
	return text + Ended(*m.Line), "line added", nil
}

// replace replaces the line that was found.
func (m *LineInFile) replace(lines []string, at places, p linePatterns) (string, string, error) {
	want := *m.Line
	if m.Backrefs && at.match != nil {
		template, err := p.line.Template(want)
		if err != nil {
			return "", "", fmt.Errorf("line %q: %w", want, err)
		}
		want = template.Expand(lines[at.hit], at.match)
	}
	msg := ""
	if want = Ended(want); lines[at.hit] != want {
		lines[at.hit] = want
		msg = "line replaced"
	}
	return strings.Join(lines, ""), msg, nil
}

// Ended returns a line with a line break at its end.
func Ended(line string) string {
	if strings.HasSuffix(line, "\n") {
		return line
	}
	return line + "\n"
}
