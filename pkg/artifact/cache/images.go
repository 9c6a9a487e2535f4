package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/artifact"
)

// maxDocument is the largest index or manifest that is read, in bytes.
const maxDocument = 64 << 20

const (
	indexName = imagesDir + "/index.json"
	blobsDir  = imagesDir + "/blobs/sha256"
	refName   = "org.opencontainers.image.ref.name"
)

func isLayout(root *os.Root) bool {
	info, err := root.Lstat(indexName)
	return err == nil && info.Mode().IsRegular()
}

// imagePlan is what would be removed from the layout.
type imagePlan struct {
	entries []Entry
	images  map[string]bool // by key
	blobs   map[string]bool // digests, as hexadecimal digits
}

// layout is the OCI layout of a cache, as its index was read.
type layout struct {
	root  *os.Root
	index *v1.IndexManifest
}

func openLayout(root *os.Root) (*layout, error) {
	l := &layout{root: root, index: &v1.IndexManifest{}}
	text, err := readDocument(root, indexName)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, l.index); err != nil {
		return nil, fmt.Errorf("%s: %w; remove the folder, images are fetched again", indexName, err)
	}
	return l, nil
}

func readDocument(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if len(text) > maxDocument {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxDocument)
	}
	return text, err
}

func blobPath(digest string) string { return path.Join(blobsDir, digest) }

// findImages finds the images that are not needed and were not used after a time, and blobs of no image.
func findImages(root *os.Root, need map[string]bool, before, now time.Time) (imagePlan, error) {
	plan := imagePlan{images: map[string]bool{}, blobs: map[string]bool{}}
	if !isLayout(root) {
		return plan, nil
	}
	l, err := openLayout(root)
	if err != nil {
		return plan, err
	}
	kept := l.kept(func(d v1.Descriptor) bool {
		name := d.Annotations[refName]
		return name == "" || need[name] || !l.used(d).Before(before)
	})
	all := l.reach(kept)
	for _, d := range l.index.Manifests {
		if slices.ContainsFunc(kept, func(k v1.Descriptor) bool { return key(k) == key(d) }) {
			continue
		}
		e := Entry{Name: d.Annotations[refName], Kind: KindImage}
		plan.images[key(d)] = true
		for digest := range l.reach([]v1.Descriptor{d}) {
			if !all[digest] {
				all[digest], plan.blobs[digest] = true, true
				e.Size += l.size(digest)
			}
		}
		plan.entries = append(plan.entries, e)
	}
	plan.entries = sorted(plan.entries)
	orphans, err := l.orphans(all, before, now)
	for _, e := range orphans {
		plan.blobs[e.Name] = true
	}
	plan.entries = append(plan.entries, orphans...)
	return plan, err
}

// key is an image under a name.
func key(d v1.Descriptor) string { return d.Annotations[refName] + "@" + d.Digest.String() }

// kept lists the images of the index for which keep is true, and what is attached to them: signatures, attestations.
func (l *layout) kept(keep func(v1.Descriptor) bool) []v1.Descriptor {
	var out, rest []v1.Descriptor
	for _, d := range l.index.Manifests {
		if keep(d) {
			out = append(out, d)
		} else {
			rest = append(rest, d)
		}
	}
	reached := l.reach(out)
	for _, d := range rest {
		to, _ := artifact.AttachedTo(d.Annotations[refName])
		if reached[strings.TrimPrefix(to, "sha256:")] || reached[l.subject(d)] {
			out = append(out, d)
		}
	}
	return out
}

// manifest is what a manifest or index names.
type manifest struct {
	Manifests []v1.Descriptor `json:"manifests"`
	Config    *v1.Descriptor  `json:"config"`
	Layers    []v1.Descriptor `json:"layers"`
	Subject   *v1.Descriptor  `json:"subject"`
}

// manifest reads a manifest or index; what cannot be read names nothing.
func (l *layout) manifest(d v1.Descriptor) (m manifest) {
	if !d.MediaType.IsImage() && !d.MediaType.IsIndex() || d.Digest.Algorithm != "sha256" {
		return m
	}
	if text, err := readDocument(l.root, blobPath(d.Digest.Hex)); err == nil {
		_ = json.Unmarshal(text, &m) // a blob that is damaged is fetched again
	}
	return m
}

func (l *layout) subject(d v1.Descriptor) string {
	if s := l.manifest(d).Subject; s != nil {
		return s.Digest.Hex
	}
	return ""
}

func (m manifest) children() []v1.Descriptor {
	all := slices.Concat(m.Manifests, m.Layers)
	if m.Config != nil {
		all = append(all, *m.Config)
	}
	return all
}

// reach returns the digests of all blobs that images consist of.
func (l *layout) reach(from []v1.Descriptor) map[string]bool {
	found := map[string]bool{}
	for todo := slices.Clone(from); len(todo) > 0; {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !found[d.Digest.Hex] {
			found[d.Digest.Hex] = true
			todo = append(todo, l.manifest(d).children()...)
		}
	}
	return found
}

// used is when an image was used last: its manifest written, or a config written or read. Reads of manifests do not
// count, since finding what is needed reads them as well, nor do layers, which images share.
func (l *layout) used(d v1.Descriptor) (last time.Time) {
	if info, err := l.root.Lstat(blobPath(d.Digest.Hex)); err == nil {
		last = info.ModTime()
	}
	m := l.manifest(d)
	if m.Config != nil {
		if info, err := l.root.Lstat(blobPath(m.Config.Digest.Hex)); err == nil {
			last = later(last, used(info))
		}
	}
	if d.MediaType.IsIndex() {
		for _, child := range m.Manifests {
			if child.MediaType.IsImage() {
				last = later(last, l.used(child))
			}
		}
	}
	return last
}

func (l *layout) size(digest string) int64 {
	info, err := l.root.Lstat(blobPath(digest))
	if err != nil {
		return 0
	}
	return info.Size()
}

// orphans finds blobs of no image. Another run may just be writing young ones.
func (l *layout) orphans(of map[string]bool, before, now time.Time) ([]Entry, error) {
	list, err := fs.ReadDir(l.root.FS(), blobsDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []Entry
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || of[d.Name()] || now.Sub(info.ModTime()) < grace ||
			!used(info).Before(before) {
			continue
		}
		out = append(out, Entry{d.Name(), KindBlob, info.Size()})
	}
	return out, nil
}

// remove rewrites the index, and then removes blobs that no image of it needs.
func (p imagePlan) remove(ctx context.Context, root *os.Root) error {
	if len(p.images)+len(p.blobs) == 0 {
		return nil
	}
	l, err := openLayout(root) // again: another run may have added images
	if err != nil {
		return err
	}
	left := l.kept(func(d v1.Descriptor) bool { return !p.images[key(d)] })
	if len(left) < len(l.index.Manifests) {
		l.index.Manifests = left
		if err := l.write(); err != nil {
			return err
		}
	}
	reached := l.reach(left)
	var problems []error
	for _, digest := range slices.Sorted(maps.Keys(p.blobs)) {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(problems, err)...)
		}
		if reached[digest] {
			continue
		}
		if err := root.Remove(blobPath(digest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, err)
		}
	}
	return errors.Join(problems...)
}

// write replaces the index of the layout.
func (l *layout) write() error {
	text, err := json.MarshalIndent(l.index, "", "   ")
	if err != nil {
		return err
	}
	part := path.Join(imagesDir, ".index.json.part")
	f, err := l.root.OpenFile(part, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, strings.NewReader(string(text)))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return l.root.Rename(part, indexName)
}
