package artifact

import (
	"context"
	"regexp"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// What a registry has attached to an image, signatures and attestations, is an image item of its own, without
// platforms, in the repository of the image and under a tag that names the manifest or index that it is attached to:
//
//   - sha256-HEX.sig, .att and .sbom, as cosign names them;
//   - sha256-HEX, an index of the manifests that name that one as their subject: the tag that the distribution
//     specification 1.1 has for registries without the referrers API ("Referrers Tag Schema").
//
// So readers of OCI layouts find it under the name that it has in a registry, and the format of the file is the same.

// attachedTag is the end of such a name.
var attachedTag = regexp.MustCompile(`:sha256-([0-9a-f]{64})(\.[a-z]+)?$`)

// AttachedName returns the name of what is attached to a manifest in the repository of an image. suffix is that of the
// tag, .sig; "" names the index of the manifests that have this one as their subject.
func AttachedName(ref string, to v1.Hash, suffix string) string {
	return Repository(ref) + ":" + to.Algorithm + "-" + to.Hex + suffix
}

// AttachedTo returns the digest of the manifest that something with this name is attached to, as AttachedName makes it,
// and the suffix of its tag. digest is "" for any other name.
func AttachedTo(name string) (digest, suffix string) {
	m := attachedTag.FindStringSubmatch(name)
	if m == nil {
		return "", ""
	}
	return "sha256:" + m[1], m[2]
}

// IsAttached reports whether an item is attached to an image, and no image that a host can run.
func (i Item) IsAttached() bool {
	digest, _ := AttachedTo(i.Name)
	return i.Kind == KindImage && digest != ""
}

// Attachments is what is attached to images, by repository and digest.
type Attachments map[string][]Item

// Attachments finds what is attached to the images of the manifest.
func (m *Manifest) Attachments() Attachments {
	found := Attachments{}
	for _, i := range m.Items {
		if i.IsAttached() {
			digest, _ := AttachedTo(i.Name)
			key := Repository(i.Name) + "@" + digest
			found[key] = append(found[key], i)
		}
	}
	return found
}

// Of returns what is attached to a manifest or index in the repository of an image.
func (a Attachments) Of(ref, digest string) []Item { return a[Repository(ref)+"@"+digest] }

// OfImage returns what is attached to an image: to its index, and to its manifests that the file has.
func (a Attachments) OfImage(i Item) []Item {
	var all []Item
	if i.IsAttached() {
		return nil
	}
	for _, digest := range i.Blobs {
		all = append(all, a.Of(i.Name, digest)...)
	}
	return all
}

// UnverifiedAnnotation marks, in the index of a layout, what is attached to an image and came from an unknown source:
// the value is true.
const UnverifiedAnnotation = "kk.unverified"

// addAttached adds what an OCI layout has that is attached to an image with these blobs.
func (b *Builder) addAttached(ctx context.Context, image Item, list []v1.Descriptor, dir string,
	blobs map[Blob]bool) error {
	has := make(map[string]bool, len(blobs))
	for blob := range blobs {
		has[blob.Digest] = true
	}
	for _, d := range list {
		name := d.Annotations[refName]
		if to, _ := AttachedTo(name); to == "" || !has[to] || Repository(name) != Repository(image.Name) {
			continue
		}
		w := walkLayout(ctx, dir, nil)
		w.attached = true
		item := Item{Kind: KindImage, Name: name,
			Unverified: image.Unverified || d.Annotations[UnverifiedAnnotation] == "true"}
		if err := w.collect(d, 0); err != nil {
			return named(item.String(), err)
		}
		if d.MediaType.IsIndex() && len(w.blobs) == 1 {
			continue // the cache records like this that nothing is attached
		}
		b.addOnce(w.item(item, d), w.sources(dir))
	}
	return nil
}

// addOnce adds what is attached to an image, unless it is known: tags can share an image.
func (b *Builder) addOnce(item Item, blobs map[Blob]opener) {
	b.mu.Lock()
	known := b.attached[item.key()]
	b.attached[item.key()] = true
	b.mu.Unlock()
	if !known {
		b.add(item, blobs)
	}
}

// addKnownAttached adds what the older file has attached to images that are known from it alone. What the cache has
// counts more: so the order of arrival does not matter.
func (b *Builder) addKnownAttached() {
	b.mu.Lock()
	known := b.known
	b.known = nil
	b.mu.Unlock()
	for _, k := range known {
		b.addOnce(k.item, k.blobs)
	}
}

// knownItem is an item of an older file.
type knownItem struct {
	item  Item
	blobs map[Blob]opener
}

// item completes the item of an image that was walked through.
func (w *imageWalk) item(i Item, root v1.Descriptor) Item {
	i.MediaType, i.SHA256, i.Blob = root.MediaType, root.Digest.Hex, root.Digest.String()
	for blob := range w.blobs {
		i.Blobs = append(i.Blobs, blob.Digest)
		i.Size += blob.Size
	}
	slices.Sort(i.Blobs)
	return i
}

// sources returns what opens the blobs of an image in a layout.
func (w *imageWalk) sources(dir string) map[Blob]opener {
	sources := make(map[Blob]opener, len(w.blobs))
	for blob := range w.blobs {
		sources[blob] = openPath(layoutPath(dir, blob.Digest))
	}
	return sources
}
