package image

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
)

// document is what a registry answers with: a manifest, or a list.
type document struct {
	text  []byte
	media types.MediaType
	next  string // address of the next page of a list, "" for none
}

// errTooLarge is a document of more bytes or objects than are read.
var errTooLarge = fmt.Errorf("has more than %d bytes or %d objects", maxDocument, maxObjects)

// ask reads a document of the repository. What a registry rejects, such as a list that it does not know, it does not
// have: the answer is nil. A failure that can pass is an error.
func (r *registryPlace) ask(ctx context.Context, address string) (*document, error) {
	d, err := r.get(ctx, address)
	if rejected := (*rejectedError)(nil); errors.As(err, &rejected) {
		return nil, nil //nolint:nilnil // there is none
	}
	return d, err
}

// rejectedError is that a registry does not answer a request, and will not do so later.
type rejectedError struct{ error }

// get reads a document of the repository: nil if there is none.
func (r *registryPlace) get(ctx context.Context, address string) (*document, error) {
	client, err := r.client(ctx)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", strings.Join([]string{string(types.OCIManifestSchema1), string(types.OCIImageIndex),
		string(types.DockerManifestSchema2), string(types.DockerManifestList)}, ", "))
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if err := transport.CheckError(resp, http.StatusOK); err != nil {
		switch {
		case resp.StatusCode == http.StatusNotFound:
			return nil, nil //nolint:nilnil // there is none
		case passing(err) && resp.StatusCode != http.StatusNotImplemented:
			return nil, err
		}
		return nil, &rejectedError{err}
	}
	d := &document{next: nextPage(req.URL, resp.Header.Values("Link"))}
	if media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil {
		d.media = types.MediaType(media)
	}
	d.text, err = io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err == nil && (len(d.text) > maxDocument || objects(d.text) > maxObjects) {
		err = errTooLarge
	}
	return d, err
}

// objects is how many objects a document can have: null in a list is one, too.
func objects(text []byte) int {
	return bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("null"))
}

// nextPage returns the address in the Link header of a list. Only the same registry is followed.
func nextPage(from *url.URL, links []string) string {
	for _, link := range links {
		target, rest, ok := strings.Cut(strings.TrimPrefix(link, "<"), ">")
		if !ok || !strings.Contains(rest, `rel="next"`) && !strings.Contains(rest, "rel=next") {
			continue
		}
		if u, err := from.Parse(target); err == nil && u.Scheme == from.Scheme && u.Host == from.Host {
			return u.String()
		}
	}
	return ""
}

// attached implements source.
func (r *registryPlace) attached(ctx context.Context, to v1.Hash) (*attachments, error) {
	a := &attachments{}
	for _, suffix := range suffixes() {
		at, err := r.attachment(ctx, a, tagOf(to, suffix), to)
		if err != nil {
			return nil, err
		}
		if at != nil {
			at.suffix = suffix
			a.all = append(a.all, *at)
		}
	}
	found, err := r.referrers(ctx, a, to, maxReferrers)
	if err != nil {
		return nil, err
	}
	list := slices.SortedFunc(maps.Keys(found), func(a, b v1.Hash) int { return cmp.Compare(a.Hex, b.Hex) })
	if len(list) > maxReferrers {
		a.skip("all but", fmt.Sprintf("%d manifests that are attached to %s", maxReferrers, to))
		list = list[:maxReferrers]
	}
	room := int64(maxDocument - 1024) // the index of them is a document, too
	for _, digest := range list {
		at, err := r.attachment(ctx, a, digest.String(), to)
		if err != nil {
			return nil, err
		}
		if at == nil {
			continue
		}
		entry, err := json.Marshal(at.Descriptor)
		if err != nil {
			return nil, err
		}
		if room -= max(at.Size, int64(len(entry))); room < 0 {
			a.skip(digest.String(), fmt.Sprintf("is not copied: what is attached has manifests of more than %d bytes together",
				maxDocument))
			break
		}
		a.all = append(a.all, *at)
	}
	return a, nil
}

// tagOf is the tag of what is attached to a manifest.
func tagOf(to v1.Hash, suffix string) string { return to.Algorithm + "-" + to.Hex + suffix }

// referrers finds the manifests that have one as their subject: in the registry's list, or in the index that clients
// keep where it has none. Both are of the distribution specification 1.1. A long list is read until there are more than
// enough.
func (r *registryPlace) referrers(ctx context.Context, a *attachments, to v1.Hash,
	enough int) (map[v1.Hash]bool, error) {
	page, err := r.ask(ctx, r.address("referrers", to.String()))
	if err == nil && (page == nil || page.media != types.OCIImageIndex) {
		page, err = r.ask(ctx, r.address("manifests", tagOf(to, "")))
	}
	found := map[v1.Hash]bool{}
	for n := 1; page != nil && err == nil; n++ {
		if err := page.listed(found); err != nil {
			return nil, fmt.Errorf("the list of referrers: %w", err)
		}
		if n == maxPages || len(found) > enough || page.next == "" {
			break
		}
		page, err = r.ask(ctx, page.next)
	}
	if errors.Is(err, errTooLarge) {
		a.skip("the list of what is attached to "+to.String(), err.Error())
		err = nil
	}
	delete(found, to)
	return found, err
}

// listed adds the digests of a page of a list.
func (d *document) listed(found map[v1.Hash]bool) error {
	var list struct {
		Manifests []struct {
			Digest string `json:"digest"`
		} `json:"manifests"`
	}
	err := json.Unmarshal(d.text, &list)
	for _, m := range list.Manifests {
		if digest, err := v1.NewHash(m.Digest); err == nil {
			found[digest] = true
		}
	}
	return err
}

// attached is what matters of a manifest that is attached to another one.
type attached struct {
	MediaType    types.MediaType   `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Config       v1.Descriptor     `json:"config"`
	Layers       []v1.Descriptor   `json:"layers"`
	Subject      *v1.Descriptor    `json:"subject"`
	Annotations  map[string]string `json:"annotations"`
}

// attachment reads the manifest of something attached: nil if there is none, or it is skipped. With a digest it must
// match that, and name the manifest that it is attached to as its subject: otherwise it is not attached.
func (r *registryPlace) attachment(ctx context.Context, a *attachments, reference string,
	to v1.Hash) (*attachment, error) {
	what := r.ref.Context().Name() + ":" + reference
	pinned, err := v1.NewHash(reference)
	isReferrer := err == nil // a tag is no digest
	if isReferrer && pinned.Algorithm != "sha256" {
		a.skip(what, "has no digest of sha256: only those are copied")
		return nil, nil //nolint:nilnil // it is skipped
	}
	d, err := r.ask(ctx, r.address("manifests", reference))
	if errors.Is(err, errTooLarge) {
		a.skip(what, err.Error())
		return nil, nil //nolint:nilnil // it is skipped
	}
	if err != nil || d == nil {
		return nil, err
	}
	digest, size, err := v1.SHA256(bytes.NewReader(d.text))
	if err != nil {
		return nil, err
	}
	if isReferrer && pinned != digest {
		return nil, &damagedError{pinned, "has the digest " + digest.String()}
	}
	var m attached
	if err := json.Unmarshal(d.text, &m); err != nil {
		a.skip(what, "is not a manifest: "+err.Error())
		return nil, nil //nolint:nilnil // it is skipped
	}
	if isReferrer && (m.Subject == nil || m.Subject.Digest != to) {
		return nil, nil //nolint:nilnil // it is attached to nothing, or to something else
	}
	media := cmp.Or(m.MediaType, d.media)
	if why := m.unsuited(media, size); why != "" {
		a.skip(what, why)
		return nil, nil //nolint:nilnil // it is skipped
	}
	read, err := r.blobs(ctx)
	if err != nil {
		return nil, err
	}
	image, err := partial.CompressedToImage(&remoteAttachment{ctx, d.text, media, m, read})
	at := &attachment{Descriptor: v1.Descriptor{MediaType: media, Digest: digest, Size: size},
		picture: picture{image: image, blobs: read}}
	if isReferrer {
		at.ArtifactType, at.Annotations = cmp.Or(m.ArtifactType, string(m.Config.MediaType)), m.Annotations
	}
	return at, err
}

// unsuited says why something is not copied; "" if it is.
func (m *attached) unsuited(media types.MediaType, size int64) string {
	if !media.IsImage() {
		return notImage(media)
	}
	blobs := append([]v1.Descriptor{m.Config}, m.Layers...)
	if len(blobs) > maxAttachmentBlobs {
		return fmt.Sprintf("names %d blobs: at most %d are copied", len(blobs), maxAttachmentBlobs)
	}
	for _, b := range blobs {
		if b.Digest.Algorithm != "sha256" {
			return "names a blob that has no digest of sha256: only those are copied"
		}
		if b.Size < 0 || b.Size > maxAttachment {
			return fmt.Sprintf("names a blob of %d bytes: at most %d are copied", b.Size, maxAttachment)
		}
		size += b.Size
	}
	if size > maxAttachment {
		return fmt.Sprintf("has %d bytes: at most %d are copied", size, maxAttachment)
	}
	return ""
}

// notImage says why something of another type is not copied.
func notImage(media types.MediaType) string {
	return fmt.Sprintf("has the type %q: only image manifests are copied", media)
}

// remoteAttachment implements partial.CompressedImageCore.
type remoteAttachment struct {
	ctx      context.Context
	text     []byte
	media    types.MediaType
	manifest attached
	read     blobReader
}

func (m *remoteAttachment) MediaType() (types.MediaType, error) { return m.media, nil }
func (m *remoteAttachment) RawManifest() ([]byte, error)        { return m.text, nil }
func (m *remoteAttachment) RawConfigFile() ([]byte, error) {
	d := m.manifest.Config
	content, err := (&remoteBlob{m, d}).Compressed()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(content)
	if err = errors.Join(err, content.Close()); err != nil {
		return nil, err
	}
	if digest, _, err := v1.SHA256(bytes.NewReader(text)); err != nil || digest != d.Digest {
		return nil, &damagedError{d.Digest, "has the digest " + digest.String()}
	}
	return text, nil
}

func (m *remoteAttachment) LayerByDigest(h v1.Hash) (partial.CompressedLayer, error) {
	for _, d := range m.manifest.Layers {
		if d.Digest == h {
			return &remoteBlob{m, d}, nil
		}
	}
	return nil, fmt.Errorf("%s is not a blob of the manifest", h)
}

// remoteBlob implements partial.CompressedLayer. Who gets it verifies it.
type remoteBlob struct {
	of *remoteAttachment
	d  v1.Descriptor
}

func (b *remoteBlob) Digest() (v1.Hash, error)            { return b.d.Digest, nil }
func (b *remoteBlob) Size() (int64, error)                { return b.d.Size, nil }
func (b *remoteBlob) MediaType() (types.MediaType, error) { return b.d.MediaType, nil }
func (b *remoteBlob) Compressed() (io.ReadCloser, error) {
	content, _, err := b.of.read(b.of.ctx, b.d.Digest, 0)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(content, b.d.Size+1), content}, nil
}

// repository implements target.
func (r *registryPlace) repository() string { return r.ref.Context().Name() }

// known implements target: others can attach something, too.
func (r *registryPlace) known(v1.Hash) (*attachments, bool) { return nil, false }

// record implements target: everything is written.
func (r *registryPlace) record() error { return nil }

// attach implements target. A tag is replaced only if nothing of it is lost: the registry's users can have signed the
// image themselves.
func (r *registryPlace) attach(ctx context.Context, to v1.Hash, a *attachments) (changed bool, err error) {
	var listed map[v1.Hash]bool
	if len(a.referrers().Manifests) > 0 {
		if listed, err = r.referrers(ctx, &attachments{}, to, maxObjects); err != nil {
			return false, err
		}
	}
	for _, at := range a.all {
		ref := name.Reference(r.ref.Context().Digest(at.Digest.String()))
		if at.suffix == "" {
			if listed[at.Digest] {
				continue
			}
		} else {
			ref = r.ref.Context().Tag(tagOf(to, at.suffix))
			if keep, err := r.keeps(ctx, a, ref, at); err != nil || keep {
				if err != nil {
					return changed, err
				}
				continue
			}
		}
		if err := remote.Write(ref, at.picture.image, r.access.remote(ctx)...); err != nil {
			return changed, fmt.Errorf("write %s: %w", artifact.FullName(ref), err)
		}
		changed = true
	}
	return changed, nil
}

// keeps reports whether the registry keeps what it has under a tag: the same, or more, or something else.
func (r *registryPlace) keeps(ctx context.Context, a *attachments, ref name.Reference, at attachment) (bool, error) {
	d, err := r.get(ctx, r.address("manifests", ref.Identifier()))
	var rejected *rejectedError
	const lost = "has others in the registry, which would be lost: it is kept as it is"
	switch {
	case errors.As(err, &rejected):
		a.skip(artifact.FullName(ref), "cannot be read in the registry ("+err.Error()+"): it is kept as it is")
		return true, nil
	case errors.Is(err, errTooLarge):
		a.skip(artifact.FullName(ref), lost)
		return true, nil
	case err != nil:
		return false, fmt.Errorf("%s: %w", artifact.FullName(ref), err)
	case d == nil:
		return false, nil
	}
	digest, _, err := v1.SHA256(bytes.NewReader(d.text))
	if err != nil || digest == at.Digest {
		return err == nil, err
	}
	ours, err := at.picture.image.Manifest()
	if err != nil {
		return false, err
	}
	var theirs attached
	isImage := json.Unmarshal(d.text, &theirs) == nil && cmp.Or(theirs.MediaType, d.media).IsImage()
	if isImage && hasAll(ours.Layers, theirs.Layers) {
		return false, nil
	}
	if !isImage || !hasAll(theirs.Layers, ours.Layers) {
		a.skip(artifact.FullName(ref), lost)
	}
	return true, nil
}

// hasAll reports whether signatures contain others: signatures of one payload differ in their annotations.
func hasAll(layers, others []v1.Descriptor) bool {
	return !slices.ContainsFunc(others, func(o v1.Descriptor) bool {
		return !slices.ContainsFunc(layers, func(l v1.Descriptor) bool {
			return l.Digest == o.Digest && maps.Equal(l.Annotations, o.Annotations)
		})
	})
}
