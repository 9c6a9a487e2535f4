package general

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/module/file"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// IniFile is the module ini_file.
type IniFile struct {
	file.Attributes
	Path        string    `kk:"path,required,path,alias=dest" doc:"file on the host"`
	Section     string    `kk:"section" doc:"the section, without brackets. Default: the lines before the first section"`
	Conditions  []iniPair `kk:"section_has_values" doc:"of several sections of that name, the one that has all these options"`
	Option      string    `kk:"option" doc:"name of the option; without it the section itself is managed"`
	Value       *string   `kk:"value" doc:"its value"`
	Values      []string  `kk:"values" doc:"values of an option that occurs several times in the section"`
	State       string    `kk:"state" default:"present" choices:"absent,present" doc:"whether the option (or the section) should exist"`
	Exclusive   bool      `kk:"exclusive" default:"yes" doc:"present: other lines of the option are removed; absent: the option is removed whatever its value"`
	NoSpaces    bool      `kk:"no_extra_spaces" default:"no" doc:"write option=value without blanks around the sign"`
	SameSpaces  bool      `kk:"ignore_spaces" default:"no" doc:"do not change a line that differs only in blanks around the sign"`
	Create      bool      `kk:"create" default:"yes" doc:"create the file if it does not exist"`
	Backup      bool      `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	AllowNone   bool      `kk:"allow_no_value" default:"no" doc:"allow an option without sign and value"`
	Uncomment   bool      `kk:"modify_inactive_option" default:"yes" doc:"replace a commented-out line (# or ;) of the option"`
	FollowLinks bool      `kk:"follow" default:"yes" doc:"change the target of a link; only yes is supported"`
	Validate    string    `kk:"validate" doc:"command that must accept the new file before it is put in place; %s is its path"`
}

// iniPair is an option that distinguishes a section from others with the same name.
type iniPair struct {
	Option string   `kk:"option,required" doc:"the option"`
	Value  *string  `kk:"value" doc:"value of the option; without it the option must only exist"`
	Values []string `kk:"values" doc:"its values"`
}

func iniFileSpec() module.Spec {
	return module.Spec{
		Name: "ini_file", Collection: "community.general",
		Summary: "Manages options in an INI file.",
		Notes: []string{
			"Other lines and comments are preserved. The file is written only if it was not changed in the meantime; links " +
				"are followed.",
			"Names of sections and options are case-sensitive.",
		},
		Examples: []string{
			"- name: Listen everywhere\n  ini_file:\n    path: /etc/app.ini\n    section: server\n    option: listen\n" +
				"    value: 0.0.0.0\n    mode: \"0644\"",
			"- name: Ask these servers alone\n  ini_file:\n    path: /etc/app.ini\n    section: time\n    option: server\n" +
				"    values: [ntp1.example.org, ntp2.example.org]\n    no_extra_spaces: true",
		},
		Returns: append([]module.Return{
			{Key: "msg", Type: "str", Doc: "OK, option added, option changed, section and option added, only section " +
				"added, or section removed"},
			{Key: "path", Type: "str", Doc: "the file"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup"},
			{Key: "rc", Type: "int", Doc: "of a failure: 257 if the file is missing, and 256 if it is a folder"},
		}, file.FileReturns()...),
		New: func() module.Runner { return new(IniFile) },
	}
}

// Rules implements schema.Ruled.
func (*IniFile) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("value", "values"),
		schema.Chooses("follow", true).Says("follow: no is not possible: a link is always followed"),
		schema.AtLeastOne("value", "values").With("option").If("state", "present").If("allow_no_value", false).
			Says("Parameter 'value(s)' must be defined if state=present and allow_no_value=False."),
		schema.Entries("values", 1, schema.NoLimit).With("option").If("state", "present").If("allow_no_value", false).
			Says("Parameter 'value(s)' must be defined if state=present and allow_no_value=False."),
		schema.Looks("one line", schema.OneLine, "section",
			"option").Says("section and option must not have a newline in them"),
		schema.Looks("one line", schema.OneLine, "value", "values"),
		file.ValidateRule(),
	}
}

// Run implements module.Runner.
func (m *IniFile) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	e, err := file.OpenEdit(ctx, c, m.Path, &m.Attributes, m.Create)
	if err != nil {
		return file.NotEdited(err)
	}
	before := strings.TrimPrefix(e.Text, byteOrderMark)
	if before == "" && m.State == "present" {
		before = "\n" // a new file begins with an empty line
	}
	d := m.edit(before)
	after := d.text()
	if after == before {
		after = e.Text
	}
	touched := e.Exists || after != ""
	return e.Save(ctx, c, &m.Attributes, file.Edited{
		Text: after, Msg: d.msg, Touched: touched, Backup: m.Backup, Validate: m.Validate, Data: value.NewDict(), Whole: true,
	})
}

// desired returns the values of the option without duplicates.
func (m *IniFile) desired() []string {
	all := m.Values
	if m.Value != nil {
		all = []string{*m.Value}
	}
	var once []string
	for _, v := range all {
		if !slices.Contains(once, v) {
			once = append(once, v)
		}
	}
	return once
}

// iniEdit is an INI file in three parts: the text before the section's content, the content, and the text after it.
type iniEdit struct {
	before, section, after []string
	found                  bool
	msg                    string
}

func (d *iniEdit) text() string {
	return strings.Join(slices.Concat(d.before, d.section, d.after), "")
}

// edit applies the task to a text.
func (m *IniFile) edit(text string) *iniEdit {
	if text != "" {
		text = file.Ended(text)
	}
	d := m.locate(file.SplitLines(text))
	d.msg = "OK"
	switch {
	case m.State == "absent" && d.found:
		m.remove(d)
	case m.State == "present" && !d.found:
		m.addSection(d)
	case m.State == "present" && m.Option != "":
		m.set(d)
	}
	return d
}

// locate finds the section. Its header is part of the text before.
func (m *IniFile) locate(lines []string) *iniEdit {
	start := 0
	inside := m.Section == ""
	for i := 0; i <= len(lines); i++ {
		if i < len(lines) && !strings.HasPrefix(lines[i], "[") {
			continue
		}
		if inside && m.fits(lines[start:i]) {
			return &iniEdit{before: slices.Clone(lines[:start]), section: slices.Clone(lines[start:i]),
				after: slices.Clone(lines[i:]), found: true}
		}
		if i < len(lines) {
			name, _, closed := strings.Cut(lines[i][1:], "]")
			inside = m.Section != "" && closed && strings.TrimSpace(name) == strings.TrimSpace(m.Section)
			start = i + 1
		}
	}
	return &iniEdit{before: slices.Clone(lines)}
}

// fits reports whether a section matches section_has_values.
func (m *IniFile) fits(section []string) bool {
	for _, want := range m.Conditions {
		values := want.Values
		if want.Value != nil {
			values = []string{*want.Value}
		}
		line := activeOption(want.Option)
		has := func(v *string) bool {
			return slices.ContainsFunc(section, func(l string) bool {
				got := line.FindStringSubmatch(file.Chomp(l))
				return got != nil && (v == nil || got[optionValue] == *v)
			})
		}
		if len(values) == 0 && !has(nil) {
			return false
		}
		for _, v := range values {
			if !has(&v) {
				return false
			}
		}
	}
	return true
}

// idleLine matches blank lines and comments.
var idleLine = regexp.MustCompile(`^\s*([#;]|$)`)

// optionValue is the group of activeOption and anyOption with the value. The group before it is the assignment
// sign.
const optionValue = 2

func activeOption(name string) *regexp.Regexp {
	return regexp.MustCompile(`^[ \t]*` + regexp.QuoteMeta(name) + `[ \t]*(=|$)[ \t]*(.*?)\r?$`)
}

// anyOption also matches commented-out lines of an option.
func anyOption(name string) *regexp.Regexp {
	return regexp.MustCompile(`^[#;]?[ \t]*` + regexp.QuoteMeta(name) + `[ \t]*(=|$)[ \t]*(.*?)\r?$`)
}

// line returns the option with a value.
func (m *IniFile) line(v string) string {
	switch {
	case v == "" && m.AllowNone:
		return m.Option + "\n"
	case m.NoSpaces:
		return m.Option + "=" + v + "\n"
	}
	return m.Option + " = " + v + "\n"
}

// set writes the option's lines to the section. Lines that already have a desired value are kept. With exclusive,
// other lines of the option get the remaining values, and superfluous active lines are removed. Values that still
// remain are added as new lines. Commented-out lines are only used after active ones.
func (m *IniFile) set(d *iniEdit) {
	left := m.desired()
	if len(left) == 0 {
		left = []string{""} // allow_no_value
	}
	active := activeOption(m.Option)
	matches := []*regexp.Regexp{active}
	if m.Uncomment {
		matches = append(matches, anyOption(m.Option))
	}
	done := make([]bool, len(d.section))
	take := func(match *regexp.Regexp, any bool) {
		for i, line := range d.section {
			got := match.FindStringSubmatch(file.Chomp(line))
			if got == nil || done[i] || len(left) == 0 {
				continue
			}
			at := slices.Index(left, got[optionValue])
			if at < 0 && any {
				at = 0
			}
			if at < 0 {
				continue
			}
			if done[i] = true; !m.SameSpaces || m.differs(line, left[at]) {
				d.replace(i, m.line(left[at]))
			}
			left = slices.Delete(left, at, at+1)
		}
	}
	for _, match := range matches {
		take(match, false)
	}
	if m.Exclusive {
		for _, match := range matches {
			take(match, true)
		}
		d.drop(func(i int) bool { return !done[i] && active.MatchString(file.Chomp(d.section[i])) })
	}
	m.add(d, left)
}

// differs reports whether a line is not the active option with this value, ignoring blanks.
func (m *IniFile) differs(line, v string) bool {
	got := activeOption(m.Option).FindStringSubmatch(file.Chomp(line))
	return got == nil || got[optionValue] != v || (got[1] == "") != (v == "" && m.AllowNone)
}

func (d *iniEdit) replace(i int, line string) {
	if d.section[i] != line {
		d.section[i], d.msg = line, "option changed"
	}
}

// drop removes lines of the section.
func (d *iniEdit) drop(remove func(i int) bool) {
	var kept []string
	for i, line := range d.section {
		if !remove(i) {
			kept = append(kept, line)
		}
	}
	if len(kept) < len(d.section) {
		d.section, d.msg = kept, "option changed"
	}
}

// add adds lines at the end of the section, before trailing blank lines and comments.
func (m *IniFile) add(d *iniEdit, values []string) {
	if len(values) == 0 {
		return
	}
	at := len(d.section)
	for at > 0 && idleLine.MatchString(d.section[at-1]) {
		at--
	}
	var lines []string
	for _, v := range values {
		lines = append(lines, m.line(v))
	}
	d.section = slices.Insert(d.section, at, lines...)
	d.msg = "option added"
}

// addSection appends a missing section.
func (m *IniFile) addSection(d *iniEdit) {
	d.section = []string{"[" + m.Section + "]\n"}
	for _, want := range m.Conditions {
		if want.Option == m.Option {
			continue
		}
		pair := IniFile{Option: want.Option, NoSpaces: m.NoSpaces, AllowNone: true, Value: want.Value, Values: want.Values}
		values := pair.desired()
		if len(values) == 0 {
			values = []string{""}
		}
		for _, v := range values {
			d.section = append(d.section, pair.line(v))
		}
	}
	if m.Option == "" {
		d.msg = "only section added"
		return
	}
	values := m.desired()
	if len(values) == 0 {
		values = []string{""}
	}
	for _, v := range values {
		d.section = append(d.section, m.line(v))
	}
	d.msg = "section and option added"
}

// remove removes the option, or the section with its header.
func (m *IniFile) remove(d *iniEdit) {
	if m.Option == "" {
		if len(d.section) == 0 && m.Section == "" {
			return
		}
		if m.Section != "" {
			d.before = d.before[:len(d.before)-1]
		}
		d.section, d.msg = nil, "section removed"
		return
	}
	match := activeOption(m.Option)
	d.drop(func(i int) bool {
		got := match.FindStringSubmatch(file.Chomp(d.section[i]))
		return got != nil && (m.Exclusive || slices.Contains(m.desired(), got[optionValue]))
	})
}
