package foreign

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
)

// Limits of a document. The objects of a hostile one can need a hundred times its bytes.
const (
	maxJSON    = 4 << 20 // bytes; registries accept no larger manifests
	maxObjects = 50_000
)

// image is an image whose blobs are verified and in the layout.
type image struct {
	desc      v1.Descriptor
	platforms []v1.Platform
	parts     map[v1.Hash]v1.Platform // its manifests
	source    string
}

// imageReader reads the images of a source.
type imageReader interface {
	// read adds the images.
	read(ctx context.Context, i *Import, t *tree) error
	// owns reports whether a file of the source is part of the images.
	owns(name string) bool
}

// images returns what reads the images of a source, and whether it is a docker archive, which may have links.
func (t *tree) images() (readers []imageReader, docker bool, err error) {
	_, layout := t.files["oci-layout"]
	switch _, manifest := t.files["manifest.json"]; {
	case t.has("kk/manifest.json"):
		return nil, false, errors.New("it is an offline file of kk already: use it with -a FILE")
	case layout:
		readers = append(readers, ociLayout{dir: ""})
	case manifest && t.isDocker():
		return []imageReader{dockerArchive{}}, true, nil
	case t.has("images/index.json"):
		readers = append(readers, ociLayout{dir: "images/", suffixed: true})
	case t.has("images/blobs"):
		readers = append(readers, kubekey4{})
	}
	return readers, false, nil
}

// read returns a document of a source.
func (f file) read() ([]byte, error) {
	if f.size > maxJSON {
		return nil, fmt.Errorf("it has %d bytes: at most %d are read", f.size, maxJSON)
	}
	r, err := os.Open(f.path())
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // only read
	text, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != f.sha256() {
		return nil, errors.New("it changes while it is read")
	}
	if n := bytes.Count(text, []byte("{")); n > maxObjects {
		return nil, fmt.Errorf("it has %d objects: at most %d are read", n, maxObjects)
	}
	return text, nil
}

func (f file) decode(into any) error {
	text, err := f.read()
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// fullName returns a reference with registry and tag or digest: docker.io/library/nginx:1.27. Tags alone are
// no names.
func fullName(text string) (string, error) {
	last := text[strings.LastIndexByte(text, '/')+1:]
	if !strings.ContainsAny(last, ":@") || strings.HasSuffix(text, ":") {
		return "", fmt.Errorf("%q is not the name of an image with its tag", text)
	}
	ref, err := name.ParseReference(text)
	if err != nil {
		return "", fmt.Errorf("%q is not the name of an image: %w", text, err)
	}
	full := ref.Name()
	for _, hub := range []string{name.DefaultRegistry, "registry-1.docker.io"} {
		if rest, ok := strings.CutPrefix(full, hub+"/"); ok {
			return "docker.io/" + rest, nil
		}
	}
	return full, nil
}

// layout is the folder of the OCI layout that all images are put into.
func (i *Import) layout() string { return filepath.Join(i.dir, "layout") }

func (i *Import) refs() []string { return slices.Sorted(maps.Keys(i.images)) }

// add verifies an image of a source, and adds it under its name.
func (i *Import) add(ctx context.Context, ref string, desc v1.Descriptor, blobs map[string]file, source string) error {
	i.found++
	if to, _ := artifact.AttachedTo(ref); to != "" {
		return fmt.Errorf("image %s: its tag is that of a signature or attestation of an image: use another one", ref)
	}
	c := newCollector(ctx, i, blobs)
	if err := c.collect(desc); err != nil {
		return fmt.Errorf("image %s: %w", ref, err)
	}
	if len(c.platforms) == 0 {
		return fmt.Errorf("image %s: it is not complete for any platform", ref)
	}
	switch {
	case !isPinned(ref):
		i.isUnknown(fmt.Sprintf("image %s in %s, %s", ref, source, desc.Digest))
	case !strings.HasSuffix(ref, "@"+desc.Digest.String()):
		return fmt.Errorf("image %s: it has the digest %s, and its name another one", ref, desc.Digest)
	}
	i.images[ref] = append(i.images[ref], image{v1.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest,
		Size: desc.Size}, c.platforms, c.done, source})
	return nil
}

// attach verifies a signature or attestation, or an index of them, and adds it under its name. It becomes part of the
// file if the image does that it is attached to.
func (i *Import) attach(ctx context.Context, ref string, desc v1.Descriptor, blobs map[string]file,
	source string) error {
	i.found++
	c := newCollector(ctx, i, blobs)
	c.attached = true
	if err := c.collect(desc); err != nil {
		return fmt.Errorf("%s: %w", ref, err)
	}
	if other, known := i.attached[ref]; known && other.Digest != desc.Digest {
		return fmt.Errorf("%s: another source has %s under this name: import them one by one", ref, other.Digest)
	}
	i.isUnknown(fmt.Sprintf("%s in %s, %s", ref, source, desc.Digest))
	i.attached[ref] = v1.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size}
	return nil
}

// collector puts the blobs of an image into the layout.
type collector struct {
	ctx       context.Context
	i         *Import
	blobs     map[string]file         // by digest
	done      map[v1.Hash]v1.Platform // manifests that were collected
	wholes    map[v1.Hash]bool        // whether the source has the images of an index, as far as is known
	indexes   map[v1.Hash]bool        // those that were read: an index can list another one many times
	platforms []v1.Platform
	depth     int
	attached  bool // it is attached to an image: it has no platform, and is complete
}

func newCollector(ctx context.Context, i *Import, blobs map[string]file) *collector {
	return &collector{ctx: ctx, i: i, blobs: blobs, done: map[v1.Hash]v1.Platform{}, wholes: map[v1.Hash]bool{},
		indexes: map[v1.Hash]bool{}}
}

// collect adds a manifest or index with everything that it names.
func (c *collector) collect(d v1.Descriptor) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if d.MediaType.IsIndex() && c.indexes[d.Digest] {
		return nil
	}
	text, err := c.document(d)
	if err != nil {
		return err
	}
	if d.MediaType.IsIndex() {
		c.indexes[d.Digest] = true
		m, err := v1.ParseIndexManifest(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("the index %s: %w", d.Digest, err)
		}
		return c.index(m)
	}
	if !d.MediaType.IsImage() {
		return fmt.Errorf("%s is of type %q, which is no image", d.Digest, d.MediaType)
	}
	m, err := v1.ParseManifest(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("the manifest %s: %w", d.Digest, err)
	}
	return c.manifest(d.Digest, m)
}

// index adds the images of an index that the source has. An index can name more than a source has: images for
// other platforms.
func (c *collector) index(m *v1.IndexManifest) error {
	if c.depth++; c.depth > 4 {
		return errors.New("its indexes contain each other")
	}
	defer func() { c.depth-- }()
	for _, d := range m.Manifests {
		if _, done := c.done[d.Digest]; c.attached && !done {
			if err := c.collect(d); err != nil {
				return err
			}
		}
		if c.attached {
			continue
		}
		if d.Platform == nil || d.Platform.OS == "unknown" || !c.complete(d) {
			continue
		}
		if _, ok := c.done[d.Digest]; !ok {
			if err := c.collect(d); err != nil {
				return fmt.Errorf("the image for %s: %w", d.Platform, err)
			}
		}
		want := v1.Platform{OS: d.Platform.OS, Architecture: d.Platform.Architecture}
		if p, ok := c.done[d.Digest]; ok && !p.Satisfies(want) {
			return fmt.Errorf("the image for %s is one for %s", d.Platform, p)
		}
	}
	return nil
}

// complete reports whether the source has an image of an index, its manifest and config at least.
func (c *collector) complete(d v1.Descriptor) bool {
	if d.MediaType.IsIndex() {
		_, ok := c.blobs[d.Digest.Hex]
		return ok
	}
	whole, known := c.wholes[d.Digest]
	if !known {
		whole = c.whole(d)
		c.wholes[d.Digest] = whole
	}
	return whole
}

func (c *collector) whole(d v1.Descriptor) bool {
	f, ok := c.blobs[d.Digest.Hex]
	if !ok {
		return false
	}
	var m v1.Manifest
	if f.decode(&m) != nil {
		return true // collect reports it
	}
	_, ok = c.blobs[m.Config.Digest.Hex]
	return ok
}

func (c *collector) manifest(digest v1.Hash, m *v1.Manifest) error {
	if c.attached {
		c.done[digest] = v1.Platform{}
		if _, err := c.blob(m.Config); err != nil {
			return fmt.Errorf("config %w", err)
		}
		return c.layers(m)
	}
	text, err := c.document(m.Config)
	if err != nil {
		return fmt.Errorf("config %w", err)
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("the config %s: %w", m.Config.Digest, err)
	}
	p := config.Platform()
	if p == nil || p.OS == "" || p.Architecture == "" {
		return fmt.Errorf("the config %s names no platform", m.Config.Digest)
	}
	platform := v1.Platform{OS: p.OS, Architecture: p.Architecture, OSVersion: p.OSVersion}
	if p.Architecture == "arm" {
		platform.Variant = p.Variant
	}
	c.done[digest] = platform
	if !slices.ContainsFunc(c.platforms, platform.Equals) {
		c.platforms = append(c.platforms, platform)
	}
	return c.layers(m)
}

func (c *collector) layers(m *v1.Manifest) error {
	var problems problemList
	for _, l := range m.Layers {
		if !l.MediaType.IsDistributable() {
			continue
		}
		if _, err := c.blob(l); err != nil {
			problems.add(fmt.Errorf("layer %w", err))
		}
	}
	return problems.join()
}

// blob puts a blob into the layout.
func (c *collector) blob(d v1.Descriptor) (file, error) {
	f, ok := c.blobs[d.Digest.Hex]
	switch {
	case d.Digest.Algorithm != "sha256":
		return f, fmt.Errorf("%s: only digests of sha256 are supported", d.Digest)
	case !ok:
		return f, fmt.Errorf("%s is missing", d.Digest)
	case f.size != d.Size:
		return f, fmt.Errorf("%s has %d bytes instead of %d", d.Digest, f.size, d.Size)
	}
	return f, c.i.link(f)
}

// document puts a blob that is a document into the layout, and reads it.
func (c *collector) document(d v1.Descriptor) ([]byte, error) {
	f, err := c.blob(d)
	if err != nil {
		return nil, err
	}
	text, err := f.read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Digest, err)
	}
	return text, nil
}

func (i *Import) blobPath(digest string) string {
	return filepath.Join(i.layout(), "blobs", "sha256", digest)
}

// link makes a file a blob of the layout.
func (i *Import) link(f file) error {
	dest := i.blobPath(f.sha256())
	if err := os.MkdirAll(filepath.Dir(dest), 0o700); err != nil {
		return err
	}
	if err := os.Symlink(f.path(), dest); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// write makes a text a file of this import.
func (i *Import) write(ctx context.Context, text []byte) (file, error) {
	return i.save(ctx, bytes.NewReader(text), int64(len(text)))
}

// descriptor describes a file as a blob.
func (f file) descriptor(kind types.MediaType) v1.Descriptor {
	return v1.Descriptor{MediaType: kind, Size: f.size, Digest: v1.Hash{Algorithm: "sha256", Hex: f.sha256()}}
}

// writeLayout makes one image of those with one name, and writes the index of the layout.
func (i *Import) writeLayout(ctx context.Context) error {
	var problems problemList
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex}
	for _, ref := range i.refs() {
		one, err := i.merge(ctx, i.images[ref])
		if err != nil {
			problems.add(fmt.Errorf("image %s: %w", ref, err))
			continue
		}
		i.images[ref] = []image{one}
		d := one.desc
		d.Annotations = map[string]string{"org.opencontainers.image.ref.name": ref}
		index.Manifests = append(index.Manifests, d)
	}
	if err := problems.join(); err != nil {
		return err
	}
	for _, ref := range slices.Sorted(maps.Keys(i.attached)) {
		d := i.attached[ref]
		d.Annotations = map[string]string{refName: ref, artifact.UnverifiedAnnotation: "true"}
		index.Manifests = append(index.Manifests, d)
	}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(i.layout(), 0o700); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(i.layout(), "index.json"), text, 0o600),
		os.WriteFile(filepath.Join(i.layout(), "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o600),
	)
}

// include adds the platforms that another source has of the same image: some archives have one architecture each.
func (m *image) include(other image) {
	maps.Copy(m.parts, other.parts)
	for _, p := range other.platforms {
		if !slices.ContainsFunc(m.platforms, p.Equals) {
			m.platforms = append(m.platforms, p)
		}
	}
}

// hasAll reports whether an image contains all others.
func (m image) hasAll(others []image) bool {
	return !slices.ContainsFunc(others, func(o image) bool {
		_, ok := m.parts[o.desc.Digest]
		return !ok && o.desc.Digest != m.desc.Digest
	})
}

// merge makes one image of several with one name: they are the same, or for different platforms.
func (i *Import) merge(ctx context.Context, all []image) (image, error) {
	var different []image
	for _, m := range all {
		n := slices.IndexFunc(different, func(o image) bool { return o.desc.Digest == m.desc.Digest })
		if n < 0 {
			different = append(different, m)
			continue
		}
		different[n].include(m)
	}
	for _, m := range different {
		if m.hasAll(different) {
			return m, nil
		}
	}
	slices.SortFunc(different, func(a, b image) int {
		return cmp.Compare(a.platforms[0].String(), b.platforms[0].String())
	})
	merged := image{source: different[0].source}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.DockerManifestList}
	for n, m := range different {
		if m.desc.MediaType.IsIndex() || n > 0 && m.platforms[0].Equals(different[n-1].platforms[0]) {
			return image{}, fmt.Errorf("%s and %s have different images of this name: import them one by one", all[0].source,
				m.source)
		}
		if m.desc.MediaType == types.OCIManifestSchema1 {
			index.MediaType = types.OCIImageIndex
		}
		d := m.desc
		d.Platform = &m.platforms[0]
		index.Manifests = append(index.Manifests, d)
		merged.platforms = append(merged.platforms, m.platforms[0])
	}
	text, err := json.Marshal(index)
	if err != nil {
		return image{}, err
	}
	f, err := i.write(ctx, text)
	if err != nil {
		return image{}, err
	}
	merged.desc = f.descriptor(index.MediaType)
	return merged, i.link(f)
}
