package artifact

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// run runs a program of the machine, or skips the test without it.
func (r *rig) run(words ...string) string {
	r.Helper()
	if _, err := exec.LookPath(words[0]); err != nil {
		r.Skipf("%s is not installed", words[0])
	}
	cmd := exec.CommandContext(r.Context(), words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "TMPDIR="+r.dir)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		r.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, exit.Stderr)
	}
	r.must(err)
	return string(out)
}

// Skopeo reads our file as oci-archive, with the digests of the images, and we read the layout that it writes.
func TestSkopeo(t *testing.T) {
	r := newRig(t)
	path := r.write(r.documented(r.builder("v1.34.4", amd64, arm64)), "out.tar", Options{})
	_, err := AppendSignature(path, []byte(armor+"text\n"))
	r.must(err)
	f := r.open(path)
	for _, ref := range []string{indexRef, plainRef} {
		_, item, ok := Set{f}.Image(ref)
		if !ok {
			t.Fatal(ref)
		}
		raw := r.run("skopeo", "inspect", "--raw", "oci-archive:"+path+":"+ref)
		if digestOf([]byte(raw)) != item.Blob {
			t.Errorf("%s has the digest %s instead of %s", ref, digestOf([]byte(raw)), item.Blob)
		}
		theirs := filepath.Join(r.dir, "theirs")
		r.run("skopeo", "copy", "--quiet", "--insecure-policy", "--all", "--dest-oci-accept-uncompressed-layers",
			"oci-archive:"+path+":"+ref, "oci:"+theirs+":"+ref)
		b := NewBuilder(r.dir, Covers{}, nil)
		var platforms []v1.Platform
		for _, text := range item.Platforms {
			p, err := v1.ParsePlatform(text)
			r.must(err)
			platforms = append(platforms, *p)
		}
		r.must(b.AddImage(t.Context(), Item{Name: ref}, theirs, platforms))
		again := r.open(r.write(b, strings.ReplaceAll(ref, "/", "_")+".tar", Options{}))
		r.must(again.Verify(t.Context(), nil, nil))
		_, got, _ := Set{again}.Image(ref)
		// Old skopeos write an index in their own words, so all but that is compared.
		rest := func(i Item) []string {
			return slices.DeleteFunc(slices.Clone(i.Blobs), func(d string) bool { return d == i.Blob })
		}
		if !slices.Equal(rest(got), rest(item)) || !slices.Equal(got.Platforms, item.Platforms) {
			t.Errorf("%s came back with %q instead of %q", ref, rest(got), rest(item))
		}
	}
}

// Umoci unpacks an image of our file, and we read the layout that it makes.
func TestUmoci(t *testing.T) {
	r := newRig(t)
	const ref = "web" // umoci knows tags without slashes only
	one := testImage(t, "web", amd64)
	r.must(r.layout.AppendImage(one, layout.WithAnnotations(map[string]string{refName: ref})))
	b := NewBuilder(r.dir, Covers{}, nil)
	r.must(b.AddImage(t.Context(), Item{Name: ref}, string(r.layout), []v1.Platform{amd64}))
	path := r.write(b, "out.tar", Options{})
	extracted := filepath.Join(r.dir, "extracted")
	r.must(os.Mkdir(extracted, 0o755))
	r.run("tar", "-xf", path, "-C", extracted)
	if got := strings.TrimSpace(r.run("umoci", "ls", "--layout", extracted)); got != ref {
		t.Errorf("umoci lists %q", got)
	}
	r.run("umoci", "raw", "unpack", "--rootless", "--image", extracted+":"+ref, filepath.Join(r.dir, "root"))
	if got := string(r.read(filepath.Join(r.dir, "root", "etc", "content"))); got != "weblinux/amd64" {
		t.Errorf("it unpacks %q", got)
	}
	r.run("umoci", "config", "--image", extracted+":"+ref, "--tag", "theirs", "--config.label", "a=b")
	b = NewBuilder(r.dir, Covers{}, nil)
	r.must(b.AddImage(t.Context(), Item{Name: "theirs"}, extracted, []v1.Platform{amd64}))
	r.must(r.open(r.write(b, "theirs.tar", Options{})).Verify(t.Context(), nil, nil))
}
