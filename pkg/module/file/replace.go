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

// Replace is the module replace.
type Replace struct {
	Attributes
	Path     string `kk:"path,required,path,alias=dest|destfile|name" doc:"file on the host"`
	Regexp   string `kk:"regexp,required" doc:"Python regular expression, with MULTILINE: ^ and $ match at every line"`
	With     string `kk:"replace" doc:"replacement for each match; \\1 and \\g<name> are its groups. Default: empty"`
	After    string `kk:"after" doc:"replace only after the first match of this regular expression"`
	Before   string `kk:"before" doc:"replace only before the last match (with after: the next match) of this regular expression"`
	Backup   bool   `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	Encoding string `kk:"encoding" default:"utf-8" doc:"encoding of the file; only utf-8 is supported"`
	Validate string `kk:"validate" doc:"command that must accept the new file before it is put in place; %s is its path"`
}

func replaceSpec() module.Spec {
	return module.Spec{
		Name:    "replace",
		Summary: "Replaces every match of a regular expression in a file.",
		Notes: []string{"The file is read once and written only if it was not changed in the meantime; links are " +
			"followed."},
		Examples: []string{
			"- name: Disable swap in fstab\n  replace:\n    path: /etc/fstab\n    regexp: '^([^#].*\\sswap\\s.*)$'\n" +
				"    replace: '# \\1'",
		},
		Returns: []module.Return{
			{Key: "msg", Type: "str", Doc: "number of replacements, or empty"},
			{Key: "rc", Type: "int", Doc: "0; of a failure 257 if the file is missing, and 256 if it is a folder"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup, with backup"},
		},
		New: func() module.Runner { return new(Replace) },
	}
}

// Rules implements schema.Ruled.
func (*Replace) Rules() schema.Rules {
	return schema.Rules{
		schema.Parses("utf-8", isUTF8, "encoding"),
		ValidateRule(),
	}
}

// Run implements module.Runner.
func (m *Replace) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	section, err := m.section()
	if err != nil {
		return module.Result{}, err
	}
	p, with, err := m.compile()
	if err != nil {
		return module.Result{}, err
	}
	e, err := OpenEdit(ctx, c, m.Path, &m.Attributes, false)
	if err != nil {
		return NotEdited(asPath(err))
	}
	data := value.NewDict("rc", 0)
	from, to := 0, len(e.Text)
	if section != nil {
		found, err := section.Find(e.Text)
		if err != nil {
			return module.Result{}, err
		}
		if found == nil {
			msg := "Pattern for before/after params did not match the given file: " + m.sectionText()
			return module.Result{Msg: msg, Data: data}, nil
		}
		i, err := section.Group("subsection")
		if err != nil {
			return module.Result{}, err
		}
		from, to = found[2*i], found[2*i+1]
	}
	found, err := p.FindAll(e.Text[from:to], 0)
	if err != nil {
		return module.Result{}, err
	}
	middle, ok := with.Replace(e.Text[from:to], found, maxEdit)
	if !ok {
		return module.Result{}, fmt.Errorf("the file would have more than %d bytes", maxEdit)
	}
	text, msg := e.Text[:from]+middle+e.Text[to:], ""
	if len(found) > 0 && text != e.Text {
		msg = fmt.Sprintf("%d replacements made", len(found))
	}
	return e.Save(ctx, c, &m.Attributes,
		Edited{Text: text, Msg: msg, Touched: true, Backup: m.Backup, Validate: m.Validate, Data: data})
}

// compile compiles the pattern and the replacement.
func (m *Replace) compile() (*pyregex.Regexp, *pyregex.Template, error) {
	p, err := compilePattern(m.Regexp, pyregex.Multiline)
	if err != nil {
		return nil, nil, err
	}
	with, err := p.Template(m.With)
	if err != nil {
		return nil, nil, fmt.Errorf("the replacement %q is not valid: %w", m.With, err)
	}
	return p, with, nil
}

// section returns the pattern whose group subsection is the part to edit, or nil for the whole file. In this
// pattern . matches line breaks.
func (m *Replace) section() (*pyregex.Regexp, error) {
	if m.After == "" && m.Before == "" {
		return nil, nil
	}
	return compilePattern(m.sectionText(), pyregex.DotAll)
}

func (m *Replace) sectionText() string {
	if m.After != "" && m.Before != "" {
		return m.After + `(?P<subsection>.*?)` + m.Before
	}
	return m.After + `(?P<subsection>.*)` + m.Before
}

func isUTF8(encoding string) error {
	if e := strings.ToLower(encoding); e != "utf-8" && e != "utf8" {
		return fmt.Errorf("encoding %s is not supported: only utf-8 is", encoding)
	}
	return nil
}
