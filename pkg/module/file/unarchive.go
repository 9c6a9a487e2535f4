package file

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// Unarchive is the module unarchive.
type Unarchive struct {
	Attributes
	Src           string   `kk:"src,required,path,file=files,away=remote_src|!copy" doc:"archive on the control node, searched for in files/ of the role; with remote_src a path on the host, or a URL"`
	Dest          string   `kk:"dest,required,path" doc:"existing folder on the host"`
	RemoteSrc     bool     `kk:"remote_src" default:"no" doc:"src is a path on the host, or a URL"`
	Copy          *bool    `kk:"copy" doc:"older form of remote_src: no is remote_src: yes"`
	Creates       string   `kk:"creates,path" doc:"do nothing if this path exists on the host"`
	ListFiles     bool     `kk:"list_files" default:"no" doc:"return the names of the members"`
	Exclude       []string `kk:"exclude" doc:"members and folders to exclude; * and ? are wildcards"`
	Include       []string `kk:"include" doc:"members and folders to extract; * and ? are wildcards. Default: all"`
	KeepNewer     bool     `kk:"keep_newer" default:"no" doc:"do not replace files that are newer than the member"`
	Decrypt       bool     `kk:"decrypt" default:"yes" doc:"decrypt an archive on the control node that is encrypted with vault"`
	ValidateCerts bool     `kk:"validate_certs" default:"yes" doc:"verify the TLS certificate of the server"`
	BufferSize    int      `kk:"io_buffer_size" default:"65536" doc:"without effect"`
	ExtraOpts     []string `kk:"extra_opts" doc:"--strip-components=N, --no-same-owner, --no-same-permissions"`
}

func unarchiveSpec() module.Spec {
	return module.Spec{
		Name:    "unarchive",
		Summary: "Unpacks a tar (plain, gzip, bzip2, xz, zstd) or zip archive on the host.",
		Notes: []string{
			"Members are compared with existing files by type, size and time, and links by target; if nothing differs, " +
				"nothing is sent.",
			"An archive on the control node is streamed to tar on the host, which is all that the host needs. With " +
				"remote_src it also needs the decompression tool.",
			"An archive at a URL is downloaded in each run, in check mode too, to compare its members; use creates to " +
				"avoid that. The host fetches it with curl or wget; without either, or with a password in the URL, the " +
				"control node does.",
		},
		Examples: []string{
			"- name: Install the tools\n  unarchive:\n    src: tools.tar.gz\n    dest: /usr/local\n" +
				"    extra_opts: [--strip-components=1]\n    owner: root",
			"- name: Unpack an archive on the host\n  unarchive:\n    src: /tmp/app.zip\n    dest: /opt/app\n" +
				"    remote_src: yes\n    creates: /opt/app/bin/app",
		},
		Returns: append([]module.Return{
			{Key: "dest", Type: "str", Doc: "the folder"},
			{Key: "src", Type: "str", Doc: "the archive"},
			{Key: "handler", Type: "str", Doc: "type of the archive: TgzArchive, TarArchive, ZipArchive, ..."},
			{Key: "files", Type: "list of str", Doc: "names of the members, with list_files"},
			{Key: "extract_results", Type: "dict", Doc: "cmd, out, err and rc of the extraction, if it was run"},
		}, FileReturns()...),
		New: func() module.Runner { return new(Unarchive) },
	}
}

// unpacking is one run of Unarchive.
type unpacking struct {
	*Unarchive
	c       *module.Call
	local   *archive // nil with remote_src
	packing packing
	src     string
	strip   int
	options []string // for tar on the host
	members []member

	ans     *answer
	dest    *entry
	have    map[string]*inode
	links   map[string]string
	changed []member // members to extract
}

// Rules implements schema.Ruled.
func (*Unarchive) Rules() schema.Rules {
	return schema.Rules{
		schema.Parses("an option that is supported", isTarOption, "extra_opts"),
		schema.AddressOr("a path", "src", "http", "https", "ftp", "ftps", "file").If("remote_src", true),
		schema.Refuses("mode").If("mode", "preserve").Says("mode preserve says nothing here: members have their own modes"),
	}
}

// Run implements module.Runner.
func (m *Unarchive) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	u := &unpacking{Unarchive: m, c: c}
	if err := u.readOptions(); err != nil {
		return module.Result{}, err
	}
	if m.Copy != nil {
		m.RemoteSrc = !*m.Copy
	}
	if m.atURL() {
		there, err := u.created(ctx)
		switch {
		case err != nil:
			return module.Result{}, err
		case there:
			return u.skipped(), nil
		}
		drop, err := u.fetch(ctx)
		if err != nil {
			return module.Result{}, err
		}
		defer drop()
	}
	there, err := u.open(ctx)
	if err == nil && !there {
		err = u.look(ctx)
	}
	switch {
	case err != nil:
		return module.Result{}, err
	case there || u.dest == nil:
		return u.skipped(), nil
	}
	return u.finish(ctx)
}

// created checks whether the path of creates exists, before anything is downloaded.
func (u *unpacking) created(ctx context.Context) (bool, error) {
	if u.Creates == "" {
		return false, nil
	}
	s := script{probe: true}
	word, _ := hostWord(u.Creates)
	s.line("[ ! -e " + word + " ] || printf there")
	out, err := s.run(ctx, u.c)
	return len(out) > 0, err
}

func (u *unpacking) skipped() module.Result {
	return module.Result{Skipped: true, Msg: fmt.Sprintf("skipped, since %s exists", u.Creates)}
}

// tarOption is one of extra_opts: an argument for tar on the host, or the number of leading folders to strip from
// member names.
type tarOption struct {
	word  string
	strip int
}

func readTarOption(text string) (tarOption, error) {
	name, arg, _ := strings.Cut(text, "=")
	switch name {
	case "--strip-components", "--strip":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 0 {
			return tarOption{}, fmt.Errorf("extra_opts: %s needs a number, as in --strip-components=1", name)
		}
		return tarOption{strip: n}, nil
	case "--no-same-owner", "-o":
		return tarOption{word: "-o"}, nil
	case "--no-same-permissions":
		return tarOption{word: text}, nil
	}
	return tarOption{}, fmt.Errorf("extra_opts: %s is not supported: --strip-components=N, --no-same-owner and "+
		"--no-same-permissions are", text)
}

func isTarOption(text string) error {
	_, err := readTarOption(text)
	return err
}

func (u *unpacking) readOptions() error {
	for _, text := range u.ExtraOpts {
		opt, err := readTarOption(text)
		if err != nil {
			return err
		}
		if opt.word == "" {
			u.strip = opt.strip
			continue
		}
		u.options = append(u.options, opt.word)
	}
	return nil
}

// open lists the archive, unless the path of creates exists.
func (u *unpacking) open(ctx context.Context) (there bool, err error) {
	if u.RemoteSrc {
		return u.openRemote(ctx)
	}
	if u.src, err = u.c.Find("files", u.Src); err != nil {
		return false, err
	}
	if u.local, err = openArchive(files(u.c, u.Decrypt), u.src); err != nil {
		return false, err
	}
	u.packing = u.local.packing
	members, err := u.listing()
	for _, m := range members {
		if err := u.add(m); err != nil {
			return false, fmt.Errorf("read archive %s: %w", u.src, err)
		}
	}
	return false, err
}

// listing returns the members of an archive on the control node. They are read once, for the first host, because
// all of the archive must be decompressed.
func (u *unpacking) listing() ([]member, error) {
	stamp, err := u.stamp()
	if err != nil {
		return nil, err
	}
	v, err := u.c.Share.Do("members of "+stamp, func() (any, error) { return u.local.members() })
	members, _ := v.([]member)
	return members, err
}

// stamp identifies the archive on the control node and its version.
func (u *unpacking) stamp() (string, error) {
	info, err := u.c.Files.Stat(u.src)
	if err != nil {
		return "", unread(u.src, err)
	}
	return fmt.Sprintf("%s %d %d", u.src, info.Size(), info.ModTime().UnixNano()), nil
}

// add adds a member, unless it is filtered out.
func (u *unpacking) add(m member) (err error) {
	if m.name, err = memberName(m.from, u.strip); err != nil || m.name == "" {
		return err
	}
	whole := strings.Trim(strings.TrimPrefix(m.from, "./"), "/")
	if len(u.Include) > 0 && !selected(u.Include, whole) || selected(u.Exclude, whole) {
		return nil
	}
	u.members = append(u.members, m)
	return nil
}

// selected reports whether the list contains a member, or a folder that it is in.
func selected(list []string, name string) bool {
	for _, glob := range list {
		p, err := compilePattern(globPattern(strings.Trim(strings.TrimPrefix(glob, "./"), "/")), pyregex.DotAll)
		if err != nil {
			continue
		}
		for part := name; part != ""; part = part[:max(0, strings.LastIndexByte(part, '/'))] {
			for tail := part; ; {
				if hit, _ := p.Matches(tail); hit {
					return true
				}
				_, rest, more := strings.Cut(tail, "/")
				if !more {
					break
				}
				tail = rest
			}
		}
	}
	return false
}

// look queries the host for the state of the members.
func (u *unpacking) look(ctx context.Context) error {
	s := script{probe: true}
	word, _ := hostWord(u.Dest)
	if u.Creates != "" {
		creates, _ := hostWord(u.Creates)
		s.line("[ ! -e " + creates + " ] || exit 0")
	}
	s.line("kk_probe ni " + word)
	if u.Owner != "" {
		s.line("kk_account U passwd " + shell.Quote(u.Owner))
	}
	if u.Group != "" {
		s.line("kk_account G group " + shell.Quote(u.Group))
	}
	for list := u.members; len(list) > 0; {
		n := min(len(list), 100)
		var paths strings.Builder
		for _, m := range list[:n] {
			paths.WriteString(" " + word + "/" + shell.Quote(m.name))
		}
		s.line("kk_many" + paths.String())
		list = list[n:]
	}
	out, err := s.run(ctx, u.c)
	if err != nil || len(out) == 0 {
		return err
	}
	u.ans = &answer{umask: 0o022}
	if err := u.ans.parse(out, u.Owner, u.Group, 1); err != nil {
		return err
	}
	u.dest = u.ans.entries[0]
	u.have, u.links = map[string]*inode{}, map[string]string{}
	for _, e := range u.ans.entries[1:] {
		name := relative(e.path, u.dest.path)
		u.have[name], u.links[name] = e.self, e.link
	}
	return nil
}

// differs reports whether a member on the host differs from the archive.
func (u *unpacking) differs(m member) bool {
	n := u.have[m.name]
	switch {
	case n == nil:
		return true
	case m.hard:
		return !n.is(typeFile)
	case m.kind == typeDir:
		return !n.is(typeDir) && !n.is(typeLink)
	case !n.is(m.kind):
		return true
	case m.kind == typeLink:
		return u.links[m.name] != m.link
	case u.KeepNewer && int64(n.mtime) > m.mtime:
		return false
	}
	return n.size != m.size || !u.sameTime(int64(n.mtime), m.mtime)
}

// sameTime compares times. zip only stores even seconds; its listing on a host contains no time.
func (u *unpacking) sameTime(host, packed int64) bool {
	if u.packing.isZip() {
		return packed == 0 || host-packed <= 1 && packed-host <= 1
	}
	return host == packed
}

func (u *unpacking) finish(ctx context.Context) (module.Result, error) {
	data := value.NewDict("dest", u.dest.path, "src", u.src, "handler", u.packing.handler)
	var warnings []string
	switch n := u.dest.followed(); {
	case n == nil && u.c.Check:
		warnings = []string{fmt.Sprintf("dest '%s' does not exist; the prediction takes it that an earlier task creates "+
			"it", u.dest.path)}
	case !n.is(typeDir):
		return module.Result{}, fmt.Errorf("dest '%s' must be an existing dir", u.dest.path)
	default:
		n.describe(data)
	}
	for _, m := range u.members {
		if u.differs(m) {
			u.changed = append(u.changed, m)
		}
	}
	fix, err := u.attributes()
	if err != nil {
		return module.Result{}, err
	}
	changed := len(u.changed) > 0 || fix.body.Len() > 0
	if len(u.changed) > 0 && !u.c.Check {
		results := value.NewDict("cmd", []any{}, "out", "", "err", "", "rc", 0)
		if err := u.extract(ctx, results); err != nil {
			return module.Result{}, err
		}
		data.Set("extract_results", results)
	}
	if fix.body.Len() > 0 && !u.c.Check {
		if _, err := fix.run(ctx, u.c); err != nil {
			return module.Result{}, err
		}
	}
	marked := change{before: value.NewDict(), after: value.NewDict()}
	if err := u.setMarks(ctx, u.c, &marked, u.paths()...); err != nil {
		return module.Result{}, err
	}
	changed = changed || marked.changed()
	if u.ListFiles {
		data.Set("files", u.names())
	}
	data.Set("state", "directory")
	return module.Result{Changed: changed, Data: data, Warnings: warnings, Diff: u.diff()}, nil
}

// paths returns the paths of the members on the host, except for links.
func (u *unpacking) paths() []string {
	var paths []string
	for _, m := range u.members {
		if m.kind != typeLink {
			paths = append(paths, strings.TrimRight(u.dest.path, "/")+"/"+m.name)
		}
	}
	return paths
}

func (u *unpacking) names() []any {
	names := []any{}
	for _, m := range u.members {
		name := m.name
		if m.kind == typeDir {
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

func (u *unpacking) diff() []event.Diff {
	if !u.c.Diff || len(u.changed) == 0 {
		return nil
	}
	var b strings.Builder
	for _, m := range u.changed {
		sign := "+ "
		if u.have[m.name] != nil {
			sign = "~ "
		}
		b.WriteString(sign + m.name + "\n")
	}
	return []event.Diff{{Prepared: b.String()}}
}

// attributes plans owner, group and mode of the members: always for extracted ones, for the others only where they
// differ.
func (u *unpacking) attributes() (*script, error) {
	s := &script{}
	if u.Owner == "" && u.Group == "" && !u.Mode.IsSet() {
		return s, nil
	}
	fresh := map[string]bool{}
	for _, m := range u.changed {
		fresh[m.name] = true
	}
	for _, m := range u.members {
		n := inode{raw: m.kind | m.mode, uid: -1, gid: -1}
		if cur := u.have[m.name]; cur != nil && !fresh[m.name] {
			n = *cur
		}
		ch, err := u.Attributes.plan(u.c, u.ans, strings.TrimRight(u.dest.path, "/")+"/"+m.name, n)
		if err != nil {
			return nil, err
		}
		s.steps(ch.steps)
	}
	return s, nil
}
