package file

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strings"

	"kubekey/pkg/charset"
	"kubekey/pkg/expr"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
)

// Template is the module template.
type Template struct {
	Attributes
	Src            string `kk:"src,required,path,file=templates" doc:"template on the control node, searched for in templates/ of the role"`
	Dest           string `kk:"dest,required,path" doc:"path on the host; an existing folder, or a path that ends in /, gets the file with the name of the template"`
	Force          bool   `kk:"force" default:"yes" doc:"replace a file whose content differs; no never changes an existing file"`
	Backup         bool   `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	Follow         bool   `kk:"follow" default:"no" doc:"write to the target of a link at dest, instead of replacing the link"`
	Validate       string `kk:"validate" doc:"command that must accept the new file before it is put in place; %s is its path"`
	Newline        string `kk:"newline_sequence" default:"\\n" doc:"line ending: \\n, \\r or \\r\\n"`
	BlockStart     string `kk:"block_start_string" doc:"start of a tag. Default: {%"`
	BlockEnd       string `kk:"block_end_string" doc:"end of a tag. Default: %}"`
	VariableStart  string `kk:"variable_start_string" doc:"start of an expression. Default: {{"`
	VariableEnd    string `kk:"variable_end_string" doc:"end of an expression. Default: }}"`
	CommentStart   string `kk:"comment_start_string" doc:"start of a comment. Default: {#"`
	CommentEnd     string `kk:"comment_end_string" doc:"end of a comment. Default: #}"`
	TrimBlocks     bool   `kk:"trim_blocks" default:"yes" doc:"remove the line break after a tag"`
	LStripBlocks   bool   `kk:"lstrip_blocks" default:"no" doc:"remove blanks before a tag at the start of a line"`
	OutputEncoding string `kk:"output_encoding" default:"utf-8" doc:"encoding of the file: utf-8, utf-16, gbk, big5, shift_jis, or a single-byte encoding such as windows-1252"`
}

func templateSpec() module.Spec {
	return module.Spec{
		Name:    "template",
		Summary: "Renders a template on the control node to a file on the host.",
		Notes: []string{
			"The template can use the variables of the host, and template_host, template_uid, template_path, " +
				"template_fullpath, template_run_date and ansible_managed.",
			"An unchanged file is not sent again.",
		},
		Examples: []string{
			"- name: Configure the service\n  template:\n    src: app.conf.j2\n    dest: /etc/app/app.conf\n" +
				"    owner: app\n    mode: \"0640\"\n    validate: app --check %s\n  notify: restart app",
		},
		Returns: append([]module.Return{
			{Key: "dest", Type: "str", Doc: "path that was written"},
			{Key: "src", Type: "str", Doc: "the template"},
			{Key: "checksum", Type: "str", Doc: "SHA-1 of the rendered content"},
			{Key: "md5sum", Type: "str", Doc: "MD5 of the rendered content, when it was written"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup, with backup"},
		}, FileReturns()...),
		New: func() module.Runner { return new(Template) },
	}
}

// Rules implements schema.Ruled.
func (*Template) Rules() schema.Rules {
	return schema.Rules{
		schema.Parses("a line end", isNewline, "newline_sequence"),
		ValidateRule(),
	}
}

// Run implements module.Runner.
func (m *Template) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	src, text, err := m.Text(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	if text, err = charset.Encode(text, m.OutputEncoding); err != nil {
		return module.Result{}, fmt.Errorf("output_encoding: %w", err)
	}
	body, err := contentOf([]byte(text))
	if err != nil {
		return module.Result{}, err
	}
	cp := &Copy{
		Attributes: m.Attributes, Dest: m.Dest, Force: m.Force, Backup: m.Backup, Follow: m.Follow, Validate: m.Validate,
	}
	return cp.place(ctx, c, placing{body: body, header: src, src: src, name: path.Base(src), mode: c.Files.CopyMode(src)})
}

// Text renders the template for the call's host. It also returns the path of the template.
func (m *Template) Text(ctx context.Context, c *module.Call) (src, text string, err error) {
	if src, err = c.Find("templates", m.Src); err != nil {
		return "", "", err
	}
	if c.Files.IsDir(src) {
		return "", "", fmt.Errorf("template %s is a folder: name a file in it", src)
	}
	text, err = m.render(ctx, c, src, m.options())
	return src, text, err
}

func (m *Template) options() template.FileOptions {
	return template.FileOptions{
		NoTrimBlocks: !m.TrimBlocks, LStripBlocks: m.LStripBlocks,
		BlockStart: m.BlockStart, BlockEnd: m.BlockEnd,
		VariableStart: m.VariableStart, VarEnd: m.VariableEnd,
		CommentStart: m.CommentStart, CommentEnd: m.CommentEnd, Newline: newline(m.Newline),
	}
}

// newline parses a line ending, which may be written with backslashes.
func newline(sequence string) string {
	return strings.NewReplacer(`\r`, "\r", `\n`, "\n").Replace(sequence)
}

func isNewline(sequence string) error {
	switch newline(sequence) {
	case "\n", "\r", "\r\n":
		return nil
	}
	return fmt.Errorf("newline_sequence needs to be one of: \\n, \\r or \\r\\n, got %q", sequence)
}

func (m *Template) render(ctx context.Context, c *module.Call, src string, o template.FileOptions) (string, error) {
	compiled, err := c.Templates.File(src, o)
	if err != nil {
		return "", err
	}
	own, err := m.names(c, src)
	if err != nil {
		return "", err
	}
	return compiled.Text(ctx, own)
}

// managed is the default of ansible_managed.
const managed = "Ansible managed"

// names returns a scope with the variables that only exist in templates, above the host's own.
func (m *Template) names(c *module.Call, src string) (expr.Scope, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find the name of the control node: %w", err)
	}
	full := src
	if !source.IsAbs(src) {
		if full, err = filepath.Abs(src); err != nil {
			return nil, err
		}
	}
	names := map[string]any{
		"template_host": host, "template_path": m.Src, "template_fullpath": full,
		"template_run_date": c.Now(), "template_uid": owner(c.Files, src), "template_destpath": m.Dest,
		"template_mtime": mtime(c, src),
	}
	if _, ok, err := c.Scope.Lookup("ansible_managed"); err == nil && !ok {
		names["ansible_managed"] = managed
	}
	return &overlay{Scope: c.Scope, names: names}, nil
}

func mtime(c *module.Call, src string) any {
	info, err := c.Files.Stat(src)
	if err != nil {
		return c.Now()
	}
	return info.ModTime()
}

// owner returns the name of the user who owns a template.
func owner(tree source.Tree, src string) any {
	if uid, ok := ownerOf(tree, src); ok {
		if u, err := user.LookupId(uid); err == nil {
			return u.Username
		}
		return uid
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprint(os.Getuid())
}

// overlay is a scope with additional names.
type overlay struct {
	expr.Scope
	names map[string]any
}

// Lookup implements expr.Scope.
func (o *overlay) Lookup(name string) (any, bool, error) {
	if v, ok := o.names[name]; ok {
		return v, true, nil
	}
	return o.Scope.Lookup(name)
}

// Bind implements expr.Binder. Variables that a template sets are dropped when it ends.
func (o *overlay) Bind(name string, v any) { o.names[name] = v }

var _ expr.Binder = (*overlay)(nil)
