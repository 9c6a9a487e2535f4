package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"

	"kubekey/pkg/artifact"
)

// refName is the annotation that names an image of a layout.
const refName = "org.opencontainers.image.ref.name"

// layoutPlace is an image of an OCI layout.
type layoutPlace struct {
	path, name string
	lock       *sync.Mutex // of the layout's index
	locks      *locks      // of its blobs

	mu       sync.Mutex
	subjects []v1.Hash       // whose attachments are to be entered into the index
	entries  []v1.Descriptor // those
}

func (l *layoutPlace) label() string  { return l.name }
func (l *layoutPlace) unique() string { return l.String() }
func (l *layoutPlace) String() string {
	return strings.TrimSuffix("oci:"+l.path+":"+l.name, ":")
}

func (l *layoutPlace) read(context.Context) (picture, error) {
	desc, err := l.find()
	if err != nil {
		return picture{}, err
	}
	if desc == nil {
		return picture{}, fmt.Errorf("the layout %s has no image %s", l.path, l.name)
	}
	if err := l.verify(*desc, true, picture{}); err != nil {
		return picture{}, err
	}
	root, err := layout.ImageIndexFromPath(l.path)
	if err != nil {
		return picture{}, err
	}
	if desc.MediaType.IsIndex() {
		index, err := root.ImageIndex(desc.Digest)
		return picture{index: index}, err
	}
	image, err := root.Image(desc.Digest)
	return picture{image: image}, err
}

// find returns the image of the name, nil if there is none. Without a name it
// is the only one there is.
func (l *layoutPlace) find() (*v1.Descriptor, error) {
	index, err := l.manifests()
	if err != nil {
		return nil, err
	}
	var found []v1.Descriptor
	var names []string
	for _, d := range index.Manifests {
		if to, _ := artifact.AttachedTo(d.Annotations[refName]); to != "" && l.name == "" {
			continue
		}
		names = append(names, d.Annotations[refName])
		if l.name == "" || d.Annotations[refName] == l.name {
			found = append(found, d)
		}
	}
	switch {
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, fmt.Errorf("the layout %s has several images, name one: %s", l.path, strings.Join(names, ", "))
	}
	return &found[0], nil
}

func (l *layoutPlace) manifests() (*v1.IndexManifest, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	root, err := layout.ImageIndexFromPath(l.path)
	if err != nil {
		return nil, fmt.Errorf("read the layout %s: %w", l.path, err)
	}
	m, err := root.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w: delete it, and run this again", filepath.Join(l.path, "index.json"), err)
	}
	return m, nil
}

// verify checks that a blob and everything of p that it names exist with their sizes,
// and if asked with their digests.
func (l *layoutPlace) verify(d v1.Descriptor, digests bool, p picture) error {
	if err := l.verifyBlob(d, digests); err != nil {
		return err
	}
	if !d.MediaType.IsIndex() && !d.MediaType.IsImage() {
		return nil
	}
	content, err := os.ReadFile(l.blob(d.Digest))
	if err != nil {
		return err
	}
	children, err := childrenOf(d, content)
	if err != nil {
		return fmt.Errorf("the manifest %s: %w", d.Digest, err)
	}
	for _, child := range children {
		if d.MediaType.IsIndex() && !p.has(child.Digest) {
			continue
		}
		if err := l.verify(child, digests, p); err != nil {
			return err
		}
	}
	return nil
}

// childrenOf lists what a manifest names and a layout must have.
func childrenOf(d v1.Descriptor, content []byte) ([]v1.Descriptor, error) {
	if d.MediaType.IsIndex() {
		m, err := v1.ParseIndexManifest(strings.NewReader(string(content)))
		if err != nil {
			return nil, err
		}
		return m.Manifests, nil
	}
	m, err := v1.ParseManifest(strings.NewReader(string(content)))
	if err != nil {
		return nil, err
	}
	all := []v1.Descriptor{m.Config}
	for _, layer := range m.Layers {
		if layer.MediaType.IsDistributable() {
			all = append(all, layer)
		}
	}
	return all, nil
}

func (l *layoutPlace) blob(h v1.Hash) string {
	return filepath.Join(l.path, "blobs", h.Algorithm, h.Hex)
}

func (l *layoutPlace) verifyBlob(d v1.Descriptor, digest bool) error {
	f, err := os.Open(l.blob(d.Digest))
	if err != nil {
		return fmt.Errorf("the layout is not whole: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() != d.Size {
		return &damagedError{d.Digest, fmt.Sprintf("has %d bytes instead of %d", info.Size(), d.Size)}
	}
	if !digest {
		return nil
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != d.Digest.Hex {
		return &damagedError{d.Digest, "has the digest sha256:" + got}
	}
	return nil
}

// damagedError is content that does not match its digest.
type damagedError struct {
	digest v1.Hash
	how    string
}

func (e *damagedError) Error() string { return fmt.Sprintf("%s is damaged: it %s", e.digest, e.how) }

func (l *layoutPlace) has(_ context.Context, p picture) (bool, error) {
	desc, err := l.find()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || desc == nil {
		return false, err
	}
	want, err := p.digest()
	if err != nil {
		return false, err
	}
	return desc.Digest == want && l.verify(*desc, false, p) == nil, nil
}

func (l *layoutPlace) write(ctx context.Context, p picture, progress func(done, total int64)) error {
	if err := l.fetchAll(ctx, p, progress); err != nil {
		return err
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.enter(p)
}

// open opens the layout, and makes it if it is missing.
func (l *layoutPlace) open() (layout.Path, error) {
	path, err := layout.FromPath(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return layout.Write(l.path, empty.Index)
	}
	return path, err
}

// enter puts the image into the layout's index under its name, once all its
// blobs exist.
func (l *layoutPlace) enter(p picture) error {
	digest, err := p.digest()
	if err != nil {
		return err
	}
	size, err := os.Stat(l.blob(digest))
	if err != nil {
		return err
	}
	kind, err := p.mediaType()
	if err != nil {
		return err
	}
	desc := v1.Descriptor{MediaType: kind, Digest: digest, Size: size.Size(),
		Annotations: map[string]string{refName: l.name}}
	if err := l.verify(desc, false, p); err != nil {
		return err
	}
	return l.replace(match.Name(l.name), desc)
}
