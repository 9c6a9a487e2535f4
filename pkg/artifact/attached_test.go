package artifact_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
)

const (
	web = "registry.example/web:1.0"
	db  = "registry.example/db:2.0"
)

var (
	amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64 = v1.Platform{OS: "linux", Architecture: "arm64"}
)

// site is a layout with two images, of which the first is signed: its index, and its image for arm64.
type site struct {
	testing.TB
	dir       string
	layout    layout.Path
	key       *ecdsa.PrivateKey
	digest    v1.Hash // of the index
	signature v1.Image
	referrer  v1.Image
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{TB: t, dir: t.TempDir(), key: artifacttest.Key(t)}
	var err error
	s.layout, err = layout.Write(filepath.Join(s.dir, "images"), empty.Index)
	s.must(err)
	add := func(ref string) v1.ImageIndex {
		index := artifacttest.PlatformIndex(t, "amd64", "arm64")
		s.must(s.layout.AppendIndex(index, layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": ref})))
		return index
	}
	index := add(web)
	add(db)
	s.digest, err = index.Digest()
	s.must(err)
	s.signature, s.referrer = artifacttest.Attach(t, s.layout, web, index, s.key)
	m, err := index.IndexManifest()
	s.must(err)
	arm, err := index.Image(m.Manifests[1].Digest)
	s.must(err)
	artifacttest.Attach(t, s.layout, web, arm, s.key)
	// That nothing is attached is recorded so.
	s.must(s.layout.AppendIndex(empty.Index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": artifact.AttachedName(web, m.Manifests[0].Digest, "")})))
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) builder(refs []string, platforms ...v1.Platform) *artifact.Builder {
	s.Helper()
	b := artifact.NewBuilder(s.dir, artifact.Covers{}, nil)
	for _, ref := range refs {
		s.must(b.AddImage(s.Context(), artifact.Item{Name: ref}, string(s.layout), platforms))
	}
	return b
}

func (s *site) write(b *artifact.Builder, name string, o artifact.Options) *artifact.File {
	s.Helper()
	path := filepath.Join(s.dir, name)
	_, err := b.Write(s.Context(), path, o)
	s.must(err)
	f, err := artifact.Open(path)
	s.must(err)
	s.Cleanup(func() { _ = f.Close() })
	return f
}

func (s *site) read(f *artifact.File) []byte {
	s.Helper()
	text, err := os.ReadFile(f.Path)
	s.must(err)
	return text
}

// names lists the images of a file, the digest of the index as INDEX.
func (s *site) names(m *artifact.Manifest) []string {
	var all []string
	for _, i := range m.Items {
		all = append(all, strings.ReplaceAll(i.Name, s.digest.Hex, "INDEX"))
	}
	return all
}

func TestAttached(t *testing.T) {
	s := newSite(t)
	f := s.write(s.builder([]string{web, db}, amd64), "out.tar", artifact.Options{})
	s.must(f.Verify(t.Context(), nil, nil))
	// What is attached to an image that the file does not have is not in it, nor is the record of nothing.
	want := []string{db, web, "registry.example/web:sha256-INDEX", "registry.example/web:sha256-INDEX.sig"}
	if got := s.names(f.Manifest); !slices.Equal(got, want) {
		t.Errorf("the file has %q, want %q", got, want)
	}
	all := f.Manifest.Attachments()
	if n := len(all.OfImage(f.Manifest.Items[1])); n != 2 || len(all.OfImage(f.Manifest.Items[0])) != 0 {
		t.Errorf("%d are attached", n)
	}
	both := s.write(s.builder([]string{web, db}, amd64, arm64), "both.tar", artifact.Options{})
	s.must(both.Verify(t.Context(), nil, nil))
	if n := len(both.Manifest.Attachments().OfImage(both.Manifest.Items[1])); n != 4 {
		t.Errorf("with arm64 %d are attached", n)
	}
	signature := all.Of(web, s.digest.String())[1]
	image, _, err := f.OCI(signature)
	s.must(err)
	s.must(artifacttest.CheckSignature(image, s.digest, &s.key.PublicKey))
	referrers, index, err := f.OCI(all.Of(web, s.digest.String())[0])
	s.must(err)
	m, err := index.IndexManifest()
	s.must(err)
	referrer, err := index.Image(m.Manifests[0].Digest)
	s.must(err)
	if referrers != nil || !bytes.Equal(artifacttest.Raw(t, referrer), artifacttest.Raw(t, s.referrer)) {
		t.Error("the referrer has other bytes")
	}
	// The order of arrival and tags that share an image change nothing.
	turned := s.write(s.builder([]string{db, web}, amd64), "turned.tar", artifact.Options{})
	if !bytes.Equal(s.read(f), s.read(turned)) {
		t.Error("another order makes other bytes")
	}
}

// index.json has attachments under their names, and not as images of containerd.
func TestAttachedIsInTheLayout(t *testing.T) {
	s := newSite(t)
	f := s.write(s.builder([]string{web}, amd64), "out.tar", artifact.Options{})
	var index v1.IndexManifest
	text := s.read(f)
	start := bytes.Index(text, []byte(`{`+"\n"+` "schemaVersion"`))
	s.must(json.NewDecoder(bytes.NewReader(text[start:])).Decode(&index))
	found := map[string]bool{}
	for _, d := range index.Manifests {
		found[d.Annotations["org.opencontainers.image.ref.name"]] = d.Annotations["io.containerd.image.name"] != ""
	}
	want := fmt.Sprint(map[string]bool{web: true, artifact.AttachedName(web, s.digest, ""): false,
		artifact.AttachedName(web, s.digest, ".sig"): false})
	if got := fmt.Sprint(found); got != want {
		t.Errorf("index.json has %s, want %s", got, want)
	}
}

func TestDamagedAttachments(t *testing.T) {
	s := newSite(t)
	f := s.write(s.builder([]string{web}, amd64), "out.tar", artifact.Options{})
	text := s.read(f)
	at := bytes.Index(text, []byte("cosign container image signature"))
	text[at] ^= 1
	s.must(os.WriteFile(f.Path, text, 0o600))
	err := f.Verify(t.Context(), nil, nil)
	if err == nil || !strings.Contains(err.Error(), s.digest.Hex+".sig") || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a changed signature: %v", err)
	}
	layers, err := s.referrer.Layers()
	s.must(err)
	layer, err := layers[0].Digest()
	s.must(err)
	s.must(os.Remove(filepath.Join(string(s.layout), "blobs", "sha256", layer.Hex)))
	err = artifact.NewBuilder(s.dir, artifact.Covers{}, nil).AddImage(t.Context(), artifact.Item{Name: web},
		string(s.layout), []v1.Platform{amd64})
	if err == nil || !strings.Contains(err.Error(), "sha256-"+s.digest.Hex) {
		t.Errorf("a blob of a referrer is missing: %v", err)
	}
}

// A manifest of an offline file that lacks a blob of an attachment is rejected.
func TestIncompleteAttachments(t *testing.T) {
	for _, suffix := range []string{"", ".sig"} {
		s := newSite(t)
		b := s.builder([]string{web}, amd64)
		m, err := b.Manifest()
		s.must(err)
		name := artifact.AttachedName(web, s.digest, suffix)
		n := slices.IndexFunc(m.Items, func(i artifact.Item) bool { return i.Name == name })
		i := m.Items[n]
		at := slices.IndexFunc(i.Blobs, func(d string) bool { return d != i.Blob })
		gone := i.Blobs[at]
		m.Items[n].Blobs = slices.Delete(slices.Clone(i.Blobs), at, at+1)
		size, _ := m.BlobSize(gone)
		m.Items[n].Size -= size
		m.Blobs = slices.DeleteFunc(m.Blobs, func(b artifact.Blob) bool { return b.Digest == gone })
		f := s.write(b, "out.tar", artifact.Options{})
		err = f.Verify(t.Context(), nil, nil)
		if err == nil || !strings.Contains(err.Error(), "is not in the offline file") {
			t.Errorf("%q: %v", suffix, err)
		}
	}
}

// What is attached has no platforms, and is no image that can be named.
func TestAttachedIsNoImage(t *testing.T) {
	s := newSite(t)
	b := s.builder([]string{web}, amd64)
	m, err := b.Manifest()
	s.must(err)
	m.Items[1].Platforms = []string{"linux/amd64"}
	if _, err := b.Manifest(); err == nil || !strings.Contains(err.Error(), "has platforms like an image") {
		t.Errorf("got %v", err)
	}
	err = b.AddImage(t.Context(), artifact.Item{Name: artifact.AttachedName(web, s.digest, ".sig")}, string(s.layout), nil)
	if err == nil || !strings.Contains(err.Error(), "do not name it") {
		t.Errorf("got %v", err)
	}
}

func TestDeltasOfAttached(t *testing.T) {
	s := newSite(t)
	old := s.write(s.builder([]string{db}, amd64), "old.tar", artifact.Options{})
	whole := s.write(s.builder([]string{db, web}, amd64), "whole.tar", artifact.Options{})
	path := filepath.Join(s.dir, "delta.tar")
	_, err := artifact.Delta(t.Context(), old.Manifest, whole, path, artifact.Options{})
	s.must(err)
	set, err := artifact.OpenSet([]string{old.Path, path})
	s.must(err)
	defer func() { _ = set.Close() }()
	s.must(set.Verify(t.Context(), nil))
	merged := filepath.Join(s.dir, "merged.tar")
	_, err = artifact.Merge(t.Context(), set, merged, artifact.Options{})
	s.must(err)
	got, err := os.ReadFile(merged)
	s.must(err)
	if !bytes.Equal(got, s.read(whole)) {
		t.Error("the merged file has other bytes")
	}
	// What is known from an older file alone keeps what is attached to it.
	_, item, _ := artifact.Set{whole}.Image(web)
	b := artifact.NewBuilder(s.dir, artifact.Covers{Kubernetes: []string{"v1.34.4"}}, nil)
	s.must(b.AddKnown(item, whole))
	m, err := b.Manifest()
	s.must(err)
	if len(m.Items) != 3 {
		t.Errorf("known is %q", s.names(m))
	}
	f := s.write(b, "known.tar", artifact.Options{Base: whole.Manifest})
	if f.Base() != whole.Digest() {
		t.Error("it is no delta")
	}
	d := artifact.Diff(old.Manifest, whole.Manifest)
	if len(d.Added) != 3 || len(d.Changed)+len(d.Removed) != 0 {
		t.Errorf("the difference is %+v", d)
	}
	// Files for two architectures become the one that an export for both makes.
	arm := s.write(s.builder([]string{web}, arm64), "arm.tar", artifact.Options{})
	amd := s.write(s.builder([]string{web}, amd64), "amd.tar", artifact.Options{})
	both := s.write(s.builder([]string{web}, amd64, arm64), "both.tar", artifact.Options{})
	_, err = artifact.Merge(t.Context(), artifact.Set{amd, arm}, merged, artifact.Options{})
	s.must(err)
	if got, err = os.ReadFile(merged); err != nil || !bytes.Equal(got, s.read(both)) {
		t.Errorf("joined: other bytes, %v", err)
	}
}

// A later version of an image has other signatures: a change, and neither of them an image.
func TestDifferenceOfAttached(t *testing.T) {
	first, second := newSite(t), newSite(t)
	d := artifact.Diff(first.write(first.builder([]string{web}, amd64), "1.tar", artifact.Options{}).Manifest,
		second.write(second.builder([]string{web}, amd64), "2.tar", artifact.Options{}).Manifest)
	if len(d.Added)+len(d.Removed) != 0 || len(d.Changed) != 3 {
		t.Errorf("%d came, %d went, %d changed", len(d.Added), len(d.Removed), len(d.Changed))
	}
	for _, c := range d.Changed {
		if c.Old.IsAttached() != c.New.IsAttached() {
			t.Errorf("%s became %s", c.Old, c.New)
		}
	}
}

// An image that is signed now is a changed image, and new signatures.
func TestDifferenceOfSigned(t *testing.T) {
	s := newSite(t)
	at, err := layout.Write(filepath.Join(t.TempDir(), "images"), empty.Index)
	s.must(err)
	s.must(at.AppendIndex(artifacttest.PlatformIndex(t, "amd64"), layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": web})))
	b := artifact.NewBuilder(s.dir, artifact.Covers{}, nil)
	s.must(b.AddImage(t.Context(), artifact.Item{Name: web}, string(at), []v1.Platform{amd64}))
	d := artifact.Diff(s.write(b, "1.tar", artifact.Options{}).Manifest,
		s.write(s.builder([]string{web}, amd64), "2.tar", artifact.Options{}).Manifest)
	if len(d.Added) != 2 || !d.Added[0].IsAttached() || len(d.Changed) != 1 || d.Changed[0].New.Name != web {
		t.Errorf("the difference is %+v", d)
	}
}

// Skopeo finds a signature in our file under its tag.
func TestSkopeoReadsSignatures(t *testing.T) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip("skopeo is not installed")
	}
	s := newSite(t)
	f := s.write(s.builder([]string{web}, amd64), "out.tar", artifact.Options{})
	for suffix, want := range map[string][]byte{".sig": artifacttest.Raw(t, s.signature), "": nil} {
		out, err := skopeo(t.Context(), "inspect", "--raw", "oci-archive:"+f.Path+":"+artifact.AttachedName(web, s.digest,
			suffix))
		s.must(err)
		if want != nil && !bytes.Equal(out, want) || !bytes.Contains(out, []byte("schemaVersion")) {
			t.Errorf("%q: skopeo reads %s", suffix, out)
		}
	}
	dir := filepath.Join(s.dir, "copy")
	_, err := skopeo(t.Context(), "copy", "--quiet", "--insecure-policy", "oci-archive:"+f.Path+":"+
		artifact.AttachedName(web, s.digest, ".sig"), "oci:"+dir+":copy")
	s.must(err)
	root, err := layout.ImageIndexFromPath(dir)
	s.must(err)
	m, err := root.IndexManifest()
	s.must(err)
	image, err := root.Image(m.Manifests[0].Digest)
	s.must(err)
	s.must(artifacttest.CheckSignature(image, s.digest, &s.key.PublicKey))
}

func skopeo(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "skopeo", args...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, problems.String())
	}
	return out, err
}
