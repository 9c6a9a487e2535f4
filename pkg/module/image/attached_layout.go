package image

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"

	"kubekey/pkg/artifact"
)

// A layout has what is attached to a manifest under the names of artifact.AttachedName: cosign's tags, and the index of
// referrers, which is also the record that a registry was asked. It exists if nothing is attached, too. So an export
// that is repeated with the same cache has the same bytes whatever was attached since, and the registry is not asked
// again. What is attached later comes with an empty cache.

// skippedAnnotation of the record has what was not copied, a line each.
const skippedAnnotation = "kk.skipped"

// repository implements target.
func (l *layoutPlace) repository() string { return l.path + ":" + artifact.Repository(l.name) }

// known implements target.
func (l *layoutPlace) known(to v1.Hash) (*attachments, bool) {
	index, err := l.manifests()
	if err != nil {
		return nil, false // it is asked for
	}
	a, recorded := &attachments{}, false
	for _, d := range index.Manifests {
		if !l.isAttached(d, to) {
			continue
		}
		if err := l.verify(d, false, picture{}); err != nil {
			return nil, false // it is fetched again
		}
		if d.Annotations[refName] == artifact.AttachedName(l.name, to, "") {
			recorded = true
			if text := d.Annotations[skippedAnnotation]; text != "" {
				a.skipped = strings.Split(text, "\n")
			}
		}
	}
	return a, recorded
}

// isAttached reports whether an entry of the index is attached to a manifest of this repository.
func (l *layoutPlace) isAttached(d v1.Descriptor, to v1.Hash) bool {
	name := d.Annotations[refName]
	digest, _ := artifact.AttachedTo(name)
	return digest == to.String() && artifact.Repository(name) == artifact.Repository(l.name)
}

// attached implements source.
func (l *layoutPlace) attached(_ context.Context, to v1.Hash) (*attachments, error) {
	index, err := l.manifests()
	if err != nil {
		return nil, err
	}
	root, err := layout.ImageIndexFromPath(l.path)
	if err != nil {
		return nil, err
	}
	a := &attachments{}
	for _, d := range index.Manifests {
		if !l.isAttached(d, to) {
			continue
		}
		if err := l.verify(d, true, picture{}); err != nil {
			return nil, err
		}
		if err := a.addOf(root, d, to); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// addOf adds what an entry of a layout's index is: something with a tag, or an index of referrers.
func (a *attachments) addOf(layout v1.ImageIndex, d v1.Descriptor, to v1.Hash) error {
	_, suffix := artifact.AttachedTo(d.Annotations[refName])
	if d.MediaType.IsIndex() {
		index, err := layout.ImageIndex(d.Digest)
		if err != nil {
			return err
		}
		return a.addIndex(index, suffix, to)
	}
	image, err := layout.Image(d.Digest)
	if err != nil {
		return err
	}
	return a.addImage(image, suffix, to)
}

// addIndex adds the manifests of an index of referrers, with what the index says about them.
func (a *attachments) addIndex(index v1.ImageIndex, suffix string, to v1.Hash) error {
	m, err := index.IndexManifest()
	if err != nil {
		return err
	}
	if suffix != "" {
		a.skip(tagOf(to, suffix), notImage(m.MediaType))
		return nil
	}
	for _, d := range m.Manifests {
		if !d.MediaType.IsImage() {
			a.skip(d.Digest.String(), notImage(d.MediaType))
			continue
		}
		image, err := index.Image(d.Digest)
		if err != nil {
			return err
		}
		manifest, err := image.Manifest()
		if err != nil {
			return err
		}
		if manifest.Subject == nil || manifest.Subject.Digest != to {
			a.skip(d.Digest.String(), "does not name "+to.String()+" as its subject: it is not copied")
			continue
		}
		a.all = append(a.all, attachment{d, "", picture{image: image}})
	}
	return nil
}

// addImage adds something with a tag of cosign's.
func (a *attachments) addImage(image v1.Image, suffix string, to v1.Hash) error {
	d, err := partial.Descriptor(image)
	switch {
	case err != nil:
		return err
	case suffix == "":
		a.skip(tagOf(to, suffix), "is not a list of referrers: it is not copied")
	default:
		a.all = append(a.all, attachment{*d, suffix, picture{image: image}})
	}
	return nil
}

// attach implements target.
func (l *layoutPlace) attach(ctx context.Context, to v1.Hash, a *attachments) (changed bool, err error) {
	var entries []v1.Descriptor
	for _, at := range a.all {
		if err := l.fetchAll(ctx, at.picture, func(int64, int64) {}); err != nil {
			return false, err
		}
		if at.suffix != "" {
			entries = append(entries, v1.Descriptor{MediaType: at.MediaType, Digest: at.Digest, Size: at.Size,
				Annotations: map[string]string{refName: artifact.AttachedName(l.name, to, at.suffix)}})
		}
	}
	record := a.referrers()
	text, err := json.Marshal(record)
	if err != nil {
		return false, err
	}
	if err := l.put(ctx, text); err != nil {
		return false, err
	}
	digest, size, err := v1.SHA256(strings.NewReader(string(text)))
	if err != nil {
		return false, err
	}
	entry := v1.Descriptor{MediaType: record.MediaType, Digest: digest, Size: size,
		Annotations: map[string]string{refName: artifact.AttachedName(l.name, to, "")}}
	if len(a.skipped) > 0 {
		entry.Annotations[skippedAnnotation] = strings.ReplaceAll(strings.Join(a.skipped, "\n"), "\r", " ")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subjects, l.entries = append(l.subjects, to), append(l.entries, append(entries, entry)...)
	return len(a.all) > 0, nil
}

// record implements target: it enters everything into the layout's index at once.
func (l *layoutPlace) record() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.subjects) == 0 {
		return nil
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	old := func(d v1.Descriptor) bool {
		return slices.ContainsFunc(l.subjects, func(to v1.Hash) bool { return l.isAttached(d, to) })
	}
	if err := l.replace(old, l.entries...); err != nil {
		return err
	}
	l.subjects, l.entries = nil, nil
	return nil
}

// replace replaces entries of the layout's index, which is always whole: it is renamed.
func (l *layoutPlace) replace(old func(v1.Descriptor) bool, entries ...v1.Descriptor) error {
	if _, err := l.open(); err != nil {
		return err
	}
	root, err := layout.ImageIndexFromPath(l.path)
	if err != nil {
		return err
	}
	index, err := root.IndexManifest()
	if err != nil {
		return err
	}
	index = index.DeepCopy()
	index.Manifests = append(slices.DeleteFunc(index.Manifests, old), entries...)
	text, err := json.MarshalIndent(index, "", "   ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(l.path, ".index.json.*.part")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(l.path, "index.json"))
	}
	if err != nil {
		if gone := os.Remove(f.Name()); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}
