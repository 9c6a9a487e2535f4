package artifacttest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"gopkg.in/yaml.v3"

	"kubekey/pkg/artifact"
)

// catalog is what `kk catalog show -o json` prints.
type catalog struct {
	Components map[string]struct {
		Version string
		Arch    map[string]struct{ Upstream string }
	}
	Charts map[string]struct{ Upstream string }
	Images map[string]struct{ Upstream string }
}

// Upstream is a mirror whose files were made up: one for amd64 for each URL of catalogs, and each of their images, with
// a signature and a referrer.
type Upstream struct {
	Checksums string            // catalog overlay with the digests of the files
	Key       *ecdsa.PrivateKey // that signed the images
	files     map[string][]byte
	others    *http.ServeMux
	mu        sync.Mutex
	asked     []string
}

// NewUpstream makes a mirror of catalogs, as `kk catalog show VERSION -o json` prints them.
func NewUpstream(t testing.TB, shown ...[]byte) *Upstream {
	t.Helper()
	u := &Upstream{Key: Key(t), files: map[string][]byte{}, others: http.NewServeMux()}
	u.Handle("/", registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	host, stop := u.Listen(t, "127.0.0.1:0")
	defer stop()
	sums, pushed := map[string]map[string]map[string]string{}, map[string]bool{}
	for _, text := range shown {
		var c catalog
		check(t, json.Unmarshal(text, &c))
		for name, component := range c.Components {
			if url := component.Arch["amd64"].Upstream; url != "" {
				if sums[name] == nil {
					sums[name] = map[string]map[string]string{}
				}
				sum := sha256.Sum256(u.add(url))
				sums[name][component.Version] = map[string]string{"amd64": "sha256:" + hex.EncodeToString(sum[:])}
			}
		}
		for _, chart := range c.Charts {
			u.add(chart.Upstream)
		}
		for _, i := range c.Images {
			if !pushed[i.Upstream] {
				u.push(t, host, i.Upstream)
			}
			pushed[i.Upstream] = true
		}
	}
	text, err := yaml.Marshal(map[string]any{"checksums": sums})
	check(t, err)
	u.Checksums = string(text)
	return u
}

// add makes up the file of a URL.
func (u *Upstream) add(url string) []byte {
	text := strings.Repeat("what "+url+" has\n", 500)
	if strings.HasSuffix(url, "gz") {
		text = "\x1f\x8b" + text // stored as it is
	}
	u.files[strings.TrimPrefix(url, "https:/")] = []byte(text)
	return []byte(text)
}

// push pushes an image with a signature and a referrer.
func (u *Upstream) push(t testing.TB, host, ref string) {
	t.Helper()
	index := PlatformIndex(t, "amd64")
	to, err := name.ParseReference(host + "/" + ref)
	check(t, err)
	check(t, remote.WriteIndex(to, index, remote.WithContext(t.Context())))
	digest, err := index.Digest()
	check(t, err)
	at, err := name.ParseReference(artifact.AttachedName(host+"/"+ref, digest, ".sig"))
	check(t, err)
	check(t, remote.Write(at, Signature(t, ref, digest, u.Key), remote.WithContext(t.Context())))
	referrer := Referrer(t, index, "application/vnd.example.sbom", "about "+ref)
	digest, err = referrer.Digest()
	check(t, err)
	check(t, remote.Write(to.Context().Digest(digest.String()), referrer, remote.WithContext(t.Context())))
}

// Listen serves on an address such as 127.0.0.1:0 until stop or the end of the test.
func (u *Upstream) Listen(t testing.TB, address string) (host string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address) //nolint:noctx // a test's own server
	check(t, err)
	s := httptest.NewUnstartedServer(u)
	check(t, s.Listener.Close())
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return l.Addr().String(), s.Close
}

// ServeHTTP implements http.Handler.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.record(r)
	if text, ok := u.files[r.URL.Path]; ok {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
		return
	}
	u.others.ServeHTTP(w, r)
}

// Handle adds what the mirror has below a path, such as /packages/.
func (u *Upstream) Handle(path string, h http.Handler) { u.others.Handle(path, h) }

func (u *Upstream) record(r *http.Request) {
	if r.Method != http.MethodGet || strings.Contains(r.URL.Path, "/manifests/") || r.URL.Path == "/v2/" ||
		strings.Contains(r.URL.Path, "/referrers/") {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, strings.Replace(r.URL.Path, "sha256:", "", 1))
}

// Asked returns the paths of files and layers that clients have fetched since the last time.
func (u *Upstream) Asked() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	paths := u.asked
	u.asked = nil
	return paths
}

// Mirrors is the catalog overlay with the places of everything, for clients that reach the mirror at host.
func Mirrors(host string) string {
	overlay := "mirrors: {\"https://\": \"http://" + host + "\"}\nregistries:\n"
	for _, from := range []string{"docker.io", "ghcr.io", "quay.io", "registry.k8s.io"} {
		overlay += "  " + from + ": " + host + "/" + from + "\n"
	}
	return overlay
}

// Config is a config whose catalog has the overlays checksums.yaml and overlay.yaml next to it, with images from host.
func Config(host string) string {
	return "catalog: {overlays: [checksums.yaml, overlay.yaml]}\n" +
		"cri: {registries: {mirrors: {\"" + host + "\": {endpoints: [\"http://" + host + "\"]}}}}\n"
}
