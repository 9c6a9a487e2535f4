package serve

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kubekey/pkg/artifact/artifacttest"
)

// FuzzRequests sends paths and headers. Nothing panics, nothing fails on the server's side, and a whole body has the
// digest of its ETag.
func FuzzRequests(f *testing.F) {
	o := artifacttest.Sample(f, map[string]string{"packages/debian-12/amd64/Packages": "Package: a+b\n"})
	log := &problemLog{}
	h := handler(f, log, o.Path)
	none := "sha256:" + strings.Repeat("0", 64)
	for _, path := range []string{"/", kubeadm, chart, "/overlay.yaml", "/v2/", "/v2", "/v2/_catalog?n=1&last=a",
		"/v2/" + pause + "/manifests/3.10.1", "/v2/" + busybox + "/tags/list?n=1&last=1.36", "/v2/a/b/c/blobs/" + none,
		"/v2/" + busybox + "/referrers/" + digestOf(f, o.Image) + "?artifactType=a%2Fb",
		"/v2/pause/tags/list?ns=registry.k8s.io",
		"/v2//manifests/", "/v2/manifests/manifests/manifests", "/example.org/get?id=1&x=%2F", "//",
		"/..%2f", "/v2/%00/tags/list"} {
		f.Add(path, "", "")
		f.Add(path, "bytes=3-10", "zstd")
	}
	f.Add(kubeadm, "bytes=-1,0-0", "zstd;q=,;;")
	allowed := []int{http.StatusOK, http.StatusPartialContent, http.StatusBadRequest, http.StatusNotFound,
		http.StatusRequestedRangeNotSatisfiable}
	f.Fuzz(func(t *testing.T, path, ask, encoding string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return // net/http answers such requests
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = u
		r.Header.Set("Range", ask)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if !slices.Contains(allowed, w.Code) || log.text() != "" {
			t.Fatalf("%q: %d %s %s", path, w.Code, w.Body, log.text())
		}
		etag := w.Header().Get("Etag")
		if w.Code == http.StatusOK && etag != "" && etag != `"sha256:`+sha(w.Body.Bytes())+`"` {
			t.Errorf("%q: the body has not the digest %s", path, etag)
		}
		if n := w.Header().Get("Content-Length"); n != "" && n != strconv.Itoa(w.Body.Len()) {
			t.Errorf("%q: %d bytes, Content-Length %s", path, w.Body.Len(), n)
		}
	})
}
