package image

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/artifact"
)

// offlinePlace is an image of an offline file.
type offlinePlace struct {
	name        string // as it is given
	set         artifact.Set
	attachments map[*artifact.File]artifact.Attachments
}

func (o *offlinePlace) label() string  { return o.name }
func (o *offlinePlace) unique() string { return o.name }
func (o *offlinePlace) String() string { return o.name }

func (o *offlinePlace) read(context.Context) (picture, error) {
	f, item, ok := o.set.Image(o.name)
	if !ok {
		return picture{}, fmt.Errorf("it %w %s", artifact.ErrMissing, paths(o.set))
	}
	image, index, err := f.OCI(item)
	if err != nil || index == nil {
		return picture{image: image}, err
	}
	m, err := index.IndexManifest()
	if err != nil {
		return picture{}, err
	}
	var has []v1.Hash
	for _, d := range m.Manifests {
		if slices.Contains(item.Blobs, d.Digest.String()) {
			has = append(has, d.Digest)
		}
	}
	return reduce(picture{index: index}, m, has), nil
}

// attached implements source.
func (o *offlinePlace) attached(_ context.Context, to v1.Hash) (*attachments, error) {
	f, item, ok := o.set.Image(o.name)
	if !ok {
		return nil, fmt.Errorf("it %w %s", artifact.ErrMissing, paths(o.set))
	}
	a := &attachments{}
	for _, i := range o.attachments[f].Of(item.Name, to.String()) {
		image, index, err := f.OCI(i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i, err)
		}
		_, suffix := artifact.AttachedTo(i.Name)
		if index != nil {
			err = a.addIndex(index, suffix, to)
		} else {
			err = a.addImage(image, suffix, to)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", i, err)
		}
	}
	return a, nil
}

func paths(set artifact.Set) string {
	var all []string
	for _, f := range set {
		all = append(all, f.Path)
	}
	return strings.Join(all, ", ")
}

var errReadOnly = errors.New("nothing is written to an offline file")

func (o *offlinePlace) has(context.Context, picture) (bool, error) { return false, errReadOnly }

func (o *offlinePlace) write(context.Context, picture, func(done, total int64)) error {
	return errReadOnly
}
