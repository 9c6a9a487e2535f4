package crypto

import (
	"bytes"
	"context"
	_ "embed"
	"io/fs"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed placement.sh
var placementScript string

// backend is the argument that selects a Python library.
type backend struct {
	Backend string `kk:"select_crypto_backend" default:"auto" choices:"auto,cryptography" doc:"without effect: kk needs no library for it"`
}

// placement contains the arguments of modules that manage one file on the host.
type placement struct {
	Path    string `kk:"path,required,path" doc:"file on the host"`
	State   string `kk:"state" default:"present" choices:"absent,present" doc:"whether the file should exist"`
	Force   bool   `kk:"force" default:"no" doc:"regenerate it in each run"`
	Backup  bool   `kk:"backup" default:"no" doc:"keep a backup of the previous file next to it"`
	Content bool   `kk:"return_content" default:"no" doc:"return the content of the file"`
	access
}

// access contains the arguments for the owner and the mode of a file.
type access struct {
	Mode   schema.FileMode `kk:"mode" doc:"permission bits. Default: 0600 for a new private key, 0400 for what openssl_pkcs12 writes, 0644 for others; those of an existing file"`
	Owner  string          `kk:"owner" doc:"user who owns it, by name or number. Default: unchanged"`
	Group  string          `kk:"group" doc:"group that owns it, by name or number. Default: unchanged"`
	Unsafe bool            `kk:"unsafe_writes" default:"no" doc:"write in place when the folder does not allow an atomic rename"`
	module.Marks
}

// keep writes text to a file on the host. nil keeps the content. usual is the mode of a new file.
func (p *placement) keep(ctx context.Context, c *module.Call, have pki.HostFile, text []byte,
	usual fs.FileMode) (module.Result, error) {
	return p.access.keep(ctx, c, have, text, usual, p.Backup)
}

func (p *access) keep(ctx context.Context, c *module.Call, have pki.HostFile, text []byte, usual fs.FileMode,
	backup bool) (module.Result, error) {
	r, err := p.write(ctx, c, have, text, usual, backup)
	if err != nil {
		return r, err
	}
	marks, err := p.Apply(ctx, c, have.Path)
	r.Changed = r.Changed || len(marks) > 0
	return r, err
}

func (p *access) write(ctx context.Context, c *module.Call, have pki.HostFile, text []byte, usual fs.FileMode,
	backup bool) (module.Result, error) {
	r := module.Result{Data: value.NewDict("filename", have.Path)}
	old := usual
	if have.There {
		old = have.Mode
	}
	mode, err := p.Mode.Apply(old, false)
	if err != nil {
		return r, err
	}
	differs := func(want, name, number string) bool { return want != "" && want != name && want != number }
	dress := hostscript.New(placementScript, "pki_dress").Set("path", have.Path)
	if differs(p.Owner, have.Owner, have.UID) {
		dress.Set("owner", p.Owner)
	}
	if differs(p.Group, have.Group, have.GID) {
		dress.Set("group", p.Group)
	}
	if mode != have.Mode {
		dress.Set("mode", schema.FormatMode(mode))
	}
	switch {
	case text == nil || have.There && bytes.Equal(text, have.Text):
		a, err := dress.Run(ctx, c.Conn, c.Check)
		r.Changed = a.Changed()
		return r, err
	case c.Check:
		r.Changed = true
		return r, nil
	}
	res, err := connector.Put(ctx, c.Conn, connector.File{
		Path: have.Path, Mode: mode, ModeSet: true, Owner: p.Owner, Group: p.Group, Size: int64(len(text)),
		Backup: backup && have.There, Unsafe: p.Unsafe,
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

// remove removes the file and returns the result. In check mode the file still exists.
func (p *placement) remove(ctx context.Context, c *module.Call) (module.Result, pki.HostFile, error) {
	files, err := pki.ReadHost(ctx, c, p.Path)
	if err != nil {
		return module.Result{}, pki.HostFile{}, err
	}
	r := module.Result{Data: value.NewDict("filename", files[0].Path)}
	if !files[0].There {
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
	return r, pki.HostFile{Path: files[0].Path}, err
}

func removeFile(ctx context.Context, c *module.Call, f pki.HostFile, backup bool) (hostscript.Answer, error) {
	return hostscript.New(placementScript, "pki_remove").Set("path", f.Path).Flag("backup", backup).Run(ctx, c.Conn,
		c.Check)
}

// removeAll removes the existing ones of the files, and reports whether there were any.
func removeAll(ctx context.Context, c *module.Call, files ...pki.HostFile) (bool, error) {
	removed := false
	for _, f := range files {
		if !f.There {
			continue
		}
		if _, err := removeFile(ctx, c, f, false); err != nil {
			return removed, err
		}
		removed = true
	}
	return removed, nil
}

// noteDiff adds the diff of two states of a file.
func noteDiff(c *module.Call, r *module.Result, path string, before, after *value.Dict) {
	if c.Diff && r.Changed {
		r.Diff = []event.Diff{{BeforeHeader: path, AfterHeader: path, Before: before, After: after}}
	}
}

// content adds the content of the file (null if there is none) to the result, if requested: text, or the existing
// content if there is no new text.
func (p *placement) content(c *module.Call, r *module.Result, key string, have pki.HostFile, text []byte) {
	switch {
	case !p.Content:
	case text != nil && !c.Check:
		r.Data.Set(key, string(text))
	case have.There:
		r.Data.Set(key, string(have.Text))
	default:
		r.Data.Set(key, nil)
	}
}

// given returns an argument for the result: null if it was not set.
func given(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func placementReturns(what string, more ...module.Return) []module.Return {
	return append(more,
		module.Return{Key: "filename", Type: "str", Doc: "the file"},
		module.Return{Key: "backup_file", Type: "str", Doc: "path of the backup"},
		module.Return{Key: what, Type: "str", Doc: "content of the file, with return_content"},
	)
}
