package file

import (
	"context"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

const (
	// bundleFile is the maximum size of a file in a bundle. Larger files are streamed individually.
	bundleFile = 64 << 10
	// bundleSize is the maximum size of the contents in one bundle, because a host's shell keeps it in memory.
	bundleSize = 1 << 20
	// maxTreeDepth limits the depth of folders, so that a cycle of links ends.
	maxTreeDepth = 64
)

// treeItem is one folder, file or link of a source folder.
type treeItem struct {
	rel  string // relative to the source folder
	src  string
	kind fs.FileMode // ModeDir, ModeSymlink or 0
	link string
	body *content
	mode fs.FileMode

	at *entry // state on the host
}

// folder copies a folder from the control node.
func (m *Copy) folder(ctx context.Context, c *module.Call, src string) (module.Result, error) {
	if m.Checksum != "" {
		return module.Result{}, fmt.Errorf("checksum is not supported for a folder: %s is one", m.Src)
	}
	items, err := m.walk(c, strings.TrimRight(src, "/"), "", 0)
	if err != nil {
		return module.Result{}, err
	}
	base := ""
	if !strings.HasSuffix(m.Src, "/") {
		base = path.Base(src)
	}
	t := &treeCopy{m: m, c: c, src: src, items: append([]*treeItem{{kind: fs.ModeDir, src: src}}, items...)}
	r, err := t.run(ctx, base)
	if err != nil {
		return r, err
	}
	// As in Ansible this is the folder of the destination as the task specifies it, not what exists there afterwards.
	into := strings.TrimSuffix(t.items[0].at.path, "/"+base)
	r.Data = value.NewDict("src", strings.TrimRight(src, "/"), "dest", strings.TrimRight(into, "/")+"/")
	return r, nil
}

// walk lists the content of a source folder, parents first.
func (m *Copy) walk(c *module.Call, dir, rel string, depth int) ([]*treeItem, error) {
	if depth > maxTreeDepth {
		return nil, fmt.Errorf("%s nests more than %d folders: is there a loop of links?", dir, maxTreeDepth)
	}
	list, err := c.Files.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, pathCause(err))
	}
	var items []*treeItem
	for _, d := range list {
		item, err := m.item(c, dir+"/"+d.Name(), path.Join(rel, d.Name()))
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		if item.kind != fs.ModeDir {
			continue
		}
		below, err := m.walk(c, item.src, item.rel, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, below...)
	}
	return items, nil
}

func (m *Copy) item(c *module.Call, src, rel string) (*treeItem, error) {
	item := &treeItem{rel: rel, src: src}
	if !m.LocalFollow && c.Files.IsLink(src) {
		link, err := os.Readlink(src)
		item.kind, item.link = fs.ModeSymlink, link
		return item, err
	}
	info, err := c.Files.Stat(src)
	if err != nil {
		return nil, fmt.Errorf("copy %s: %w", src, pathCause(err))
	}
	switch {
	case info.IsDir():
		item.kind = fs.ModeDir
		return item, nil
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("copy %s: it is neither a file nor a folder", src)
	}
	item.mode = c.Files.CopyMode(src)
	item.body, err = contentAt(c, src, m.Decrypt)
	return item, err
}

// treeCopy is one recursive copy.
type treeCopy struct {
	m     *Copy
	c     *module.Call
	src   string
	items []*treeItem
	ans   *answer

	changed bool
	diff    []event.Diff
	bundle  *script
	bundled int64 // size of the contents in the bundle, in bytes
	large   []*writing
}

func (t *treeCopy) run(ctx context.Context, base string) (module.Result, error) {
	if err := t.probe(ctx, base); err != nil {
		return module.Result{}, err
	}
	return t.act(ctx)
}

// act makes the host match the items, after the probe of its state.
func (t *treeCopy) act(ctx context.Context) (module.Result, error) {
	t.bundle = &script{secret: true}
	for _, it := range t.items {
		if err := t.plan(ctx, it); err != nil {
			return module.Result{}, err
		}
	}
	if err := t.flush(ctx); err != nil {
		return module.Result{}, err
	}
	for _, w := range t.large {
		if _, err := w.run(ctx, t.c); err != nil {
			return module.Result{}, err
		}
	}
	if err := t.mark(ctx); err != nil {
		return module.Result{}, err
	}
	root := t.items[0].at
	d := value.NewDict("src", t.m.Src, "dest", root.path)
	if root.exists() {
		root.followed().describe(d)
	}
	d.Set("state", "directory")
	return module.Result{Changed: t.changed, Data: d, Diff: t.diff}, nil
}

// mark sets the flags and contexts of the files and folders.
func (t *treeCopy) mark(ctx context.Context) error {
	paths := make([]string, len(t.items))
	for i, it := range t.items {
		paths[i] = it.at.resolved()
	}
	ch := change{before: value.NewDict(), after: value.NewDict()}
	err := t.m.setMarks(ctx, t.c, &ch, paths...)
	t.changed = t.changed || ch.changed()
	return err
}

// probe probes all paths of the copy at once.
func (t *treeCopy) probe(ctx context.Context, base string) error {
	flags := "h"
	if t.c.Diff {
		flags = "hc"
	}
	var ask []asked
	for i, it := range t.items {
		f := flags
		if i == 0 {
			f += "i"
		}
		ask = append(ask, asked{f, t.m.Dest, maxDiff, path.Join(base, it.rel)})
	}
	var err error
	if t.ans, err = probe(ctx, t.c, t.m.Owner, t.m.Group, ask...); err != nil {
		return err
	}
	for i, it := range t.items {
		it.at = t.ans.entries[i]
	}
	return nil
}

func (t *treeCopy) plan(ctx context.Context, it *treeItem) error {
	switch it.kind {
	case fs.ModeDir:
		return t.planFolder(it)
	case fs.ModeSymlink:
		return t.planLink(it)
	}
	return t.planFile(ctx, it)
}

func (t *treeCopy) planFolder(it *treeItem) error {
	if it.at.followed().is(typeDir) {
		return nil
	}
	if it.at.exists() {
		return fmt.Errorf("%s is in the way of a folder: it is a %s", it.at.path, it.at.self.state())
	}
	t.changed = true
	attrs := Attributes{Mode: t.m.DirectoryMode, Owner: t.m.Owner, Group: t.m.Group}
	ch, err := attrs.plan(t.c, t.ans, it.at.path, t.ans.fresh(it.at, typeDir))
	if err != nil {
		return err
	}
	t.bundle.folders(it.at.path, &ch)
	return nil
}

func (t *treeCopy) planLink(it *treeItem) error {
	if it.at.isLink() && it.at.link == it.link {
		return nil
	}
	if it.at.self.is(typeDir) {
		return fmt.Errorf("%s is in the way of a link: it is a folder", it.at.path)
	}
	if it.at.exists() && !t.m.Force {
		return nil
	}
	t.changed = true
	t.bundle.do("create the link "+it.at.path, "rm", "-f", it.at.path)
	t.bundle.do("create the link "+it.at.path, "ln", "-s", NormalPath(it.link), it.at.path)
	return nil
}

func (t *treeCopy) planFile(ctx context.Context, it *treeItem) error {
	if it.at.followed().is(typeDir) {
		return fmt.Errorf("%s is in the way of a file: it is a folder", it.at.path)
	}
	if err := t.m.replaceable(it.at); err != nil {
		return err
	}
	if it.at.exists() && !t.m.Force {
		return nil
	}
	w := &writing{
		ans: t.ans, at: it.at, follow: t.m.Follow, body: it.body, attrs: &t.m.Attributes, srcMode: it.mode,
		backup: t.m.Backup, validate: t.m.Validate,
	}
	out, err := w.plan(t.c)
	if err != nil || !out.changed() {
		return err
	}
	t.changed = true
	if t.c.Diff {
		diff, err := w.diff(out, it.src)
		if err != nil {
			return err
		}
		t.diff = append(t.diff, diff...)
	}
	switch {
	case !out.content:
		t.bundle.steps(out.attributes.steps)
		return nil
	case t.m.RemoteSrc:
		return t.pack(ctx, w, out, it.src)
	case it.body.size > bundleFile || t.m.Validate != "" || t.m.Unsafe:
		t.large = append(t.large, w)
		return nil
	}
	return t.pack(ctx, w, out, "")
}

// pack adds a file to the bundle: its content in base64 as a here-document, or the path of an identical file on the
// host.
func (t *treeCopy) pack(ctx context.Context, w *writing, out *written, from string) error {
	if t.c.Check {
		return nil
	}
	if from != "" {
		t.bundle.line(w.placement(out, "cat", from))
		return nil
	}
	if t.bundled+w.body.size > bundleSize {
		if err := t.flush(ctx); err != nil {
			return err
		}
	}
	text, err := w.body.bytes()
	if err != nil {
		return err
	}
	t.bundled += w.body.size
	t.bundle.line(w.placement(out, "kk_decode") + " <<'KK_END'")
	t.bundle.line(wrapped(base64.StdEncoding.EncodeToString(text)) + "KK_END")
	return nil
}

// wrapped splits base64 into lines, which some decoders require.
func wrapped(s string) string {
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76] + "\n")
		s = s[76:]
	}
	if s != "" {
		b.WriteString(s + "\n")
	}
	return b.String()
}

// flush sends the bundle.
func (t *treeCopy) flush(ctx context.Context) error {
	if t.c.Check || t.bundle.body.Len() == 0 {
		return nil
	}
	s := t.bundle
	t.bundle, t.bundled = &script{secret: true}, 0
	_, err := s.run(ctx, t.c)
	return err
}
