package serve

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/klauspost/compress/zstd"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
)

const (
	kubeadm = artifacttest.Program
	chart   = artifacttest.Chart
	pause   = artifacttest.Index
	busybox = artifacttest.Image
)

func digestOf(t testing.TB, v interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	d, err := v.Digest()
	check(t, err)
	return d.String()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// problemLog collects what a handler reports.
type problemLog struct {
	mu  sync.Mutex
	all []string
}

func (l *problemLog) add(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, err.Error())
}

func (l *problemLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func handler(t testing.TB, log *problemLog, paths ...string) *Handler {
	t.Helper()
	set, err := artifact.OpenSet(paths)
	check(t, err)
	t.Cleanup(func() { _ = set.Close() })
	h, err := New(set, log.add)
	check(t, err)
	return h
}

// start serves a file with something of each kind. Problems that are reported fail the test.
func start(t *testing.T) (*artifacttest.Offline, *httptest.Server) {
	t.Helper()
	o := artifacttest.Sample(t, map[string]string{"packages/debian-12/amd64/Packages": "Package: a+b\n"})
	log := &problemLog{}
	s := httptest.NewServer(handler(t, log, o.Path))
	t.Cleanup(func() {
		s.Close()
		if log.text() != "" {
			t.Error(log.text())
		}
	})
	return o, s
}

// plainClient asks for no encoding on its own.
var plainClient = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// get sends a request with headers in pairs.
func get(t testing.TB, method, url string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	check(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := plainClient.Do(req)
	check(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	check(t, err)
	return res, body
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestFilesHaveTheirPathsUpstream(t *testing.T) {
	o, s := start(t)
	for _, c := range []struct{ path, want string }{
		{kubeadm, string(o.Program)},
		{chart, string(o.Chart)},
		{"/example.org/get?id=1&x=%2F", "answer of a query"},
		{"/files/%3Ci%3Enote%3C%2Fi%3E", "a note"},
		{"/packages/debian-12/amd64/Packages", "Package: a+b\n"},
		{"/packages/debian-12/amd64/./Packages", "Package: a+b\n"},
	} {
		res, body := get(t, http.MethodGet, s.URL+c.path)
		if res.StatusCode != http.StatusOK || string(body) != c.want || res.ContentLength != int64(len(c.want)) {
			t.Errorf("%s: %s, %d bytes of %d", c.path, res.Status, len(body), len(c.want))
		}
		if etag := res.Header.Get("Etag"); etag != `"sha256:`+sha(body)+`"` {
			t.Errorf("%s: ETag %s", c.path, etag)
		}
		res, body = get(t, http.MethodHead, s.URL+c.path)
		if res.StatusCode != http.StatusOK || len(body) != 0 || res.ContentLength != int64(len(c.want)) {
			t.Errorf("HEAD %s: %s, length %d", c.path, res.Status, res.ContentLength)
		}
		res, _ = get(t, http.MethodGet, s.URL+c.path, "If-None-Match", res.Header.Get("Etag"))
		if res.StatusCode != http.StatusNotModified {
			t.Errorf("%s with its ETag: %s", c.path, res.Status)
		}
	}
	for _, path := range []string{"/nothing", "/example.org/get", "/example.org/get?id=2",
		"/..%2f..%2fetc%2fpasswd", "/packages/",
		"/dl.k8s.io", "/" + pause} {
		if res, _ := get(t, http.MethodGet, s.URL+path); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
}

func TestRanges(t *testing.T) {
	o, s := start(t)
	size := len(o.Program)
	for _, c := range []struct {
		ask      string
		from, to int
	}{
		{"bytes=0-0", 0, 1}, {"bytes=1000000-1000999", 1_000_000, 1_001_000}, {"bytes=-7", size - 7, size},
		{fmt.Sprintf("bytes=%d-", size-100_000), size - 100_000, size}, {"bytes=5-99999999999", 5, size},
	} {
		res, body := get(t, http.MethodGet, s.URL+kubeadm, "Range", c.ask, "Accept-Encoding", "zstd")
		if res.StatusCode != http.StatusPartialContent || !bytes.Equal(body, o.Program[c.from:c.to]) ||
			res.Header.Get("Content-Encoding") != "" ||
			res.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", c.from, c.to-1, size) {
			t.Errorf("%s: %s, %d bytes, %v", c.ask, res.Status, len(body), res.Header)
		}
	}
	res, _ := get(t, http.MethodGet, s.URL+kubeadm, "Range", fmt.Sprintf("bytes=%d-", size))
	if res.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("behind the end: %s", res.Status)
	}
	res, body := get(t, http.MethodGet, s.URL+kubeadm, "Range", "bytes=5-9,0-2")
	if res.StatusCode != http.StatusOK || !bytes.Equal(body, o.Program) {
		t.Errorf("two ranges: %s, %d bytes", res.Status, len(body))
	}
	etag := res.Header.Get("Etag")
	if res, body = get(t, http.MethodGet, s.URL+kubeadm, "Range", "bytes=5-9", "If-Range", etag); len(body) != 5 {
		t.Errorf("If-Range with the ETag: %s, %d bytes", res.Status, len(body))
	}
	if res, body = get(t, http.MethodGet, s.URL+kubeadm, "Range", "bytes=5-9", "If-Range", `"x"`); len(body) != size {
		t.Errorf("If-Range with another ETag: %s, %d bytes", res.Status, len(body))
	}
}

func TestEncodedWhereTheClientAccepts(t *testing.T) {
	o, s := start(t)
	res, body := get(t, http.MethodGet, s.URL+kubeadm, "Accept-Encoding", "gzip, zstd;q=0.5")
	d, err := zstd.NewReader(bytes.NewReader(body))
	check(t, err)
	defer d.Close()
	plain, err := io.ReadAll(d)
	if err != nil || !bytes.Equal(plain, o.Program) || len(body)*2 > len(plain) {
		t.Errorf("%d bytes decode to %d: %v", len(body), len(plain), err)
	}
	if res.Header.Get("Content-Encoding") != "zstd" || res.ContentLength != int64(len(body)) ||
		res.Header.Get("Vary") != "Accept-Encoding" || res.Header.Get("Etag") != `"sha256:`+sha(body)+`"` {
		t.Error(res.Header)
	}
	for _, no := range []string{"", "gzip", "*", "zstd;q=0", "zstandard"} {
		if res, body = get(t, http.MethodGet, s.URL+kubeadm, "Accept-Encoding", no); !bytes.Equal(body, o.Program) {
			t.Errorf("Accept-Encoding %q: %s, %d bytes", no, res.Status, len(body))
		}
	}
	if res, _ = get(t, http.MethodGet, s.URL+chart, "Accept-Encoding", "zstd"); res.Header.Get("Content-Encoding") != "" {
		t.Error("an archive, stored as it is, is sent encoded")
	}
}

func TestReadOnly(t *testing.T) {
	_, s := start(t)
	for _, path := range []string{"/", kubeadm, "/v2/", "/v2/" + pause + "/blobs/uploads/",
		"/v2/" + pause + "/manifests/1"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "ANY"} {
			res, body := get(t, method, s.URL+path)
			if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %s %s", method, path, res.Status, body)
			}
		}
	}
}

// TestPullsKeepDigests pulls with a registry client under all names that an image has.
func TestPullsKeepDigests(t *testing.T) {
	o, s := start(t)
	host := strings.TrimPrefix(s.URL, "http://")
	for _, ref := range []string{pause + ":3.10.1", pause + "@" + digestOf(t, o.Index)} {
		got := pullIndex(t, host+"/"+ref)
		if err := validate.Index(got); err != nil || digestOf(t, got) != digestOf(t, o.Index) {
			t.Errorf("%s: %v", ref, err)
		}
	}
	for _, ref := range []string{busybox + ":1.37", busybox, "docker.io/busybox:1.36",
		"index.docker.io/library/busybox:1.36",
		"registry-1.docker.io/library/busybox:1.36", "library/busybox:1.37", "busybox:1.37",
		busybox + "@" + digestOf(t, o.Image)} {
		r, err := name.ParseReference(host + "/" + ref)
		check(t, err)
		got, err := remote.Image(r, remote.WithContext(t.Context()))
		if err != nil {
			t.Errorf("%s: %s", ref, err)
			continue
		}
		if err := validate.Image(got); err != nil || digestOf(t, got) != digestOf(t, o.Image) {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

func pullIndex(t *testing.T, ref string) v1.ImageIndex {
	t.Helper()
	r, err := name.ParseReference(ref)
	check(t, err)
	got, err := remote.Index(r, remote.WithContext(t.Context()))
	check(t, err)
	return got
}

// TestMirrorParameter is what containerd sends to a mirror: the path of upstream, and its host as ns.
func TestMirrorParameter(t *testing.T) {
	o, s := start(t)
	for _, c := range []struct {
		path, digest string
		status       int
	}{
		{"/v2/pause/manifests/3.10.1?ns=registry.k8s.io", digestOf(t, o.Index), 200},
		{"/v2/registry.k8s.io/pause/manifests/3.10.1?ns=registry.k8s.io", digestOf(t, o.Index), 200},
		{"/v2/library/busybox/manifests/1.37?ns=docker.io", digestOf(t, o.Image), 200},
		{"/v2/library/busybox/manifests/1.37?ns=registry-1.docker.io", digestOf(t, o.Image), 200},
		{"/v2/pause/manifests/3.10.1", "", 404},
		{"/v2/pause/manifests/3.10.1?ns=quay.io", "", 404},
	} {
		res, _ := get(t, http.MethodHead, s.URL+c.path)
		if res.StatusCode != c.status || res.Header.Get("Docker-Content-Digest") != c.digest {
			t.Errorf("%s: %s %s", c.path, res.Status, res.Header.Get("Docker-Content-Digest"))
		}
	}
}

func TestRegistryErrors(t *testing.T) {
	_, s := start(t)
	none := "sha256:" + strings.Repeat("0", 64)
	for _, c := range []struct {
		path, code string
		status     int
	}{
		{"/v2/nothing/here/manifests/1", "NAME_UNKNOWN", 404},
		{"/v2/nothing/here/tags/list", "NAME_UNKNOWN", 404},
		{"/v2/" + pause + "/manifests/none", "MANIFEST_UNKNOWN", 404},
		{"/v2/" + pause + "/manifests/" + none, "MANIFEST_UNKNOWN", 404},
		{"/v2/" + pause + "/manifests/sha256:x", "DIGEST_INVALID", 400},
		{"/v2/" + pause + "/blobs/" + none, "BLOB_UNKNOWN", 404},
		{"/v2/" + pause + "/blobs/x", "DIGEST_INVALID", 400},
		{"/v2/" + pause + "/referrers/x", "DIGEST_INVALID", 400},
		{"/v2/" + pause + "/tags/list?n=x", "PAGINATION_NUMBER_INVALID", 400},
		{"/v2/" + pause + "/other/x", "UNSUPPORTED", 404},
		{"/v2/other", "NAME_UNKNOWN", 404},
	} {
		res, body := get(t, http.MethodGet, s.URL+c.path)
		var p problems
		if err := json.Unmarshal(body, &p); err != nil || res.StatusCode != c.status || len(p.Errors) != 1 ||
			p.Errors[0].Code != c.code {
			t.Errorf("%s: %s %s", c.path, res.Status, body)
		}
	}
}

func TestTagsByPage(t *testing.T) {
	_, s := start(t)
	read := func(path string) (tags []string, next string) {
		t.Helper()
		res, body := get(t, http.MethodGet, s.URL+path)
		var list struct{ Tags []string }
		if err := json.Unmarshal(body, &list); err != nil || res.StatusCode != http.StatusOK || list.Tags == nil {
			t.Fatalf("%s: %s %s", path, res.Status, body)
		}
		link := res.Header.Get("Link")
		next, _ = strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		return list.Tags, next
	}
	var all []string
	pages := 0
	for next := "/v2/library/busybox/tags/list?n=2&ns=docker.io"; next != ""; pages++ {
		var tags []string
		tags, next = read(next)
		all = append(all, tags...)
	}
	if want := []string{"1.36", "1.37", "latest"}; !slices.Equal(all, want) || pages != 2 {
		t.Errorf("%q in %d pages", all, pages)
	}
	for path, want := range map[string][]string{"": {"1.36", "1.37", "latest"}, "?n=0": {},
		"?n=3":        {"1.36", "1.37", "latest"},
		"?last=1.361": {"1.37", "latest"}, "?last=latest": {}} {
		if tags, next := read("/v2/" + busybox + "/tags/list" + path); !slices.Equal(tags, want) || next != "" {
			t.Errorf("%s: %q, next %q", path, tags, next)
		}
	}
	_, body := get(t, http.MethodGet, s.URL+"/v2/_catalog")
	if string(body) != `{"repositories":["docker.io/library/busybox","registry.k8s.io/pause"]}`+"\n" {
		t.Errorf("%s", body)
	}
}

func TestReferrers(t *testing.T) {
	o, s := start(t)
	checkReferrers(t, o, s.URL)
}

func checkReferrers(t *testing.T, o *artifacttest.Offline, base string) {
	t.Helper()
	r, err := name.NewDigest(strings.TrimPrefix(base, "http://") + "/" + busybox + "@" + digestOf(t, o.Image))
	check(t, err)
	index, err := remote.Referrers(r, remote.WithContext(t.Context()))
	check(t, err)
	m, err := index.IndexManifest()
	check(t, err)
	if len(m.Manifests) != 1 || m.Manifests[0].Digest.String() != digestOf(t, o.Attached) ||
		m.Manifests[0].Annotations["made"] != "by a test" || m.Manifests[0].ArtifactType == "" {
		t.Fatalf("%+v", m.Manifests)
	}
	path := base + "/v2/" + busybox + "/referrers/" + digestOf(t, o.Image) + "?artifactType="
	res, body := get(t, http.MethodGet, path+"none")
	if res.Header.Get("Oci-Filters-Applied") != "artifactType" || !bytes.Contains(body, []byte(`"manifests":[]`)) ||
		res.Header.Get("Content-Type") != string(types.OCIImageIndex) {
		t.Errorf("%v %s", res.Header, body)
	}
	_, body = get(t, http.MethodGet, path+url.QueryEscape(m.Manifests[0].ArtifactType))
	if !bytes.Contains(body, []byte(digestOf(t, o.Attached))) {
		t.Errorf("%s", body)
	}
}

func TestPageIsEscaped(t *testing.T) {
	o, s := start(t)
	res, body := get(t, http.MethodGet, s.URL+"/")
	text := string(body)
	if res.StatusCode != http.StatusOK || strings.Contains(text, "<i>") || !strings.Contains(text, "&lt;i&gt;note") ||
		res.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%s %v\n%s", res.Status, res.Header, text)
	}
	for _, want := range []string{`href="` + kubeadm + `"`, sha(o.Program), pause + ":3.10.1, " + digestOf(t, o.Index),
		`href="/example.org/get?id=1&amp;x=%2F"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
}

func TestOverlayHasTheAddressOfTheClient(t *testing.T) {
	_, s := start(t)
	host := strings.TrimPrefix(s.URL, "http://")
	want := "# In the config: catalog: {overlays: [overlay.yaml]}\n" +
		`# Images over plain HTTP: cri: {registries: {mirrors: {"HOST": {endpoints: ["http://HOST"]}}}}` + "\n" +
		"mirrors:\n    http://: http://HOST/\n    https://: http://HOST/\nregistries:\n" +
		"    docker.io: HOST/docker.io\n    registry.k8s.io: HOST/registry.k8s.io\n"
	if _, body := get(t, http.MethodGet, s.URL+"/overlay.yaml"); string(body) != strings.ReplaceAll(want, "HOST", host) {
		t.Errorf("%s", body)
	}
	for host, status := range map[string]int{"mirror.example.org:8080": 200, "[::1]:80": 200, "x\ny": 400, "a b": 400,
		"":          400,
		"a: {b: c}": 400} {
		r := httptest.NewRequest(http.MethodGet, "/overlay.yaml", nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(w, r)
		if w.Code != status || status == 200 && !strings.Contains(w.Body.String(), "http://"+host+"/\n") {
			t.Errorf("%q: %d %s", host, w.Code, w.Body)
		}
	}
}
