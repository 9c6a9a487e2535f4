package offline

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/artifact"
	"kubekey/pkg/relay"
)

// need is a blob that a host needs, and what it contains: itself, or a file that it is the compressed form of.
type need struct{ blob, content relay.Blob }

func (n need) packed() bool { return n.blob != n.content }

// stock is what offline files have.
type stock struct {
	set   artifact.Set
	files map[string]*artifact.File // digest → the file that has the blob
	sizes map[string]int64          // digest → bytes
	items map[string]artifact.Item  // digest of a packed blob → its item
}

func newStock(set artifact.Set) *stock {
	s := &stock{set: set, files: map[string]*artifact.File{}, sizes: map[string]int64{}, items: map[string]artifact.Item{}}
	for _, f := range set {
		for _, b := range f.Manifest.Blobs {
			s.files[b.Digest], s.sizes[b.Digest] = f, b.Size
		}
		for _, i := range f.Manifest.Items {
			if i.Encoding != artifact.Plain {
				s.items[i.Blob] = i
			}
		}
	}
	return s
}

// open returns the bytes of a blob, and fails at its end if they are damaged.
func (s *stock) open(b relay.Blob) (io.ReadCloser, error) {
	f := s.files[b.Digest]
	if f == nil {
		return nil, fmt.Errorf("%s %w", b.Digest, artifact.ErrMissing)
	}
	r, err := f.Blob(b.Digest)
	return io.NopCloser(r), err
}

// content returns the content of a packed blob.
func (s *stock) content(packed relay.Blob) (io.ReadCloser, error) {
	i, ok := s.items[packed.Digest]
	if !ok {
		return nil, fmt.Errorf("%s %w", packed.Digest, artifact.ErrMissing)
	}
	return s.files[packed.Digest].Content(i)
}

func (s *stock) blob(digest string) relay.Blob {
	return relay.Blob{Digest: digest, Size: s.sizes[digest]}
}

// file returns what a host needs for a file of the catalog.
func (s *stock) file(name string) (need, error) {
	_, i, ok := s.set.File(name)
	if !ok {
		return need{}, fmt.Errorf("%s %w", name, artifact.ErrMissing)
	}
	n := need{s.blob(i.Blob), s.blob(i.Blob)}
	if i.Encoding != artifact.Plain {
		n.content = relay.Blob{Digest: "sha256:" + i.SHA256, Size: i.Size}
	}
	return n, nil
}

// image returns the blobs of an image for an architecture, and its index.
func (s *stock) image(ref, arch string) ([]need, error) {
	f, i, ok := s.set.Image(ref)
	if !ok {
		return nil, fmt.Errorf("image %s %w", ref, artifact.ErrMissing)
	}
	w := imageWalk{stock: s, file: f, platform: v1.Platform{OS: "linux", Architecture: arch}}
	root := v1.Descriptor{MediaType: i.MediaType, Digest: v1.Hash{Algorithm: "sha256", Hex: i.SHA256}}
	if err := w.descend(root); err != nil {
		return nil, fmt.Errorf("image %s for %s: %w", ref, arch, err)
	}
	return w.needs, nil
}

// imageWalk collects the blobs of an image.
type imageWalk struct {
	*stock
	file     *artifact.File
	platform v1.Platform
	needs    []need
}

// maxDocument is the largest index or manifest that is read, in bytes.
const maxDocument = 64 << 20

func (w *imageWalk) add(digest string) error {
	if w.files[digest] == nil {
		return fmt.Errorf("%s %w", digest, artifact.ErrMissing)
	}
	b := w.blob(digest)
	w.needs = append(w.needs, need{b, b})
	return nil
}

func (w *imageWalk) descend(d v1.Descriptor) error {
	digest := d.Digest.String()
	if err := w.add(digest); err != nil {
		return err
	}
	if !d.MediaType.IsIndex() && !d.MediaType.IsImage() {
		return nil
	}
	if size := w.sizes[digest]; size > maxDocument {
		return fmt.Errorf("the manifest %s has %d bytes: at most %d are read", digest, size, maxDocument)
	}
	r, err := w.open(w.blob(digest))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if d.MediaType.IsIndex() {
		return w.index(text)
	}
	m, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return err
	}
	problems := []error{w.add(m.Config.Digest.String())}
	for _, l := range m.Layers {
		if l.MediaType.IsDistributable() {
			problems = append(problems, w.add(l.Digest.String()))
		}
	}
	return errors.Join(problems...)
}

// index descends to the image of the platform.
func (w *imageWalk) index(text []byte) error {
	m, err := v1.ParseIndexManifest(bytes.NewReader(text))
	if err != nil {
		return err
	}
	found := false
	for _, d := range m.Manifests {
		if d.Platform == nil || !d.Platform.Satisfies(w.platform) || w.files[d.Digest.String()] == nil ||
			d.MediaType.IsIndex() {
			continue
		}
		found = true
		if err := w.descend(d); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("its index %w for this platform", artifact.ErrMissing)
	}
	return nil
}
