package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// remote copies from one path on the host to another.
func (m *Copy) remote(ctx context.Context, c *module.Call) (module.Result, error) {
	flags := "phi1"
	if c.Diff {
		flags += "c"
	}
	name := path.Base(strings.TrimRight(m.Src, "/"))
	ans, err := probe(ctx, c, m.Owner, m.Group,
		asked{"h15" + keep(c.Diff, "c"), m.Src, maxDiff, ""},
		asked{flags, m.Dest, maxDiff, ""},
		asked{flags, m.Dest, maxDiff, name})
	if err != nil {
		return module.Result{}, err
	}
	src := ans.entries[0]
	switch {
	case src.followed() == nil:
		return module.Result{}, fmt.Errorf("Source %s not found", src.path) //nolint:staticcheck // the text users know
	case src.followed().is(typeDir):
		return m.remoteFolder(ctx, c, ans)
	case !src.followed().is(typeFile) || src.sha256 == "":
		return module.Result{}, fmt.Errorf("source %s is not a file that can be read", src.path)
	case m.expected(src.sha1) != nil:
		return module.Result{Data: value.NewDict("checksum", src.sha1, "expected_checksum", m.Checksum)}, m.expected(src.sha1)
	}
	return m.remoteFile(ctx, c, ans)
}

func keep(on bool, s string) string {
	if on {
		return s
	}
	return ""
}

func (m *Copy) remoteFile(ctx context.Context, c *module.Call, ans *answer) (module.Result, error) {
	src, at := ans.entries[0], ans.entries[1]
	folder := ""
	switch {
	case strings.HasSuffix(m.Dest, "/") && !at.exists():
		folder, at = strings.TrimRight(at.path, "/"), ans.entries[2]
	case strings.HasSuffix(m.Dest, "/") || at.followed().is(typeDir):
		at = ans.entries[2]
	}
	p := placing{body: hostContent(src), header: src.path, src: src.path, mode: src.followed().mode()}
	if at.exists() && !m.Force {
		return m.leave(at, p), nil
	}
	if err := m.replaceable(at); err != nil {
		return module.Result{}, err
	}
	var warnings []string
	if folder == "" {
		var err error
		if warnings, err = needFolder(c, at); err != nil {
			return module.Result{}, err
		}
	}
	w := &writing{
		ans: ans, at: at, follow: m.Follow, body: p.body, attrs: &m.Attributes, srcMode: p.mode,
		backup: m.Backup, validate: m.Validate,
	}
	out, err := w.plan(c)
	if err != nil {
		return module.Result{}, err
	}
	if out.changed() && !c.Check {
		if err := m.copyOnHost(ctx, c, w, out, src.path, folder); err != nil {
			return module.Result{}, err
		}
	}
	if err := m.setMarks(ctx, c, &out.attributes, out.path); err != nil {
		return module.Result{}, err
	}
	return w.result(c, out, p, warnings)
}

func (m *Copy) copyOnHost(ctx context.Context, c *module.Call, w *writing, out *written, src, folder string) error {
	var s script
	if folder != "" {
		s.do("create folder "+folder, "mkdir", "-p", folder)
		if m.DirectoryMode.IsSet() {
			mode, err := m.DirectoryMode.Apply(schema.ModeOfUnix(0o777&^w.ans.umask), true)
			if err != nil {
				return err
			}
			s.do("set the mode of "+folder, "chmod", schema.FormatMode(mode), folder)
		}
	}
	if out.content {
		s.line(w.placement(out, "cat", src))
	} else {
		s.steps(out.attributes.steps)
	}
	said, err := s.run(ctx, c)
	if err != nil {
		return err
	}
	if rest, ok := strings.CutPrefix(string(said), "B"); ok {
		out.backup = strings.TrimSuffix(rest, "\x00")
	}
	return nil
}

// hostContent returns a file on the host as content. Its text is only known up to the maximum size of a diff.
func hostContent(e *entry) *content {
	return &content{
		size: e.followed().size, sha256: e.sha256, sha1: e.sha1, md5: e.md5,
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(e.content)), nil },
	}
}

// remoteFolder copies a folder on the host.
func (m *Copy) remoteFolder(ctx context.Context, c *module.Call, ans *answer) (module.Result, error) {
	src := strings.TrimRight(ans.entries[0].resolved(), "/")
	dest := ans.entries[1]
	if !strings.HasSuffix(m.Src, "/") {
		dest = ans.entries[2]
	}
	if dest.path == src || strings.HasPrefix(dest.path+"/", src+"/") {
		return module.Result{}, errors.New("cannot copy a folder into itself")
	}
	flags := "h" + keep(c.Diff, "c")
	s := script{probe: true}
	s.line(listing{root: src + "/", follow: m.LocalFollow, flags: flags, limit: maxDiff}.code())
	s.line(`printf '.\0'`)
	if dest.exists() {
		s.line(listing{root: strings.TrimRight(dest.path, "/") + "/", flags: flags, limit: maxDiff}.code())
	}
	said, err := s.run(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	var all answer
	if err := all.parse(said, "", "", 0); err != nil {
		return module.Result{}, err
	}
	t := &treeCopy{m: m, c: c, src: src, ans: ans}
	t.match(all.entries, src, dest)
	return t.act(ctx)
}

// match converts the source's listing, which ends at the empty entry, to items. For each it finds the entry in the
// destination's listing.
func (t *treeCopy) match(entries []*entry, src string, dest *entry) {
	have := map[string]*entry{}
	var source []*entry
	ended := false
	for _, e := range entries {
		switch {
		case e.path == "":
			ended = true
		case ended:
			have[relative(e.path, dest.path)] = e
		default:
			source = append(source, e)
		}
	}
	for _, e := range source {
		it := &treeItem{rel: relative(e.path, src), src: e.path}
		it.at = have[it.rel]
		if it.at == nil {
			it.at = &entry{}
		}
		it.at.path = path.Join(dest.path, it.rel)
		switch {
		case e.self.is(typeDir) || t.m.LocalFollow && e.followed().is(typeDir):
			it.kind = fs.ModeDir
		case e.isLink() && !t.m.LocalFollow:
			it.kind, it.link = fs.ModeSymlink, e.link
		case e.followed() == nil:
			continue
		default:
			it.body, it.mode = hostContent(e), e.followed().mode()
		}
		t.items = append(t.items, it)
	}
}

// relative returns the path relative to root, or "" for root itself.
func relative(p, root string) string {
	return strings.Trim(strings.TrimPrefix(p, strings.TrimRight(root, "/")), "/")
}
