package image

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// kinds of registries, with the referrers API and without.
var kinds = map[string][]registry.Option{"with API": {registry.WithReferrersSupport(true)}, "without API": nil}

// asked counts requests by their path.
type asked struct {
	mu    sync.Mutex
	paths map[string]int
}

func (a *asked) watch(s *server) {
	a.paths = map[string]int{}
	s.first = func(_ http.ResponseWriter, r *http.Request) bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.paths[r.Method+" "+r.URL.Path]++
		return false
	}
}

// about returns the requests for what is attached to something.
func (a *asked) about() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for path, times := range a.paths {
		if strings.Contains(path, "/referrers/") || strings.Contains(path, "sha256-") {
			n += times
		}
	}
	return n
}

// signed is an index for two architectures in a registry, signed and attested.
type signed struct {
	index     v1.ImageIndex
	digest    v1.Hash // of the index
	amd       v1.Hash // of its first image
	key       *ecdsa.PrivateKey
	referrers []v1.Image
}

func hashOf(t testing.TB, p interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	h, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// newSigned pushes a signed image as REPOSITORY:1.
func newSigned(t testing.TB, s *server, repository string) *signed {
	t.Helper()
	index := artifacttest.PlatformIndex(t, "amd64", "arm64")
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	g := &signed{index: index, digest: hashOf(t, index), amd: m.Manifests[0].Digest, key: artifacttest.Key(t)}
	s.push(t, repository+":1", index)
	for _, to := range []v1.Hash{g.digest, g.amd} {
		s.push(t, repository+":"+tagOf(to, ".sig"), artifacttest.Signature(t, repository, to, g.key))
	}
	s.push(t, repository+":"+tagOf(g.digest, ".att"), artifacttest.Signature(t, "an attestation", g.digest, g.key))
	image, err := index.Image(g.amd)
	if err != nil {
		t.Fatal(err)
	}
	for i, to := range []interface {
		MediaType() (types.MediaType, error)
		Digest() (v1.Hash, error)
		Size() (int64, error)
	}{index, index, index, image} {
		referrer := artifacttest.Referrer(t, to, "application/vnd.example.sbom", fmt.Sprint("document ", i))
		s.push(t, repository+"@"+digestOf(t, referrer), referrer)
		g.referrers = append(g.referrers, referrer)
	}
	return g
}

// check verifies that a registry has all that is attached to the image.
func (g *signed) check(t testing.TB, s *server, repository string) {
	t.Helper()
	repo, err := name.NewRepository(s.host+"/"+repository, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []v1.Hash{g.digest, g.amd} {
		image, err := remote.Image(repo.Tag(tagOf(to, ".sig")))
		if err != nil {
			t.Error(err)
			continue
		}
		if err := artifacttest.CheckSignature(image, to, &g.key.PublicKey); err != nil {
			t.Error(err)
		}
		if err := artifacttest.CheckSignature(image, to, &artifacttest.Key(t).PublicKey); err == nil {
			t.Error("a signature of a stranger is right")
		}
	}
	if s.digest(t, repository+":"+tagOf(g.digest, ".att")) == "" {
		t.Error("the attestation is missing")
	}
	for to, want := range map[v1.Hash]int{g.digest: 3, g.amd: 1} {
		list, err := remote.Referrers(repo.Digest(to.String()))
		if err != nil {
			t.Error(err)
			continue
		}
		m, err := list.IndexManifest()
		if err != nil || len(m.Manifests) != want {
			t.Errorf("%s has the referrers %+v, want %d: %v", to, m, want, err)
		}
	}
	for _, r := range g.referrers {
		image, err := remote.Image(repo.Digest(digestOf(t, r)))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(artifacttest.Raw(t, image), artifacttest.Raw(t, r)) {
			t.Error("a referrer has other bytes")
		}
	}
}

// file writes an offline file of images in a layout, for two architectures.
func file(t testing.TB, layout string, refs ...string) string {
	t.Helper()
	return fileFor(t, layout, []string{"amd64", "arm64"}, refs...)
}

func fileFor(t testing.TB, layout string, arches []string, refs ...string) string {
	t.Helper()
	b := artifact.NewBuilder(t.TempDir(), artifact.Covers{}, nil)
	var platforms []v1.Platform
	for _, arch := range arches {
		platforms = append(platforms, v1.Platform{OS: "linux", Architecture: arch})
	}
	for _, ref := range refs {
		if err := b.AddImage(t.Context(), artifact.Item{Name: ref}, layout, platforms); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "out.tar")
	if _, err := b.Write(t.Context(), path, artifact.Options{}); err != nil {
		t.Fatal(err)
	}
	f, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Verify(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	return path
}

// pull is the arguments that fetch images into a layout, as an export does.
func pull(s *server, layout string, srcs ...string) *value.Dict {
	var pairs []any
	for _, src := range srcs {
		pairs = append(pairs, pair(s.host+"/"+src, "oci:"+layout+":example.org/"+src))
	}
	return value.NewDict("tls", plainTLS(s), "images", pairs, "platforms", []any{"amd64", "arm64"}, "sparse", true,
		"attached", true, "backoff", 0)
}

// What is attached travels from a registry through a cache and an offline file into another registry.
func TestAttachedTravelsAlong(t *testing.T) {
	for from, source := range kinds {
		for to, destination := range kinds {
			t.Run(from+" to "+to, func(t *testing.T) {
				s, d := newServer(t, httptest.NewServer, source...), newServer(t, httptest.NewServer, destination...)
				g := newSigned(t, s, "web")
				s.push(t, "web:latest", g.index)
				var a asked
				a.watch(s)
				dir := t.TempDir()
				args := pull(s, dir, "web:1", "web:latest")
				moduletest.RunTwice(t, spec(t), args, moduletest.Options{})
				for path, n := range a.paths {
					if n > 1 && (strings.Contains(path, "/referrers/") || strings.Contains(path, "sha256-")) {
						t.Errorf("%s was asked for %d times", path, n)
					}
				}
				path := file(t, dir, "example.org/web:1", "example.org/web:latest")
				push := value.NewDict("tls", plainTLS(d), "artifact", []any{path}, "attached", true, "images", []any{
					pair("example.org/web:1", d.host+"/copy/web:1"), pair("example.org/web:latest", d.host+"/copy/web:latest")})
				moduletest.RunTwice(t, spec(t), push, moduletest.Options{})
				if d.digest(t, "copy/web:1") != g.digest.String() {
					t.Error("the index has another digest")
				}
				g.check(t, d, "copy/web")
				// From there, and from the layout, it travels on.
				third := newServer(t, httptest.NewServer, source...)
				moduletest.RunTwice(t, spec(t), value.NewDict("tls", plainTLS(d, third), "attached", true,
					"src", d.host+"/copy/web:1", "dest", third.host+"/web:1"), moduletest.Options{})
				g.check(t, third, "web")
				moduletest.RunTwice(t, spec(t), value.NewDict("tls", plainTLS(third), "attached", true,
					"src", "oci:"+dir+":example.org/web:1", "dest", third.host+"/again:1"), moduletest.Options{})
			})
		}
	}
}

// With one architecture of several, an image keeps its own digest and what is attached to it. The index is another one.
func TestAttachedToOneArchitecture(t *testing.T) {
	for kind, options := range kinds {
		s, d := plain(t), newServer(t, httptest.NewServer, options...)
		g := newSigned(t, s, "web")
		dir := t.TempDir()
		args := pull(s, dir, "web:1")
		args.Set("platforms", []any{"amd64"})
		moduletest.RunTwice(t, spec(t), args, moduletest.Options{})
		path := fileFor(t, dir, []string{"amd64"}, "example.org/web:1")
		for _, platforms := range [][]any{nil, {"amd64"}} {
			repository := fmt.Sprint("copy", len(platforms))
			moduletest.RunTwice(t, spec(t), value.NewDict("tls", plainTLS(d), "artifact", []any{path}, "attached", true,
				"platforms", platforms, "src", "example.org/web:1", "dest", d.host+"/"+repository+":1"), moduletest.Options{})
			for suffix, want := range map[string]bool{tagOf(g.amd, ".sig"): true, tagOf(g.digest, ".sig"): false,
				tagOf(g.digest, ".att"): false} {
				if has := d.digest(t, repository+":"+suffix) != ""; has != want {
					t.Errorf("%s, platforms %v: %s is there: %v", kind, platforms, suffix, has)
				}
			}
			repo, err := name.NewRepository(d.host+"/"+repository, name.Insecure)
			if err != nil {
				t.Fatal(err)
			}
			for to, want := range map[v1.Hash]int{g.digest: 0, g.amd: 1} {
				list, err := remote.Referrers(repo.Digest(to.String()))
				if err != nil {
					t.Fatal(err)
				}
				if m, err := list.IndexManifest(); err != nil || len(m.Manifests) != want {
					t.Errorf("%s, platforms %v: %s has the referrers %+v, %v", kind, platforms, to, m, err)
				}
			}
		}
	}
}

// The file does not depend on how a registry lists referrers.
func TestAttachedMakesTheSameBytes(t *testing.T) {
	var files [][]byte
	first := newServer(t, httptest.NewServer)
	g := newSigned(t, first, "web")
	for _, options := range kinds {
		s := newServer(t, httptest.NewServer, options...)
		moduletest.Run(t, spec(t), value.NewDict("tls", plainTLS(first, s), "attached", true, "src", first.host+"/web:1",
			"dest", s.host+"/web:1"), moduletest.Options{})
		g.check(t, s, "web")
		dir := t.TempDir()
		moduletest.Run(t, spec(t), pull(s, dir, "web:1"), moduletest.Options{})
		text, err := os.ReadFile(file(t, dir, "example.org/web:1"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, text)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the files differ")
	}
}

// A cache keeps what was attached when the image was fetched: the same bytes come out of it, and no registry is asked.
func TestAttachedIsAskedForOnce(t *testing.T) {
	s := plain(t)
	g := newSigned(t, s, "web")
	s.push(t, "bare:1", artifacttest.PlatformIndex(t, "amd64", "arm64"))
	dir := t.TempDir()
	args := pull(s, dir, "web:1", "bare:1")
	moduletest.Run(t, spec(t), args, moduletest.Options{})
	before, err := os.ReadFile(file(t, dir, "example.org/web:1", "example.org/bare:1"))
	if err != nil {
		t.Fatal(err)
	}
	s.push(t, "web:"+tagOf(g.digest, ".sig"), artifacttest.Signature(t, "web", g.digest, artifacttest.Key(t)))
	var a asked
	a.watch(s)
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{}); r.Changed || a.about() != 0 {
		t.Errorf("%d requests, %+v", a.about(), r)
	}
	after, err := os.ReadFile(file(t, dir, "example.org/web:1", "example.org/bare:1"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the same cache makes other bytes: %v", err)
	}
	// What is damaged in the cache is fetched again.
	signature := artifacttest.Raw(t, artifacttest.Signature(t, "web", g.digest, g.key))
	list, err := (&layoutPlace{path: dir, name: "example.org/web:1", lock: &sync.Mutex{}}).manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Manifests {
		if strings.HasSuffix(d.Annotations[refName], g.digest.Hex+".sig") && int(d.Size) > len(signature)/2 {
			if err := os.Truncate(filepath.Join(dir, "blobs", "sha256", d.Digest.Hex), 3); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{}); !r.Changed || a.about() == 0 {
		t.Errorf("%d requests, %+v", a.about(), r)
	}
}

// What a registry rejects, it does not have. What fails for other reasons is an error that names the image.
func TestAttachedAndFailures(t *testing.T) {
	s := plain(t)
	g := newSigned(t, s, "web")
	// Requests that were cut off can still be in a handler when the next answer is set.
	var current atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	set := func(answer func(w http.ResponseWriter, r *http.Request) bool) { current.Store(&answer) }
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		answer := current.Load()
		return answer != nil && (*answer)(w, r)
	}
	about := func(r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/referrers/") || strings.Contains(r.URL.Path, "sha256-")
	}
	for _, status := range []int{400, 401, 403, 404, 405, 406, 410, 501} {
		set(func(w http.ResponseWriter, r *http.Request) bool {
			if about(r) {
				w.WriteHeader(status)
			}
			return about(r)
		})
		dir := t.TempDir()
		r := moduletest.Run(t, spec(t), pull(s, dir, "web:1"), moduletest.Options{})
		if n := len(attachedItems(t, file(t, dir, "example.org/web:1"))); r.Failed || n != 0 {
			t.Errorf("%d: %d are attached, %+v", status, n, r)
		}
	}
	for what, answer := range map[string]func(w http.ResponseWriter){
		"503":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"reset": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		set(func(w http.ResponseWriter, r *http.Request) bool {
			if about(r) {
				answer(w)
			}
			return about(r)
		})
		r := moduletest.Run(t, spec(t), pull(s, t.TempDir(), "web:1"), moduletest.Options{})
		if !r.Failed || !strings.Contains(r.Msg, s.host+"/web:1") || !strings.Contains(r.Msg, "what is attached to sha256:") {
			t.Errorf("%s: %+v", what, r)
		}
		// A failure that passes is none.
		var failed sync.Map
		set(func(w http.ResponseWriter, r *http.Request) bool {
			if _, twice := failed.LoadOrStore(r.URL.Path, true); twice || !strings.Contains(r.URL.Path, ".sig") {
				return false
			}
			answer(w)
			return true
		})
		dir := t.TempDir()
		r = moduletest.Run(t, spec(t), pull(s, dir, "web:1"), moduletest.Options{})
		if n := len(attachedItems(t, file(t, dir, "example.org/web:1"))); r.Failed || n != 5 {
			t.Errorf("%s once: %d are attached, %+v", what, n, r)
		}
	}
	// A page in place of a list is none, and the tag counts.
	set(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/referrers/") {
			_, _ = w.Write([]byte("<html>not found"))
			return true
		}
		return false
	})
	d := plain(t)
	d.first = s.first
	moduletest.Run(t, spec(t), value.NewDict("tls", plainTLS(s, d), "attached", true, "src", s.host+"/web:1", "dest",
		d.host+"/web:1"), moduletest.Options{})
	d.first = nil
	g.check(t, d, "web")
}

// What a layout has under such tags, and is not attached to the image, is not copied. The rest is.
func TestNotAttached(t *testing.T) {
	dir, ref := t.TempDir(), "example.org/web:1"
	at, err := layout.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	image := artifacttest.PlatformIndex(t, "amd64", "arm64")
	referrer := artifacttest.Referrer(t, image, "a/b", "text")
	other := artifacttest.Referrer(t, artifacttest.PlatformImage(t, "amd64"), "a/b", "about another image")
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: artifacttest.PlatformIndex(t, "amd64")}, mutate.IndexAddendum{Add: other},
		mutate.IndexAddendum{Add: referrer})
	for name, i := range map[string]v1.ImageIndex{ref: image, artifact.AttachedName(ref, hashOf(t, image), ""): index,
		artifact.AttachedName(ref, hashOf(t, image), ".sig"): index} {
		if err := at.AppendIndex(i, layout.WithAnnotations(map[string]string{refName: name})); err != nil {
			t.Fatal(err)
		}
	}
	m, err := image.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	name := layout.WithAnnotations(map[string]string{refName: artifact.AttachedName(ref, m.Manifests[0].Digest, "")})
	if err := at.AppendImage(other, name); err != nil {
		t.Fatal(err)
	}
	for what, source := range map[string]*value.Dict{
		"a layout": value.NewDict("src", "oci:"+dir+":"+ref),
		"a file":   value.NewDict("src", ref, "artifact", []any{file(t, dir, ref)}),
	} {
		s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
		for key, v := range value.NewDict("tls", plainTLS(s), "attached", true, "dest", s.host+"/web:1").All() {
			source.Set(key, v)
		}
		r, _ := moduletest.RunTwice(t, spec(t), source, moduletest.Options{})
		text := strings.Join(r.Warnings, "\n")
		if len(r.Warnings) != 4 || strings.Count(text, "only image manifests are copied") != 2 ||
			!strings.Contains(text, digestOf(t, other)+" does not name ") ||
			!strings.Contains(text, tagOf(m.Manifests[0].Digest, "")+" is not a list of referrers") {
			t.Errorf("%s: the warnings are %q", what, r.Warnings)
		}
		if s.digest(t, "web@"+digestOf(t, referrer)) == "" {
			t.Errorf("%s: the referrer is missing", what)
		}
	}
}

// A repository can have the name of the registry's list.
func TestAttachedToReferrers(t *testing.T) {
	s, d := plain(t), plain(t)
	g := newSigned(t, s, "a/referrers/b")
	s.push(t, "referrers/blobs:1", artifacttest.PlatformImage(t, "amd64"))
	moduletest.RunTwice(t, spec(t), value.NewDict("tls", plainTLS(s, d), "attached", true,
		"src", s.host+"/a/referrers/b:1", "dest", d.host+"/b/referrers/c:1"), moduletest.Options{})
	g.check(t, d, "b/referrers/c")
	moduletest.RunTwice(t, spec(t), value.NewDict("tls", plainTLS(s), "src", s.host+"/referrers/blobs:1",
		"dest", "oci:"+t.TempDir()+":example.org/blobs:1"), moduletest.Options{})
}

// attachedItems lists what a file has attached to images.
func attachedItems(t testing.TB, path string) []artifact.Item {
	t.Helper()
	f, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	return slices.DeleteFunc(slices.Clone(f.Manifest.Items), func(i artifact.Item) bool { return !i.IsAttached() })
}

// A signature that the users of a registry have added is not lost.
func TestAttachedLosesNothing(t *testing.T) {
	s, d := plain(t), plain(t)
	g := newSigned(t, s, "web")
	args := value.NewDict("tls", plainTLS(s, d), "attached", true, "src", s.host+"/web:1", "dest", d.host+"/web:1")
	tag := tagOf(g.digest, ".sig")
	at := func(s *server) name.Tag {
		repo, err := name.NewRepository(s.host+"/web", name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		return repo.Tag(tag)
	}
	site, upstream := artifacttest.Key(t), artifacttest.Key(t)
	first, err := remote.Image(at(s))
	if err != nil {
		t.Fatal(err)
	}
	second := artifacttest.AddSignature(t, first, "web", g.digest, upstream)
	for _, c := range []struct {
		what         string
		ours, theirs v1.Image // in the source, and in the destination before; nil for none
		keys         []*ecdsa.PrivateKey
		warning      bool
	}{
		{"none", first, nil, []*ecdsa.PrivateKey{g.key}, false},
		{"the same", first, first, []*ecdsa.PrivateKey{g.key}, false},
		{"upstream has more", second, first, []*ecdsa.PrivateKey{g.key, upstream}, false},
		{"the site has more", first, artifacttest.AddSignature(t, first, "web", g.digest, site),
			[]*ecdsa.PrivateKey{g.key, site}, false},
		{"both have their own", second, artifacttest.AddSignature(t, first, "web", g.digest, site),
			[]*ecdsa.PrivateKey{g.key, site}, true},
	} {
		s.push(t, "web:"+tag, c.ours)
		if c.theirs != nil {
			d.push(t, "web:"+tag, c.theirs)
		}
		r := moduletest.Run(t, spec(t), args, moduletest.Options{})
		if r.Failed || len(r.Warnings) > 0 != c.warning {
			t.Errorf("%s: %+v", c.what, r)
		}
		image, err := remote.Image(at(d))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range c.keys {
			if err := artifacttest.CheckSignature(image, g.digest, &key.PublicKey); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
		}
	}
}

// What a registry has under a tag of cosign's, and is no signature, is not replaced either.
func TestAttachedReplacesNoOthers(t *testing.T) {
	s, d := plain(t), plain(t)
	g := newSigned(t, s, "web")
	tag := tagOf(g.digest, ".sig")
	d.push(t, "web:"+tag, artifacttest.PlatformIndex(t, "amd64"))
	before := d.digest(t, "web:"+tag)
	for what, answer := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"an index": nil,
		"a page that does not end": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, tag) {
				return false
			}
			_, _ = w.Write(bytes.Repeat([]byte(" "), maxDocument+1))
			return true
		},
		"a tag that may not be read": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, tag) {
				return false
			}
			w.WriteHeader(http.StatusForbidden)
			return true
		},
	} {
		d.first = answer
		args := value.NewDict("tls", plainTLS(s, d), "attached", true, "src", s.host+"/web:1", "dest", d.host+"/web:1")
		r := moduletest.Run(t, spec(t), args, moduletest.Options{})
		if r.Failed || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "it is kept as it is") {
			t.Errorf("%s: %+v", what, r)
		}
		d.first = nil
		if after := d.digest(t, "web:"+tag); after != before {
			t.Errorf("%s was replaced", what)
		}
	}
}

// A registry that has more attached than is copied gets nothing a second time.
func TestAttachedToMuch(t *testing.T) {
	for kind, options := range kinds {
		s, d := plain(t), newServer(t, httptest.NewServer, options...)
		image := artifacttest.PlatformImage(t, "amd64")
		s.push(t, "web:1", image)
		for i := range maxReferrers + 5 {
			to, referrer := d, artifacttest.Referrer(t, image, "a/b", fmt.Sprint(i))
			if i < 5 {
				to = s
			}
			to.push(t, "web@"+digestOf(t, referrer), referrer)
		}
		first, second := moduletest.RunTwice(t, spec(t), value.NewDict("tls", plainTLS(s, d), "attached", true, "src",
			s.host+"/web:1", "dest", d.host+"/web:1"), moduletest.Options{})
		if warnings := append(first.Warnings, second.Warnings...); len(warnings) > 0 {
			t.Errorf("%s: the warnings are %q", kind, warnings)
		}
	}
}

// hostile is a registry that answers requests for what is attached to an image itself.
func hostile(t *testing.T,
	answer func(w http.ResponseWriter, path string, to v1.Hash) bool) (r module.Result, dir string) {
	t.Helper()
	s := plain(t)
	index := artifacttest.PlatformIndex(t, "amd64", "arm64")
	s.push(t, "web:1", index)
	to := hashOf(t, index)
	s.first = func(w http.ResponseWriter, r *http.Request) bool { return answer(w, r.URL.Path, to) }
	dir = t.TempDir()
	return moduletest.Run(t, spec(t), pull(s, dir, "web:1"), moduletest.Options{}), dir
}

func list(w http.ResponseWriter, digests ...string) {
	index := map[string]any{"schemaVersion": 2, "mediaType": types.OCIImageIndex}
	var all []any
	for _, d := range digests {
		all = append(all, map[string]any{"mediaType": types.OCIManifestSchema1, "size": 7, "digest": d})
	}
	index["manifests"] = all
	w.Header().Set("Content-Type", string(types.OCIImageIndex))
	_ = json.NewEncoder(w).Encode(index)
}

func made(i int) string { return fmt.Sprintf("sha256:%064x", i) }

func TestHostileAttachments(t *testing.T) {
	send := func(w http.ResponseWriter, text string) bool {
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		_, _ = w.Write([]byte(text))
		return true
	}
	config := `"config":{"mediaType":"a/b","size":2,"digest":"` + made(1) + `"}`
	for _, c := range []struct {
		what    string
		answer  func(w http.ResponseWriter, path string, to v1.Hash) bool
		failure string // in the message; "" if it is no failure
		warning string
	}{
		{"a manifest of 100 MB", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			if !strings.HasSuffix(path, to.Hex+".sig") {
				return false
			}
			for range 100 {
				_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
			}
			return true
		}, "", "has more than 4194304 bytes"},
		{"a layer of 100 MB", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, `{"schemaVersion":2,`+config+
				`,"layers":[{"mediaType":"a/b","size":100000000,"digest":"`+made(2)+`"}]}`)
		}, "", "names a blob of 100000000 bytes"},
		{"layers that are too large together", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			layer := `{"mediaType":"a/b","size":9000000,"digest":"` + made(2) + `"}`
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, `{"schemaVersion":2,`+config+`,"layers":[`+layer+`,`+
				layer+`]}`)
		}, "", "bytes: at most 16777216"},
		{"a negative size", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, `{"schemaVersion":2,`+config+
				`,"layers":[{"mediaType":"a/b","size":-5,"digest":"`+made(2)+`"}]}`)
		}, "", "names a blob of -5 bytes"},
		{"many blobs", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			layer := `{"mediaType":"a/b","size":1,"digest":"` + made(2) + `"}`
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, `{"schemaVersion":2,`+config+`,"layers":[`+
				strings.Repeat(layer+",", 2000)+layer+`]}`)
		}, "", "names 2002 blobs"},
		{"a config that is none", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, `{"schemaVersion":2,"layers":[]}`)
		}, "", "names a blob"},
		{"no JSON", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, "<html>")
		}, "", "is not a manifest"},
		{"a list that is no JSON", func(w http.ResponseWriter, path string, _ v1.Hash) bool {
			if strings.Contains(path, "/referrers/") {
				w.Header().Set("Content-Type", string(types.OCIImageIndex))
				_, _ = w.Write([]byte("{"))
			}
			return strings.Contains(path, "/referrers/")
		}, "the list of referrers: unexpected end of JSON", ""},
		{"a wrong digest", func(w http.ResponseWriter, path string, _ v1.Hash) bool {
			if strings.Contains(path, "/referrers/") {
				list(w, made(9))
				return true
			}
			return strings.HasSuffix(path, made(9)) && send(w, `{"schemaVersion":2,`+config+`}`)
		}, made(9) + " is damaged", ""},
		{"a referrer with another algorithm", func(w http.ResponseWriter, path string, _ v1.Hash) bool {
			if strings.Contains(path, "/referrers/") {
				list(w, "sha512:"+strings.Repeat("0", 128))
				return true
			}
			return strings.Contains(path, "/sha512:") && send(w, `{"schemaVersion":2,`+config+`}`)
		}, "", "has no digest of sha256"},
		{"a layer with another algorithm", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, `{"schemaVersion":2,`+config+
				`,"layers":[{"mediaType":"a/b","size":5,"digest":"sha512:`+strings.Repeat("0", 128)+`"}]}`)
		}, "", "names a blob that has no digest of sha256"},
		{"a long digest", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, `{"schemaVersion":2,"config":{"digest":"sha256:`+
				strings.Repeat("0", 1<<20)+`"}}`)
		}, "", "is not a manifest"},
		{"layers that are nothing", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			return strings.HasSuffix(path, to.Hex+".sig") && send(w, `{"schemaVersion":2,`+config+`,"layers":[`+
				strings.Repeat("null,", 800_000)+`null]}`)
		}, "", "or 50000 objects"},
		{"a cycle", func(w http.ResponseWriter, path string, to v1.Hash) bool {
			if strings.Contains(path, "/referrers/") {
				list(w, to.String(), path[strings.LastIndex(path, "/")+1:])
			}
			return strings.Contains(path, "/referrers/")
		}, "", ""},
		{"pages without end", func(w http.ResponseWriter, path string, _ v1.Hash) bool {
			if strings.Contains(path, "/referrers/") {
				w.Header().Set("Link", "<"+path+`?n=1>; rel="next"`)
				list(w, made(7))
			}
			return strings.Contains(path, "/referrers/")
		}, "", ""},
		{"a page without end", func(w http.ResponseWriter, path string, _ v1.Hash) bool {
			if !strings.Contains(path, "/referrers/") {
				return false
			}
			w.Header().Set("Content-Type", string(types.OCIImageIndex))
			_, _ = w.Write([]byte(`{"manifests":[`))
			for {
				if _, err := w.Write([]byte(`{"digest":"` + made(7) + `"},`)); err != nil {
					return true
				}
			}
		}, "", "has more than"},
		{"a next page elsewhere", func(w http.ResponseWriter, path string, _ v1.Hash) bool {
			if strings.Contains(path, "/referrers/") {
				w.Header().Set("Link", `<http://192.0.2.1/v2/>; rel="next"`)
				list(w, made(7))
			}
			return strings.Contains(path, "/referrers/")
		}, "", ""},
	} {
		r, dir := hostile(t, c.answer)
		if r.Failed != (c.failure != "") || !strings.Contains(r.Msg, c.failure) {
			t.Errorf("%s: %+v", c.what, r)
		}
		if (len(r.Warnings) > 0) != (c.warning != "") || !strings.Contains(strings.Join(r.Warnings, "\n"), c.warning) {
			t.Errorf("%s: the warnings are %.500q", c.what, r.Warnings)
		}
		if n := len(strings.Join(r.Warnings, "")); n > 2000 {
			t.Errorf("%s: the warnings have %d bytes", c.what, n)
		}
		if r.Failed {
			continue
		}
		if got := attachedItems(t, file(t, dir, "example.org/web:1")); len(got) > 0 {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}

// At most so many referrers are copied: those with the lowest digests.
func TestAttachedIsBounded(t *testing.T) {
	s := newServer(t, httptest.NewServer, registry.WithReferrersSupport(true))
	image := artifacttest.PlatformImage(t, "amd64")
	s.push(t, "web:1", image)
	var digests []string
	for i := range maxReferrers + 3 {
		referrer := artifacttest.Referrer(t, image, "a/b", fmt.Sprint(i))
		s.push(t, "web@"+digestOf(t, referrer), referrer)
		digests = append(digests, digestOf(t, referrer))
	}
	slices.Sort(digests)
	dir := t.TempDir()
	args := pull(s, dir, "web:1")
	args.Set("platforms", []any{"amd64"})
	for range 2 { // the second time from the record
		r := moduletest.Run(t, spec(t), args, moduletest.Options{})
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "all but 64") {
			t.Errorf("the warnings are %q", r.Warnings)
		}
	}
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	amd := []v1.Platform{{OS: "linux", Architecture: "amd64"}}
	if err := b.AddImage(t.Context(), artifact.Item{Name: "example.org/web:1"}, dir, amd); err != nil {
		t.Fatal(err)
	}
	m, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	got := m.Items[1].Blobs
	for i, d := range digests {
		if slices.Contains(got, d) != (i < maxReferrers) {
			t.Errorf("referrer %d: %v", i, !(i < maxReferrers))
		}
	}
}
