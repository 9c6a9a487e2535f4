package serve

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/engine"
)

const kubernetes = "v1.34.4"

// mirror is an upstream that listens.
type mirror struct {
	*artifacttest.Upstream
	host, mirrors string // address, and the catalog overlay that names it
}

// newMirror is a mirror of versions of Kubernetes.
func newMirror(t *testing.T, versions ...string) mirror {
	t.Helper()
	var shown [][]byte
	for _, v := range versions {
		shown = append(shown, []byte(kk(t, "catalog", "show", v, "-o", "json")))
	}
	u := artifacttest.NewUpstream(t, shown...)
	host, _ := u.Listen(t, "127.0.0.1:0")
	return mirror{u, host, artifacttest.Mirrors(host)}
}

// configure writes a config, and returns its path.
func configure(t *testing.T, dir, checksums, mirrors, host string) string {
	t.Helper()
	for file, text := range map[string]string{"checksums.yaml": checksums, "overlay.yaml": mirrors,
		"config.yaml": artifacttest.Config(host)} {
		check(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	return filepath.Join(dir, "config.yaml")
}

// export runs `kk artifact export` in a work folder of its own. A plan before it fetches nothing and lists everything; a
// plan after it finds everything in the cache.
func export(t *testing.T, checksums, mirrors, host string) string {
	t.Helper()
	dir := t.TempDir()
	config := configure(t, dir, checksums, mirrors, host)
	out := filepath.Join(dir, "out.tar")
	args := []string{"artifact", "export", "-c", config, "--kubernetes", kubernetes, "--arch", "amd64", "--workdir",
		filepath.Join(dir, "work"), "-o", out}
	plan := kk(t, append(args, "--plan")...)
	if _, err := os.Stat(filepath.Join(dir, "work", "cache")); err == nil || strings.Contains(plan, "cached") ||
		!planned.MatchString(plan) {
		t.Errorf("%v; the plan is\n%s", err, plan)
	}
	kk(t, args...)
	kk(t, "artifact", "verify", out, "--workdir", filepath.Join(dir, "work"), "--set", "kubernetes.kube_version="+kubernetes)
	if code, text := run(t, "artifact", "verify", out, "--workdir", filepath.Join(dir, "work"), "--set",
		"cni.type=flannel"); code != engine.ExitInput || !strings.Contains(text, "flannel/flannel:v0.28.4, needed by flannel") {
		t.Errorf("a config that the file does not cover: exit code %d\n%s", code, text)
	}
	if plan := kk(t, append(args, "--plan")...); !strings.Contains(plan, "to fetch: at most 0 B") {
		t.Errorf("the plan of what is in the cache is\n%s", plan)
	}
	return out
}

// planned is a file, an image and the sum of a plan.
var planned = regexp.MustCompile(`(?s)file   kubeadm/\S+ +\d[\d.]* [kKM]?i?B.*image  \S+/pause:\S+ +\d[\d.]* [kKM]?i?B.*` +
	`to fetch: at most [1-9]`)

// TestSeveralVersions exports the versions on the way of an upgrade: in one file, as one file each, and as what the
// second one lacks. All ways cover both
// versions, and what is merged has the bytes of the one file.
func TestSeveralVersions(t *testing.T) {
	const before = "v1.33.8"
	u := newMirror(t, before, kubernetes)
	dir := t.TempDir()
	config := configure(t, dir, u.Checksums, u.mirrors, u.host)
	file := func(name string) string { return filepath.Join(dir, name) }
	export := func(workdir, out string, args ...string) {
		t.Helper()
		kk(t, append([]string{"artifact", "export", "-c", config, "--arch", "amd64", "--kk", "none", "--workdir",
			file(workdir), "-o", file(out)}, args...)...)
	}
	export("work", "both.tar", "--kubernetes", before, "--kubernetes", kubernetes)
	export("work", "old.tar", "--kubernetes", before)
	export("work", "new.tar", "--kubernetes", kubernetes)
	u.Asked()
	export("elsewhere", "delta.tar", "--kubernetes", before, "--kubernetes", kubernetes, "--from", file("old.tar"))
	fetched := u.Asked()
	for _, path := range fetched {
		if strings.Contains(path, before) {
			t.Errorf("%s was fetched, which the older file has", path)
		}
	}
	kubelet := "/dl.k8s.io/release/" + kubernetes + "/bin/linux/amd64/kubelet"
	if !slices.Contains(fetched, kubelet) {
		t.Errorf("no %s was fetched: %v", kubelet, fetched)
	}
	kk(t, "artifact", "merge", file("old.tar"), file("delta.tar"), "-o", file("merged.tar"))
	// What the cache has of the older file does not matter, not even whether it is damaged.
	archives, err := filepath.Glob(file("work/cache/helm/*/amd64/*"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no helm in the cache: %v", err)
	}
	for _, path := range archives {
		text, err := os.ReadFile(path)
		check(t, err)
		text[len(text)-1] ^= 1
		check(t, os.WriteFile(path, text, 0o600))
	}
	check(t, os.RemoveAll(file("work/cache/sbom")))
	export("work", "warm.tar", "--kubernetes", before, "--kubernetes", kubernetes, "--from", file("old.tar"))
	same(t, file("delta.tar"), file("warm.tar"))
	same(t, file("both.tar"), file("merged.tar"))
	for files, covered := range map[string][]string{"both.tar": {before, kubernetes}, "merged.tar": {before, kubernetes},
		"old.tar new.tar": {before, kubernetes}, "old.tar": {before}, "new.tar": {kubernetes}} {
		for _, version := range []string{before, kubernetes} {
			args := []string{"artifact", "verify", "--quick", "-c", config, "--workdir", file("site"), "--set",
				"kubernetes.kube_version=" + version}
			for _, f := range strings.Fields(files) {
				args = append(args, file(f))
			}
			code, out := run(t, args...)
			switch {
			case slices.Contains(covered, version) && code != 0:
				t.Errorf("%s for %s: exit code %d\n%s", files, version, code, out)
			case !slices.Contains(covered, version) && (code == 0 || !strings.Contains(out, "kubelet "+version)):
				t.Errorf("%s for %s: exit code %d\n%s", files, version, code, out)
			}
		}
	}
}

// same fails the test unless files have the same bytes.
func same(t *testing.T, a, b string) {
	t.Helper()
	x, err := os.ReadFile(a)
	check(t, err)
	y, err := os.ReadFile(b)
	check(t, err)
	if !bytes.Equal(x, y) {
		t.Errorf("%s and %s differ", a, b)
	}
}

// TestPlanFindsFullDisks plans an export to a disk that has no room for it.
func TestPlanFindsFullDisks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	u := newMirror(t, kubernetes)
	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	check(t, os.Mkdir(small, 0o700))
	check(t, syscall.Mount("tmpfs", small, "tmpfs", 0, "size=100k"))
	t.Cleanup(func() { check(t, syscall.Unmount(small, 0)) })
	var overlays []string
	for name, text := range map[string]string{"checksums.yaml": u.Checksums, "overlay.yaml": u.mirrors} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		overlays = append(overlays, filepath.Join(dir, name))
	}
	code, out := run(t, "artifact", "export", "--plan", "--only", "files", "--kubernetes", kubernetes, "--workdir", dir,
		"-o", filepath.Join(small, "out.tar"), "--set", "catalog.overlays=["+strings.Join(overlays, ",")+"]")
	if code != engine.ExitFailed || !strings.Contains(out, small+": ") || !strings.Contains(out, "are free, and the export") {
		t.Errorf("exit code %d\n%s", code, out)
	}
}

// checkServed verifies the signature of an image, and finds its referrer, in a registry.
func (u mirror) checkServed(t *testing.T, host string, i artifact.Item) {
	t.Helper()
	digest, err := v1.NewHash(i.Blob)
	check(t, err)
	at, err := name.NewTag(host + artifact.AttachedName(i.Name, digest, ".sig"))
	check(t, err)
	image, err := remote.Image(at, remote.WithContext(t.Context()))
	check(t, err)
	if err := artifacttest.CheckSignature(image, digest, &u.Key.PublicKey); err != nil {
		t.Errorf("%s: %v", i, err)
	}
	list, err := remote.Referrers(at.Context().Digest(i.Blob), remote.WithContext(t.Context()))
	check(t, err)
	m, err := list.IndexManifest()
	if err != nil || len(m.Manifests) != 1 || m.Manifests[0].ArtifactType != "application/vnd.example.sbom" ||
		m.Manifests[0].Annotations["text"] != "about "+i.Name {
		t.Errorf("%s has the referrers %+v, %v", i, m, err)
	}
}

// TestExportFromServedFile makes an offline file from a mirror, serves it, and makes another from what is served, with
// the overlay that is served: it has the same bytes.
func TestExportFromServedFile(t *testing.T) {
	u := newMirror(t, kubernetes)
	first := export(t, u.Checksums, u.mirrors, u.host)
	url := serve(t, first)
	overlay, err := http.Get(url + "overlay.yaml") //nolint:noctx // a test's own server
	check(t, err)
	mirrors, err := io.ReadAll(overlay.Body)
	check(t, err)
	check(t, overlay.Body.Close())
	if !strings.Contains(string(mirrors), url) {
		t.Fatalf("%s is not in the overlay:\n%s", url, mirrors)
	}
	second := export(t, u.Checksums, string(mirrors), strings.Trim(strings.TrimPrefix(url, "http:"), "/"))
	f, err := artifact.Open(second)
	check(t, err)
	defer func() { _ = f.Close() }()
	kinds := map[artifact.Kind]int{}
	attached := f.Manifest.Attachments()
	for _, i := range f.Manifest.Items {
		if i.IsAttached() {
			continue
		}
		kinds[i.Kind]++
		if all := attached.OfImage(i); i.Kind == artifact.KindImage && len(all) != 2 {
			t.Errorf("%s has %d attachments", i, len(all))
		} else if i.Kind == artifact.KindImage {
			u.checkServed(t, strings.TrimPrefix(url, "http://"), i)
		}
	}
	t.Log("items:", kinds)
	if kinds[artifact.KindFile] < 5 || kinds[artifact.KindChart] < 1 || kinds[artifact.KindImage] < 10 {
		t.Error("some kind of item is missing")
	}
	a, err := os.ReadFile(first)
	check(t, err)
	b, err := os.ReadFile(second)
	check(t, err)
	if !bytes.Equal(a, b) {
		t.Errorf("the files differ: sha256 %s and %s", sha(a), sha(b))
	}
}
