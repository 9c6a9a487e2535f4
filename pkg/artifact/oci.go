package artifact

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// ImageFor returns the image with this reference for a platform such as linux/amd64.
func (s Set) ImageFor(ref, platform string) (*File, Item, bool) {
	return s.Find(func(i Item) bool {
		return i.Kind == KindImage && i.Name == ref && slices.Contains(i.Platforms, platform)
	})
}

// OCI returns an image: index is nil if it is for one platform. The images of the index are those that it lists;
// the ones for platforms that the file was not made for cannot be read.
func (f *File) OCI(i Item) (image v1.Image, index v1.ImageIndex, err error) {
	digest := v1.Hash{Algorithm: "sha256", Hex: i.SHA256}
	if i.MediaType.IsIndex() {
		text, err := f.small(i.Blob)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", i, err)
		}
		return nil, &storedIndex{file: f, digest: digest, media: i.MediaType, text: text}, nil
	}
	image, err = f.image(digest, i.MediaType)
	return image, nil, err
}

// small returns the bytes of a manifest or a config.
func (f *File) small(digest string) ([]byte, error) {
	r, err := f.Blob(digest)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxImageManifest+1))
	if err == nil && len(text) > maxImageManifest {
		err = fmt.Errorf("%s has more than the %d bytes that are read of a manifest", digest, maxImageManifest)
	}
	return text, err
}

// storedIndex implements v1.ImageIndex.
type storedIndex struct {
	file   *File
	digest v1.Hash
	media  types.MediaType
	text   []byte
}

func (s *storedIndex) MediaType() (types.MediaType, error) { return s.media, nil }
func (s *storedIndex) Digest() (v1.Hash, error)            { return s.digest, nil }
func (s *storedIndex) Size() (int64, error)                { return int64(len(s.text)), nil }
func (s *storedIndex) RawManifest() ([]byte, error)        { return s.text, nil }
func (s *storedIndex) IndexManifest() (*v1.IndexManifest, error) {
	return v1.ParseIndexManifest(bytes.NewReader(s.text))
}

func (s *storedIndex) Image(h v1.Hash) (v1.Image, error) {
	d, err := s.child(h)
	if err != nil {
		return nil, err
	}
	return s.file.image(h, d.MediaType)
}

func (s *storedIndex) ImageIndex(h v1.Hash) (v1.ImageIndex, error) {
	d, err := s.child(h)
	if err != nil {
		return nil, err
	}
	text, err := s.file.small(h.String())
	return &storedIndex{file: s.file, digest: h, media: d.MediaType, text: text}, err
}

func (s *storedIndex) child(h v1.Hash) (v1.Descriptor, error) {
	m, err := s.IndexManifest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	i := slices.IndexFunc(m.Manifests, func(d v1.Descriptor) bool { return d.Digest == h })
	if i < 0 {
		return v1.Descriptor{}, fmt.Errorf("%s is not in the index %s", h, s.digest)
	}
	return m.Manifests[i], nil
}

func (f *File) image(digest v1.Hash, media types.MediaType) (v1.Image, error) {
	text, err := f.small(digest.String())
	if err != nil {
		return nil, err
	}
	m, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the manifest %s: %w", digest, err)
	}
	return partial.CompressedToImage(&storedImage{file: f, media: media, text: text, manifest: m})
}

// storedImage implements partial.CompressedImageCore.
type storedImage struct {
	file     *File
	media    types.MediaType
	text     []byte
	manifest *v1.Manifest
}

func (s *storedImage) MediaType() (types.MediaType, error) { return s.media, nil }
func (s *storedImage) RawManifest() ([]byte, error)        { return s.text, nil }
func (s *storedImage) RawConfigFile() ([]byte, error) {
	return s.file.small(s.manifest.Config.Digest.String())
}

func (s *storedImage) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range append([]v1.Descriptor{s.manifest.Config}, s.manifest.Layers...) {
		if d.Digest == h {
			return &storedLayer{s.file, d}, nil
		}
	}
	return nil, fmt.Errorf("%s is not a layer of the image", h)
}

// storedLayer implements partial.CompressedLayer.
type storedLayer struct {
	file *File
	d    v1.Descriptor
}

func (s *storedLayer) Digest() (v1.Hash, error)            { return s.d.Digest, nil }
func (s *storedLayer) Size() (int64, error)                { return s.d.Size, nil }
func (s *storedLayer) MediaType() (types.MediaType, error) { return s.d.MediaType, nil }
func (s *storedLayer) Compressed() (io.ReadCloser, error) {
	r, err := s.file.Blob(s.d.Digest.String())
	if err != nil {
		return nil, err
	}
	return io.NopCloser(r), nil
}

// FullName returns the name of an image with all its parts, docker.io under that name.
func FullName(ref name.Reference) string {
	return strings.Replace(ref.Name(), name.DefaultRegistry+"/", "docker.io/", 1)
}

// NamedImage is an image of a file, and the names that it gets elsewhere.
type NamedImage struct {
	File  *File
	Item  Item
	Names []string
}

// WriteArchive writes images for one platform as an OCI archive, as `ctr images import` and others read it: an
// uncompressed tar. An image that is an index keeps its digest; only the image for the platform is in the archive.
// progress may be nil.
func WriteArchive(ctx context.Context, to io.Writer, images []NamedImage, platform v1.Platform,
	progress func(done, total int64)) error {
	index, parts, err := archiveOf(images, platform)
	if err != nil {
		return err
	}
	a := archive{ctx: ctx, tar: tar.NewWriter(to), progress: progress}
	for _, p := range parts {
		a.total += p.d.Size
	}
	a.head(index)
	for _, p := range parts {
		a.blob(p)
	}
	return a.close()
}

// WriteArchiveHead writes the archive of WriteArchive without its blobs: oci-layout, index.json, and names, which lists
// all entries of the whole archive, a line each.
func WriteArchiveHead(ctx context.Context, to io.Writer, images []NamedImage, platform v1.Platform) error {
	index, parts, err := archiveOf(images, platform)
	if err != nil {
		return err
	}
	names := layoutName + "\n" + indexName + "\n"
	for _, p := range parts {
		names += blobName(p.d.Digest.String()) + "\n"
	}
	a := archive{ctx: ctx, tar: tar.NewWriter(to)}
	a.head(index)
	a.entry("names", int64(len(names)), strings.NewReader(names))
	return a.close()
}

// archiveOf returns the index of an archive, and its blobs.
func archiveOf(images []NamedImage, platform v1.Platform) (text []byte, parts []archived, err error) {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	seen := map[v1.Hash]bool{}
	for _, i := range images {
		root := v1.Descriptor{MediaType: i.Item.MediaType, Digest: v1.Hash{Algorithm: "sha256", Hex: i.Item.SHA256}}
		blobs, err := i.File.imageParts(root, platform)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", i.Item, err)
		}
		root.Size = blobs[0].Size
		for _, name := range i.Names {
			named := root
			named.Annotations = map[string]string{refName: name, containerdName: name}
			index.Manifests = append(index.Manifests, named)
		}
		for _, d := range blobs {
			if !seen[d.Digest] {
				seen[d.Digest] = true
				parts = append(parts, archived{i.File, d})
			}
		}
	}
	text, err = encodeJSON(index)
	return text, parts, err
}

type archived struct {
	file *File
	d    v1.Descriptor
}

// archive writes a tar until an entry fails.
type archive struct {
	ctx         context.Context
	tar         *tar.Writer
	done, total int64
	progress    func(done, total int64)
	err         error
}

// head writes what stands before the blobs.
func (a *archive) head(index []byte) {
	a.entry(layoutName, int64(len(layoutText)), strings.NewReader(layoutText))
	a.entry(indexName, int64(len(index)), bytes.NewReader(index))
}

func (a *archive) entry(name string, size int64, from io.Reader) {
	if a.err != nil {
		return
	}
	a.err = a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644,
		ModTime: time.Unix(0, 0)})
	if a.err == nil {
		_, a.err = io.Copy(a.tar, &stoppable{a.ctx, from})
	}
}

// close ends the tar. What is cut off gets no end.
func (a *archive) close() error {
	if a.err != nil {
		return a.err
	}
	return a.tar.Close()
}

func (a *archive) blob(p archived) {
	if a.err != nil {
		return
	}
	r, err := p.file.Blob(p.d.Digest.String())
	if err != nil {
		a.err = err
		return
	}
	a.entry(blobName(p.d.Digest.String()), p.d.Size, r)
	if a.done += p.d.Size; a.progress != nil {
		a.progress(a.done, a.total)
	}
}

// imageParts lists the blobs of an image for a platform: the index or manifest first.
func (f *File) imageParts(root v1.Descriptor, platform v1.Platform) ([]v1.Descriptor, error) {
	text, err := f.small(root.Digest.String())
	if err != nil {
		return nil, err
	}
	root.Size = int64(len(text))
	if root.MediaType.IsIndex() {
		m, err := v1.ParseIndexManifest(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("the index %s: %w", root.Digest, err)
		}
		i := slices.IndexFunc(m.Manifests, func(d v1.Descriptor) bool {
			return d.MediaType.IsImage() && d.Platform != nil && d.Platform.Satisfies(platform)
		})
		if i < 0 {
			return nil, fmt.Errorf("it has no image for %s", platform)
		}
		below, err := f.imageParts(m.Manifests[i], platform)
		return append([]v1.Descriptor{root}, below...), err
	}
	m, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the manifest %s: %w", root.Digest, err)
	}
	all := []v1.Descriptor{root, m.Config}
	for _, l := range m.Layers {
		if l.MediaType.IsDistributable() {
			all = append(all, l)
		}
	}
	return all, nil
}
