// Package foreign reads what other tools made for sites without a network, so that an offline file can be
// made of it.
//
// The formats, and where they are described:
//
//   - KubeKey 4, a tar in gzip (kubesphere/kubekey, builtin/core/roles/download): names begin with "./". Files
//     are in COMPONENT/VERSION/ARCHITECTURE/FILE, some a folder deeper (cni/plugins/..., image-registry/...),
//     charts in cni/PLUGIN and storageclass/KIND, ISOs in repository. Images are in images, as the registry
//     on disk of pkg/modules/image writes them: blobs in blobs/sha256:HEX; manifests in
//     REGISTRY/REPOSITORY/manifests/sha256:HEX, with a file layout next to them that maps tags to digests.
//     The host of docker.io is written as registry-1.docker.io. Its first releases wrote
//     REPOSITORY/manifests/TAG, without the registry (pkg/modules/image.go).
//   - KubeKey 3, a tar in gzip (kubesphere/kubekey, cmd/kk/pkg/artifact, cmd/kk/pkg/files and
//     cmd/kk/pkg/images): files in TYPE/VERSION/ARCHITECTURE/FILE and registry/ID/VERSION/ARCHITECTURE/FILE,
//     ISOs in repository/ARCHITECTURE/ID/VERSION. images is an OCI layout with one image for each
//     architecture, whose name ends in the architecture: docker.io/calico/node:v3.27.3-amd64.
//   - Docker archives, a tar (moby/moby, image/spec/v1.2.md, "Combined Image JSON + Filesystem Changeset
//     Format"): manifest.json lists config, names and layers of each image. Old versions of Docker, and
//     skopeo, write layers that repeat as symbolic links ID/layer.tar to ../NAME; these links are followed
//     within the archive, and no others. Docker 25 and later writes an OCI layout as well, which is preferred.
//   - OCI image layouts, as folders or tars (opencontainers/image-spec, image-layout.md). The name of an image
//     is in the annotation io.containerd.image.name or org.opencontainers.image.ref.name.
//   - Folders and tars of files, and single files.
//
// Archives can be hostile. Their contents are unpacked to files with names of this package, so that no name of
// an entry reaches the file system. Number, sizes and names of entries have limits.
package foreign

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/artifact"
)

// Catalog is what is known of the things that others publish.
type Catalog interface {
	// Known returns the item whose content has this digest, as hexadecimal digits.
	Known(sha256 string) (artifact.Item, bool)
	// Named returns the item that a path stands for, for which no digest is known.
	Named(path string) (artifact.Item, bool)
	// Repository returns the full name of the repository of an image with this path in its registry.
	Repository(path string) (name string, ok bool)
	// Group returns the group of an image, "" if it has none.
	Group(ref string) string
}

// Options are how to read.
type Options struct {
	Cache           string // folder for what is unpacked; everything is removed by Close
	Catalog         Catalog
	AllowUnverified bool // include what the catalog has no digest of
}

// Import is what was read, ready to be written to an offline file.
type Import struct {
	Options
	dir      string // temporary
	unpacked int    // number of files in dir
	found    int    // number of files and images, with those that repeat
	files    []found
	byName   map[string][sha256.Size]byte // File of an item → its digest
	images   map[string][]image           // by reference
	attached map[string]v1.Descriptor     // by reference: signatures and attestations of images
	unknown  []string                     // some of what the catalog has no digest of
	unknowns int                          // how many there are
}

// Limits of an import. One that is larger would need more memory, and a larger manifest, than kk reads.
const (
	maxFiles = 20_000 // that become items
	maxShown = 100    // files, or problems of one kind, that an error lists
)

// problemList is the start of a list of problems: a hostile source can have very many.
type problemList struct {
	first []error
	more  int
}

func (p *problemList) add(err error) {
	switch {
	case err == nil:
	case len(p.first) < maxShown:
		p.first = append(p.first, err)
	default:
		p.more++
	}
}

// join returns nil if there is no problem.
func (p *problemList) join() error {
	err := errors.Join(p.first...)
	if p.more > 0 {
		err = fmt.Errorf("%w\nand %d more", err, p.more)
	}
	return err
}

// found is a file that becomes an item. The item itself is made when it is used: there can be many.
type found struct {
	source string
	name   string // in the source
	file
}

// Read reads sources: archives, folders or files. All problems are reported. Close must be called if the
// error is nil.
func Read(ctx context.Context, sources []string, o Options) (*Import, error) {
	if err := os.MkdirAll(o.Cache, 0o755); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Cache, ".import-*") // with mode 0700
	if err != nil {
		return nil, err
	}
	i := &Import{Options: o, dir: dir, byName: map[string][sha256.Size]byte{}, images: map[string][]image{},
		attached: map[string]v1.Descriptor{}}
	var problems problemList
	for _, s := range sources {
		if err := i.read(ctx, s); err != nil {
			problems.add(fmt.Errorf("%s: %w", s, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	problems.add(i.unverified())
	if err := problems.join(); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	if err := i.writeLayout(ctx); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// Close removes what was unpacked.
func (i *Import) Close() error { return os.RemoveAll(i.dir) }

// Items lists the files, without sizes and digests of blobs, and the names of images with their platforms.
func (i *Import) Items() iter.Seq[artifact.Item] {
	return func(yield func(artifact.Item) bool) {
		for _, f := range i.files {
			if item, _ := i.item(f); !yield(item) {
				return
			}
		}
		for _, ref := range i.refs() {
			item := i.imageItem(ref)
			for _, p := range i.images[ref][0].platforms {
				item.Platforms = append(item.Platforms, p.String())
			}
			if !yield(item) {
				return
			}
		}
	}
}

// AddTo adds everything to a file that is built.
func (i *Import) AddTo(ctx context.Context, b *artifact.Builder) error {
	var problems problemList
	for _, f := range i.files {
		item, _ := i.item(f)
		if problems.add(b.AddFile(ctx, item, f.path())); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	for _, ref := range i.refs() {
		problems.add(b.AddImage(ctx, i.imageItem(ref), i.layout(), i.images[ref][0].platforms))
	}
	return problems.join()
}

func (i *Import) read(ctx context.Context, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	var t *tree
	if info.IsDir() {
		t, err = readFolder(ctx, source)
	} else {
		t, err = i.readFile(ctx, source, info)
	}
	if err != nil {
		return err
	}
	return i.sort(ctx, source, t)
}

// sort finds out what a source is, and what each file of it.
func (i *Import) sort(ctx context.Context, source string, t *tree) error {
	images, docker, err := t.images()
	if err != nil {
		return err
	}
	if !docker {
		if err := t.noLinks(); err != nil {
			return err
		}
	}
	var problems problemList
	before := i.found
	problems.add(t.damaged())
	for _, at := range images {
		problems.add(at.read(ctx, i, t))
	}
	for _, name := range t.names() {
		if !slices.ContainsFunc(images, func(r imageReader) bool { return r.owns(name) }) {
			problems.add(i.file(found{source, name, t.files[name]}))
		}
		if len(i.files) > maxFiles {
			return fmt.Errorf("with %s there are more than %d files: pack folders of many files as archives, and import "+
				"the folder that has these", name, maxFiles)
		}
	}
	if err := problems.join(); err != nil || i.found > before {
		return err
	}
	return errors.New("there is neither a file nor an image in it")
}

// file adds a file.
func (i *Import) file(f found) error {
	i.found++
	item, known := i.item(f)
	if !known {
		i.isUnknown(fmt.Sprintf("%s in %s, sha256 %s", f.name, f.source, item.SHA256))
	}
	switch before, ok := i.byName[item.File]; {
	case ok && before != f.sum:
		return fmt.Errorf("%s: another file with other content would have the same place %s: leave out one of them", f.name,
			item.File)
	case ok:
		return nil
	}
	i.byName[item.File] = f.sum
	i.files = append(i.files, f)
	return nil
}

// item describes a file, and reports whether the catalog has its digest.
func (i *Import) item(f found) (item artifact.Item, known bool) {
	digest := f.sha256()
	if item, known = i.Catalog.Known(digest); !known {
		item = i.guess(f.name)
		item.Unverified, item.Source = true, filepath.Base(f.source)
	}
	item.SHA256 = digest
	return item, known
}

// isUnknown notes something that the catalog has no digest of.
func (i *Import) isUnknown(text string) {
	if i.unknowns++; i.unknowns <= maxShown {
		i.unknown = append(i.unknown, text)
	}
}

// imageItem describes an image. Its digest shows that it is whole, but not that it is what its name says, unless the
// name has the digest.
func (i *Import) imageItem(ref string) artifact.Item {
	return artifact.Item{Kind: artifact.KindImage, Name: ref, Group: i.Catalog.Group(ref), Unverified: !isPinned(ref)}
}

func isPinned(ref string) bool { return strings.Contains(ref, "@") }

// guess describes a file that the catalog has no digest of, by its path. One that no name of the catalog fits
// gets a path that no other item has.
func (i *Import) guess(name string) artifact.Item {
	if item, ok := i.Catalog.Named(name); ok {
		return item
	}
	item := artifact.Item{Kind: artifact.KindExtra, Name: path.Base(name), File: "imported/" + name}
	parts := strings.Split(path.Dir(name), "/")
	if n := len(parts); n >= 3 && isVersion(parts[n-2]) {
		item.Kind, item.Version, item.Architecture = artifact.KindFile, parts[n-2], parts[n-1]
	}
	return item
}

// isVersion reports whether a folder is named by a version.
func isVersion(text string) bool {
	text = strings.TrimPrefix(text, "v")
	return text != "" && text[0] >= '0' && text[0] <= '9' && strings.Contains(text, ".")
}

// unverified is the error for what the catalog has no digest of.
func (i *Import) unverified() error {
	if i.unknowns == 0 || i.AllowUnverified {
		return nil
	}
	list := strings.Join(i.unknown, "\n- ")
	if more := i.unknowns - len(i.unknown); more > 0 {
		list += fmt.Sprintf("\n- and %d more", more)
	}
	return fmt.Errorf("the catalog has no digest of these files and images:\n- %s\nset --allow-unverified to include "+
		"them; they are marked as unverified in the offline file for good", list)
}
