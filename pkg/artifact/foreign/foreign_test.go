package foreign

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
)

// knownCatalog knows the content "kubeadm v1.34.4 amd64" and the like, and charts named NAME-chart-VERSION.tgz.
type knownCatalog struct {
	archive string // digest of an archive that is a component
}

func (c knownCatalog) Known(digest string) (artifact.Item, bool) {
	if digest == c.archive {
		return artifact.Item{Kind: artifact.KindFile, Name: "containerd", Version: "v2.2.7", Architecture: "amd64",
			File: "containerd/v2.2.7/amd64/containerd.tar.gz"}, true
	}
	for _, name := range []string{"kubeadm", "kubelet"} {
		for _, arch := range []string{"amd64", "arm64"} {
			if digest == sumOf([]byte(name+" v1.34.4 "+arch)) {
				return artifact.Item{Kind: artifact.KindFile, Name: name, Version: "v1.34.4", Architecture: arch, SHA256: digest,
					File: path.Join(name, "v1.34.4", arch, name), Source: "https://dl.example/" + name}, true
			}
		}
	}
	return artifact.Item{}, false
}

func (knownCatalog) Named(file string) (artifact.Item, bool) {
	name, version, ok := strings.Cut(strings.TrimSuffix(path.Base(file), ".tgz"), "-chart-")
	return artifact.Item{Kind: artifact.KindChart, Name: name, Version: version,
		File: "charts/" + name + "-" + version + ".tgz"}, ok
}

func (knownCatalog) Repository(path string) (string, bool) {
	return "registry.example/" + path, path == "pause"
}

func (knownCatalog) Group(ref string) string {
	if strings.HasPrefix(ref, "docker.io/calico/") {
		return "calico"
	}
	return ""
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// entry is an entry of an archive.
type entry struct {
	tar.Header
	content []byte
}

func regular(name, content string) entry {
	return entry{tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(content))}, []byte(content)}
}

func directory(name string) entry {
	return entry{tar.Header{Name: name, Mode: 0o755, Typeflag: tar.TypeDir}, nil}
}

func symlink(name, to string) entry {
	return entry{tar.Header{Name: name, Linkname: to, Mode: 0o777, Typeflag: tar.TypeSymlink}, nil}
}

// pack makes a tar.
func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	data, err := packed(entries)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func packed(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func zipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unzipped returns the content of a gzip, up to a megabyte.
func unzipped(data []byte) ([]byte, bool) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(io.LimitReader(z, 1<<20))
	return plain, err == nil
}

// picture is a small image for one platform: its blobs by digest.
type picture struct {
	blobs    map[string][]byte
	manifest v1.Descriptor
	config   v1.Descriptor
	layer    []byte // without compression
}

func descriptor(kind types.MediaType, data []byte) v1.Descriptor {
	return v1.Descriptor{MediaType: kind, Size: int64(len(data)), Digest: v1.Hash{Algorithm: "sha256", Hex: sumOf(data)}}
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// newPicture makes an image of types of OCI or of docker.
func newPicture(t testing.TB, arch, content string, docker bool) picture {
	t.Helper()
	manifestType, configType, layerType := types.OCIManifestSchema1, types.OCIConfigJSON, types.OCILayer
	if docker {
		manifestType, configType, layerType = types.DockerManifestSchema2, types.DockerConfigJSON, types.DockerLayer
	}
	layer := pack(t, regular("etc/name", content))
	packed := zipped(t, layer)
	config := encoded(t, v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers",
		DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: sumOf(layer)}}}})
	p := picture{config: descriptor(configType, config), layer: layer}
	manifest := encoded(t, v1.Manifest{SchemaVersion: 2, MediaType: manifestType, Config: p.config,
		Layers: []v1.Descriptor{descriptor(layerType, packed)}})
	p.manifest = descriptor(manifestType, manifest)
	p.blobs = map[string][]byte{sumOf(config): config, sumOf(packed): packed, sumOf(manifest): manifest}
	return p
}

// nodes are the images of one name, by architecture.
func nodes(t testing.TB, docker bool) map[string]picture {
	t.Helper()
	return map[string]picture{"amd64": newPicture(t, "amd64", "node", docker),
		"arm64": newPicture(t, "arm64", "node", docker)}
}

// newIndex makes an index of images, and one that no source has: for s390x.
func newIndex(t testing.TB, kind types.MediaType, pictures map[string]picture) (v1.Descriptor, []byte) {
	t.Helper()
	m := v1.IndexManifest{SchemaVersion: 2, MediaType: kind}
	for _, arch := range []string{"amd64", "arm64", "s390x"} {
		d := descriptor(types.OCIManifestSchema1, []byte("absent"))
		if p, ok := pictures[arch]; ok {
			d = p.manifest
		}
		d.Platform = &v1.Platform{OS: "linux", Architecture: arch}
		m.Manifests = append(m.Manifests, d)
	}
	text := encoded(t, m)
	return descriptor(kind, text), text
}

// formats are archives in the layouts of each tool, with what kk makes of them.
func formats(t testing.TB) map[string][]byte {
	t.Helper()
	return map[string][]byte{"kubekey4.tgz": kubekey4Archive(t), "kubekey4-early.tgz": earlyKubekey4Archive(t),
		"kubekey3.tar.gz": kubekey3Archive(t), "docker.tar": dockerArchiveOf(t), "docker25.tar": docker25Archive(t),
		"oci.tar": ociArchive(t)}
}

// kubekey4Archive is what `tar -czf ... .` of KubeKey 4 packs. The images are for these architectures alone;
// without any, for all that the index has.
func kubekey4Archive(t testing.TB, arches ...string) []byte {
	t.Helper()
	pictures := nodes(t, true)
	index, text := newIndex(t, types.DockerManifestList, pictures)
	manifests := "./images/registry-1.docker.io/calico/node/manifests/"
	entries := []entry{directory("./"), directory("./kube/"), directory("./kube/v1.34.4/"),
		regular("./kube/v1.34.4/amd64/kubeadm", "kubeadm v1.34.4 amd64"),
		regular("./kube/v1.34.4/amd64/kubelet", "kubelet v1.34.4 amd64"),
		regular("./kube/v1.34.4/arm64/kubeadm", "kubeadm v1.34.4 arm64"),
		regular("./cni/calico/calico-chart-v3.31.3.tgz", "a chart"),
		regular("./repository/ubuntu-24.04-amd64.iso", "an ISO"),
		directory("./images/"), directory("./images/blobs/"),
		regular(manifests+"layout", fmt.Sprintf(`{"v3.31.3": %q}`, index.Digest)),
		regular(manifests+index.Digest.String(), string(text)),
	}
	for arch, p := range pictures {
		if len(arches) > 0 && !slices.Contains(arches, arch) {
			continue
		}
		for _, digest := range sortedKeys(p.blobs) {
			if _, shared := pictures["amd64"].blobs[digest]; shared && arch != "amd64" && len(arches) == 0 {
				continue
			}
			at := "./images/blobs/sha256:"
			if digest == p.manifest.Digest.Hex {
				at = manifests + "sha256:"
			}
			entries = append(entries, regular(at+digest, string(p.blobs[digest])))
		}
	}
	return zipped(t, pack(t, entries...))
}

// earlyKubekey4Archive is what the first releases of KubeKey 4 packed: without registries.
func earlyKubekey4Archive(t testing.TB) []byte {
	t.Helper()
	var entries []entry
	for repository, p := range map[string]picture{"pause": newPicture(t, "amd64", "pause", true),
		"library/nginx": newPicture(t, "amd64", "nginx", true)} {
		for _, digest := range sortedKeys(p.blobs) {
			if digest == p.manifest.Digest.Hex {
				entries = append(entries, regular("./images/"+repository+"/manifests/1.0", string(p.blobs[digest])))
				continue
			}
			entries = append(entries, regular("./images/blobs/sha256:"+digest, string(p.blobs[digest])))
		}
	}
	return zipped(t, pack(t, entries...))
}

func indexOf(manifests ...v1.Descriptor) v1.IndexManifest {
	return v1.IndexManifest{Manifests: manifests}
}

// layoutEntries are the entries of an OCI layout below a folder.
func layoutEntries(t testing.TB, dir string, index v1.IndexManifest, blobs map[string][]byte) []entry {
	t.Helper()
	index.SchemaVersion = 2
	entries := []entry{regular(dir+"oci-layout", `{"imageLayoutVersion":"1.0.0"}`),
		regular(dir+"index.json", string(encoded(t, index)))}
	for _, digest := range sortedKeys(blobs) {
		entries = append(entries, regular(dir+"blobs/sha256/"+digest, string(blobs[digest])))
	}
	return entries
}

func sortedKeys(m map[string][]byte) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// kubekey3Archive is what KubeKey 3 packs: files alone, images with the architecture in their names.
func kubekey3Archive(t testing.TB) []byte {
	t.Helper()
	entries := []entry{regular("kube/v1.34.4/amd64/kubeadm", "kubeadm v1.34.4 amd64"),
		regular("helm/v3.18.6/amd64/helm", "helm without its archive"),
		regular("repository/amd64/ubuntu/22.04/ubuntu-22.04-amd64.iso", "an ISO")}
	blobs := map[string][]byte{}
	var index v1.IndexManifest
	for _, arch := range []string{"amd64", "arm64"} {
		p := newPicture(t, arch, "node", false)
		for digest, data := range p.blobs {
			blobs[digest] = data
		}
		d := p.manifest
		d.Annotations = map[string]string{refName: "docker.io/calico/node:v3.31.3-" + arch}
		index.Manifests = append(index.Manifests, d)
	}
	return zipped(t, pack(t, append(entries, layoutEntries(t, "images/", index, blobs)...)...))
}

// dockerArchiveOf is what docker save wrote before version 25, with a layer that repeats as a link.
func dockerArchiveOf(t testing.TB) []byte {
	t.Helper()
	p := newPicture(t, "amd64", "nginx", true)
	config := encoded(t, v1.ConfigFile{OS: "linux", Architecture: "amd64", RootFS: v1.RootFS{Type: "layers",
		DiffIDs: []v1.Hash{{Algorithm: "sha256", Hex: sumOf(p.layer)}, {Algorithm: "sha256", Hex: sumOf(p.layer)}}}})
	return pack(t,
		directory("aaa/"), regular("aaa/VERSION", "1.0"), regular("aaa/json", "{}"),
		regular("aaa/layer.tar", string(p.layer)),
		directory("bbb/"), regular("bbb/VERSION", "1.0"), regular("bbb/json", "{}"),
		symlink("bbb/layer.tar", "../aaa/layer.tar"),
		regular(sumOf(config)+".json", string(config)),
		regular("manifest.json", string(encoded(t, []dockerImage{{Config: sumOf(config) + ".json",
			RepoTags: []string{"nginx:1.27", "quay.io/app/web:v2"}, Layers: []string{"aaa/layer.tar", "bbb/layer.tar"}}}))),
		regular("repositories", `{"nginx":{"1.27":"bbb"}}`))
}

// docker25Archive is what docker save writes since version 25: an OCI layout, and manifest.json.
func docker25Archive(t testing.TB) []byte {
	t.Helper()
	p := newPicture(t, "amd64", "nginx", false)
	d := p.manifest
	d.Annotations = map[string]string{containerdName: "docker.io/library/nginx:1.27", refName: "1.27"}
	other := newPicture(t, "arm64", "web", false)
	unnamed := other.manifest
	unnamed.Annotations = map[string]string{refName: "v2"}
	for digest, data := range other.blobs {
		p.blobs[digest] = data
	}
	entries := layoutEntries(t, "", indexOf(d, unnamed), p.blobs)
	return pack(t, append(entries, regular("manifest.json", string(encoded(t, []dockerImage{
		{Config: "blobs/sha256/" + p.config.Digest.Hex, RepoTags: []string{"nginx:1.27"}},
		{Config: "blobs/sha256/" + other.config.Digest.Hex, RepoTags: []string{"quay.io/app/web:v2"}}}))))...)
}

// ociArchive is an OCI layout with an image for two platforms.
func ociArchive(t testing.TB) []byte {
	t.Helper()
	pictures := nodes(t, false)
	d, text := newIndex(t, types.OCIImageIndex, pictures)
	blobs := map[string][]byte{sumOf(text): text}
	for _, p := range pictures {
		for digest, data := range p.blobs {
			blobs[digest] = data
		}
	}
	d.Annotations = map[string]string{refName: "docker.io/calico/node:v3.31.3"}
	return pack(t, layoutEntries(t, "", indexOf(d), blobs)...)
}

// write writes files, and returns their paths.
func write(t testing.TB, dir string, files map[string][]byte, names ...string) []string {
	t.Helper()
	var paths []string
	for _, name := range names {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, files[name], 0o644); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	return paths
}

// imported imports sources to a file, verifies that, and lists its items.
func imported(t *testing.T, sources []string) []string {
	t.Helper()
	cache := filepath.Join(t.TempDir(), "cache")
	i, err := Read(t.Context(), sources, Options{Cache: cache, Catalog: knownCatalog{}, AllowUnverified: true})
	if err != nil {
		t.Fatal(err)
	}
	b := artifact.NewBuilder(cache, artifact.Covers{}, nil)
	if err := i.AddTo(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.tar")
	if _, err := b.Write(t.Context(), out, artifact.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, ".import-*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	f, err := artifact.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Verify(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	var items []string
	for _, item := range f.Manifest.Items {
		text := fmt.Sprintf("%s %s", item, item.File)
		if item.Unverified {
			text += " unverified"
		}
		if item.Group != "" {
			text += " group " + item.Group
		}
		items = append(items, strings.TrimSpace(text+" "+strings.Join(item.Platforms, ",")))
	}
	return items
}

func TestFormats(t *testing.T) {
	files := formats(t)
	node := "image docker.io/calico/node:v3.31.3  unverified group calico linux/amd64,linux/arm64"
	nginx := "image docker.io/library/nginx:1.27  unverified linux/amd64"
	for name, want := range map[string][]string{
		"kubekey4.tgz": {
			"file kubeadm v1.34.4 amd64 kubeadm/v1.34.4/amd64/kubeadm",
			"file kubeadm v1.34.4 arm64 kubeadm/v1.34.4/arm64/kubeadm",
			"file kubelet v1.34.4 amd64 kubelet/v1.34.4/amd64/kubelet",
			"chart calico v3.31.3 charts/calico-v3.31.3.tgz unverified",
			node,
			"extra ubuntu-24.04-amd64.iso imported/repository/ubuntu-24.04-amd64.iso unverified",
		},
		"kubekey4-early.tgz": {
			"image docker.io/library/nginx:1.0  unverified linux/amd64",
			"image registry.example/pause:1.0  unverified linux/amd64",
		},
		"kubekey3.tar.gz": {
			"file helm v3.18.6 amd64 imported/helm/v3.18.6/amd64/helm unverified",
			"file kubeadm v1.34.4 amd64 kubeadm/v1.34.4/amd64/kubeadm",
			node,
			"extra ubuntu-22.04-amd64.iso imported/repository/amd64/ubuntu/22.04/ubuntu-22.04-amd64.iso unverified",
		},
		"docker.tar":   {nginx, "image quay.io/app/web:v2  unverified linux/amd64"},
		"docker25.tar": {nginx, "image quay.io/app/web:v2  unverified linux/arm64"},
		"oci.tar":      {node},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(want, imported(t, write(t, t.TempDir(), files, name))); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestArchitecturesApart imports two archives of KubeKey 4 that have one architecture each, of the same index.
func TestArchitecturesApart(t *testing.T) {
	files := map[string][]byte{"amd64.tgz": kubekey4Archive(t, "amd64"), "arm64.tgz": kubekey4Archive(t, "arm64")}
	want := "image docker.io/calico/node:v3.31.3  unverified group calico linux/amd64,linux/arm64"
	if got := imported(t, write(t, t.TempDir(), files, "amd64.tgz", "arm64.tgz")); !slices.Contains(got, want) {
		t.Errorf("got %q", got)
	}
}

// TestImagesNeedPermission: an archive can give any name to an image. A digest in the name shows which one it is.
func TestImagesNeedPermission(t *testing.T) {
	p := newPicture(t, "amd64", "web", false)
	read := func(name string) error {
		d := p.manifest
		d.Annotations = map[string]string{refName: name}
		files := map[string][]byte{"a.tar": pack(t, layoutEntries(t, "", indexOf(d), p.blobs)...)}
		i, err := Read(t.Context(), write(t, t.TempDir(), files, "a.tar"),
			Options{Cache: t.TempDir(), Catalog: knownCatalog{}})
		if err == nil {
			for item := range i.Items() {
				if item.Unverified {
					t.Errorf("%s is unverified", item.Name)
				}
			}
			err = i.Close()
		}
		return err
	}
	digest := p.manifest.Digest.String()
	if err := read("quay.io/app/web@" + digest); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]string{
		"quay.io/app/web:v2": "- image quay.io/app/web:v2 in index.json, " + digest + "\nset --allow-unverified",
		"quay.io/app/web@sha256:" + strings.Repeat("0", 64): "it has the digest " + digest + ", and its name another one",
	} {
		if err := read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestComponentArchives imports archives that are components and charts themselves; one has a link in it.
func TestComponentArchives(t *testing.T) {
	component := pack(t, regular("bin/containerd", "x"), symlink("bin/ctr", "containerd"))
	files := map[string][]byte{"some.tgz": zipped(t, component),
		"calico-chart-v3.31.3.tgz": zipped(t, pack(t, regular("calico/Chart.yaml", "x")))}
	sources := write(t, t.TempDir(), files, "some.tgz", "calico-chart-v3.31.3.tgz")
	i, err := Read(t.Context(), sources, Options{Cache: t.TempDir(), Catalog: knownCatalog{sumOf(files["some.tgz"])},
		AllowUnverified: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = i.Close() }()
	var got []string
	for item := range i.Items() {
		got = append(got, item.File)
	}
	want := []string{"containerd/v2.2.7/amd64/containerd.tar.gz", "charts/calico-v3.31.3.tgz"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestSkopeo imports what skopeo writes.
func TestSkopeo(t *testing.T) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip("skopeo is not installed")
	}
	dir := t.TempDir()
	p := newPicture(t, "amd64", "web", false)
	d := p.manifest
	d.Annotations = map[string]string{refName: "web"}
	for _, e := range layoutEntries(t, "layout/", indexOf(d), p.blobs) {
		write(t, dir, map[string][]byte{e.Name: e.content}, e.Name)
	}
	for _, kind := range []string{"docker-archive", "oci-archive", "oci"} {
		to := filepath.Join(dir, kind)
		cmd := exec.CommandContext(t.Context(), "skopeo", "--insecure-policy", "copy", "oci:"+dir+"/layout:web",
			kind+":"+to+":quay.io/app/web:v2")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		want := []string{"image quay.io/app/web:v2  unverified linux/amd64"}
		if diff := cmp.Diff(want, imported(t, []string{to})); diff != "" {
			t.Errorf("%s: -want +got\n%s", kind, diff)
		}
	}
}
