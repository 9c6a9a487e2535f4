package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"kubekey/pkg/artifact"
)

// picture is what a name stands for: an image for one platform, or an index.
type picture struct {
	image v1.Image
	index v1.ImageIndex
	made  bool       // the index was made here, of some of the images of another one
	only  []v1.Hash  // the images of the index to copy; nil for all
	blobs blobReader // resumes blobs where the source can; nil where it cannot
}

// has reports whether an image of the index is copied.
func (p picture) has(h v1.Hash) bool { return p.only == nil || slices.Contains(p.only, h) }

func (p picture) digest() (v1.Hash, error) {
	if p.index != nil {
		return p.index.Digest()
	}
	return p.image.Digest()
}

// place is where an image is or goes.
type place interface {
	fmt.Stringer
	// unique is the same for places that cannot both be written.
	unique() string
	// label is the name of the image there, "" for none.
	label() string
	read(ctx context.Context) (picture, error)
	// has reports whether p exists completely.
	has(ctx context.Context, p picture) (bool, error)
	write(ctx context.Context, p picture, report func(done, total int64)) error
}

// places makes places of their names.
type places struct {
	access  *access
	locks   locks
	offline artifact.Set // that sources are read from; nil without one
	// what the files in offline have attached to images
	attachments map[*artifact.File]artifact.Attachments
}

// source makes the place of a source.
func (ps *places) source(text string) (place, error) {
	if ps.offline == nil {
		return ps.parse(text)
	}
	return &offlinePlace{name: text, set: ps.offline, attachments: ps.attachments}, nil
}

func (ps *places) parse(text string) (place, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "oci", "docker-archive":
		path, label, named := strings.Cut(rest, ":")
		if path == "" || named && label == "" {
			return nil, fmt.Errorf("%q lacks a path or a name: it is %s:PATH or %s:PATH:NAME", text, kind, kind)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if kind == "oci" {
			return &layoutPlace{path: abs, name: label, lock: ps.locks.of(abs), locks: &ps.locks}, nil
		}
		return newArchive(abs, label)
	case "docker":
		text = strings.TrimPrefix(text, "docker://")
	}
	ref, err := parseReference(text)
	if err == nil && ps.access != nil && ps.access.plain[ref.Context().RegistryStr()] {
		ref, err = parseReference(text, name.Insecure) // without that, the library uses HTTP for private addresses only
	}
	if err != nil {
		return nil, err
	}
	return &registryPlace{ref: ref, access: ps.access}, nil
}

var pathPart = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)

// parseReference reads a name as docker does. The library takes an empty tag
// for latest, and an empty part of a path for a part: here they are errors.
func parseReference(text string, options ...name.Option) (name.Reference, error) {
	ref, err := name.ParseReference(text, options...)
	if err != nil {
		return nil, fmt.Errorf("%q is not the name of an image: %w", text, err)
	}
	if base, _, _ := strings.Cut(text, "@"); strings.HasSuffix(base, ":") {
		return nil, fmt.Errorf("%q has an empty tag", text)
	}
	for part := range strings.SplitSeq(ref.Context().RepositoryStr(), "/") {
		if !pathPart.MatchString(part) {
			return nil, fmt.Errorf("%q is not the name of an image: %q is no part of a repository's path", text, part)
		}
	}
	return ref, nil
}

// registryPlace is an image of a registry.
type registryPlace struct {
	ref    name.Reference
	access *access

	mu   sync.Mutex
	http *http.Client // of the repository; nil until it is made
}

func (r *registryPlace) String() string { return artifact.FullName(r.ref) }
func (r *registryPlace) unique() string { return artifact.FullName(r.ref) }
func (r *registryPlace) label() string  { return artifact.FullName(r.ref) }

func (r *registryPlace) read(ctx context.Context) (picture, error) {
	desc, err := remote.Get(r.ref, r.access.remote(ctx)...)
	if err != nil {
		return picture{}, err
	}
	blobs, err := r.blobs(ctx)
	if err != nil {
		return picture{}, err
	}
	if desc.MediaType.IsIndex() {
		index, err := desc.ImageIndex()
		return picture{index: index, blobs: blobs}, err
	}
	image, err := desc.Image()
	return picture{image: image, blobs: blobs}, err
}

func (r *registryPlace) has(ctx context.Context, p picture) (bool, error) {
	want, err := p.digest()
	if err != nil {
		return false, err
	}
	desc, err := remote.Head(r.ref, r.access.remote(ctx)...)
	if missing(err) {
		return false, nil
	}
	if rejected(err) { // the answer to a HEAD does not say why
		if full, reason := remote.Get(r.ref, r.access.remote(ctx)...); reason != nil {
			err = reason
		} else {
			desc, err = &full.Descriptor, nil
		}
	}
	if err != nil {
		return false, err
	}
	return desc.Digest == want, nil
}

// rejected reports whether a registry has rejected a request.
func rejected(err error) bool {
	var said *transport.Error
	return errors.As(err, &said) && said.StatusCode < 500
}

// missing reports whether a registry has no such image.
func missing(err error) bool {
	var said *transport.Error
	return errors.As(err, &said) && said.StatusCode == http.StatusNotFound
}

func (r *registryPlace) write(ctx context.Context, p picture, report func(done, total int64)) error {
	updates := make(chan v1.Update, 64)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for u := range updates {
			report(u.Complete, u.Total)
		}
	}()
	o := append(r.access.remote(ctx), remote.WithProgress(updates))
	var err error
	if p.index != nil {
		err = remote.WriteIndex(r.ref, p.index, o...)
	} else {
		err = remote.Write(r.ref, p.image, o...)
	}
	<-finished
	return err
}
