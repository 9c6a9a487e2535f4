package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sort"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
)

// Assemble is the module assemble.
type Assemble struct {
	Attributes
	Src          string `kk:"src,required,path,file=files,away=remote_src" doc:"folder with the fragments"`
	Dest         string `kk:"dest,required,path" doc:"file on the host"`
	RemoteSrc    bool   `kk:"remote_src" default:"yes" doc:"src is on the host; no: on the control node, searched for in files/ of the role"`
	Delimiter    string `kk:"delimiter" doc:"text between fragments, on a line of its own; \\n is a line break"`
	Regexp       string `kk:"regexp" doc:"Python regular expression that the names of fragments must match. Default: all"`
	IgnoreHidden bool   `kk:"ignore_hidden" default:"no" doc:"ignore names that begin with a dot"`
	Backup       bool   `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	Decrypt      bool   `kk:"decrypt" default:"yes" doc:"decrypt fragments on the control node that are encrypted with vault"`
	Validate     string `kk:"validate" doc:"command that must accept the new file before it is put in place; %s is its path"`
}

func assembleSpec() module.Spec {
	return module.Spec{
		Name:    "assemble",
		Summary: "Assembles the files of a folder into one file, in the order of their names.",
		Examples: []string{
			"- name: Assemble the config\n  assemble:\n    src: /etc/app/conf.d\n    dest: /etc/app/app.conf\n" +
				"    delimiter: \"### next\"\n    validate: app --check %s",
		},
		Returns: append([]module.Return{
			{Key: "dest", Type: "str", Doc: "path that was written"},
			{Key: "src", Type: "str", Doc: "the folder"},
			{Key: "checksum", Type: "str", Doc: "SHA-1 of the content"},
			{Key: "md5sum", Type: "str", Doc: "MD5 of the content, when it was written"},
			{Key: "backup_file", Type: "str", Doc: "path of the backup, with backup"},
		}, FileReturns()...),
		New: func() module.Runner { return new(Assemble) },
	}
}

// fragment is one part of the file.
type fragment struct {
	name string
	text []byte
}

// Rules implements schema.Ruled.
func (*Assemble) Rules() schema.Rules {
	return schema.Rules{
		ValidateRule(),
	}
}

// Run implements module.Runner.
func (m *Assemble) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	names, err := optionalPattern(m.Regexp)
	if err != nil {
		return module.Result{}, err
	}
	ans, src, parts, err := m.read(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	text, err := m.join(parts, names)
	if err != nil {
		return module.Result{}, err
	}
	body, err := contentOf([]byte(text))
	if err != nil {
		return module.Result{}, err
	}
	cp := &Copy{Attributes: m.Attributes, Dest: m.Dest, Force: true, Backup: m.Backup, Validate: m.Validate}
	res, err := cp.write(ctx, c, ans, ans.entries[0], placing{body: body, header: src, src: src, mode: 0o644}, "")
	if err == nil {
		res.Msg = "OK"
	}
	return res, err
}

// read probes dest and reads the fragments, in one round trip.
func (m *Assemble) read(ctx context.Context, c *module.Call) (*answer, string, []fragment, error) {
	s := script{probe: true}
	s.line(asked{flags: "phcn", path: m.Dest, limit: maxDiff}.code())
	if m.Owner != "" {
		s.line("kk_account U passwd " + shell.Quote(m.Owner))
	}
	if m.Group != "" {
		s.line("kk_account G group " + shell.Quote(m.Group))
	}
	if m.RemoteSrc {
		s.line(asked{flags: "n", path: m.Src}.code())
		word, _ := hostWord(strings.TrimRight(m.Src, "/") + "/")
		list := listing{root: strings.TrimRight(m.Src, "/") + "/", depth: 1, flags: "c", limit: maxEdit}
		s.line("[ ! -d " + word + " ] || { " + list.code() + "; }")
	}
	out, err := s.run(ctx, c)
	if err != nil {
		return nil, "", nil, err
	}
	ans, paths := &answer{umask: 0o022}, 1
	if m.RemoteSrc {
		paths = 2
	}
	if err := ans.parse(out, m.Owner, m.Group, paths); err != nil {
		return nil, "", nil, err
	}
	if !m.RemoteSrc {
		src, parts, err := m.local(c)
		return ans, src, parts, err
	}
	src := ans.entries[1]
	switch {
	case src.followed() == nil:
		return nil, "", nil, fmt.Errorf("Source (%s) does not exist", src.path) //nolint:staticcheck // the text users know
	case !src.followed().is(typeDir):
		//nolint:staticcheck // the text users know
		return nil, "", nil, fmt.Errorf("Source (%s) is not a directory", src.path)
	}
	var parts []fragment
	for _, e := range ans.entries[2:] {
		switch n := e.followed(); {
		case !n.is(typeFile):
		case !e.hasText || len(e.content) == 0 && n.size > 0:
			return nil, "", nil, fmt.Errorf("%s cannot be read on the host", e.path)
		default:
			parts = append(parts, fragment{path.Base(e.path), e.content})
		}
	}
	return ans, src.path, parts, nil
}

func (m *Assemble) local(c *module.Call) (string, []fragment, error) {
	src, err := c.Find("files", m.Src)
	if err != nil {
		return "", nil, err
	}
	list, err := c.Files.ReadDir(src)
	if err != nil {
		return "", nil, fmt.Errorf("list the fragments in %s: %w", src, pathCause(err))
	}
	var parts []fragment
	for _, d := range list {
		p := src + "/" + d.Name()
		if !c.Files.IsFile(p) {
			continue
		}
		text, err := files(c, m.Decrypt).ReadFile(p)
		if err != nil {
			return "", nil, fmt.Errorf("read %s: %w", p, pathCause(err))
		}
		parts = append(parts, fragment{d.Name(), text})
	}
	return src, parts, nil
}

// join joins the fragments. Each begins on a new line.
func (m *Assemble) join(parts []fragment, names *pyregex.Regexp) (string, error) {
	sort.Slice(parts, func(i, j int) bool { return parts[i].name < parts[j].name })
	delimiter := strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(m.Delimiter)
	var b strings.Builder
	for _, p := range parts {
		if m.IgnoreHidden && strings.HasPrefix(p.name, ".") {
			continue
		}
		if names != nil {
			found, err := names.Find(p.name)
			if err != nil {
				return "", err
			}
			if found == nil {
				continue
			}
		}
		if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
			b.WriteString("\n")
		}
		if b.Len() > 0 && delimiter != "" {
			b.WriteString(Ended(delimiter))
		}
		b.Write(p.text)
	}
	if b.Len() > maxEdit {
		return "", errors.New("the fragments are too large to be put together")
	}
	return b.String(), nil
}
