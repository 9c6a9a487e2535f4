package file

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// Stat is the module stat.
type Stat struct {
	Path          string `kk:"path,required,path,alias=dest|name" doc:"path on the host"`
	Follow        bool   `kk:"follow" default:"no" doc:"describe the target of a link"`
	GetChecksum   bool   `kk:"get_checksum" default:"yes" doc:"compute the checksum of a regular file"`
	Algorithm     string `kk:"checksum_algorithm,alias=checksum|checksum_algo" default:"sha1" choices:"md5,sha1,sha224,sha256,sha384,sha512" doc:"checksum algorithm"`
	GetMime       bool   `kk:"get_mime,alias=mime|mime_type" default:"yes" doc:"detect the MIME type, if the host has the command file"`
	GetAttributes bool   `kk:"get_attributes,alias=attr|attributes" default:"yes" doc:"read file attributes, if the host has lsattr"`
}

func statSpec() module.Spec {
	return module.Spec{
		Name:    "stat",
		Summary: "Returns the status of a path on the host.",
		Notes:   []string{"Times have a fraction if stat on the host supports it, as GNU stat does."},
		Examples: []string{
			"- name: Check for a config\n  stat:\n    path: /etc/app.conf\n    get_checksum: no\n  register: conf\n" +
				"- name: Start the app if it exists\n  command: app start\n  when: conf.stat.exists",
		},
		Returns: []module.Return{
			{Key: "stat", Type: "dict", Doc: "exists, and if so: path, mode, isdir, isreg, islnk, isblk, ischr, isfifo, " +
				"issock, isuid, isgid, size, uid, gid, pw_name, gr_name, inode, dev, nlink, atime, mtime, ctime, checksum, " +
				"mimetype, charset, attributes, attr_flags, version, readable, writeable, executable, rusr to xoth, and " +
				"lnk_source and lnk_target of a link"},
		},
		New:   func() module.Runner { return new(Stat) },
		Check: module.Harmless,
	}
}

// Run implements module.Runner.
func (m *Stat) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	word, _ := hostWord(m.Path)
	s := script{probe: true}
	s.line(asked{flags: "mn", path: m.Path}.code())
	if m.GetChecksum {
		link := keep(!m.Follow, "[ -h "+word+" ] || ")
		s.line(fmt.Sprintf("[ ! -f %s ] || %s%s", word, link, m.sum(word)))
	}
	if m.GetMime || m.GetAttributes {
		s.line(fmt.Sprintf("[ ! -e %s ] || kk_details %s", word, word))
	}
	s.line(`printf '.\0'`)
	out, err := s.run(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	var ans answer
	if err := ans.parse(out, "", "", 2); err != nil {
		return module.Result{}, err
	}
	e := ans.entries[0]
	more := ans.entries[1]
	e.digest, e.mime, e.lsattr = more.digest+more.md5, more.mime, more.lsattr
	return module.Result{Data: value.NewDict("stat", m.describe(e))}, nil
}

// sum returns the shell call that prints the checksum.
func (m *Stat) sum(word string) string { return sumCall(m.Algorithm, word) }

func sumCall(algorithm, word string) string {
	if algorithm == "md5" {
		return "kk_md5 " + word
	}
	return "kk_sum D " + shell.Quote(strings.TrimPrefix(algorithm, "sha")) + " " + word
}

func (m *Stat) describe(e *entry) *value.Dict {
	n := e.at(m.Follow)
	if n == nil {
		return value.NewDict("exists", false)
	}
	d := value.NewDict("exists", true, "path", e.path)
	n.details(d)
	d.Set("readable", strings.Contains(e.access, "r"))
	d.Set("writeable", strings.Contains(e.access, "w"))
	d.Set("executable", strings.Contains(e.access, "x"))
	if n.is(typeLink) {
		d.Set("lnk_source", e.real)
		d.Set("lnk_target", e.link)
	}
	if m.GetChecksum && n.is(typeFile) && e.digest != "" {
		d.Set("checksum", e.digest)
	}
	if m.GetMime {
		kind, charset, _ := strings.Cut(e.mime, "; charset=")
		d.Set("mimetype", or(kind, "unknown"))
		d.Set("charset", or(charset, "unknown"))
	}
	if m.GetAttributes {
		describeAttributes(d, e.lsattr)
	}
	return d
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

// details sets the keys that the results of stat and find have in common.
func (n *inode) details(d *value.Dict) {
	d.Set("mode", octal(n.perm()))
	for _, kind := range []struct {
		key string
		raw uint32
	}{
		{"isdir", typeDir}, {"ischr", typeChar}, {"isblk", typeBlock}, {"isreg", typeFile}, {"isfifo", typeFifo},
		{"islnk", typeLink}, {"issock", typeSocket},
	} {
		d.Set(kind.key, n.is(kind.raw))
	}
	d.Set("uid", n.uid)
	d.Set("gid", n.gid)
	d.Set("pw_name", n.owner)
	d.Set("gr_name", n.group)
	d.Set("size", int(n.size))
	d.Set("inode", n.ino)
	d.Set("dev", n.dev)
	d.Set("nlink", n.links)
	d.Set("atime", n.atime)
	d.Set("mtime", n.mtime)
	d.Set("ctime", n.ctime)
	for i, key := range []string{"rusr", "wusr", "xusr", "rgrp", "wgrp", "xgrp", "roth", "woth", "xoth"} {
		d.Set(key, n.raw&(0o400>>i) != 0)
	}
	d.Set("isuid", n.raw&0o4000 != 0)
	d.Set("isgid", n.raw&0o2000 != 0)
}

// describeAttributes reads the output of lsattr -vd: version, flags, path.
func describeAttributes(d *value.Dict, said string) {
	names := map[rune]string{
		'A': "noatime", 'a': "append", 'c': "compressed", 'C': "nocow", 'd': "nodump", 'D': "dirsync", 'e': "extents",
		'E': "encrypted", 'h': "blocksize", 'i': "immutable", 'I': "indexed", 'j': "journalled", 'N': "inline",
		's': "zero", 'S': "synchronous", 't': "notail", 'T': "blockroot", 'u': "undelete", 'X': "compressedraw",
		'Z': "compresseddirty",
	}
	attributes := []any{}
	f := strings.Fields(said)
	if len(f) < 2 {
		d.Set("attributes", attributes)
		d.Set("attr_flags", "")
		d.Set("version", nil)
		return
	}
	flags := strings.ReplaceAll(f[1], "-", "")
	for _, r := range flags {
		if name := names[r]; name != "" {
			attributes = append(attributes, name)
		}
	}
	d.Set("attributes", attributes)
	d.Set("attr_flags", flags)
	d.Set("version", f[0])
}

// Slurp is the module slurp.
type Slurp struct {
	Src string `kk:"src,required,path,alias=path" doc:"file on the host, at most 64 MiB"`
}

func slurpSpec() module.Spec {
	return module.Spec{
		Name:    "slurp",
		Summary: "Reads a file on the host into a variable, base64-encoded.",
		Examples: []string{
			"- name: Read the key\n  slurp:\n    src: /etc/app/key.pub\n  register: key\n- debug:\n" +
				"    msg: \"{{ key.content | b64decode }}\"",
		},
		Returns: []module.Return{
			{Key: "content", Type: "str", Doc: "content of the file, in base64"},
			{Key: "encoding", Type: "str", Doc: "base64"},
			{Key: "source", Type: "str", Doc: "path of the file"},
		},
		New:   func() module.Runner { return new(Slurp) },
		Check: module.Harmless,
	}
}

// Run implements module.Runner.
func (m *Slurp) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	e, err := probeOne(ctx, c, "cm", m.Src)
	if err != nil {
		return module.Result{}, err
	}
	n := e.followed()
	switch {
	case n == nil:
		return module.Result{}, fmt.Errorf("file not found: %s", e.path)
	case n.is(typeDir):
		return module.Result{}, fmt.Errorf("source is a directory and must be a file: %s", e.path)
	case !strings.Contains(e.access, "r"):
		return module.Result{}, fmt.Errorf("file is not readable: %s", e.path)
	case n.size > maxEdit:
		return module.Result{}, fmt.Errorf("%s has %d bytes: the limit is %d; use fetch", e.path, n.size, maxEdit)
	case !e.hasText || len(e.content) == 0 && n.size > 0:
		return module.Result{}, errors.New("the host has neither base64 nor openssl to read the file with")
	}
	return module.Result{Data: value.NewDict(
		"content", base64.StdEncoding.EncodeToString(e.content), "encoding", "base64", "source", e.path,
	)}, nil
}
