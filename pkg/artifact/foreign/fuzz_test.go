package foreign

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/artifact"
)

// readEntries imports an archive of entries, unless they are none that can be packed.
func readEntries(t *testing.T, entries ...entry) {
	if data, err := packed(entries); err == nil {
		readArchive(t, data)
	}
}

// readArchive imports an archive. What is accepted must make a file that verifies; nothing may be left behind.
func readArchive(t *testing.T, data []byte) {
	dir := t.TempDir()
	source := filepath.Join(dir, "a.tar")
	if err := os.WriteFile(source, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(dir, "cache")
	i, err := Read(t.Context(), []string{source}, Options{Cache: cache, Catalog: knownCatalog{}, AllowUnverified: true})
	if err != nil {
		if left, _ := os.ReadDir(cache); len(left) > 0 {
			t.Fatalf("left behind: %v", left)
		}
		return
	}
	b := artifact.NewBuilder(cache, artifact.Covers{}, nil)
	if err := i.AddTo(t.Context(), b); err != nil {
		t.Fatalf("read, and then not added: %v", err)
	}
	out := filepath.Join(dir, "out.tar")
	if _, err := b.Write(t.Context(), out, artifact.Options{}); err != nil {
		t.Fatalf("read, and then not written: %v", err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := artifact.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Verify(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
}

// FuzzArchive reads any bytes as an archive.
func FuzzArchive(f *testing.F) {
	for _, data := range formats(f) {
		f.Add(data)
		if plain, ok := unzipped(data); ok {
			f.Add(plain)
		}
	}
	f.Fuzz(readArchive)
}

// FuzzNames admits names, one a line.
func FuzzNames(f *testing.F) {
	f.Add("./kube/v1.34.4/amd64/kubeadm\n./kube/\nimages/blobs/sha256:00")
	f.Add("a/../b\n/etc/passwd\nA\na\na/b")
	f.Fuzz(func(t *testing.T, text string) {
		tree := newTree(maxEntries)
		seen := map[string]bool{}
		for raw := range strings.SplitSeq(text, "\n") {
			name, err := tree.admit(raw, !strings.HasSuffix(raw, "/"))
			if err != nil {
				continue
			}
			if !filepath.IsLocal(name) || strings.HasPrefix(name, "/") {
				t.Fatalf("%q was admitted as %q", raw, name)
			}
			if lower := strings.ToLower(name); !strings.HasSuffix(raw, "/") {
				if seen[lower] {
					t.Fatalf("%q was admitted twice", name)
				}
				seen[lower] = true
			}
		}
	})
}

// parts are the documents of an image. MANIFEST, CONFIG and LAYER in them stand for digests, and MANIFESTSIZE and so on
// for sizes, so that documents that are changed still lead to each other.
type parts struct{ manifest, config, layer []byte }

func (p *parts) fill() {
	p.config = stand(p.config, "LAYER", p.layer)
	p.manifest = stand(stand(p.manifest, "LAYER", p.layer), "CONFIG", p.config)
}

func stand(text []byte, name string, content []byte) []byte {
	text = bytes.ReplaceAll(text, []byte(name+"SIZE"), fmt.Append(nil, len(content)))
	return bytes.ReplaceAll(text, []byte(name), []byte("sha256:"+sumOf(content)))
}

const (
	manifestText = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":` +
		`"application/vnd.oci.image.config.v1+json","size":CONFIGSIZE,"digest":"CONFIG"},"layers":[{"mediaType":` +
		`"application/vnd.oci.image.layer.v1.tar","size":LAYERSIZE,"digest":"LAYER"}]}`
	configText = `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["LAYER"]}}`
	nestedText = `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{"mediaType":` +
		`"application/vnd.oci.image.config.v1+json","size":CONFIGSIZE,"digest":"CONFIG","platform":{"os":"linux",` +
		`"architecture":"amd64"}}]}`
	indexText = `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":` +
		`MANIFESTSIZE,"digest":"MANIFEST","annotations":{"org.opencontainers.image.ref.name":"quay.io/app/web:v1-amd64"}}]}`
	indexOfIndex = `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.index.v1+json","size":` +
		`MANIFESTSIZE,"digest":"MANIFEST","annotations":{"io.containerd.image.name":"quay.io/app/web:v1"}}]}`
)

func fuzzLayout(f *testing.F, dir string) {
	f.Add([]byte(indexText), []byte(manifestText), []byte(configText), []byte("layer"))
	f.Add([]byte(indexOfIndex), []byte(nestedText), []byte(configText), []byte("layer"))
	f.Add([]byte(indexOfIndex), []byte(indexText), []byte(manifestText), []byte(configText))
	f.Fuzz(func(t *testing.T, index, manifest, config, layer []byte) {
		p := parts{manifest, config, layer}
		p.fill()
		blobs := map[string][]byte{sumOf(p.manifest): p.manifest, sumOf(p.config): p.config, sumOf(p.layer): p.layer}
		entries := []entry{regular(dir+"oci-layout", `{"imageLayoutVersion":"1.0.0"}`),
			regular(dir+"index.json", string(stand(index, "MANIFEST", p.manifest)))}
		for digest, data := range blobs {
			entries = append(entries, regular(dir+"blobs/sha256/"+digest, string(data)))
		}
		readEntries(t, entries...)
	})
}

// FuzzOCI reads OCI layouts.
func FuzzOCI(f *testing.F) { fuzzLayout(f, "") }

// FuzzKubeKey3 reads archives of KubeKey 3.
func FuzzKubeKey3(f *testing.F) { fuzzLayout(f, "images/") }

// FuzzKubeKey4 reads archives of KubeKey 4.
func FuzzKubeKey4(f *testing.F) {
	f.Add("registry-1.docker.io/library/web", "layout", []byte(`{"v1": "MANIFEST"}`), []byte(manifestText),
		[]byte(configText), []byte("layer"))
	f.Add("pause", "3.9", []byte(manifestText), []byte(nestedText), []byte(configText), []byte("layer"))
	f.Fuzz(func(t *testing.T, repository, tag string, at, manifest, config, layer []byte) {
		p := parts{manifest, config, layer}
		p.fill()
		at = stand(stand(stand(at, "MANIFEST", p.manifest), "CONFIG", p.config), "LAYER", p.layer)
		dir := "./images/" + repository + "/manifests/"
		entries := []entry{regular(dir+tag, string(at)), regular(dir+"sha256:"+sumOf(p.manifest), string(p.manifest))}
		for _, data := range [][]byte{p.config, p.layer} {
			entries = append(entries, regular("./images/blobs/sha256:"+sumOf(data), string(data)))
		}
		readEntries(t, entries...)
	})
}

// FuzzDocker reads docker archives.
func FuzzDocker(f *testing.F) {
	const manifest = `[{"Config":"NAME.json","RepoTags":["web:v1"],"Layers":["aaa/layer.tar","bbb/layer.tar"]}]`
	const config = `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["LAYER","LAYER"]}}`
	f.Add([]byte(manifest), []byte(config), []byte("layer"), "../aaa/layer.tar")
	f.Add([]byte(manifest), []byte(config), zipped(f, []byte("layer")), "../aaa/../x")
	f.Fuzz(func(t *testing.T, manifest, config, layer []byte, link string) {
		p := parts{config: config, layer: layer}
		if plain, ok := unzipped(layer); ok {
			p.layer = plain
		}
		p.fill()
		manifest = bytes.ReplaceAll(manifest, []byte("NAME"), []byte(sumOf(p.config)))
		readEntries(t, regular("manifest.json", string(manifest)), regular("aaa/layer.tar", string(layer)),
			symlink("bbb/layer.tar", link), regular(sumOf(p.config)+".json", string(p.config)))
	})
}
