package foreign

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
)

// signedLayout is an OCI layout with a signed image, and its signature.
func signedLayout(t *testing.T, ref string) (dir string, image, signature v1.Image) {
	t.Helper()
	dir = t.TempDir()
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	image = artifacttest.PlatformImage(t, "amd64")
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(ref, "@") {
		ref += digest.String()
	}
	if err := at.AppendImage(image, layout.WithAnnotations(map[string]string{refName: ref})); err != nil {
		t.Fatal(err)
	}
	signature, _ = artifacttest.Attach(t, at, ref, image, artifacttest.Key(t))
	// A signature of what is not imported is left out.
	other, err := artifacttest.PlatformImage(t, "amd64").Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := at.AppendImage(signature, layout.WithAnnotations(map[string]string{
		refName: artifact.AttachedName(ref, other, ".sig")})); err != nil {
		t.Fatal(err)
	}
	return dir, image, signature
}

// Signatures in a layout are imported with the image that they are attached to, and are marked as unverified.
func TestSignedLayouts(t *testing.T) {
	for _, ref := range []string{"quay.io/app/web:v2", "quay.io/app/web@"} {
		dir, image, _ := signedLayout(t, ref)
		digest, _ := image.Digest()
		_, err := Read(t.Context(), []string{dir}, Options{Cache: t.TempDir(), Catalog: knownCatalog{}})
		if err == nil || !strings.Contains(err.Error(), "- quay.io/app/web:sha256-"+digest.Hex+".sig in index.json") {
			t.Errorf("without permission: %v", err)
		}
		i, err := Read(t.Context(), []string{dir}, Options{Cache: t.TempDir(), Catalog: knownCatalog{},
			AllowUnverified: true})
		if err != nil {
			t.Fatal(err)
		}
		b := artifact.NewBuilder(t.TempDir(), artifact.Covers{}, nil)
		if err := i.AddTo(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		m, err := b.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range m.Items {
			got = append(got, strings.ReplaceAll(item.Name, digest.Hex, "HEX"))
			if item.Unverified != (item.IsAttached() || !strings.Contains(ref, "@")) {
				t.Errorf("%s: unverified is %v", item, item.Unverified)
			}
		}
		slices.Sort(got)
		want := []string{"quay.io/app/web:sha256-HEX", "quay.io/app/web:sha256-HEX.sig"}
		got = slices.DeleteFunc(got, func(name string) bool { return strings.HasPrefix(name, ref) })
		if len(m.Items) != 3 || !slices.Equal(got, want) {
			t.Errorf("%s: %q are attached", ref, got)
		}
		out := filepath.Join(t.TempDir(), "out.tar")
		if _, err := b.Write(t.Context(), out, artifact.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := i.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := artifact.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Verify(t.Context(), nil, nil); err != nil {
			t.Error(err)
		}
		_ = f.Close()
	}
}

func TestDamagedSignatures(t *testing.T) {
	dir, image, signature := signedLayout(t, "quay.io/app/web:v2")
	digest, _ := image.Digest()
	layers, err := signature.Layers()
	if err != nil {
		t.Fatal(err)
	}
	layer, _ := layers[0].Digest()
	path := filepath.Join(dir, "blobs", "sha256", layer.Hex)
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text := problem(t, dir); !strings.Contains(text, layer.Hex) {
		t.Errorf("a changed payload: %s", text)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if text := problem(t, dir); !strings.Contains(text, digest.Hex+".sig: layer "+layer.String()+" is missing") {
		t.Errorf("a missing payload: %s", text)
	}
}

// An image that can run cannot have the tag of a signature.
func TestImagesNamedLikeSignatures(t *testing.T) {
	p := newPicture(t, "amd64", "web", false)
	i := newImport(true)
	err := i.add(t.Context(), "quay.io/app/web:sha256-"+strings.Repeat("0", 64)+".sig", p.manifest, nil, "a.tar")
	if err == nil || !strings.Contains(err.Error(), "use another one") {
		t.Errorf("got %v", err)
	}
}

// An image that is not complete, and that an index lists many times, is read once.
func TestIndexesOfIncompleteImages(t *testing.T) {
	layer := descriptor(types.OCILayer, []byte("absent"))
	text := encoded(t, v1.Manifest{SchemaVersion: 2, Config: descriptor(types.OCIConfigJSON, []byte("absent")),
		Layers: slices.Repeat([]v1.Descriptor{layer}, 5000)})
	one := descriptor(types.OCIManifestSchema1, text)
	one.Platform = &v1.Platform{OS: "linux", Architecture: "amd64"}
	index := encoded(t, v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex,
		Manifests: slices.Repeat([]v1.Descriptor{one}, 3000)})
	root := descriptor(types.OCIImageIndex, index)
	root.Annotations = map[string]string{refName: "quay.io/app/web:v2"}
	dir := writeLayout(t, root, map[string][]byte{one.Digest.Hex: text, root.Digest.Hex: index})
	began := time.Now()
	if text := problem(t, dir); !strings.Contains(text, "not complete for any platform") {
		t.Error(text)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

// writeLayout writes an OCI layout of blobs by their digests, with one entry.
func writeLayout(t *testing.T, root v1.Descriptor, blobs map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name string, text []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for digest, text := range blobs {
		write("blobs/sha256/"+digest, text)
	}
	write("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`))
	write("index.json", encoded(t, v1.IndexManifest{SchemaVersion: 2, Manifests: []v1.Descriptor{root}}))
	return dir
}

// Indexes that list each other many times are read once.
func TestIndexesOfIndexes(t *testing.T) {
	for _, name := range []string{"quay.io/app/web:v2", "quay.io/app/web:sha256-" + strings.Repeat("0", 64)} {
		p := newPicture(t, "amd64", "web", false)
		blobs, last := p.blobs, p.manifest
		for range 3 {
			last.Platform = &v1.Platform{OS: "linux", Architecture: "amd64"}
			text := encoded(t, v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex,
				Manifests: slices.Repeat([]v1.Descriptor{last}, 300)})
			last = descriptor(types.OCIImageIndex, text)
			blobs[last.Digest.Hex] = text
		}
		last.Annotations = map[string]string{refName: name}
		dir := writeLayout(t, last, blobs)
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		i, err := Read(ctx, []string{dir}, Options{Cache: t.TempDir(), Catalog: knownCatalog{}, AllowUnverified: true})
		stop()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	}
}
