package image

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/artifact"
)

// offlinePlace is an image of an offline file.
type offlinePlace struct {
	name string // as it is given
	set  artifact.Set
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
	return picture{image: image, index: index}, err
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
