package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kubekey/pkg/artifact"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func (p picture) mediaType() (types.MediaType, error) {
	if p.index != nil {
		return p.index.MediaType()
	}
	return p.image.MediaType()
}

// archivePlace is a file as docker save writes it, with one image.
type archivePlace struct {
	path string
	tag  *name.Tag // nil: the only image there is
}

func newArchive(path, label string) (place, error) {
	if label == "" {
		return &archivePlace{path: path}, nil
	}
	ref, err := parseReference(label)
	if err != nil {
		return nil, err
	}
	tag, ok := ref.(name.Tag)
	if !ok {
		return nil, fmt.Errorf("%q has a digest: an archive names images by tags", label)
	}
	return &archivePlace{path: path, tag: &tag}, nil
}

func (a *archivePlace) unique() string { return a.path }
func (a *archivePlace) String() string {
	if a.tag == nil {
		return "docker-archive:" + a.path
	}
	return "docker-archive:" + a.path + ":" + artifact.FullName(a.tag)
}

func (a *archivePlace) label() string {
	if a.tag == nil {
		return ""
	}
	return artifact.FullName(a.tag)
}

func (a *archivePlace) read(context.Context) (picture, error) {
	image, err := tarball.ImageFromPath(a.path, a.tag)
	if err != nil {
		return picture{}, fmt.Errorf("read %s: %w", a, err)
	}
	if err := validate.Image(image); err != nil {
		return picture{}, fmt.Errorf("%s is damaged: %w", a, err)
	}
	return picture{image: image}, nil
}

// has compares configurations: layers are compressed again in an archive, so
// that the digest of the manifest may be another.
func (a *archivePlace) has(_ context.Context, p picture) (bool, error) {
	if p.index != nil {
		return false, errors.New("an archive holds an image for one platform: name one in platforms")
	}
	old, err := tarball.ImageFromPath(a.path, a.tag)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, nil //nolint:nilerr // another image, or no archive: it is replaced
	}
	was, err := old.ConfigName()
	if err != nil {
		return false, nil //nolint:nilerr // it is replaced
	}
	want, err := p.image.ConfigName()
	return was == want, err
}

func (a *archivePlace) write(_ context.Context, p picture, _ func(done, total int64)) error {
	if err := os.MkdirAll(filepath.Dir(a.path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(a.path), ".kk-*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	err = tarball.Write(*a.tag, p.image, f)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), a.path)
}
