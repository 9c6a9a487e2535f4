package image

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// server is a registry over HTTP that counts requests and fails on demand.
type server struct {
	*httptest.Server
	host    string
	uploads atomic.Int32                                             // of blobs
	first   func(w http.ResponseWriter, r *http.Request) (done bool) // may answer instead
}

func (s *server) ServeHTTP(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.first != nil && s.first(w, r) {
			return
		}
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/blobs/uploads/") {
			s.uploads.Add(1)
		}
		next.ServeHTTP(w, r)
	}
}

func newServer(t testing.TB, start func(http.Handler) *httptest.Server, options ...registry.Option) *server {
	t.Helper()
	s := &server{}
	s.Server = start(s.ServeHTTP(registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	s.host = strings.SplitN(s.URL, "://", 2)[1]
	return s
}

func plain(t *testing.T) *server { t.Helper(); return newServer(t, httptest.NewServer) }

// plainTLS are the arguments that allow plain HTTP for servers.
func plainTLS(servers ...*server) *value.Dict {
	d := value.NewDict()
	for _, s := range servers {
		d.Set(s.host, value.NewDict("plain_http", true))
	}
	return d
}

func (s *server) push(t testing.TB, path string, what remote.Taggable) {
	t.Helper()
	ref, err := name.ParseReference(s.host+"/"+path, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	switch what := what.(type) {
	case v1.Image:
		err = remote.Write(ref, what)
	case v1.ImageIndex:
		err = remote.WriteIndex(ref, what)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.uploads.Store(0)
}

// digest of what the registry has under a name; "" for nothing.
func (s *server) digest(t testing.TB, path string) string {
	t.Helper()
	ref, err := name.ParseReference(s.host+"/"+path, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	desc, err := remote.Get(ref)
	if err != nil {
		return ""
	}
	return desc.Digest.String()
}

func digestOf(t testing.TB, p interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	h, err := p.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

func spec(t *testing.T) module.Spec { t.Helper(); return moduletest.Find(t, Modules(), "image") }

func pair(src, dest string) *value.Dict { return value.NewDict("src", src, "dest", dest) }

func TestBetweenRegistries(t *testing.T) {
	from, to := plain(t), plain(t)
	index, image := artifacttest.PlatformIndex(t, "amd64", "arm64"), artifacttest.PlatformImage(t, "amd64")
	from.push(t, "a/multi:v1", index)
	from.push(t, "one", image)
	args := value.NewDict("tls", plainTLS(from, to), "images", []any{
		pair(from.host+"/a/multi:v1", to.host+"/b/multi:v2"), pair(from.host+"/one", to.host+"/one:x"),
		pair(from.host+"/one@"+digestOf(t, image), to.host+"/one:by-digest"),
	})
	first, _ := moduletest.RunTwice(t, spec(t), args, moduletest.Options{})
	if n, _ := first.Data.Get("copied"); n != 3 {
		t.Errorf("%v are copied, want 3", n)
	}
	if got := to.digest(t, "b/multi:v2"); got != digestOf(t, index) {
		t.Errorf("the index has the digest %s", got)
	}
	if to.digest(t, "one:x") != digestOf(t, image) || to.digest(t, "one:by-digest") != digestOf(t, image) {
		t.Error("the image is not there")
	}
	to.uploads.Store(0)
	args = value.NewDict("tls", plainTLS(from, to), "src", from.host+"/one", "dest", to.host+"/one:again")
	moduletest.Run(t, spec(t), args, moduletest.Options{})
	if n := to.uploads.Load(); n != 0 {
		t.Errorf("%d blobs that exist were sent again", n)
	}
}

func TestCheckModeWritesNothing(t *testing.T) {
	from, to := plain(t), plain(t)
	from.push(t, "one", artifacttest.PlatformImage(t, "amd64"))
	args := value.NewDict("tls", plainTLS(from, to), "src", from.host+"/one", "dest", to.host+"/one")
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{Check: true}); !r.Changed || to.digest(t, "one") != "" {
		t.Errorf("got %+v", r)
	}
	dir := t.TempDir()
	args = value.NewDict("tls", plainTLS(from), "src", from.host+"/one", "dest", "oci:"+dir+"/new")
	moduletest.Run(t, spec(t), args, moduletest.Options{Check: true})
	if _, err := os.Stat(dir + "/new"); err == nil {
		t.Error("check mode made the layout")
	}
	to.Close()
	args = value.NewDict("tls", plainTLS(from, to), "src", from.host+"/one", "dest", to.host+"/one", "attempts", 1)
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{Check: true}); r.Failed || !r.Changed ||
		len(r.Warnings) != 1 {
		t.Errorf("a registry to come: %+v", r)
	}
}

func TestPlatforms(t *testing.T) {
	from, to := plain(t), plain(t)
	index := artifacttest.PlatformIndex(t, "amd64", "arm64", "s390x")
	from.push(t, "m", index)
	from.push(t, "single", artifacttest.PlatformImage(t, "amd64"))
	copyFor := func(src, dest string, platforms ...any) module.Result {
		t.Helper()
		args := value.NewDict("tls", plainTLS(from, to), "src", from.host+"/"+src, "dest", to.host+"/"+dest, "platforms",
			platforms)
		return moduletest.Run(t, spec(t), args, moduletest.Options{})
	}
	m, _ := index.IndexManifest()
	copyFor("m", "one", "linux/arm64")
	if got := to.digest(t, "one"); got != m.Manifests[1].Digest.String() {
		t.Errorf("the image for one platform has the digest %s", got)
	}
	copyFor("m", "two", "amd64", "linux/arm64")
	ref, _ := name.ParseReference(to.host + "/two")
	two, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := two.IndexManifest(); len(got.Manifests) != 2 || got.Manifests[1].Digest != m.Manifests[1].Digest {
		t.Errorf("the index of two has %+v", got.Manifests)
	}
	copyFor("m", "all", "amd64", "arm64", "s390x")
	if to.digest(t, "all") != digestOf(t, index) {
		t.Error("the index of all has another digest")
	}
	if r := copyFor("single", "single", "amd64"); r.Failed {
		t.Error(r.Msg)
	}
	for src, want := range map[string]string{"m": "no image for linux/riscv64",
		"single": "for linux/amd64 only, not for linux/riscv64"} {
		if r := copyFor(src, "none", "linux/riscv64"); !r.Failed || !strings.Contains(r.Msg, want) {
			t.Errorf("got %+v, want %q", r, want)
		}
	}
}

func TestLayoutsAndArchives(t *testing.T) {
	from, to := plain(t), plain(t)
	index, image := artifacttest.PlatformIndex(t, "amd64", "arm64"), artifacttest.PlatformImage(t, "amd64")
	from.push(t, "m:v1", index)
	from.push(t, "one:v1", image)
	dir := t.TempDir()
	conf := plainTLS(from, to)
	steps := []any{
		pair(from.host+"/m:v1", "oci:"+dir+"/l:m"), pair(from.host+"/one:v1", "oci:"+dir+"/l"),
		pair(from.host+"/one:v1", "docker-archive:"+dir+"/one.tar:shop/one:v1"),
	}
	moduletest.RunTwice(t, spec(t), value.NewDict("tls", conf, "images", steps), moduletest.Options{})
	steps = []any{
		pair("oci:"+dir+"/l:m", to.host+"/m"), pair("oci:"+dir+"/l:"+from.host+"/one:v1", to.host+"/one"),
		pair("docker-archive:"+dir+"/one.tar", to.host+"/from-archive"), pair("oci:"+dir+"/l:m", "oci:"+dir+"/l2"),
	}
	moduletest.RunTwice(t, spec(t), value.NewDict("tls", conf, "images", steps), moduletest.Options{})
	if to.digest(t, "m") != digestOf(t, index) || to.digest(t, "one") != digestOf(t, image) ||
		to.digest(t, "from-archive") == "" {
		t.Error("what came through the layout has another digest")
	}
	// A layout with a damaged blob is rejected, and repaired from the source.
	layers, _ := image.Layers()
	digest, _ := layers[0].Digest()
	blob := filepath.Join(dir, "l", "blobs", "sha256", digest.Hex)
	content, _ := os.ReadFile(blob)
	content[0] ^= 1
	_ = os.WriteFile(blob, content, 0o600)
	args := value.NewDict("tls", conf, "src", "oci:"+dir+"/l:"+from.host+"/one:v1", "dest", to.host+"/other")
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{}); !r.Failed ||
		!strings.Contains(r.Msg, digest.String()+" is damaged") {
		t.Errorf("got %+v", r)
	}
	_ = os.Truncate(blob, 10)
	moduletest.RunTwice(t, spec(t), value.NewDict("tls", conf, "src", from.host+"/one:v1", "dest", "oci:"+dir+"/l"),
		moduletest.Options{})
	args = value.NewDict("tls", conf, "src", from.host+"/m:v1", "dest", "docker-archive:"+dir+"/m.tar:m:v1")
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{}); !r.Failed ||
		!strings.Contains(r.Msg, "name one in platforms") {
		t.Errorf("got %+v", r)
	}
}

func TestNamesAreCheckedFirst(t *testing.T) {
	to := plain(t)
	for text, want := range map[string]string{
		"busybox": "docker.io/library/busybox:latest", "a/b:1": "docker.io/a/b:1",
		"localhost:5000/x":      "localhost:5000/x:latest",
		"docker.io/library/x:1": "docker.io/library/x:1", "docker://quay.io/x/y:1": "quay.io/x/y:1",
	} {
		p, err := (&places{}).parse(text)
		if err != nil || p.String() != want {
			t.Errorf("%s is %v, %v; want %s", text, p, err, want)
		}
	}
	bad := []any{
		pair("busybox:", to.host+"/a:1"), pair("oci:/x:n", to.host+"/b:"), pair("oci:/x:n", to.host+"/"),
		pair("oci:/x:n", to.host+"//c:1"),
		pair("oci:", to.host+"/d:1"), pair("oci:/x:", to.host+"/e:1"), pair("UPPER", to.host+"/f:1"),
		pair("oci:/x", "oci:/y"),
		pair("oci:/x:a", to.host+"/g:1"), pair("oci:/x:b", to.host+"/g:1"),
	}
	_, err := moduletest.Try(t, spec(t), value.NewDict("images", bad, "tls", plainTLS(to)), moduletest.Options{})
	if err == nil || strings.Count(err.Error(), "\n") != len(bad)-2 {
		t.Errorf("%d wrong names, told is:\n%v", len(bad)-1, err)
	}
	if to.uploads.Load() != 0 {
		t.Error("something was pushed before")
	}
	_, err = moduletest.Try(t, spec(t), value.NewDict("src", "a", "dest", "b", "tls",
		value.NewDict("h", value.NewDict("insecure", true))), moduletest.Options{})
	if err == nil || !strings.Contains(err.Error(), `tls of h has no "insecure"`) {
		t.Errorf("got %v", err)
	}
}

func TestAllAreTriedAndAllFailuresTold(t *testing.T) {
	from, to := plain(t), plain(t)
	from.push(t, "good", artifacttest.PlatformImage(t, "amd64"))
	args := value.NewDict("tls", plainTLS(from, to), "parallel", 1, "images", []any{
		pair(from.host+"/none:1", to.host+"/x"), pair(from.host+"/good", to.host+"/good"),
		pair(from.host+"/none:2", to.host+"/y"),
	})
	r := moduletest.Run(t, spec(t), args, moduletest.Options{})
	if !r.Failed || !r.Changed || !strings.Contains(r.Msg, "2 of 3") || !strings.Contains(r.Msg, "none:1") ||
		!strings.Contains(r.Msg, "none:2") {
		t.Errorf("got %+v", r)
	}
	if to.digest(t, "good") == "" {
		t.Error("the good image is not there")
	}
}

func TestUserAndOwnCA(t *testing.T) {
	from := plain(t)
	from.push(t, "one", artifacttest.PlatformImage(t, "amd64"))
	to := newServer(t, httptest.NewTLSServer)
	to.first = func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "admin" && password == "right-password" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: to.Certificate().Raw}))
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(ca), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(dest, password string, options *value.Dict) module.Result {
		t.Helper()
		conf := plainTLS(from)
		conf.Set(to.host, options)
		auth := value.NewDict(to.host, value.NewDict("username", "admin", "password", password))
		args := value.NewDict("tls", conf, "auth", auth, "src", from.host+"/one", "dest", to.host+"/"+dest, "backoff", 0)
		return moduletest.Run(t, spec(t), args, moduletest.Options{})
	}
	for i, good := range []*value.Dict{value.NewDict("ca", ca), value.NewDict("ca", file),
		value.NewDict("skip_verify", true)} {
		if r := run(fmt.Sprint("x", i), "right-password", good); r.Failed || !r.Changed {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if r := run("y", "right-password", value.NewDict()); !r.Failed || !strings.Contains(r.Msg, "certificate") {
		t.Errorf("an unknown CA: %+v", r)
	}
	if r := run("y", "wrong-password", value.NewDict("ca", ca)); !r.Failed || strings.Contains(r.Msg, "wrong-password") ||
		!strings.Contains(r.Msg, "401") {
		t.Errorf("a wrong password: %+v", r)
	}
}

func TestPlainHTTPMustBeAskedFor(t *testing.T) {
	from := plain(t)
	from.push(t, "one", artifacttest.PlatformImage(t, "amd64"))
	seen := false
	from.first = func(http.ResponseWriter, *http.Request) bool { seen = true; return false }
	r := moduletest.Run(t, spec(t), value.NewDict("src", from.host+"/one", "dest", "oci:"+t.TempDir()+"/l:x", "attempts",
		1), moduletest.Options{})
	if !r.Failed || seen {
		t.Errorf("reached over plain HTTP: %v, %+v", seen, r)
	}
}

func TestBrokenConnectionsAreTriedAgain(t *testing.T) {
	from, to := plain(t), plain(t)
	image := artifacttest.PlatformImage(t, "amd64")
	from.push(t, "one", image)
	var broken atomic.Int32
	to.first = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || broken.Add(1) > 2 {
			return false
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
		return true
	}
	var unavailable atomic.Int32
	from.first = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/manifests/") && unavailable.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	args := value.NewDict("tls", plainTLS(from, to), "src", from.host+"/one", "dest", to.host+"/one", "attempts", 5,
		"backoff", 0)
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{}); r.Failed || to.digest(t, "one") != digestOf(t, image) {
		t.Errorf("got %+v", r)
	}
	if broken.Load() < 2 || unavailable.Load() < 2 {
		t.Errorf("broken %d, unavailable %d times", broken.Load(), unavailable.Load())
	}
	broken.Store(-100)
	args.Set("dest", to.host+"/two")
	args.Set("attempts", 1)
	to.first = func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }
	if r := moduletest.Run(t, spec(t), args, moduletest.Options{}); !r.Failed {
		t.Errorf("got %+v", r)
	}
}

func TestTLSIsNotOld(t *testing.T) {
	a, err := (&Image{TLS: value.NewDict("h", value.NewDict())}).access(&module.Call{})
	if err != nil || a.transports["h"].TLSClientConfig.MinVersion < tls.VersionTLS12 {
		t.Errorf("got %+v, %v", a, err)
	}
}
