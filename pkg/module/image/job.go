package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// jobShared is what all jobs of a task have in common.
type jobShared struct {
	platforms []v1.Platform
	attempts  int
	backoff   time.Duration
	check     bool
	sparse    bool // keep the index, with some of its images
	sizes     bool // in check mode, measure images
	progress  func(what string, done, total int64)
	counted   sync.Map // digests of blobs whose size is known
	attached  bool     // copy what is attached to images, too
	asked     sync.Map // repository and digest of a manifest → *once, for what is attached to it
}

// job is one image and what became of it.
type job struct {
	*jobShared
	src, dest place

	digest   string
	size     int64 // if it is measured: of the blobs that no image before it has
	changed  bool
	warnings []string
	err      error
}

func newJob(p Pair, ps *places, s *jobShared) (*job, error) {
	src, err := ps.source(p.Src)
	if err != nil {
		return nil, err
	}
	dest, err := ps.parse(p.Dest)
	if err != nil {
		return nil, err
	}
	if err := nameDest(src, dest); err != nil {
		return nil, err
	}
	return &job{jobShared: s, src: src, dest: dest}, nil
}

// nameDest gives a destination without a name that of the source.
func nameDest(src, dest place) error {
	if dest.label() != "" {
		return nil
	}
	label := src.label()
	if label == "" {
		return fmt.Errorf("%s needs a name for the image: neither it nor %s has one", dest, src)
	}
	switch d := dest.(type) {
	case *layoutPlace:
		d.name = label
	case *archivePlace:
		tag, err := name.NewTag(label)
		if err != nil {
			return fmt.Errorf("%s needs a name for the image: %w", dest, err)
		}
		d.tag = &tag
	}
	return nil
}

// run copies the image, trying again what may pass.
func (j *job) run(ctx context.Context) {
	wait := j.backoff
	for n := 1; ; n++ {
		j.err = j.copy(ctx)
		if j.err == nil || n >= j.attempts || !passing(j.err) || ctx.Err() != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(wait, time.Minute)):
			wait *= 2
		}
	}
}

// passing reports whether an error is transient.
func passing(err error) bool {
	var said *transport.Error
	if errors.As(err, &said) {
		return said.StatusCode >= 500 || said.StatusCode == http.StatusTooManyRequests ||
			said.StatusCode == http.StatusRequestTimeout
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func (j *job) copy(ctx context.Context) error {
	p, err := j.read(ctx)
	if err != nil {
		return j.tolerate(err, errors.Is(err, fs.ErrNotExist))
	}
	digest, err := p.digest()
	if err != nil {
		return err
	}
	j.digest = digest.String()
	if j.check && j.sizes {
		if err := j.measure(p); err != nil {
			return err
		}
	}
	there, err := j.dest.has(ctx, p)
	if err != nil {
		return j.tolerate(fmt.Errorf("inspect the destination: %w", err), unreached(err) || lacksProject(err))
	}
	if j.check {
		j.changed = !there
		return nil
	}
	if !there {
		report := func(done, total int64) { j.progress(j.dest.String(), done, total) }
		if err := j.dest.write(ctx, p, report); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		j.changed = true
	}
	return j.copyAttached(ctx, p)
}

// measure adds up the blobs of the image. What images share counts once.
func (j *job) measure(p picture) error {
	images, _, err := p.images()
	if err != nil {
		return err
	}
	for _, image := range images {
		m, err := image.Manifest()
		if err != nil {
			return err
		}
		for _, d := range append(m.Layers, m.Config) {
			if _, counted := j.counted.LoadOrStore(d.Digest, true); !counted && d.MediaType.IsDistributable() {
				j.size += d.Size
			}
		}
	}
	return nil
}

// tolerate turns an error into a warning in check mode, if an earlier task may create
// what is missing.
func (j *job) tolerate(err error, may bool) error {
	if !j.check || !may {
		return err
	}
	j.changed = true
	j.warnings = append(j.warnings,
		fmt.Sprintf("%s: %v (check mode: assuming that an earlier task fixes it)", j.dest, err))
	return nil
}

func unreached(err error) bool {
	var network *net.OpError
	return errors.As(err, &network)
}

// lacksProject reports whether a registry has rejected a repository for want of what has to be created first: "project
// p not found", as Harbor says to users and to those whom it does not know.
func lacksProject(err error) bool {
	return rejected(err) && strings.Contains(err.Error(), " not found")
}

// read reads the source, and selects the platforms.
func (j *job) read(ctx context.Context) (picture, error) {
	p, err := j.src.read(ctx)
	if err != nil {
		return picture{}, fmt.Errorf("read the source: %w", err)
	}
	if len(j.platforms) == 0 {
		return p, nil
	}
	if p.index != nil {
		return j.choose(p)
	}
	return p, j.suits(p.image)
}

// suits rejects an image for another platform.
func (j *job) suits(image v1.Image) error {
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	is := config.Platform()
	if len(j.platforms) == 1 && is != nil && is.Satisfies(j.platforms[0]) {
		return nil
	}
	return fmt.Errorf("the source is for %s only, not for %s", is, listed(j.platforms))
}

func listed(platforms []v1.Platform) string {
	var words []string
	for _, p := range platforms {
		words = append(words, p.String())
	}
	return strings.Join(words, ", ")
}

// choose selects the images for the platforms from an index.
func (j *job) choose(p picture) (picture, error) {
	m, err := p.index.IndexManifest()
	if err != nil {
		return picture{}, err
	}
	var take []v1.Hash
	var lacks []v1.Platform
	for _, want := range j.platforms {
		i := slices.IndexFunc(m.Manifests,
			func(d v1.Descriptor) bool { return d.Platform != nil && d.Platform.Satisfies(want) })
		if i < 0 {
			lacks = append(lacks, want)
			continue
		}
		take = append(take, m.Manifests[i].Digest)
	}
	switch {
	case len(lacks) > 0:
		return picture{}, fmt.Errorf("the source has no image for %s", listed(lacks))
	case j.sparse:
		return picture{index: p.index, only: withAttached(m, take), blobs: p.blobs}, nil
	case len(take) == 1:
		image, err := p.index.Image(take[0])
		return picture{image: image, blobs: p.blobs}, err
	}
	return reduce(p, m, take), nil
}

// aboutImage is BuildKit's annotation of an attestation in an index: the digest of the image that it is about.
const aboutImage = "vnd.docker.reference.digest"

// withAttached adds what an index has about some of its images: attestations, as BuildKit adds them.
func withAttached(m *v1.IndexManifest, images []v1.Hash) []v1.Hash {
	all := slices.Clone(images)
	for _, d := range m.Manifests {
		about, err := v1.NewHash(d.Annotations[aboutImage])
		if err == nil && slices.Contains(images, about) {
			all = append(all, d.Digest)
		}
	}
	return all
}

// reduce is an index with only some of its images; if these are all, it is the
// index itself, with its digest.
func reduce(p picture, m *v1.IndexManifest, take []v1.Hash) picture {
	drop := func(d v1.Descriptor) bool { return !slices.Contains(take, d.Digest) }
	if !slices.ContainsFunc(m.Manifests, drop) {
		return p
	}
	return picture{index: mutate.RemoveManifests(p.index, drop), made: true, blobs: p.blobs}
}
