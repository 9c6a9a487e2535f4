package artifact

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const (
	// maxImageManifest is the size of the largest manifest or config of an image that is read: registries accept no
	// larger ones.
	maxImageManifest = 4 << 20
	// maxNested is how deep indexes can be nested.
	maxNested = 4
)

// imageWalk finds the blobs of an image.
type imageWalk struct {
	ctx       context.Context
	open      func(digest string) (io.ReadCloser, error) // opens a blob; reading its end verifies it
	stat      func(digest string) (int64, error)         // returns the size of a blob
	platforms []v1.Platform
	attached  bool // it is attached to an image: it has no platforms, and what it names is of any kind
	blobs     map[Blob]bool
	found     map[string]bool          // platforms
	seen      map[string]bool          // manifests, as descriptors name them
	images    map[v1.Hash]*v1.Platform // what they are for, as their configs say
}

func newWalk(ctx context.Context, open func(string) (io.ReadCloser, error),
	stat func(string) (int64, error)) *imageWalk {
	return &imageWalk{ctx: ctx, open: open, stat: stat, blobs: map[Blob]bool{}, found: map[string]bool{},
		seen: map[string]bool{}, images: map[v1.Hash]*v1.Platform{}}
}

func (w *imageWalk) collect(d v1.Descriptor, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.blob(d); err != nil {
		return err
	}
	as := d.Digest.String() + " " + string(d.MediaType)
	if d.Platform != nil && d.MediaType.IsImage() {
		as += " " + d.Platform.String()
	}
	if w.seen[as] {
		return nil
	}
	w.seen[as] = true
	switch {
	case depth > maxNested:
		return fmt.Errorf("indexes are nested more than %d deep", maxNested)
	case d.MediaType.IsIndex():
		return w.index(d, depth)
	case d.MediaType.IsImage():
		return w.image(d)
	}
	return nil
}

// blob collects a blob, whatever is in it.
func (w *imageWalk) blob(d v1.Descriptor) error {
	size, err := w.stat(d.Digest.String())
	if err != nil {
		return err
	}
	if size != d.Size {
		return fmt.Errorf("%s has %d bytes instead of %d", d.Digest, size, d.Size)
	}
	w.blobs[Blob{d.Digest.String(), d.Size}] = true
	return nil
}

// index collects the images for the platforms. The image for another platform than a descriptor says is
// an error.
func (w *imageWalk) index(d v1.Descriptor, depth int) error {
	m, err := parse(w, d, v1.ParseIndexManifest)
	if err != nil {
		return err
	}
	if w.attached {
		return w.children(m, depth)
	}
	for _, d := range m.Manifests {
		needed := func(p v1.Platform) bool { return d.Platform.Satisfies(p) }
		if d.Platform == nil || !slices.ContainsFunc(w.platforms, needed) {
			continue
		}
		if err := w.collect(d, depth+1); err != nil {
			return fmt.Errorf("the image for %s: %w", d.Platform, err)
		}
	}
	return w.attestations(m, depth)
}

// children collects everything that an index lists.
func (w *imageWalk) children(m *v1.IndexManifest, depth int) error {
	for _, d := range m.Manifests {
		if err := w.collect(d, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// attestations collects what the index has about its images, as BuildKit adds it, where it is at hand.
func (w *imageWalk) attestations(m *v1.IndexManifest, depth int) error {
	collected := map[string]bool{}
	for _, d := range m.Manifests {
		if digest := d.Digest.String(); w.blobs[Blob{digest, d.Size}] {
			collected[digest] = true
		}
	}
	for _, d := range m.Manifests {
		about := d.Annotations["vnd.docker.reference.digest"]
		if about == "" || !collected[about] {
			continue
		}
		if _, err := w.stat(d.Digest.String()); err != nil {
			continue
		}
		if err := w.collect(d, depth+1); err != nil {
			return fmt.Errorf("the attestation of %s: %w", about, err)
		}
		collected[d.Digest.String()] = true
	}
	return nil
}

// image collects an image, which an index can list several times.
func (w *imageWalk) image(d v1.Descriptor) error {
	is, known := w.images[d.Digest]
	if !known {
		var err error
		if is, err = w.parts(d); err != nil {
			return err
		}
		w.images[d.Digest] = is
	}
	if w.attached {
		return nil
	}
	return w.platform(d.Platform, is)
}

// parts collects what an image consists of, and returns its platform.
func (w *imageWalk) parts(d v1.Descriptor) (*v1.Platform, error) {
	m, err := parse(w, d, v1.ParseManifest)
	if err != nil {
		return nil, err
	}
	if err := w.blob(m.Config); err != nil {
		return nil, err
	}
	for _, l := range m.Layers {
		if !l.MediaType.IsDistributable() {
			continue
		}
		if err := w.blob(l); err != nil {
			return nil, err
		}
	}
	if w.attached {
		return nil, nil //nolint:nilnil // it has none
	}
	config, err := parse(w, m.Config, v1.ParseConfigFile)
	if err != nil {
		return nil, err
	}
	return config.Platform(), nil
}

// platform records the platform of an image, which an index may say as well.
func (w *imageWalk) platform(said, is *v1.Platform) error {
	if is == nil {
		is = &v1.Platform{}
	}
	if said != nil && (said.OS != is.OS || said.Architecture != is.Architecture ||
		said.Variant != is.Variant && said.Variant != "" && is.Variant != "") {
		return fmt.Errorf("the index has an image for %s that is for %s", said, is)
	}
	if said == nil {
		said = is
	}
	for _, p := range w.platforms {
		if said.Satisfies(p) {
			w.found[p.String()] = true
		}
	}
	return nil
}

// parse reads a small blob of an image.
func parse[T any](w *imageWalk, d v1.Descriptor, read func(io.Reader) (*T, error)) (*T, error) {
	if d.Size > maxImageManifest {
		return nil, fmt.Errorf("%s has %d bytes: at most %d are read", d.Digest, d.Size, maxImageManifest)
	}
	r, err := w.open(d.Digest.String())
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only read
	text, err := io.ReadAll(r)       // to the end, where the digest is checked
	if err != nil {
		return nil, err
	}
	v, err := read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d.Digest, err)
	}
	return v, nil
}

// checkImage checks that the file has what the manifest says of an image: all blobs that its platforms
// need, each for the platform that its index says.
func (f *File) checkImage(ctx context.Context, i Item) error {
	w := newWalk(ctx, func(digest string) (io.ReadCloser, error) {
		r, err := f.Blob(digest)
		return io.NopCloser(r), err
	}, func(digest string) (int64, error) {
		n, ok := f.Manifest.find(digest)
		if _, own := slices.BinarySearch(i.Blobs, digest); !ok || !own {
			return 0, fmt.Errorf("blob %s %w", digest, ErrMissing)
		}
		return f.Manifest.Blobs[n].Size, nil
	})
	w.attached = i.IsAttached()
	for _, text := range i.Platforms {
		p, err := v1.ParsePlatform(text)
		if err != nil {
			return fmt.Errorf("%q is not a platform", text)
		}
		w.platforms = append(w.platforms, *p)
	}
	size, err := w.stat(i.Blob)
	if err != nil {
		return err
	}
	root := v1.Descriptor{MediaType: i.MediaType, Digest: v1.Hash{Algorithm: "sha256", Hex: i.SHA256}, Size: size}
	if err := w.collect(root, 0); err != nil {
		return err
	}
	for _, p := range i.Platforms {
		if !w.found[p] {
			return fmt.Errorf("it has no image for %s, which the manifest lists", p)
		}
	}
	return nil
}
