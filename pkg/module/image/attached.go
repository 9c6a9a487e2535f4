package image

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/module"
)

// Limits of what is attached to one manifest, so that a registry can neither fill the disk nor keep a run busy. What
// exceeds them is not copied, and there is a warning.
const (
	maxReferrers       = 64       // manifests that name it as their subject
	maxAttachment      = 16 << 20 // bytes of one, with everything that it names
	maxAttachmentBlobs = 1024     // that one names
	maxDocument        = 4 << 20  // bytes of a manifest, of all referrers' manifests together, and of a page of a list
	maxObjects         = 50_000   // of a document: in memory they need a hundred times its bytes
	maxPages           = 16       // of a list
	maxReason          = 300      // bytes of why something is not copied, which can quote what a registry has sent
)

// suffixes are those of cosign's tags: sha256-HEX.sig and so on.
func suffixes() []string { return []string{".att", ".sbom", ".sig"} }

// attachment is something that is attached to a manifest.
type attachment struct {
	v1.Descriptor        // as a list of referrers has it
	suffix        string // of its tag; "" for a manifest that names its subject
	picture       picture
}

// attachments is what is attached to one manifest: those with tags by suffix, and then the others by digest.
type attachments struct {
	all     []attachment
	skipped []string // what is not copied, and why
}

// skip notes something that is not copied.
func (a *attachments) skip(what, why string) {
	if len(why) > maxReason {
		why = strings.ToValidUTF8(why[:maxReason], "") + "..."
	}
	a.skipped = append(a.skipped, what+" "+why)
}

// referrers is the index of those that name their subject, as the distribution specification has it for registries
// that do not list them ("Referrers Tag Schema").
func (a *attachments) referrers() v1.IndexManifest {
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}
	for _, at := range a.all {
		if at.suffix == "" {
			index.Manifests = append(index.Manifests, at.Descriptor)
		}
	}
	return index
}

// source is a place whose images can have something attached.
type source interface {
	attached(ctx context.Context, to v1.Hash) (*attachments, error)
}

// target is a place that keeps what is attached to its images.
type target interface {
	// repository is the same for images that share what is attached to them.
	repository() string
	// known returns what is attached to a manifest if the place knows that, so that no source is asked.
	known(to v1.Hash) (a *attachments, ok bool)
	// attach adds what is attached to a manifest. It can be called concurrently.
	attach(ctx context.Context, to v1.Hash, a *attachments) (changed bool, err error)
	// record completes what attach has added.
	record() error
}

// copyAttached copies what is attached to the index and to the images that are copied. It asks for that of a manifest
// once in a run, however many tags it has.
func (j *job) copyAttached(ctx context.Context, p picture) error {
	from, readable := j.src.(source)
	to, writable := j.dest.(target)
	if !j.attached || !readable || !writable {
		return nil
	}
	subjects, err := p.subjects()
	if err != nil {
		return err
	}
	done := make([]copied, len(subjects))
	module.Parallel(len(subjects), blobsAtOnce, func(i int) { done[i] = j.copyAttachedTo(ctx, from, to, subjects[i]) })
	if err := to.record(); err != nil {
		return err
	}
	for i, c := range done {
		if c.err != nil {
			return fmt.Errorf("what is attached to %s: %w", subjects[i], c.err)
		}
	}
	for _, c := range done {
		j.changed = j.changed || c.changed
		for _, text := range c.skipped {
			j.warnings = append(j.warnings, fmt.Sprintf("%s: %s", j.src, text))
		}
	}
	return nil
}

// copied is what became of what is attached to a manifest.
type copied struct {
	changed bool
	skipped []string
	err     error
}

// once is work that is done once.
type once struct {
	mu   sync.Mutex
	done bool
}

func (j *job) copyAttachedTo(ctx context.Context, from source, to target, subject v1.Hash) (c copied) {
	stored, _ := j.asked.LoadOrStore(to.repository()+"@"+subject.String(), &once{})
	work, _ := stored.(*once)
	work.mu.Lock()
	defer work.mu.Unlock()
	if work.done {
		return c
	}
	if a, ok := to.known(subject); ok {
		work.done = true
		return copied{skipped: a.skipped}
	}
	a, err := from.attached(ctx, subject)
	if err != nil {
		return copied{err: err}
	}
	c.changed, c.err = to.attach(ctx, subject, a)
	c.skipped = a.skipped
	work.done = c.err == nil
	return c
}

// subjects lists the manifests of a picture that a registry can have attached something to: the index, unless it is
// made here, and those of its images.
func (p picture) subjects() ([]v1.Hash, error) {
	var all []v1.Hash
	if !p.made {
		digest, err := p.digest()
		if err != nil {
			return nil, err
		}
		all = append(all, digest)
	}
	if p.index == nil {
		return all, nil
	}
	m, err := p.index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range m.Manifests {
		if p.has(d.Digest) && d.Annotations[aboutImage] == "" && !slices.Contains(all, d.Digest) {
			all = append(all, d.Digest)
		}
	}
	return all, nil
}
