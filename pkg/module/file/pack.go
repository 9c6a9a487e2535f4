package file

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// packLibrary contains the shell functions of archive, in addition to those in library.
//
//go:embed pack.sh
var packLibrary string

// Archive is the module archive.
type Archive struct {
	Attributes
	Path     []string `kk:"path,required,path" doc:"absolute paths of files and folders on the host, with wildcards * and ?; the content of folders is packed"`
	Dest     string   `kk:"dest,path" doc:"path of the archive. Default: for a single file, its path with the format as extension; otherwise required"`
	Format   string   `kk:"format" default:"gz" choices:"bz2,gz,tar,xz,zip" doc:"gz, bz2 and xz pack several files, or a folder, as tar; a single file is only compressed"`
	Exclude  []string `kk:"exclude_path,path" doc:"absolute paths to exclude from path, with wildcards * and ?"`
	Patterns []string `kk:"exclusion_patterns" doc:"shell patterns of member names to exclude; * matches slashes too"`
	Force    bool     `kk:"force_archive" default:"no" doc:"create a tar or zip even for a single file"`
	Remove   bool     `kk:"remove" default:"no" doc:"remove the packed files"`
}

func archiveSpec() module.Spec {
	return module.Spec{
		Name: "archive", Collection: "community.general",
		Summary: "Packs files on the host into an archive, or compresses one.",
		Notes: []string{
			"The files are compared with the members of an existing archive, including times and modes: an archive that is " +
				"up to date is not written.",
			"The host needs tar, and the tool of the format: gzip, bzip2, xz or zip. File names with a newline are rejected.",
			"Check mode reads all files to predict whether the archive differs.",
		},
		Examples: []string{
			"- name: Back up the config\n  archive:\n    path:\n      - /etc/app\n      - /etc/app.d/*.conf\n" +
				"    dest: /var/backups/app.tar.gz\n    exclusion_patterns: '*.tmp'\n    mode: \"0600\"",
			"- name: Compress a log and remove it\n  archive:\n    path: /var/log/app.log.1\n    format: xz\n    remove: true",
		},
		Returns: append([]module.Return{
			{Key: "dest", Type: "str", Doc: "the archive"},
			{Key: "dest_state", Type: "str", Doc: "archive, compress (a single file), incomplete (some of path is " +
				"missing), or absent"},
			{Key: "archived", Type: "list of str", Doc: "paths in the archive"},
			{Key: "missing", Type: "list of str", Doc: "paths that do not exist"},
			{Key: "arcroot", Type: "str", Doc: "the folder that names in the archive are relative to"},
			{Key: "expanded_paths", Type: "list of str", Doc: "path, with patterns replaced by what they match"},
			{Key: "expanded_exclude_paths", Type: "list of str", Doc: "exclude_path"},
		}, FileReturns()...),
		New: func() module.Runner { return new(Archive) },
	}
}

// pack is the host's state of an archive to be created.
type pack struct {
	*answer
	root, single                         string
	sources, missing, excluded, archived []string
	same                                 bool // the archive already has this content
}

// Rules implements schema.Ruled.
func (*Archive) Rules() schema.Rules {
	return schema.Rules{
		schema.Parses("an absolute path", isHostPath, "path", "exclude_path"),
		schema.Needs("dest").If("force_archive", true).Says(needsDest),
		schema.Entries("path", 1, 1).Without("dest").Says(needsDest),
		schema.Looks("one path", func(p string) bool { return !globbed(p) }, "path").Without("dest").Says(needsDest),
	}
}

// Run implements module.Runner.
func (m *Archive) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	p, err := m.look(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	dest := p.entries[0]
	if dest.followed().is(typeDir) {
		return module.Result{}, fmt.Errorf("dest %s is a folder: name a file in it", dest.path)
	}
	if m.Remove {
		for _, s := range p.sources {
			if strings.HasPrefix(dest.path, strings.TrimRight(s, "/")+"/") {
				return module.Result{}, fmt.Errorf("dest %s is below %s: with remove it would be removed too", dest.path, s)
			}
		}
	}
	out, err := m.plan(c, p)
	if err != nil {
		return module.Result{}, err
	}
	removes := m.Remove && len(p.sources) > 0
	if !c.Check && (out.changed() || removes) {
		if err := m.act(ctx, c, p, out); err != nil {
			return module.Result{}, err
		}
	}
	if err := m.setMarks(ctx, c, &out.attributes, out.path); err != nil {
		return module.Result{}, err
	}
	return m.result(c, p, out, removes), nil
}

const needsDest = `Error, must specify "dest" when archiving multiple files or trees` // the text users know

// isHostPath accepts absolute paths, and paths that the host expands.
func isHostPath(p string) error {
	if word, _ := hostWord(p); !strings.HasPrefix(p, "/") && !strings.HasPrefix(word, "~") && !strings.HasPrefix(p, "$") {
		return fmt.Errorf("paths must be absolute, got %q", p)
	}
	if strings.Contains(p, "\n") {
		return fmt.Errorf("a path with a newline cannot be packed: %q", p)
	}
	return nil
}

func globbed(p string) bool { return strings.ContainsAny(p, "*?") }

func (m *Archive) dest() string {
	if m.Dest != "" {
		return m.Dest
	}
	return strings.TrimRight(m.Path[0], "/") + "." + m.Format
}

// pick returns the shell code that finds the files to pack.
func (m *Archive) pick() string {
	var s script
	s.line(packLibrary)
	s.line(fmt.Sprintf("kk_format=%s kk_force=%s kk_asked=%d kk_patterns=%s", m.Format, flag(m.Force), len(m.Path),
		shell.Quote(strings.Join(m.Patterns, "\n"))))
	for _, p := range m.Path {
		word, _ := hostWord(p)
		if globbed(p) {
			s.line("kk_glob " + word)
		} else {
			s.line("kk_source " + word)
		}
	}
	for _, p := range m.Exclude {
		word, _ := hostWord(p)
		s.line("kk_without " + word)
	}
	return s.body.String()
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// look queries the host for the files to pack and the content of the archive.
func (m *Archive) look(ctx context.Context, c *module.Call) (*pack, error) {
	s := script{probe: true}
	at := asked{flags: "phi", path: m.dest()}
	word, _ := hostWord(m.dest())
	s.line(m.pick())
	s.line("kk_look " + word)
	s.line(`printf '.\0'`)
	s.line(at.code())
	if m.Owner != "" {
		s.line("kk_account U passwd " + shell.Quote(m.Owner))
	}
	if m.Group != "" {
		s.line("kk_account G group " + shell.Quote(m.Group))
	}
	out, err := s.run(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &pack{}
	rest, err := p.read(out)
	if err != nil {
		return nil, err
	}
	p.answer, err = parseAnswer(rest, []asked{at}, m.Owner, m.Group)
	return p, err
}

// read parses the fields of kk_look, and returns the remaining output.
func (p *pack) read(out []byte) ([]byte, error) {
	for len(out) > 0 {
		field, rest, whole := bytes.Cut(out, []byte{0})
		if !whole || len(field) == 0 {
			break
		}
		out = rest
		text := string(field[1:])
		switch field[0] {
		case '.':
			return out, nil
		case 'x':
			p.sources = append(p.sources, text)
		case 'm':
			p.missing = append(p.missing, text)
		case 'e':
			p.excluded = append(p.excluded, text)
		case 'a':
			p.archived = append(p.archived, text)
		case 'r':
			p.root = text
		case 's':
			p.single = text
		case 'u':
			p.same = true
		}
	}
	return nil, fmt.Errorf("the host's answer breaks off at %.40q", out)
}

// plan determines the changes to the archive.
func (m *Archive) plan(c *module.Call, p *pack) (*written, error) {
	dest := p.entries[0]
	there := dest.followed()
	out := &written{path: dest.resolved(), hadBefore: there.is(typeFile)}
	switch {
	case len(p.sources) > 0:
		out.content = !p.same
	case there == nil:
		return out, nil
	}
	if out.content && !c.Check {
		if err := missingFolder(dest); err != nil {
			return nil, err
		}
	}
	base := p.fresh(dest, typeFile)
	if there != nil {
		base = *there
	}
	var err error
	out.attributes, err = m.Attributes.plan(c, p.answer, out.path, base)
	return out, err
}

// act creates the archive and removes the packed files.
func (m *Archive) act(ctx context.Context, c *module.Call, p *pack, out *written) error {
	var s script
	s.line("{")
	s.line(m.pick())
	word, _ := hostWord(m.dest())
	s.line("kk_pick " + word)
	s.line("} >/dev/null")
	if out.content {
		w := &writing{ans: p.answer, at: p.entries[0], attrs: &m.Attributes, body: &content{}}
		s.line(w.placement(out, "kk_packed"))
	} else {
		s.steps(out.attributes.steps)
	}
	if m.Remove {
		s.line("kk_remove")
	}
	if !out.content {
		_, err := s.run(ctx, c)
		return err
	}
	s.line("wc -c <" + shell.Quote(out.path))
	said, err := s.run(ctx, c)
	if err != nil {
		return err
	}
	if out.attributes.next.size, err = strconv.ParseInt(strings.TrimSpace(string(said)), 10, 64); err != nil {
		return fmt.Errorf("the host did not return the size of %s: %q", out.path, said)
	}
	return nil
}

func (m *Archive) result(c *module.Call, p *pack, out *written, removes bool) module.Result {
	dest := p.entries[0]
	d := value.NewDict("dest", dest.path)
	if dest.followed() != nil || out.content {
		out.describe(d)
		if out.content && c.Check {
			d.Delete("size") // not known yet
		}
	}
	d.Merge(value.NewDict("dest_state", m.state(p, out), "archived", value.List(p.archived), "missing",
		value.List(p.missing), "arcroot", p.root,
		"expanded_paths", value.List(append(append([]string{}, p.sources...), p.missing...)), "expanded_exclude_paths",
		value.List(p.excluded)))
	r := module.Result{Changed: out.changed() || removes, Data: d}
	if c.Diff && out.content {
		r.Diff = []event.Diff{{Before: value.NewDict("dest", dest.path),
			After: value.NewDict("dest", dest.path, "archived", value.List(p.archived))}}
	}
	return r
}

func (m *Archive) state(p *pack, out *written) string {
	switch {
	case !out.content && p.entries[0].followed() == nil:
		return "absent"
	case len(p.sources) == 0 && !packedName.MatchString(out.path):
		return "compress"
	case len(p.sources) > 0 && len(p.missing) > 0:
		return "incomplete"
	case p.single != "" && m.Format != "tar" && m.Format != "zip":
		return "compress"
	}
	return "archive"
}

// packedName distinguishes an archive from a compressed file when there are no files left to pack.
var packedName = regexp.MustCompile(`\.(zip|tar|tgz|tbz2?|txz|tar\.(gz|bz2|xz))$`)
