package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// kubekey4 reads the folder images of KubeKey 4.
type kubekey4 struct{}

func (kubekey4) owns(name string) bool { return strings.HasPrefix(name, "images/") }

func (k kubekey4) read(i *Import, t *tree) error {
	blobs := t.digests()
	var problems []error
	for _, at := range t.names() {
		rest, ok := strings.CutPrefix(at, "images/")
		repository, base := path.Split(rest)
		repository, isManifest := strings.CutSuffix(repository, "/manifests/")
		if !ok || !isManifest {
			continue
		}
		switch {
		case base == "layout":
			problems = append(problems, k.tags(i, at, t.files[at], repository, blobs))
		case !strings.HasPrefix(base, "sha256:"):
			problems = append(problems, k.image(i, at, t.files[at], repository, base, blobs))
		}
	}
	return errors.Join(problems...)
}

// tags adds the images of a repository that its file layout names.
func (k kubekey4) tags(i *Import, at string, f file, repository string, blobs map[string]file) error {
	digests := map[string]string{}
	if err := f.decode(&digests); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	var problems []error
	for _, tag := range slices.Sorted(maps.Keys(digests)) {
		digest := digests[tag]
		m, ok := blobs[strings.TrimPrefix(digest, "sha256:")]
		if !ok {
			problems = append(problems, fmt.Errorf("%s: the manifest %s of the tag %s is missing", at, digest, tag))
			continue
		}
		problems = append(problems, k.image(i, at, m, repository, tag, blobs))
	}
	return errors.Join(problems...)
}

// image adds the image of a manifest.
func (kubekey4) image(i *Import, at string, f file, repository, tag string, blobs map[string]file) error {
	if registry, _, _ := strings.Cut(repository, "/"); !strings.ContainsAny(registry, ".:") {
		if full, ok := i.Catalog.Repository(repository); ok {
			repository = full
		}
	}
	full, err := fullName(repository + ":" + tag)
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	kind, err := f.mediaType()
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	return i.add(full, f.descriptor(kind), blobs, at)
}

// mediaType returns the type of a manifest or index, from its content.
func (f file) mediaType() (types.MediaType, error) {
	text, err := f.read()
	if err != nil {
		return "", err
	}
	var m struct {
		MediaType types.MediaType `json:"mediaType"`
		Manifests []v1.Descriptor `json:"manifests"`
		Config    *v1.Descriptor  `json:"config"`
	}
	switch err := json.Unmarshal(text, &m); {
	case err != nil:
		return "", err
	case m.MediaType != "":
		return m.MediaType, nil
	case m.Manifests != nil:
		return types.OCIImageIndex, nil
	case m.Config != nil:
		return types.OCIManifestSchema1, nil
	}
	return "", errors.New("it is no manifest of an image")
}
