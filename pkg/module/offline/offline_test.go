package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

const pause = "registry.k8s.io/pause:3.10.1"

// exportSite is a cache with a program, a chart and an image for amd64, and the arguments that export them.
func exportSite(t *testing.T) (dir string, args *value.Dict) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"amd64/kubeadm": strings.Repeat("kubeadm ", 500), "charts/flannel-1.tgz": "\x1f\x8bchart",
		"catalog.yaml": "zones:\n  cn: {mirrors: {}}\nversions: {}\n", "kk": "kk itself"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at, err := layout.Write(filepath.Join(dir, "images"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := at.AppendImage(artifacttest.PlatformImage(t, "amd64"), layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": pause}),
		layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"})); err != nil {
		t.Fatal(err)
	}
	return dir, value.NewDict("dest", filepath.Join(dir, "out.tar"), "cache", dir,
		"files", []any{value.NewDict("name", "kubeadm", "version", "v1.34.4", "arch", "amd64", "file", "amd64/kubeadm")},
		"charts", []any{value.NewDict("name", "flannel", "version", "1", "file", "charts/flannel-1.tgz")},
		"programs", []any{value.NewDict("path", filepath.Join(dir, "kk"), "arch", "amd64")},
		"images", []any{value.NewDict("ref", pause, "group", "kubernetes")}, "platforms", []any{"linux/amd64"},
		"kubernetes", []any{"v1.34.4"}, "catalog", []any{filepath.Join(dir, "catalog.yaml")})
}

func TestExport(t *testing.T) {
	dir, args := exportSite(t)
	spec := moduletest.Find(t, Modules(), "artifact_export")
	out := filepath.Join(dir, "out.tar")
	check := moduletest.Run(t, spec, args, moduletest.Options{Check: true})
	if _, err := os.Stat(out); err == nil || !check.Changed {
		t.Errorf("check mode wrote the file: %+v", check)
	}
	moduletest.RunTwice(t, spec, args, moduletest.Options{})
	f, err := artifact.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Verify(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	var items []string
	for _, i := range f.Manifest.Items {
		items = append(items, i.String())
	}
	want := "file kubeadm v1.34.4 amd64, chart flannel 1, image registry.k8s.io/pause:3.10.1, extra kk amd64"
	if got := strings.Join(items, ", "); got != want {
		t.Errorf("the file has %s, want %s", got, want)
	}
	if text := f.Manifest.Catalog[0].Text; strings.Contains(text, "zones") || !strings.Contains(text, "versions") {
		t.Errorf("the catalog in the file is %q", text)
	}
	first, _ := os.ReadFile(out)
	args.Set("dest", filepath.Join(dir, "again.tar"))
	moduletest.Run(t, spec, args, moduletest.Options{})
	if again, _ := os.ReadFile(filepath.Join(dir, "again.tar")); string(again) != string(first) {
		t.Error("the same inputs made other bytes")
	}
}

// What an export prepares in the background is what it finds in the cache then.
func TestExportPrepares(t *testing.T) {
	dir, args := exportSite(t)
	cache, _ := args.Get("cache")
	spec := moduletest.Find(t, Modules(), "artifact_export")
	args.Set("prepare", true)
	if r := moduletest.Run(t, spec, args, moduletest.Options{}); r.Changed || r.Failed {
		t.Errorf("preparing: %+v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "out.tar")); err == nil {
		t.Error("preparing wrote the file")
	}
	kept := map[string]time.Time{}
	for _, pattern := range []string{"zstd-*/*.zst", "sbom/*"} {
		paths, err := filepath.Glob(filepath.Join(cache.(string), pattern))
		if err != nil || len(paths) == 0 {
			t.Errorf("preparing made no %s: %v", pattern, err)
		}
		for _, p := range paths {
			if info, err := os.Stat(p); err == nil {
				kept[p] = info.ModTime()
			}
		}
	}
	args.Set("prepare", false)
	moduletest.Run(t, spec, args, moduletest.Options{})
	for p, before := range kept {
		if info, err := os.Stat(p); err != nil || !info.ModTime().Equal(before) {
			t.Errorf("%s was made again: %v", p, err)
		}
	}
}

func TestCheckListsWhatIsMissing(t *testing.T) {
	dir, args := exportSite(t)
	moduletest.Run(t, moduletest.Find(t, Modules(), "artifact_export"), args, moduletest.Options{})
	spec := moduletest.Find(t, Modules(), "artifact_check")
	out := filepath.Join(dir, "out.tar")
	kubeadm, _ := args.Get("files")
	need := value.NewDict("artifact", []any{out}, "files", kubeadm, "images", []any{pause}, "platforms",
		[]any{"linux/amd64"})
	if r := moduletest.Run(t, spec, need, moduletest.Options{}); r.Failed || r.Changed {
		t.Errorf("a complete file: %+v", r)
	}
	need.Set("platforms", []any{"linux/amd64", "linux/arm64"})
	need.Set("images", []any{pause, "docker.io/library/busybox:1"})
	need.Set("reasons", value.NewDict("docker.io/library/busybox:1", "local_path"))
	need.Set("files", []any{value.NewDict("name", "kubelet", "version", "v1.34.4", "arch", "amd64", "file", "amd64/kubelet"),
		value.NewDict("name", "kubeadm", "version", "v1.34.4", "arch", "amd64", "file", "amd64/kubeadm", "sha256",
			strings.Repeat("0", 64))})
	r := moduletest.Run(t, spec, need, moduletest.Options{})
	for _, want := range []string{"kubelet v1.34.4 amd64", "kubeadm v1.34.4 amd64", "another file of that name",
		"image " + pause + " for linux/arm64", "image docker.io/library/busybox:1, needed by local_path", "kk artifact export"} {
		if !r.Failed || !strings.Contains(r.Msg, want) {
			t.Errorf("%q is not in %q", want, r.Msg)
		}
	}
	// A damaged file is found before a host is touched.
	text, _ := os.ReadFile(out)
	text[strings.Index(string(text), `"architecture":"amd64"`)] ^= 1 // in the config of the image
	_ = os.WriteFile(out, text, 0o600)
	need = value.NewDict("artifact", []any{out}, "files", kubeadm, "images", []any{pause}, "platforms", []any{"linux/amd64"})
	moduletest.Fails(t, "damaged", spec, need, moduletest.Options{})
}
