package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

const pause = "registry.k8s.io/pause:3.10.1"

// offline writes an offline file with an image for some platforms.
func offline(t testing.TB, arches ...string) (file string, image v1.ImageIndex) {
	t.Helper()
	dir := t.TempDir()
	image = artifacttest.PlatformIndex(t, append(slices.Clone(arches), "s390x")...) // the file does not have s390x
	var platforms []v1.Platform
	for _, arch := range arches {
		platforms = append(platforms, v1.Platform{OS: "linux", Architecture: arch})
	}
	at, err := layout.Write(filepath.Join(dir, "images"), empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := at.AppendIndex(image, layout.WithAnnotations(map[string]string{refName: pause})); err != nil {
		t.Fatal(err)
	}
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	if err := b.AddImage(t.Context(), artifact.Item{Name: pause}, string(at), platforms); err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "file.tar")
	if _, err := b.Write(t.Context(), file, artifact.Options{}); err != nil {
		t.Fatal(err)
	}
	return file, image
}

func FuzzHost(f *testing.F) {
	file, _ := offline(f, "amd64")
	moduletest.Hostile(f, Modules(), func(name string, args *value.Dict) {
		args.Set("artifact", []any{file})
		if name == "image" {
			args.Set("images", []any{pair(pause, "oci:"+f.TempDir()+":x")})
			args.Set("platforms", []any{"linux/amd64"})
		}
	})
}

func TestFromOfflineFile(t *testing.T) {
	file, image := offline(t, "amd64", "arm64")
	to := plain(t)
	args := value.NewDict("tls", plainTLS(to), "artifact", []any{file}, "platforms", []any{"amd64"},
		"src", pause, "dest", to.host+"/pause:3.10.1")
	moduletest.RunTwice(t, spec(t), args, moduletest.Options{})
	m, _ := image.IndexManifest()
	if got := to.digest(t, "pause:3.10.1"); got != m.Manifests[0].Digest.String() {
		t.Errorf("the image for amd64 has the digest %s", got)
	}
	args.Set("platforms", []any{"amd64", "arm64"})
	args.Set("dest", to.host+"/pause:both")
	moduletest.RunTwice(t, spec(t), args, moduletest.Options{})
	all := value.NewDict("tls", plainTLS(to), "artifact", []any{file}, "src", pause, "dest", to.host+"/pause:all")
	moduletest.RunTwice(t, spec(t), all, moduletest.Options{})
	if got := to.digest(t, "pause:all"); got == "" || got != to.digest(t, "pause:both") {
		t.Errorf("all platforms of the file have the digest %s", got)
	}
	args.Set("src", "docker.io/library/busybox:1")
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{}); !r.Failed ||
		!strings.Contains(r.Msg, "is not in the offline file "+file) {
		t.Errorf("an image that is missing: %+v", r)
	}
}

func TestSparseLayoutKeepsTheIndex(t *testing.T) {
	from := plain(t)
	index := artifacttest.PlatformIndex(t, "amd64", "arm64", "s390x")
	images, _ := index.IndexManifest()
	attestation := artifacttest.PlatformImage(t, "unknown")
	index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: attestation, Descriptor: v1.Descriptor{
		Platform:    &v1.Platform{OS: "linux", Architecture: "unknown"},
		Annotations: map[string]string{"vnd.docker.reference.digest": images.Manifests[1].Digest.String()}}})
	from.push(t, "m:1", index)
	dir := t.TempDir()
	args := value.NewDict("tls", plainTLS(from), "src", from.host+"/m:1", "dest", "oci:"+dir+":m", "sparse", true,
		"platforms", []any{"arm64"})
	moduletest.RunTwice(t, spec(t), args, moduletest.Options{})
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	arm := v1.Platform{OS: "linux", Architecture: "arm64"}
	if err := b.AddImage(t.Context(), artifact.Item{Name: "m"}, dir, []v1.Platform{arm}); err != nil {
		t.Fatal(err)
	}
	m, err := b.Manifest()
	if err != nil || m.Items[0].Blob != digestOf(t, index) {
		t.Errorf("the image has the digest %+v, %v", m.Items, err)
	}
	if !slices.Contains(m.Items[0].Blobs, digestOf(t, attestation)) {
		t.Error("the attestation is missing")
	}
	list, _ := index.IndexManifest()
	if _, err := os.Stat(filepath.Join(dir, "blobs", "sha256", list.Manifests[0].Digest.Hex)); err == nil {
		t.Error("the image for amd64 was copied")
	}
	args.Set("platforms", []any{"amd64", "arm64"})
	moduletest.RunTwice(t, spec(t), args, moduletest.Options{})
}

// containerd is a stand-in for its client: it keeps the archive, and the names and labels of images.
const containerd = `store=$(dirname "$0")/../store; mkdir -p "$store"
case "$4" in
check) [ ! -e "$store/broken" ] && s=complete || s=incomplete
	for i in "$store"/*.name; do [ ! -e "$i" ] || echo "$(cat "$i") $s (4/4) 1.0 KiB/1.0 KiB true"; done ;;
ls) for i in "$store"/*.name; do [ ! -e "$i" ] || echo "$(cat "$i") 1.0 KiB linux/amd64 $(cat "$i.label" 2>/dev/null || echo -)"; done ;;
import) if [ "$5" = --help ]; then echo "   --local  --label string [ --label string ]"; exit; fi
	echo "$*" >"$store/command"; cat >"$store/archive"; rm -f "$store/broken"; n=0
	for i in $(sed -n 's/.*containerd.image.name": "\(.*\)",*$/\1/p' "$store/archive"); do
	n=$((n + 1)); d=$(sed -n 's/.*"digest": "\(.*\)".*/\1/p' "$store/archive" | head -n 1)
	echo "$i application/x $d" >"$store/$n.name"; echo "$7" >"$store/$n.name.label"; done ;;
label) echo "$5" >>"$store/labelled"
	for i in "$store"/*.name; do case $(cat "$i") in "$5 "*) echo "$6" >"$i.label" ;; esac; done ;;
esac`

func TestLoad(t *testing.T) {
	file, image := offline(t, "amd64", "arm64")
	host := moduletest.NewStandIns(t, map[string]string{"ctr": containerd, "tar": "exec " + tarPath(t) + ` "$@"`, "ln": "exec /bin/ln \"$@\""})
	o := moduletest.Options{Conn: host}
	load := moduletest.Find(t, Modules(), "image_load")
	args := value.NewDict("artifact", []any{file}, "images", []any{pause, pause}, "platform", "linux/arm64")
	check := moduletest.Run(t, load, args, moduletest.Options{Conn: host, Check: true})
	if !check.Changed {
		t.Error("check mode predicts no change")
	}
	moduletest.RunTwice(t, load, args, o)
	archive := filepath.Join(host.Dir, "store", "archive")
	command, err := os.ReadFile(filepath.Join(host.Dir, "store", "command"))
	want := "-n k8s.io images import --local --label io.cri-containerd.pinned=pinned --platform linux/arm64 -\n"
	if err != nil || string(command) != want {
		t.Errorf("the command is %q, %v; want %q", command, err, want)
	}
	labelled := filepath.Join(host.Dir, "store", "labelled")
	if text, err := os.ReadFile(labelled); err == nil {
		t.Errorf("images that the import has pinned were pinned again: %s", text)
	}
	m, _ := image.IndexManifest()
	have := names(t, archive)
	if !have["blobs/sha256/"+strings.TrimPrefix(digestOf(t, image), "sha256:")] ||
		!have["blobs/sha256/"+m.Manifests[1].Digest.Hex] || have["blobs/sha256/"+m.Manifests[0].Digest.Hex] {
		t.Errorf("the archive has %v: want the index and the image for arm64 alone", have)
	}
	// What lost its pin is pinned again, and not sent.
	_ = os.Remove(archive)
	_ = os.Remove(filepath.Join(host.Dir, "store", "1.name.label"))
	moduletest.RunTwice(t, load, args, o)
	if _, err := os.Stat(archive); err == nil {
		t.Error("an image that the host has was sent again")
	}
	if text, err := os.ReadFile(labelled); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("pinned were %q, %v; want one image", text, err)
	}
	// What is incomplete is sent again.
	if err := os.WriteFile(filepath.Join(host.Dir, "store", "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	moduletest.RunTwice(t, load, args, o)
	// Blobs that are on the host are read there.
	blobs := t.TempDir()
	for name, digest := range map[string]string{"index": digestOf(t, image), "manifest": m.Manifests[1].Digest.String()} {
		f, err := artifact.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Blob(digest)
		if err != nil {
			t.Fatal(name, err)
		}
		text, _ := io.ReadAll(r)
		put := func(digest string, text []byte) {
			if err := os.WriteFile(filepath.Join(blobs, strings.TrimPrefix(digest, "sha256:")), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		put(digest, text)
		if name == "manifest" {
			manifest, _ := v1.ParseManifest(strings.NewReader(string(text)))
			for _, d := range append(manifest.Layers, manifest.Config) {
				r, _ := f.Blob(d.Digest.String())
				text, _ := io.ReadAll(r)
				put(d.Digest.String(), text)
			}
		}
		_ = f.Close()
	}
	args.Set("blobs", blobs)
	if err := os.WriteFile(filepath.Join(host.Dir, "store", "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	moduletest.RunTwice(t, load, args, o)
	again := names(t, archive)
	for name := range have {
		if !again[name] {
			t.Errorf("the archive that is put together on the host lacks %s", name)
		}
	}
	_ = os.Remove(filepath.Join(blobs, m.Manifests[1].Digest.Hex))
	if err := os.WriteFile(filepath.Join(host.Dir, "store", "broken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	moduletest.Fails(t, "read images in "+blobs, load, args, o)
	args.Set("platform", "linux/riscv64")
	moduletest.Fails(t, "image "+pause+" for linux/riscv64 is not in the offline file", load, args, o)
}

func tarPath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("tar")
	if err != nil {
		t.Skip("tar is missing")
	}
	return path
}

// names lists the entries of a tar.
func names(t *testing.T, path string) map[string]bool {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	all := map[string]bool{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = true
	}
}

// A layer that arrived in part is resumed where the registry has ranges, and fetched whole where it rejects them. What
// arrived of other bytes is thrown away.
func TestLayersAreResumed(t *testing.T) {
	from := plain(t)
	image := artifacttest.PlatformImage(t, "amd64")
	from.push(t, "one", image)
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	wrong := slices.Concat([]byte("other"), whole[5:len(whole)/2])
	for _, c := range []struct {
		name   string
		part   []byte
		ranges bool
	}{{"ranges", whole[:len(whole)/2], true}, {"no ranges", whole[:len(whole)/2], false}, {"other bytes", wrong, true}} {
		var asked []string
		from.first = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/blobs/"+digest.String()) || r.Method != http.MethodGet {
				return false
			}
			asked = append(asked, r.Header.Get("Range"))
			if c.ranges {
				http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(whole)))
			}
			return c.ranges
		}
		dir := t.TempDir()
		blobs := filepath.Join(dir, "l", "blobs", "sha256")
		if err := os.MkdirAll(blobs, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(blobs, digest.Hex+".part"), c.part, 0o600); err != nil {
			t.Fatal(err)
		}
		args := value.NewDict("tls", plainTLS(from), "src", from.host+"/one", "dest", "oci:"+dir+"/l:x", "backoff", 0)
		r := moduletest.Run(t, spec(t), args, moduletest.Options{})
		if got, err := os.ReadFile(filepath.Join(blobs, digest.Hex)); r.Failed || err != nil || string(got) != string(whole) {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
		if len(asked) == 0 || asked[0] != fmt.Sprintf("bytes=%d-", len(c.part)) {
			t.Errorf("%s: the ranges %q were asked for", c.name, asked)
		}
	}
}
