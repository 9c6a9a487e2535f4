package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/artifacttest"
)

// change changes one byte of a blob in a file, counted from its end, or of its header.
func change(t *testing.T, path, digest string, fromEnd int64) {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	at := int64(bytes.Index(text, []byte("blobs/sha256/"+digest)))
	if at < 0 {
		t.Fatalf("no blob %s", digest)
	}
	f, err := artifact.Open(path)
	check(t, err)
	size, ok := f.Manifest.BlobSize("sha256:" + digest)
	check(t, f.Close())
	if !ok || fromEnd > size {
		t.Fatalf("%s has %d bytes", digest, size)
	}
	if fromEnd > 0 {
		at += 512 + size - fromEnd
	}
	text[at] ^= 1
	check(t, os.WriteFile(path, text, 0o600))
}

// TestDamageCutsTheConnection changes a file while it is served.
func TestDamageCutsTheConnection(t *testing.T) {
	whole := artifacttest.Sample(t, nil)
	text, err := os.ReadFile(whole.Path)
	check(t, err)
	for _, c := range []struct {
		name    string
		path    func(o *artifacttest.Offline) string
		blob    func(o *artifacttest.Offline, f *artifact.File) string
		fromEnd int64
		headers []string
	}{
		{"archive", func(*artifacttest.Offline) string { return chart }, ofChart, 1, nil},
		{"start of an archive", func(*artifacttest.Offline) string { return chart }, ofChart, 5000, nil},
		{"header of the entry", func(*artifacttest.Offline) string { return chart }, ofChart, 0, nil},
		{"decoded program", func(*artifacttest.Offline) string { return kubeadm }, ofProgram, 10_000, nil},
		{"checksum of the encoder", func(*artifacttest.Offline) string { return kubeadm }, ofProgram, 1, nil},
		{"encoded program", func(*artifacttest.Offline) string { return kubeadm }, ofProgram, 1,
			[]string{"Accept-Encoding", "zstd"}},
		{"end of a program", func(*artifacttest.Offline) string { return kubeadm }, ofProgram, 10_000,
			[]string{"Range", "bytes=-5"}},
		{"layer", func(o *artifacttest.Offline) string { return "/v2/" + busybox + "/blobs/sha256:" + layerOf(o) },
			func(o *artifacttest.Offline, _ *artifact.File) string { return layerOf(o) }, 1, nil},
		{"manifest", func(*artifacttest.Offline) string { return "/v2/" + busybox + "/manifests/1.37" },
			func(o *artifacttest.Offline, _ *artifact.File) string { d, _ := o.Image.Digest(); return d.Hex }, 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			copied := *whole
			o := &copied
			o.Path = filepath.Join(t.TempDir(), "out.tar")
			check(t, os.WriteFile(o.Path, text, 0o600))
			log := &problemLog{}
			s := httptest.NewServer(handler(t, log, o.Path))
			defer s.Close()
			f, err := artifact.Open(o.Path)
			check(t, err)
			digest := c.blob(o, f)
			check(t, f.Close())
			change(t, o.Path, digest, c.fromEnd)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+c.path(o), nil)
			check(t, err)
			for i := 0; i+1 < len(c.headers); i += 2 {
				req.Header.Set(c.headers[i], c.headers[i+1])
			}
			res, err := plainClient.Do(req)
			if err == nil { // else the connection was cut before the first byte
				var n int64
				n, err = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				if !errors.Is(err, io.ErrUnexpectedEOF) || n >= res.ContentLength {
					t.Errorf("%s: %d bytes of %d, %v", res.Status, n, res.ContentLength, err)
				}
			}
			if text := log.text(); !strings.Contains(text, "send "+c.path(o)) || !strings.Contains(text, digest) &&
				!strings.Contains(text, sha(o.Program)) {
				t.Errorf("reported %q, not the path and %s", text, digest)
			}
		})
	}
}

func ofChart(o *artifacttest.Offline, _ *artifact.File) string { return sha(o.Chart) }

func ofProgram(_ *artifacttest.Offline, f *artifact.File) string {
	i := slices.IndexFunc(f.Manifest.Items, func(i artifact.Item) bool { return i.Name == "kubeadm" })
	return strings.TrimPrefix(f.Manifest.Items[i].Blob, "sha256:")
}

func layerOf(o *artifacttest.Offline) string {
	layers, _ := o.Image.Layers()
	d, _ := layers[0].Digest()
	return d.Hex
}

// TestDamageEndsAStream: several responses share a connection of HTTP/2, so only the stream is cut.
func TestDamageEndsAStream(t *testing.T) {
	o := artifacttest.Sample(t, nil)
	log := &problemLog{}
	s := httptest.NewUnstartedServer(handler(t, log, o.Path))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	change(t, o.Path, sha(o.Chart), 1)
	fetch := func(path string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		check(t, err)
		res, err := s.Client().Do(req)
		if err != nil {
			return 0, err
		}
		if res.ProtoMajor != 2 {
			t.Errorf("%s is sent over %s", path, res.Proto)
		}
		body, err := io.ReadAll(res.Body)
		return len(body), errors.Join(err, res.Body.Close())
	}
	if n, err := fetch(chart); err == nil || n >= len(o.Chart) {
		t.Errorf("%d bytes of %d, %v", n, len(o.Chart), err)
	}
	if n, err := fetch(kubeadm); err != nil || n != len(o.Program) {
		t.Errorf("%d bytes of %d, %v", n, len(o.Program), err)
	}
	if !strings.Contains(log.text(), sha(o.Chart)) {
		t.Errorf("reported %q", log.text())
	}
}

// TestDamagedManifestsAreReportedFirst: what a registry lists has to be known before anything is served.
func TestDamagedManifestsAreReportedFirst(t *testing.T) {
	o := artifacttest.Sample(t, nil)
	for _, digest := range []string{digestOf(t, o.Index), digestOf(t, o.Image)} {
		change(t, o.Path, strings.TrimPrefix(digest, "sha256:"), 2)
	}
	set, err := artifact.OpenSet([]string{o.Path})
	check(t, err)
	defer func() { _ = set.Close() }()
	_, err = New(set, nil)
	if err == nil || !strings.Contains(err.Error(), pause+":3.10.1") || !strings.Contains(err.Error(), busybox+":1.36") ||
		!strings.Contains(err.Error(), "is damaged") {
		t.Errorf("%v", err)
	}
}

// TestAttachedManifestsAreFound has a signature among the blobs of the image, instead of an item of its own.
func TestAttachedManifestsAreFound(t *testing.T) {
	o := artifacttest.Sample(t, nil)
	f, err := artifact.Open(o.Path)
	check(t, err)
	defer func() { _ = f.Close() }()
	m := f.Manifest
	signature := slices.IndexFunc(m.Items, func(i artifact.Item) bool { return strings.Contains(i.Name, "@") })
	for n, i := range m.Items {
		if i.Name == busybox+":1.37" {
			m.Items[n].Blobs = append(slices.Clone(i.Blobs), m.Items[signature].Blobs...)
		}
	}
	m.Items = slices.Delete(m.Items, signature, signature+1)
	log := &problemLog{}
	h, err := New(artifact.Set{f}, log.add)
	check(t, err)
	s := httptest.NewServer(h)
	defer s.Close()
	checkReferrers(t, o, s.URL)
	if log.text() != "" {
		t.Error(log.text())
	}
}

// TestHostileNames has items whose names and URLs were made up.
func TestHostileNames(t *testing.T) {
	for _, source := range []string{"https://", "https:///x", "file:///etc/passwd", "javascript:alert(1)", "https://h/%zz",
		"://", "https://user:secret@example.org/x"} {
		at := location(artifact.Item{Kind: artifact.KindFile, Source: source})
		if strings.Contains(at, "secret") || at != "" && at != "example.org/x" {
			t.Errorf("%s: %q", source, at)
		}
	}
	if at := location(artifact.Item{Kind: artifact.KindPackage, File: "v2/x", Source: "https://example.org/x"}); at != "" {
		t.Errorf("a package outside of its folder is at %q", at)
	}
	f := &artifact.File{Path: "x.tar", Manifest: &artifact.Manifest{Items: []artifact.Item{
		{Kind: artifact.KindImage, Name: "x/../..:x"}, {Kind: artifact.KindImage, Name: "../x:x"},
		{Kind: artifact.KindImage, Name: "UPPER CASE"},
	}}}
	_, err := New(artifact.Set{f}, nil)
	for _, want := range []string{`"x/../..:x"`, `"../x:x"`, `"UPPER CASE"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, without %s", err, want)
		}
	}
	var list problems
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/v2/..%2f..%2fetc/manifests/..%2fpasswd", nil)
	handler(t, &problemLog{}).ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusNotFound {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
