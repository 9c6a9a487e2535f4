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

// placement are the arguments of the modules that keep one PEM file on the host.
type placement struct {
	Path    string          `kk:"path,required,path" doc:"file on the host"`
	State   string          `kk:"state" default:"present" choices:"absent,present" doc:"whether the file must be there"`
	Force   bool            `kk:"force" default:"no" doc:"make it anew each time that the task runs"`
	Backup  bool            `kk:"backup" default:"no" doc:"keep the old file beside it"`
	Content bool            `kk:"return_content" default:"no" doc:"put what is in the file into the result"`
	Mode    schema.FileMode `kk:"mode" doc:"permission bits. Default: 0600 for a new key, 0644 for others; those of a file that is there"`
	Owner   string          `kk:"owner" doc:"user who owns it, by name or number. Default: unchanged"`
	Group   string          `kk:"group" doc:"group that owns it, by name or number. Default: unchanged"`
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
	if len(a["path"]) != len(s.Words) || len(a["stat"]) != len(s.Words) || len(a["text"]) != len(s.Words) {
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
	r.Changed = true
	res, err := connector.Put(ctx, c.Conn, connector.File{
		Path: have.path, Mode: mode, ModeSet: true, Owner: p.Owner, Group: p.Group, Size: int64(len(text)), Backup: p.Backup && have.there,
	}, bytes.NewReader(text))
	if res.Backup != "" {
		r.Data.Set("backup_file", res.Backup)
	}
	return r, err
}

// remove removes the file.
func (p *placement) remove(ctx context.Context, c *module.Call) (module.Result, error) {
	files, err := readHost(ctx, c, p.Path)
	if err != nil {
		return module.Result{}, err
	}
	r := module.Result{Data: value.NewDict("filename", files[0].path)}
	if !files[0].there {
		return r, nil
	}
	a, err := hostscript.New(hostFileScript, "pki_remove").Set("path", files[0].path).Flag("backup", p.Backup).Run(ctx, c.Conn, c.Check)
	r.Changed = a.Changed()
	if a.Has("backup") && !c.Check {
		r.Data.Set("backup_file", a.Get("backup"))
	}
	return r, err
}

// told adds what a file is about to a result, and the difference of that.
func told(c *module.Call, r *module.Result, path string, before, after *value.Dict) {
	r.Data.Merge(after)
	if c.Diff && r.Changed {
		r.Diff = []event.Diff{{BeforeHeader: path, AfterHeader: path, Before: before, After: after}}
	}
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
