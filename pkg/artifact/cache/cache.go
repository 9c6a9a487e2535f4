// Package cache removes from the cache of the work folder what nothing needs.
//
// The cache has the files of the catalog by their names, an OCI layout in images, compressed copies of programs in
// zstd-VERSION/SHA256-SIZE-BLOB.zst, packages in packages/sha256/SHA256, and in between what is being written:
// FILE.part, and temporary folders. Everything in it can be fetched again.
//
// Nothing outside the cache is read or removed, and symbolic links are neither followed nor removed.
package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// Needed is what must remain.
type Needed struct {
	Files         map[string]bool // slash-separated paths below the cache
	Digests       map[string]bool // sha256 of programs and packages, as hexadecimal digits
	Images        map[string]bool // by full name
	Distributions map[string]bool // those whose packages remain, such as debian-12
}

// grace is the age below which what seems unfinished may still be written by another run.
const grace = 24 * time.Hour

// Entry is something that nothing needs.
type Entry struct {
	Name string `json:"name"` // path of a file below the cache, reference of an image, or digest of a blob
	Kind Kind   `json:"kind"`
	Size int64  `json:"size"` // bytes that are freed; of an image, without blobs that others need or free as well
}

// Kind is what an entry is.
type Kind string

// The kinds of entries.
const (
	KindFile  Kind = "file"
	KindImage Kind = "image"
	KindBlob  Kind = "blob" // of no image
)

// Plan is what would be removed.
type Plan struct {
	Entries []Entry
	dir     string
	files   []unneeded
	folders []string // temporary
	images  imagePlan
}

// unneeded is a file to remove, as it was when it was found.
type unneeded struct {
	name string
	size int64
	time time.Time
}

// Bytes is the number of bytes that are freed.
func (p *Plan) Bytes() (sum int64) {
	for _, e := range p.Entries {
		sum += e.Size
	}
	return sum
}

// Find finds what is in a cache and not needed, and was not used after a time: neither written, nor read as far as
// the file system records it. A cache that does not exist has nothing.
func Find(ctx context.Context, dir string, need Needed, before time.Time) (*Plan, error) {
	p := &Plan{dir: dir}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	f := &finder{root: root, need: need, before: before, now: time.Now(), plan: p, packages: map[int64][]fs.FileInfo{}}
	for name := range need.Distributions {
		if err := f.keep(packagesDir + name); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	if err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		return f.visit(name, d, cmp.Or(err, ctx.Err()))
	}); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	p.images, err = findImages(root, need.Images, before, f.now)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path.Join(dir, imagesDir), err)
	}
	for _, u := range p.files {
		p.Entries = append(p.Entries, Entry{u.name, KindFile, u.size})
	}
	p.Entries = append(p.Entries, p.images.entries...)
	return p, nil
}

// finder looks at the files of a cache.
type finder struct {
	root   *os.Root
	need   Needed
	before time.Time
	now    time.Time
	plan   *Plan
	// packages are the files of distributions that remain, by size.
	packages map[int64][]fs.FileInfo
}

const (
	imagesDir   = "images"                // the OCI layout
	packagesDir = "packages/"             // repositories: DISTRIBUTION/ARCH
	digestsDir  = packagesDir + "sha256/" // what repositories link to, by digest
)

// keep finds the files of a distribution that remains.
func (f *finder) keep(dir string) error {
	if !fs.ValidPath(dir) {
		return nil // no repository has such a name
	}
	return fs.WalkDir(f.root.FS(), dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			f.packages[info.Size()] = append(f.packages[info.Size()], info)
		}
		return nil // else it has just been renamed
	})
}

// isPackage reports whether a file belongs to a distribution that remains: to its repository, or that links to it.
func (f *finder) isPackage(name string, info fs.FileInfo) bool {
	below, ok := strings.CutPrefix(name, packagesDir)
	distribution, _, _ := strings.Cut(below, "/")
	return ok && f.need.Distributions[distribution] || path.Dir(name)+"/" == digestsDir &&
		slices.ContainsFunc(f.packages[info.Size()], func(i fs.FileInfo) bool { return os.SameFile(i, info) })
}

func (f *finder) visit(name string, d fs.DirEntry, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it has just been renamed
	}
	if err != nil {
		return err
	}
	if d.IsDir() && name == imagesDir && isLayout(f.root) {
		return fs.SkipDir
	}
	if d.IsDir() && strings.HasPrefix(name, ".") && name != "." {
		return f.temporary(name)
	}
	if !d.Type().IsRegular() {
		return nil
	}
	info, err := d.Info()
	if err != nil {
		return nil // it has just been renamed
	}
	u := unneeded{name, info.Size(), info.ModTime()}
	switch {
	case strings.HasSuffix(name, ".part"):
		if f.now.Sub(info.ModTime()) >= grace {
			f.plan.files = append(f.plan.files, u)
		}
	case !f.needs(name) && !f.isPackage(name, info) && used(info).Before(f.before):
		f.plan.files = append(f.plan.files, u)
	}
	return nil
}

// temporary adds a temporary folder, whose name begins with a dot, that no run uses any more.
func (f *finder) temporary(name string) error {
	size, last := measure(f.root, name)
	if f.now.Sub(last) >= grace {
		f.plan.folders = append(f.plan.folders, name)
		f.plan.Entries = append(f.plan.Entries, Entry{name, KindFile, size})
	}
	return fs.SkipDir
}

// measure returns the size of a folder, and when something in it was written last.
func measure(root *os.Root, dir string) (size int64, last time.Time) {
	_ = fs.WalkDir(root.FS(), dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read has no size
		}
		if info, err := d.Info(); err == nil {
			last = later(last, info.ModTime())
			if info.Mode().IsRegular() {
				size += info.Size()
			}
		}
		return nil
	})
	return size, last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (f *finder) needs(name string) bool {
	dir, base := path.Split(name)
	if digest, _, ok := strings.Cut(base, "-"); ok && strings.HasSuffix(base, ".zst") && isCompressed(dir) {
		return f.need.Digests[digest]
	}
	return f.need.Files[name] || dir == digestsDir && f.need.Digests[base]
}

// isCompressed reports whether a folder has compressed copies.
func isCompressed(dir string) bool {
	return strings.HasPrefix(dir, "zstd-") && strings.Count(dir, "/") == 1
}

// Remove removes what was found, and folders that are empty then. What was changed since is kept. All problems are
// reported.
func (p *Plan) Remove(ctx context.Context) error {
	if len(p.Entries) == 0 {
		return nil
	}
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only read
	problems := []error{p.images.remove(ctx, root)}
	for _, dir := range p.folders {
		if _, last := measure(root, dir); time.Since(last) >= grace {
			problems = append(problems, root.RemoveAll(dir))
		}
	}
	for _, u := range p.files {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(problems, err)...)
		}
		problems = append(problems, u.remove(root))
	}
	return errors.Join(problems...)
}

func (u unneeded) remove(root *os.Root) error {
	info, err := root.Lstat(u.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() != u.size || !info.ModTime().Equal(u.time) {
		return nil
	}
	if err := root.Remove(u.name); err != nil {
		return err
	}
	for dir := path.Dir(u.name); dir != "."; dir = path.Dir(dir) {
		if root.Remove(dir) != nil { // it is not empty
			break
		}
	}
	return nil
}

// sorted sorts entries by name.
func sorted(entries []Entry) []Entry {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries
}
