package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
)

// maxManifest is the size up to which registries accept manifests.
const maxManifest = 4 << 20

// repositoryName is what the distribution specification allows as the name of a repository.
var repositoryName = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)

// repository is a repository of the registry.
type repository struct {
	name      string // as in references: docker.io/library/busybox
	tags      map[string]string
	manifests map[string]manifest
	blobs     map[string]stored
}

// manifest is a manifest or an index.
type manifest struct {
	stored
	v1.Descriptor // with the annotations and the artifact type of the manifest itself
	subject       string
}

// text is what matters here of a manifest or an index.
type text struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     types.MediaType   `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        descriptor        `json:"config"`
	Layers        []descriptor      `json:"layers"`
	Manifests     []descriptor      `json:"manifests"`
	Subject       descriptor        `json:"subject"`
	Annotations   map[string]string `json:"annotations"`
}

type descriptor struct {
	MediaType types.MediaType `json:"mediaType"`
	Digest    string          `json:"digest"`
}

// addImage adds an image to its repository: its tag, its blobs, and all its manifests.
func (h *Handler) addImage(f *artifact.File, i artifact.Item) error {
	base, _, pinned := strings.Cut(i.Name, "@")
	tag, err := name.NewTag(base)
	if err != nil {
		return fmt.Errorf("%q is not a reference of an image: %w", i.Name, err)
	}
	if !address.MatchString(tag.RegistryStr()) || !repositoryName.MatchString(tag.RepositoryStr()) {
		return fmt.Errorf("%q is not a reference of an image: write REGISTRY/REPOSITORY:TAG", i.Name)
	}
	repo := h.repositories[tag.Repository.Name()]
	if repo == nil {
		repo = &repository{name: upstream(tag.Repository), tags: map[string]string{}, manifests: map[string]manifest{},
			blobs: map[string]stored{}}
		h.repositories[tag.Repository.Name()] = repo
	}
	hasTag := !pinned || strings.HasSuffix(base, ":"+tag.TagStr())
	if _, known := repo.tags[tag.TagStr()]; hasTag && !known {
		repo.tags[tag.TagStr()] = i.Blob
	}
	for _, digest := range i.Blobs {
		if _, known := repo.blobs[digest]; !known {
			repo.blobs[digest] = stored{f, i}
		}
	}
	s := scan{repo, stored{f, i}, map[string]bool{}}
	return errors.Join(s.follow(descriptor{i.MediaType, i.Blob}), s.attached())
}

// upstream is the name of a repository as references have it.
func upstream(r name.Repository) string {
	return strings.TrimPrefix(r.Name(), "index.")
}

// scan finds the manifests of an image.
type scan struct {
	repo *repository
	stored
	reached map[string]bool // digests that a manifest names
}

// follow adds a manifest, and those that it lists.
func (s scan) follow(root descriptor) error {
	var problems []error
	for queue := []descriptor{root}; len(queue) > 0; {
		d := queue[0]
		queue = queue[1:]
		if _, ok := s.repo.blobs[d.Digest]; !ok || s.reached[d.Digest] {
			continue // an index keeps its digest, without the images for other platforms
		}
		s.reached[d.Digest] = true
		if !d.MediaType.IsIndex() && !d.MediaType.IsImage() {
			continue
		}
		m, err := s.read(d.Digest)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		s.add(d, m)
		queue = append(queue, m.Manifests...)
	}
	return errors.Join(problems...)
}

// attached adds the manifests that no other lists: signatures and attestations that name the image as their subject.
func (s scan) attached() error {
	var problems []error
	for _, digest := range s.Blobs {
		size, ok := s.file.Manifest.BlobSize(digest)
		if s.reached[digest] || !ok || size > maxManifest {
			continue
		}
		m, err := s.read(digest)
		switch {
		case errors.Is(err, errNoManifest):
			continue
		case err != nil:
			problems = append(problems, err)
			continue
		}
		problems = append(problems, s.follow(descriptor{m.MediaType, digest}))
	}
	return errors.Join(problems...)
}

var errNoManifest = errors.New("is not a manifest")

// read reads a manifest.
func (s scan) read(digest string) (*text, error) {
	if size, ok := s.file.Manifest.BlobSize(digest); !ok || size > maxManifest {
		return nil, fmt.Errorf("the manifest %s has %d bytes: a registry has manifests of up to %d", digest, size,
			maxManifest)
	}
	r, err := s.file.Blob(digest)
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	m := &text{}
	if err := json.Unmarshal(all, m); err != nil || m.SchemaVersion != 2 {
		return nil, fmt.Errorf("the blob %s %w", digest, errNoManifest)
	}
	for _, d := range append(m.Layers, m.Config) {
		s.reached[d.Digest] = true
	}
	return m, nil
}

func (s scan) add(d descriptor, m *text) {
	if _, known := s.repo.manifests[d.Digest]; known {
		return
	}
	hash, err := v1.NewHash(d.Digest)
	size, ok := s.file.Manifest.BlobSize(d.Digest)
	if err != nil || !ok {
		return // the file's manifest was checked
	}
	kind := m.ArtifactType
	if kind == "" && !d.MediaType.IsIndex() {
		kind = string(m.Config.MediaType)
	}
	added := manifest{s.stored, v1.Descriptor{MediaType: d.MediaType, Digest: hash, Size: size}, m.Subject.Digest}
	if added.subject != "" {
		added.ArtifactType, added.Annotations = kind, m.Annotations
	}
	s.repo.manifests[d.Digest] = added
}

// problems is the body of an error in the distribution specification.
type problems struct {
	Errors []problem `json:"errors"`
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func sendJSON[T any](w http.ResponseWriter, r *http.Request, mediaType string, status int, v T) {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(b.Bytes()) // the client is gone
	}
}

// registry answers requests below /v2/.
func (h *Handler) registry(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	rest := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/v2"), "/")
	switch rest {
	case "":
		sendJSON(w, r, "application/json", http.StatusOK, struct{}{})
		return
	case "_catalog":
		h.catalog(w, r)
		return
	}
	repo, what, argument := split(rest)
	found := h.find(r.URL.Query().Get("ns"), repo)
	if found == nil {
		fail(w, r, true, http.StatusNotFound, "NAME_UNKNOWN", "the offline file has no images of this repository")
		return
	}
	switch what {
	case "manifests":
		h.manifest(w, r, found, argument)
	case "blobs":
		h.blob(w, r, found, argument)
	case "tags":
		found.list(w, r, repo)
	case "referrers":
		found.referrers(w, r, argument)
	default:
		fail(w, r, true, http.StatusNotFound, "UNSUPPORTED", "no such endpoint")
	}
}

// split cuts NAME/manifests/REFERENCE, and the like: a name can have such parts, too.
func split(rest string) (repo, what, argument string) {
	if repo, ok := strings.CutSuffix(rest, "/tags/list"); ok {
		return repo, "tags", ""
	}
	end := strings.LastIndexByte(rest, '/')
	if end < 0 {
		return "", "", ""
	}
	middle := strings.LastIndexByte(rest[:end], '/')
	if middle < 0 {
		return "", "", ""
	}
	return rest[:middle], rest[middle+1 : end], rest[end+1:]
}

// find finds a repository: by its name upstream, with the registry. containerd sends the registry as ns instead.
// Without either it is one of Docker Hub, which is what mirrors of Docker's daemon are asked for.
func (h *Handler) find(ns, repo string) *repository {
	if repo == "" {
		return nil
	}
	candidates := []string{repo}
	if ns != "" {
		candidates = []string{ns + "/" + repo, repo}
	}
	for _, c := range candidates {
		for _, alias := range []string{"registry-1.docker.io/", "registry.hub.docker.com/"} {
			if rest, ok := strings.CutPrefix(c, alias); ok {
				c = "docker.io/" + rest
			}
		}
		parsed, err := name.NewRepository(c)
		if err != nil {
			continue
		}
		if r := h.repositories[parsed.Name()]; r != nil {
			return r
		}
	}
	return nil
}

func (h *Handler) manifest(w http.ResponseWriter, r *http.Request, repo *repository, reference string) {
	digest := reference
	if strings.Contains(reference, ":") {
		if _, err := v1.NewHash(reference); err != nil {
			fail(w, r, true, http.StatusBadRequest, "DIGEST_INVALID", "write sha256: and 64 hexadecimal digits")
			return
		}
	} else {
		digest = repo.tags[reference]
	}
	m, ok := repo.manifests[digest]
	if !ok {
		fail(w, r, true, http.StatusNotFound, "MANIFEST_UNKNOWN", "the offline file has no such image in this repository")
		return
	}
	w.Header().Set("Content-Type", string(m.MediaType))
	w.Header().Set("Docker-Content-Digest", digest)
	h.send(w, r, m.blob(digest, m.Descriptor.Size))
}

func (h *Handler) blob(w http.ResponseWriter, r *http.Request, repo *repository, digest string) {
	if _, err := v1.NewHash(digest); err != nil {
		fail(w, r, true, http.StatusBadRequest, "DIGEST_INVALID", "write sha256: and 64 hexadecimal digits")
		return
	}
	s, ok := repo.blobs[digest]
	if !ok {
		fail(w, r, true, http.StatusNotFound, "BLOB_UNKNOWN", "the offline file has no such blob in this repository")
		return
	}
	size, _ := s.file.Manifest.BlobSize(digest) // the file's manifest was checked: it lists all blobs of its items
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", digest)
	h.send(w, r, s.blob(digest, size))
}

// page is the part of a sorted list that a request asks for: n elements after last.
func page(w http.ResponseWriter, r *http.Request, all []string) ([]string, error) {
	q := r.URL.Query()
	if last := q.Get("last"); last != "" {
		i, found := slices.BinarySearch(all, last)
		if found {
			i++
		}
		all = all[i:]
	}
	if !q.Has("n") {
		return all, nil
	}
	n, err := strconv.Atoi(q.Get("n"))
	switch {
	case err != nil || n < 0:
		return nil, errors.New("n must be a number, 0 or more")
	case n >= len(all):
		return all, nil
	case n > 0:
		q.Set("last", all[n-1])
		next := url.URL{Path: r.URL.Path, RawQuery: q.Encode()}
		w.Header().Set("Link", "<"+next.String()+`>; rel="next"`)
	}
	return all[:n], nil
}

func (repo *repository) list(w http.ResponseWriter, r *http.Request, as string) {
	tags, err := page(w, r, slices.Sorted(maps.Keys(repo.tags)))
	if err != nil {
		fail(w, r, true, http.StatusBadRequest, "PAGINATION_NUMBER_INVALID", err.Error())
		return
	}
	sendJSON(w, r, "application/json", http.StatusOK, struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}{as, append([]string{}, tags...)})
}

// catalog lists the repositories, as Docker's registry does.
func (h *Handler) catalog(w http.ResponseWriter, r *http.Request) {
	all := []string{}
	for _, repo := range h.repositories {
		all = append(all, repo.name)
	}
	slices.Sort(all)
	names, err := page(w, r, all)
	if err != nil {
		fail(w, r, true, http.StatusBadRequest, "PAGINATION_NUMBER_INVALID", err.Error())
		return
	}
	sendJSON(w, r, "application/json", http.StatusOK, struct {
		Repositories []string `json:"repositories"`
	}{names})
}

// referrers lists the manifests that have another one as their subject.
func (repo *repository) referrers(w http.ResponseWriter, r *http.Request, digest string) {
	if _, err := v1.NewHash(digest); err != nil {
		fail(w, r, true, http.StatusBadRequest, "DIGEST_INVALID", "write sha256: and 64 hexadecimal digits")
		return
	}
	index := v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: []v1.Descriptor{}}
	only := r.URL.Query().Get("artifactType")
	if only != "" {
		w.Header().Set("Oci-Filters-Applied", "artifactType")
	}
	for _, m := range repo.manifests {
		if m.subject == digest && (only == "" || m.ArtifactType == only) {
			index.Manifests = append(index.Manifests, m.Descriptor)
		}
	}
	slices.SortFunc(index.Manifests, func(a, b v1.Descriptor) int { return cmp.Compare(a.Digest.Hex, b.Digest.Hex) })
	sendJSON(w, r, string(types.OCIImageIndex), http.StatusOK, index)
}
