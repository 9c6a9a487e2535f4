package pki

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed hostfile.sh
var hostFileScript string

// backend is the argument that names a library of Python.
type backend struct {
	Backend string `kk:"select_crypto_backend" default:"auto" choices:"auto,cryptography" doc:"without effect: kk needs no library for it"`
}

// placement are the arguments of the modules that keep one file on the host.
type placement struct {
	Path    string `kk:"path,required,path" doc:"file on the host"`
	State   string `kk:"state" default:"present" choices:"absent,present" doc:"whether the file must be there"`
	Force   bool   `kk:"force" default:"no" doc:"make it anew each time that the task runs"`
	Backup  bool   `kk:"backup" default:"no" doc:"keep the old file beside it"`
	Content bool   `kk:"return_content" default:"no" doc:"put what is in the file into the result"`
	access
}

// access are the arguments that say whose a file is.
type access struct {
	Mode   schema.FileMode `kk:"mode" doc:"permission bits. Default: 0600 for a new private key, 0400 for what openssl_pkcs12 writes, 0644 for others; those of a file that is there"`
	Owner  string          `kk:"owner" doc:"user who owns it, by name or number. Default: unchanged"`
	Group  string          `kk:"group" doc:"group that owns it, by name or number. Default: unchanged"`
	Unsafe bool            `kk:"unsafe_writes" default:"no" doc:"write in place when the folder does not allow an atomic rename"`
	module.Marks
}

// hostFile is a file of the host; text is nil when it is not there.
type hostFile struct {
	path                   string
	there                  bool
	mode                   fs.FileMode
	uid, gid, owner, group string
	text                   []byte
}

// source is PEM that a task gives as a path of the host or as a text.
type source struct{ path, text, name string }

// readHost reads files of the host, and takes texts as files that are there.
func readHost(ctx context.Context, c *module.Call, path string, more ...source) ([]hostFile, error) {
	s := hostscript.New(hostFileScript, `pki_look "$@"`)
	s.Probe = true
	s.Words = []string{path}
	for _, one := range more {
		if one.path != "" {
			s.Words = append(s.Words, one.path)
		}
	}
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return nil, err
	}
	if err := a.Together("path", "stat", "text"); err != nil {
		return nil, err
	}
	if len(a["text"]) != len(s.Words) {
		return nil, fmt.Errorf("the host answered about %d of %d files", len(a["text"]), len(s.Words))
	}
	read := 0
	next := func() (hostFile, error) {
		f := hostFile{path: a["path"][read]}
		err := f.parse(a["stat"][read], a["text"][read])
		read++
		return f, err
	}
	first, err := next()
	files := []hostFile{first}
	for _, one := range more {
		f := hostFile{path: one.name, there: one.text != "", text: []byte(one.text)}
		if one.path != "" && err == nil {
			f, err = next()
		}
		files = append(files, f)
	}
	return files, err
}

func (f *hostFile) parse(stat, text string) error {
	w := strings.Fields(stat)
	if len(w) != 5 {
		return nil
	}
	bits, err := strconv.ParseUint(w[0], 8, 32)
	if err != nil {
		return fmt.Errorf("the host's stat answered %q", stat)
	}
	f.there, f.mode = true, schema.ModeOfUnix(uint32(bits))
	f.uid, f.gid, f.owner, f.group = w[1], w[2], w[3], w[4]
	f.text, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "\n", ""))
	return err
}

// keep makes a file of the host hold text; nil leaves what it holds. Usual is
// the mode of a new one.
func (p *placement) keep(ctx context.Context, c *module.Call, have hostFile, text []byte, usual fs.FileMode) (module.Result, error) {
	return p.access.keep(ctx, c, have, text, usual, p.Backup)
}

func (p *access) keep(ctx context.Context, c *module.Call, have hostFile, text []byte, usual fs.FileMode, backup bool) (module.Result, error) {
	r, err := p.write(ctx, c, have, text, usual, backup)
	if err != nil {
		return r, err
	}
	marks, err := p.Apply(ctx, c, have.path)
	r.Changed = r.Changed || len(marks) > 0
	return r, err
}

func (p *access) write(ctx context.Context, c *module.Call, have hostFile, text []byte, usual fs.FileMode, backup bool) (module.Result, error) {
	r := module.Result{Data: value.NewDict("filename", have.path)}
	old := usual
	if have.there {
		old = have.mode
	}
	mode, err := p.Mode.Apply(old, false)
	if err != nil {
		return r, err
	}
	differs := func(want, name, number string) bool { return want != "" && want != name && want != number }
	dress := hostscript.New(hostFileScript, "pki_dress").Set("path", have.path)
	if differs(p.Owner, have.owner, have.uid) {
		dress.Set("owner", p.Owner)
	}
	if differs(p.Group, have.group, have.gid) {
		dress.Set("group", p.Group)
	}
	if mode != have.mode {
		dress.Set("mode", schema.FormatMode(mode))
	}
	switch {
	case text == nil || have.there && bytes.Equal(text, have.text):
		a, err := dress.Run(ctx, c.Conn, c.Check)
		r.Changed = a.Changed()
		return r, err
	case c.Check:
		r.Changed = true
		return r, nil
	}
	res, err := connector.Put(ctx, c.Conn, connector.File{
		Path: have.path, Mode: mode, ModeSet: true, Owner: p.Owner, Group: p.Group, Size: int64(len(text)), Backup: backup && have.there, Unsafe: p.Unsafe,
	}, bytes.NewReader(text))
	if err != nil {
		return module.Result{}, err
	}
	r.Changed = true
	if res.Backup != "" {
		r.Data.Set("backup_file", res.Backup)
	}
	return r, nil
}

// remove removes the file, and tells what is left: in check mode the file.
func (p *placement) remove(ctx context.Context, c *module.Call) (module.Result, hostFile, error) {
	files, err := readHost(ctx, c, p.Path)
	if err != nil {
		return module.Result{}, hostFile{}, err
	}
	r := module.Result{Data: value.NewDict("filename", files[0].path)}
	if !files[0].there {
		return r, files[0], nil
	}
	a, err := removeFile(ctx, c, files[0], p.Backup)
	r.Changed = a.Changed()
	if c.Check {
		return r, files[0], err
	}
	if a.Has("backup") {
		r.Data.Set("backup_file", a.Get("backup"))
	}
	return r, hostFile{path: files[0].path}, err
}

func removeFile(ctx context.Context, c *module.Call, f hostFile, backup bool) (hostscript.Answer, error) {
	return hostscript.New(hostFileScript, "pki_remove").Set("path", f.path).Flag("backup", backup).Run(ctx, c.Conn, c.Check)
}

// removeAll removes those of the files that are there, and reports whether there was any.
func removeAll(ctx context.Context, c *module.Call, files ...hostFile) (bool, error) {
	removed := false
	for _, f := range files {
		if !f.there {
			continue
		}
		if _, err := removeFile(ctx, c, f, false); err != nil {
			return removed, err
		}
		removed = true
	}
	return removed, nil
}

// told adds the difference of what a file is about.
func told(c *module.Call, r *module.Result, path string, before, after *value.Dict) {
	if c.Diff && r.Changed {
		r.Diff = []event.Diff{{BeforeHeader: path, AfterHeader: path, Before: before, After: after}}
	}
}

// content puts what is in the file, nil if there is none, into the result
// where that is asked for: text, or what it has without a new one.
func (p *placement) content(c *module.Call, r *module.Result, key string, have hostFile, text []byte) {
	switch {
	case !p.Content:
	case text != nil && !c.Check:
		r.Data.Set(key, string(text))
	case have.there:
		r.Data.Set(key, string(have.text))
	default:
		r.Data.Set(key, nil)
	}
}

// given is an argument as results tell it: nothing where it was not given.
func given(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// errAway is a file that a task needs and that is not there. In check mode a
// task before may be about to make it.
var errAway = errors.New("is not there")

func placementReturns(what string, more ...module.Return) []module.Return {
	return append(more,
		module.Return{Key: "filename", Type: "str", Doc: "the file"},
		module.Return{Key: "backup_file", Type: "str", Doc: "where the old file was kept"},
		module.Return{Key: what, Type: "str", Doc: "what is in the file, with return_content"},
	)
}
