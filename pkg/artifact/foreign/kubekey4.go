package foreign

import (
	"context"
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

func (k kubekey4) read(ctx context.Context, i *Import, t *tree) error {
	var problems problemList
	for _, at := range t.names() {
		rest, ok := strings.CutPrefix(at, "images/")
		repository, base := path.Split(rest)
		repository, isManifest := strings.CutSuffix(repository, "/manifests/")
		if !ok || !isManifest {
			continue
		}
		switch {
		case base == "layout":
			problems.add(k.tags(ctx, i, t, at, repository))
		case !strings.HasPrefix(base, "sha256:"):
			problems.add(k.image(ctx, i, t, at, t.files[at], repository, base))
		}
	}
	return problems.join()
}

// tags adds the images of a repository that its file layout names.
func (k kubekey4) tags(ctx context.Context, i *Import, t *tree, at, repository string) error {
	digests := map[string]string{}
	if err := t.files[at].decode(&digests); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	var problems problemList
	for _, tag := range slices.Sorted(maps.Keys(digests)) {
		digest := digests[tag]
		m, ok := t.digests()[strings.TrimPrefix(digest, "sha256:")]
		if !ok {
			problems.add(fmt.Errorf("%s: the manifest %s of the tag %s is missing", at, digest, tag))
			continue
		}
		problems.add(k.image(ctx, i, t, at, m, repository, tag))
	}
	return problems.join()
}

// image adds the image of a manifest.
func (kubekey4) image(ctx context.Context, i *Import, t *tree, at string, f file, repository, tag string) error {
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
	return i.add(ctx, full, f.descriptor(kind), t.digests(), at)
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
