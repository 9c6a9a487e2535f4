package foreign

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/artifact"
)

// ociLayout reads the OCI layout in a folder of a source.
type ociLayout struct {
	dir      string // with its slash; "" is the source itself
	suffixed bool   // names end in the architecture, as KubeKey 3 writes them
}

func (l ociLayout) owns(name string) bool {
	rest, ok := strings.CutPrefix(name, l.dir)
	return ok && (strings.HasPrefix(rest, "blobs/") ||
		slices.Contains([]string{"oci-layout", "index.json", "manifest.json", "repositories"}, rest))
}

// Annotations that name images.
const (
	refName        = "org.opencontainers.image.ref.name"
	containerdName = "io.containerd.image.name"
)

func (l ociLayout) read(ctx context.Context, i *Import, t *tree) error {
	f, ok := t.files[l.dir+"index.json"]
	if !ok {
		return fmt.Errorf("%sindex.json is missing", l.dir)
	}
	var index v1.IndexManifest
	if err := f.decode(&index); err != nil {
		return fmt.Errorf("%sindex.json: %w", l.dir, err)
	}
	blobs := t.digests()
	var problems problemList
	for _, d := range index.Manifests {
		refs, err := l.names(t, d, blobs)
		if err != nil {
			problems.add(err)
		}
		for _, ref := range refs {
			if to, _ := artifact.AttachedTo(ref); to != "" {
				problems.add(i.attach(ctx, ref, d, blobs, l.dir+"index.json"))
				continue
			}
			problems.add(i.add(ctx, ref, d, blobs, l.dir+"index.json"))
		}
	}
	return problems.join()
}

// names returns the names of an image of the layout.
func (l ociLayout) names(t *tree, d v1.Descriptor, blobs map[string]file) ([]string, error) {
	texts := []string{d.Annotations[containerdName]}
	if texts[0] == "" {
		texts[0] = d.Annotations[refName]
	}
	if !strings.ContainsAny(texts[0], ":/") {
		if tags := t.repoTags(d, blobs); len(tags) > 0 {
			texts = tags
		}
	}
	var refs []string
	for _, text := range texts {
		if l.suffixed {
			text = withoutArchitecture(text)
		}
		ref, err := fullName(text)
		if err != nil {
			return nil, fmt.Errorf("image %s: %w; name it in a copy of the layout: skopeo copy oci:DIR:%s "+
				"oci:COPY:REGISTRY/NAME:TAG", d.Digest, err, text)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// withoutArchitecture removes the architecture, and its variant, from the end of a tag.
func withoutArchitecture(ref string) string {
	for _, arch := range []string{"amd64", "arm64", "arm64-v8", "arm", "arm-v6", "arm-v7", "386", "ppc64le", "s390x",
		"riscv64", "loong64"} {
		if base, ok := strings.CutSuffix(ref, "-"+arch); ok && !strings.HasSuffix(base, ":") {
			return base
		}
	}
	return ref
}
