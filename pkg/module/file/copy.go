package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Copy is the module copy.
type Copy struct {
	Attributes
	Src           string          `kk:"src,path,file=files,away=remote_src" doc:"file or folder on the control node, searched for in files/ of the role; with a trailing / only the contents of a folder are copied"`
	Content       any             `kk:"content" doc:"content to write instead of src; a dict or list is written as JSON"`
	Dest          string          `kk:"dest,required,path" doc:"path on the host; an existing folder, or a path that ends in /, gets the file with its own name"`
	RemoteSrc     bool            `kk:"remote_src" default:"no" doc:"src is a path on the host"`
	Force         bool            `kk:"force" default:"yes" doc:"replace a file whose content differs; no never changes an existing file"`
	Backup        bool            `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	DirectoryMode schema.FileMode `kk:"directory_mode" doc:"permission bits of created folders. Default: set by the umask"`
	Follow        bool            `kk:"follow" default:"no" doc:"write to the target of a link at dest, instead of replacing the link"`
	LocalFollow   bool            `kk:"local_follow" default:"yes" doc:"copy the targets of links in src, instead of the links"`
	Checksum      string          `kk:"checksum" doc:"expected SHA-1 of the source"`
	Validate      string          `kk:"validate" doc:"command that must accept the new file before it is put in place; %s is its path"`
	Decrypt       bool            `kk:"decrypt" default:"yes" doc:"decrypt sources that are encrypted with vault"`
}

func copySpec() module.Spec {
	return module.Spec{
		Name:    "copy",
		Summary: "Copies files, folders or text to the host.",
		Notes: []string{
			"An unchanged file is not sent again; a changed one is written next to the old one, verified and renamed into " +
				"place.",
			"Small files of a folder are sent together.",
		},
		Examples: []string{
			"- name: Write the message of the day\n  copy:\n    content: \"Welcome to {{ inventory_hostname }}\\n\"\n" +
				"    dest: /etc/motd\n    mode: \"0644\"",
			"- name: Copy the contents of a folder\n  copy:\n    src: conf.d/\n    dest: /etc/app/conf.d/\n    owner: app\n" +
				"    directory_mode: \"0750\"",
		},
		Returns: append([]module.Return{
			{Key: "dest", Type: "str", Doc: "path that was written"},
			{Key: "src", Type: "str", Doc: "source on the control node (on the host with remote_src)"},
			{Key: "checksum", Type: "str", Doc: "SHA-1 of the content"},
			{Key: "md5sum", Type: "str", Doc: "MD5 of the content, when it was written"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup, with backup"},
		}, FileReturns()...),
		New: func() module.Runner { return new(Copy) },
	}
}

// Rules implements schema.Ruled.
func (*Copy) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("src", "content"),
		schema.AtLeastOne("src", "content").Says("src (or content) is required"),
		schema.Refuses("remote_src").With("content").Says("remote_src needs src; it says nothing about content"),
		schema.Refuses("mode").If("mode", "preserve").With("content").Says("mode preserve needs src: content has no mode"),
		schema.Looks("without / at its end", func(dest string) bool { return !strings.HasSuffix(dest, "/") },
			"dest").With("content").
			Says("can not use content with a dir as dest"),
		ValidateRule(),
	}
}

// Run implements module.Runner.
func (m *Copy) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	switch {
	case m.Content != nil:
		return m.text(ctx, c)
	case m.RemoteSrc:
		return m.remote(ctx, c)
	}
	src, err := c.Find("files", m.Src)
	if err != nil {
		return module.Result{}, err
	}
	if c.Files.IsDir(src) {
		return m.folder(ctx, c, src)
	}
	return m.file(ctx, c, src)
}

func (m *Copy) text(ctx context.Context, c *module.Call) (module.Result, error) {
	text, err := textOf(m.Content)
	if err != nil {
		return module.Result{}, err
	}
	body, err := contentOf([]byte(text))
	if err != nil {
		return module.Result{}, err
	}
	if err := m.expected(body.sha1); err != nil {
		return module.Result{Data: value.NewDict("checksum", body.sha1, "expected_checksum", m.Checksum)}, err
	}
	return m.place(ctx, c, placing{body: body, header: m.Dest})
}

// expected returns an error if the file to copy does not have the expected checksum.
func (m *Copy) expected(sha1 string) error {
	if m.Checksum == "" || strings.EqualFold(m.Checksum, sha1) {
		return nil
	}
	//nolint:staticcheck // the text users know
	return fmt.Errorf("Copied file does not match the expected checksum. Transfer failed: %s was expected, the "+
		"source has %s", m.Checksum, sha1)
}

// textOf returns the text of the argument content. Containers are converted to JSON.
func textOf(v any) (string, error) {
	switch v.(type) {
	case *value.Dict, []any:
		return value.JSON(v, value.JSONOptions{})
	}
	return value.Str(v), nil
}

func (m *Copy) file(ctx context.Context, c *module.Call, src string) (module.Result, error) {
	body, err := contentAt(c, src, m.Decrypt)
	if err != nil {
		return module.Result{}, err
	}
	if err := m.expected(body.sha1); err != nil {
		return module.Result{Data: value.NewDict("checksum", body.sha1, "expected_checksum", m.Checksum)}, err
	}
	return m.place(ctx, c, placing{body: body, header: src, src: src, name: path.Base(src), mode: c.Files.CopyMode(src)})
}

// files returns the files of the control node, decrypted or unchanged.
func files(c *module.Call, decrypt bool) source.Tree {
	if decrypt {
		return c.Files
	}
	return c.Files.Raw()
}

func pathCause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// placing is one file to be copied to m.Dest.
type placing struct {
	body   *content
	header string // name of the source in the diff
	src    string // "" for content
	name   string // name of the file inside a folder; "" rejects folders
	mode   fs.FileMode
}

// place copies one file to m.Dest, or into it if it is a folder.
func (m *Copy) place(ctx context.Context, c *module.Call, p placing) (module.Result, error) {
	flags := "ph"
	if c.Diff {
		flags = "phc"
	}
	ask := []asked{{flags: flags, path: m.Dest, limit: maxDiff}}
	if p.name != "" {
		ask = append(ask, asked{flags, m.Dest, maxDiff, p.name})
	}
	ans, err := probe(ctx, c, m.Owner, m.Group, ask...)
	if err != nil {
		return module.Result{}, err
	}
	at, folder := ans.entries[0], ""
	switch {
	case p.name == "" && at.followed().is(typeDir):
		return module.Result{}, errors.New("can not use content with a dir as dest")
	case strings.HasSuffix(m.Dest, "/") && !at.exists():
		folder, at = strings.TrimRight(at.path, "/"), ans.entries[1]
	case strings.HasSuffix(m.Dest, "/") || at.followed().is(typeDir):
		at = ans.entries[1]
	}
	return m.write(ctx, c, ans, at, p, folder)
}

// write writes the file at an entry. folder is created first, unless it is "".
func (m *Copy) write(ctx context.Context, c *module.Call, ans *answer, at *entry, p placing,
	folder string) (module.Result, error) {
	var warnings []string
	if err := m.replaceable(at); err != nil {
		return module.Result{}, err
	}
	if at.exists() && !m.Force {
		return m.leave(at, p), nil
	}
	if folder == "" {
		warning, err := needFolder(c, at)
		if err != nil {
			return module.Result{}, err
		}
		warnings = warning
	} else if !c.Check {
		if err := m.makeFolder(ctx, c, ans, folder); err != nil {
			return module.Result{}, err
		}
	}
	w := &writing{
		ans: ans, at: at, follow: m.Follow, body: p.body, attrs: &m.Attributes, srcMode: p.mode,
		backup: m.Backup, validate: m.Validate,
	}
	out, err := w.run(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	return w.result(c, out, p, warnings)
}

// replaceable returns an error if dest exists and is not a file that may be replaced.
func (m *Copy) replaceable(at *entry) error {
	n := at.at(m.Follow)
	switch {
	case n.is(typeDir):
		return fmt.Errorf("%s is a directory", at.path)
	case n != nil && !n.is(typeFile) && !n.is(typeLink):
		return fmt.Errorf("%s is not a regular file", at.path)
	}
	return nil
}

// needFolder returns an error if the folder to write into does not exist. In check mode it returns a warning,
// because an earlier task would perhaps create it.
func needFolder(c *module.Call, at *entry) ([]string, error) {
	err := missingFolder(at)
	if err != nil && c.Check {
		return []string{err.Error() + "; the prediction takes it that an earlier task creates it"}, nil
	}
	return nil, err
}

func (m *Copy) makeFolder(ctx context.Context, c *module.Call, ans *answer, folder string) error {
	var s script
	attrs := Attributes{Mode: m.DirectoryMode, Owner: m.Owner, Group: m.Group}
	ch, err := attrs.plan(c, ans, folder, ans.fresh(ans.entries[0], typeDir))
	if err != nil {
		return err
	}
	s.folders(folder, &ch)
	_, err = s.run(ctx, c)
	return err
}

// leave returns the result for a file that is kept because of force: no.
func (m *Copy) leave(at *entry, p placing) module.Result {
	d := value.NewDict("dest", at.path, "path", at.path)
	if p.src != "" {
		d.Set("src", p.src)
	}
	at.self.describe(d)
	return module.Result{Data: d, Msg: "file already exists"}
}

func (w *writing) result(c *module.Call, out *written, p placing, warnings []string) (module.Result, error) {
	d := value.NewDict("dest", out.path, "checksum", w.body.sha1)
	if out.content {
		d.Set("md5sum", w.body.md5)
	}
	if p.src != "" {
		d.Set("src", p.src)
	}
	if !out.changed() {
		d.Set("path", out.path)
	}
	out.describe(d)
	if out.backup != "" {
		d.Set("backup_file", out.backup)
	}
	res := module.Result{Changed: out.changed(), Data: d, Warnings: warnings}
	if c.Diff {
		var err error
		if res.Diff, err = w.diff(out, p.header); err != nil {
			return res, err
		}
	}
	return res, nil
}
