package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// box is a cache in a folder.
type box struct {
	*testing.T
	dir string
}

func newBox(t *testing.T) box { return box{t, filepath.Join(t.TempDir(), "cache")} }

// put writes a file whose last use is some days ago.
func (b box) put(name, text string, days int) {
	b.Helper()
	p := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644)); err != nil {
		b.Fatal(err)
	}
	at := time.Now().Add(-time.Duration(days)*24*time.Hour - time.Minute)
	if err := os.Chtimes(p, at, at); err != nil {
		b.Fatal(err)
	}
}

// blob puts a blob into the layout.
func (b box) blob(kind types.MediaType, text string, days int) v1.Descriptor {
	b.Helper()
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	b.put("images/blobs/sha256/"+digest, text, days)
	return v1.Descriptor{MediaType: kind, Size: int64(len(text)), Digest: v1.Hash{Algorithm: "sha256", Hex: digest}}
}

// image puts an image with some layers into the layout.
func (b box) image(name string, days int, layers ...string) v1.Descriptor {
	b.Helper()
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: b.blob(types.OCIConfigJSON, "config of "+name, days)}
	for _, l := range layers {
		m.Layers = append(m.Layers, b.blob(types.OCILayer, l, days))
	}
	return b.document(name, m, m.MediaType, days)
}

func (b box) document(name string, m any, kind types.MediaType, days int) v1.Descriptor {
	b.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		b.Fatal(err)
	}
	d := b.blob(kind, string(text), days)
	if name != "" {
		d.Annotations = map[string]string{refName: name}
	}
	return d
}

// index writes the index of the layout.
func (b box) index(all ...v1.Descriptor) {
	b.Helper()
	text, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: all})
	if err != nil {
		b.Fatal(err)
	}
	b.put("images/index.json", string(text), 0)
	b.put("images/oci-layout", `{"imageLayoutVersion":"1.0.0"}`, 0)
}

// list lists all files and links of the cache; blobs by their content, unless that is a document.
func (b box) list() []string {
	b.Helper()
	var names []string
	if err := filepath.WalkDir(b.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(b.dir, p)
		if rest, ok := strings.CutPrefix(name, "images/blobs/sha256/"); ok {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			if name = "blob " + string(text); text[0] == '{' {
				name = "document " + rest[:4]
			}
		}
		if !strings.HasPrefix(name, "document") {
			names = append(names, name)
		}
		return nil
	}); err != nil {
		b.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// prune removes what is not needed and was not used for some days. It returns what the plan has.
func (b box) prune(need Needed, days int) []string {
	b.Helper()
	p, err := Find(b.Context(), b.dir, need, time.Now().Add(time.Hour-time.Duration(days)*24*time.Hour))
	if err != nil {
		b.Fatal(err)
	}
	var names []string
	for _, e := range p.Entries {
		names = append(names, string(e.Kind)+" "+e.Name)
	}
	if err := p.Remove(b.Context()); err != nil {
		b.Fatal(err)
	}
	return names
}

func set(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func (b box) same(what string, want, got []string) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("%s: -want +got\n%s", what, diff)
	}
}

func TestFiles(t *testing.T) {
	b := newBox(t)
	old, kept := strings.Repeat("a", 64), strings.Repeat("b", 64)
	b.put("kubeadm/v1.34.4/amd64/kubeadm", "needed", 90)
	b.put("kubeadm/v1.33.0/amd64/kubeadm", "not needed", 90)
	b.put("zstd-1/"+old+"-9-1.zst", "a copy", 90)
	b.put("zstd-1/"+kept+"-9-2.zst", "a copy", 90)
	b.put("zstd-1/.x.zst.1.part", "in flight", 0)
	b.put("zstd-1/.x.zst.2.part", "left behind", 2)
	b.put("etcd/v1/amd64/etcd.part", "in flight", 0)
	b.put("helm/v1/amd64/helm.part", "left behind", 2)
	b.put(".import-1/0000001", "in flight", 0)
	b.put(".import-2/0000001", "left behind", 2)
	if err := os.Chtimes(filepath.Join(b.dir, ".import-2"), time.Now(), time.Now().AddDate(0, 0, -2)); err != nil {
		t.Fatal(err)
	}
	need := Needed{Files: set("kubeadm/v1.34.4/amd64/kubeadm"), Digests: set(kept)}
	b.same("plan", []string{"file .import-2", "file helm/v1/amd64/helm.part", "file kubeadm/v1.33.0/amd64/kubeadm",
		"file zstd-1/.x.zst.2.part", "file zstd-1/" + old + "-9-1.zst"}, b.prune(need, 0))
	b.same("left", []string{".import-1/0000001", "etcd/v1/amd64/etcd.part", "kubeadm/v1.34.4/amd64/kubeadm",
		"zstd-1/.x.zst.1.part", "zstd-1/" + kept + "-9-2.zst"}, b.list())
	if _, err := os.Stat(filepath.Join(b.dir, "kubeadm/v1.33.0")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("an empty folder is left", err)
	}
	if names := b.prune(need, 0); names != nil {
		t.Errorf("a second run finds %v", names)
	}
}

// TestPackages has packages by their digests, and a repository of them.
func TestPackages(t *testing.T) {
	b := newBox(t)
	old, kept := strings.Repeat("a", 64), strings.Repeat("b", 64)
	b.put("packages/sha256/"+old, "not needed", 90)
	b.put("packages/sha256/"+kept, "needed", 90)
	b.put("packages/debian-12/amd64/a.deb", "needed", 90)
	b.put("other/"+kept, "not needed", 90)
	b.prune(Needed{Files: set("packages/debian-12/amd64/a.deb"), Digests: set(kept)}, 0)
	b.same("left", []string{"packages/debian-12/amd64/a.deb", "packages/sha256/" + kept}, b.list())
}

// TestDistributions keeps the repository of a distribution, and the packages that it links to.
func TestDistributions(t *testing.T) {
	b := newBox(t)
	link := func(digest, name string) {
		t.Helper()
		b.put(filepath.Dir(name)+"/Packages", "list", 90)
		if err := os.Link(filepath.Join(b.dir, "packages/sha256", digest), filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	both, one, other := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	for _, digest := range []string{both, one, other} {
		b.put("packages/sha256/"+digest, "package", 90)
	}
	link(both, "packages/debian-12/amd64/a.deb")
	link(one, "packages/debian-12/amd64/b.deb")
	link(both, "packages/ubuntu-24.04/amd64/a.deb")
	link(other, "packages/ubuntu-24.04/amd64/c.deb")
	b.prune(Needed{Distributions: set("debian-12", "rocky-9.4", "../..")}, 0)
	b.same("left", []string{"packages/debian-12/amd64/Packages", "packages/debian-12/amd64/a.deb",
		"packages/debian-12/amd64/b.deb", "packages/sha256/" + both, "packages/sha256/" + one}, b.list())
}

func TestOlder(t *testing.T) {
	b := newBox(t)
	b.put("old", "x", 31)
	b.put("new", "x", 1)
	b.put("read", "x", 31)
	p := filepath.Join(b.dir, "read")
	if err := os.Chtimes(p, time.Now(), time.Now().AddDate(0, 0, -31)); err != nil { // read now, written then
		t.Fatal(err)
	}
	b.index(b.image("r.example/old:1", 31, "shared", "only old"), b.image("r.example/new:1", 1, "shared", "only new"))
	b.same("plan", []string{"file old", "image r.example/old:1"}, b.prune(Needed{}, 30))
	b.same("left", []string{"blob config of r.example/new:1", "blob only new", "blob shared", "images/index.json",
		"images/oci-layout", "new", "read"}, b.list())
}

func TestImages(t *testing.T) {
	b := newBox(t)
	needed := b.image("r.example/needed:1", 9, "shared", "needed")
	gone := b.image("r.example/gone:1", 9, "shared", "gone")
	second := needed
	second.Annotations = map[string]string{refName: "r.example/second-name:1"}
	amd64, arm64 := b.image("", 9, "for amd64"), b.image("", 9, "for arm64")
	index := b.document("r.example/index:1", v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex,
		Manifests: []v1.Descriptor{amd64, arm64}}, types.OCIImageIndex, 9)
	signature := b.image("r.example/needed:sha256-"+needed.Digest.Hex+".sig", 9, "signature")
	lone := b.image("r.example/gone:sha256-"+gone.Digest.Hex+".sig", 9, "signature of gone")
	attached := b.document("r.example/attached:1", v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: b.blob(types.OCIConfigJSON, "attached", 9), Subject: &amd64}, types.OCIManifestSchema1, 9)
	b.index(needed, gone, second, index, signature, lone, attached)
	b.blob("", "orphan", 2)
	b.blob("", "young orphan", 0)
	plan := b.prune(Needed{Images: set("r.example/needed:1", "r.example/index:1")}, 0)
	orphan := sha256.Sum256([]byte("orphan"))
	b.same("plan", []string{"image r.example/gone:1", "image r.example/gone:sha256-" + gone.Digest.Hex + ".sig",
		"image r.example/second-name:1", "blob " + hex.EncodeToString(orphan[:])}, plan)
	b.same("left", []string{"blob attached", "blob config of ", "blob config of r.example/needed:1",
		"blob config of r.example/needed:sha256-" + needed.Digest.Hex + ".sig", "blob for amd64", "blob for arm64",
		"blob needed", "blob shared", "blob signature", "blob young orphan", "images/index.json",
		"images/oci-layout"}, b.list())
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := openLayout(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.index.Manifests) != 4 || l.index.MediaType != types.OCIImageIndex {
		t.Errorf("the index has %+v", l.index)
	}
}

// TestChangedMeanwhile prunes with a plan that is out of date.
func TestChangedMeanwhile(t *testing.T) {
	b := newBox(t)
	b.put("file", "x", 9)
	gone := b.image("r.example/gone:1", 9, "shared", "gone")
	b.index(gone)
	p, err := Find(t.Context(), b.dir, Needed{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b.put("file", "another", 0)
	b.index(gone, b.image("r.example/new:1", 0, "shared"))
	if err := p.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.same("left", []string{"blob config of r.example/new:1", "blob shared", "file", "images/index.json",
		"images/oci-layout"}, b.list())
}

// TestStopsInImages stops before blobs are removed.
func TestStopsInImages(t *testing.T) {
	b := newBox(t)
	b.index(b.image("r.example/gone:1", 9, "layer"))
	p, err := Find(t.Context(), b.dir, Needed{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Remove(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left := b.list(); !slices.Contains(left, "blob layer") {
		t.Errorf("left: %q", left)
	}
	b.prune(Needed{}, 0)
	b.same("left after a second run", []string{"images/index.json", "images/oci-layout"}, b.list())
}

// TestLinks has links that lead out of the cache.
func TestLinks(t *testing.T) {
	b := newBox(t)
	outside := filepath.Join(filepath.Dir(b.dir), "outside")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.put("file", "x", 9)
	if err := errors.Join(os.Symlink(outside, filepath.Join(b.dir, "folder")),
		os.Symlink(precious, filepath.Join(b.dir, "link")), os.Symlink(outside, filepath.Join(b.dir, "images"))); err != nil {
		t.Fatal(err)
	}
	b.same("plan", []string{"file file"}, b.prune(Needed{}, 0))
	b.same("left", []string{"folder", "images", "link"}, b.list())
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

// TestDamagedLayout has manifests that cannot be read, and digests that are paths.
func TestDamagedLayout(t *testing.T) {
	b := newBox(t)
	bad := b.document("r.example/bad:1", "no manifest", types.OCIManifestSchema1, 9)
	path := bad
	path.Digest.Hex, path.Annotations = "../../../../outside", map[string]string{refName: "r.example/path:1"}
	b.put("../outside", "x", 9)
	b.index(bad)
	index := filepath.Join(b.dir, "images/index.json")
	text, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	b.same("plan", []string{"image r.example/bad:1"}, b.prune(Needed{}, 0))
	b.put("images/index.json", strings.Replace(string(text), bad.Digest.Hex, path.Digest.Hex, 1), 0)
	if _, err := Find(t.Context(), b.dir, Needed{}, time.Now()); err == nil {
		t.Error("a digest that is a path was accepted")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(b.dir), "outside")); err != nil {
		t.Error(err)
	}
	b.put("images/index.json", "{", 0)
	_, err = Find(t.Context(), b.dir, Needed{}, time.Now())
	if err == nil || !strings.Contains(err.Error(), "index.json") {
		t.Error(err)
	}
}

func TestNoCache(t *testing.T) {
	b := newBox(t)
	if names := b.prune(Needed{}, 0); names != nil {
		t.Error(names)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.put("file", "x", 9)
	if _, err := Find(ctx, b.dir, Needed{}, time.Now()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
