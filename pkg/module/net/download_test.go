package net_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand"
	stdnet "net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/module/net"
	"kubekey/pkg/value"
)

// mirror is a server of one file that has its moods.
type mirror struct {
	*httptest.Server
	content  []byte
	cutAfter int  // bytes of an answer after which the connection ends; 0 never
	noRange  bool // sends the whole file whatever is asked for
	lies     int  // how many answers are of other bytes
	status   []int
	requests atomic.Int32
	sent     atomic.Int64
	ranges   []string
	mu       sync.Mutex
}

func newMirror(t *testing.T, size int) *mirror {
	m := &mirror{content: make([]byte, size)}
	_, _ = rand.New(rand.NewSource(1)).Read(m.content) //nolint:staticcheck // any bytes will do
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *mirror) sha256() string {
	sum := sha256.Sum256(m.content)
	return hex.EncodeToString(sum[:])
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.requests.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ranges = append(m.ranges, r.Header.Get("Range"))
	if len(m.status) > 0 {
		code := m.status[0]
		m.status = m.status[1:]
		http.Error(w, "no", code)
		return
	}
	if r.URL.Path == "/gone" || r.URL.Path == "/two" {
		http.NotFound(w, r)
		return
	}
	content := m.content
	if m.lies > 0 {
		m.lies--
		content = bytes.Repeat([]byte("x"), len(content))
	}
	if m.noRange {
		r.Header.Del("Range")
	}
	var out http.ResponseWriter = &counted{w, m}
	if m.cutAfter > 0 {
		out = &cut{out, m.cutAfter}
	}
	http.ServeContent(out, r, "file", time.Time{}, bytes.NewReader(content))
}

type counted struct {
	http.ResponseWriter
	m *mirror
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.m.sent.Add(int64(n))
	return n, err
}

// cut ends the connection after some bytes.
type cut struct {
	http.ResponseWriter
	left int
}

func (c *cut) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter.(*counted).ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

func fetchAll(t *testing.T, o moduletest.Options, args ...any) module.Result {
	t.Helper()
	d := value.NewDict("backoff", 0.01)
	d.Merge(value.NewDict(args...))
	return moduletest.Run(t, moduletest.Find(t, net.Modules(), "download"), d, o)
}

func item(dest, address, digest string, more ...any) *value.Dict {
	d := value.NewDict("dest", dest, "url", address, "sha256", digest)
	d.Merge(value.NewDict(more...))
	return d
}

func wantFile(t *testing.T, file string, content []byte) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%s: %d bytes, %v; want %d", file, len(got), err, len(content))
	}
	if _, err := os.Stat(file + ".part"); err == nil {
		t.Errorf("%s.part is left", file)
	}
}

func wantNone(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); err == nil {
		t.Errorf("%s is there", file)
	}
}

func TestDownload(t *testing.T) {
	m := newMirror(t, 1<<20)
	dir := t.TempDir()
	local := filepath.Join(dir, "mine")
	if err := os.WriteFile(local, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	items := []any{
		item("a/x", m.URL+"/x", m.sha256(), "mode", "0755"), item("a/x", m.URL+"/x", m.sha256(), "mode", "0755"),
		item("y", m.URL+"/y", "sha256:"+strings.ToUpper(m.sha256())), item("plain", m.URL+"/z", ""),
		value.NewDict("file", "copy", "path", local, "url", "", "version", "v1"),
	}
	args := value.NewDict("items", items, "dir", dir+"/cache")
	moduletest.RunTwice(t, moduletest.Find(t, net.Modules(), "download"), args, moduletest.Options{})
	for _, name := range []string{"a/x", "y", "plain"} {
		wantFile(t, dir+"/cache/"+name, m.content)
	}
	wantFile(t, dir+"/cache/copy", []byte("mine"))
	if info, _ := os.Stat(dir + "/cache/a/x"); info.Mode().Perm() != 0o755 {
		t.Error(info.Mode())
	}
	if n := m.requests.Load(); n != 3 {
		t.Errorf("%d requests for 3 files", n)
	}
}

// A connection that breaks costs no byte twice.
// Files share the rate. A server that is read slowly has not stalled.
func TestDownloadAtARate(t *testing.T) {
	m := newMirror(t, 200_000)
	dir := t.TempDir()
	args := value.NewDict("items", []any{item("x", m.URL+"/x", m.sha256()), item("y", m.URL+"/y", m.sha256())}, "dir", dir,
		"rate", 100_000, "timeout", 1)
	start := time.Now()
	if r := moduletest.Run(t, moduletest.Find(t, net.Modules(), "download"), args, moduletest.Options{}); r.Failed {
		t.Fatal(r.Msg)
	}
	// The last piece does not wait.
	if took := time.Since(start); took < 3*time.Second {
		t.Errorf("400 000 bytes at 100 000 bytes per second took %s", took)
	}
	wantFile(t, dir+"/y", m.content)
}

func TestDownloadSizes(t *testing.T) {
	m := newMirror(t, 12_345)
	dir := t.TempDir()
	args := value.NewDict("items", []any{item("x", m.URL+"/x", m.sha256())}, "dir", dir, "sizes", true)
	r := moduletest.Run(t, moduletest.Find(t, net.Modules(), "download"), args, moduletest.Options{Check: true})
	files, _ := r.Data.Get("files")
	list, _ := files.([]any)
	if len(list) != 1 || !r.Changed {
		t.Fatalf("got %+v", r)
	}
	moduletest.Want(t, module.Result{Data: list[0].(*value.Dict)}, "size", 12_345, "changed", true)
	if _, err := os.Stat(dir + "/x"); err == nil {
		t.Error("check mode fetched the file")
	}
}

func TestDownloadResumes(t *testing.T) {
	m := newMirror(t, 1<<20)
	m.cutAfter = 400 << 10
	dest := t.TempDir() + "/f"
	r := fetchAll(t, moduletest.Options{}, "items", []any{item(dest, m.URL, m.sha256())}, "attempts", 4)
	if r.Failed || m.requests.Load() != 3 {
		t.Fatalf("%d requests, %s", m.requests.Load(), r.Msg)
	}
	wantFile(t, dest, m.content)
	if sent := m.sent.Load(); sent > 1<<20+200<<10 {
		t.Errorf("%d bytes sent for %d", sent, 1<<20)
	}
}

func TestDownloadGoesOnInTheNextRun(t *testing.T) {
	m := newMirror(t, 1<<20)
	m.cutAfter = 300 << 10
	dest := t.TempDir() + "/f"
	items := []any{item(dest, m.URL, m.sha256())}
	if r := fetchAll(t, moduletest.Options{}, "items", items, "attempts", 1); !r.Failed {
		t.Fatal("a broken transfer passed")
	}
	wantNone(t, dest)
	m.cutAfter = 0
	if r := fetchAll(t, moduletest.Options{}, "items", items); r.Failed || m.ranges[1] == "" {
		t.Fatalf("asked for %q: %s", m.ranges, r.Msg)
	}
	wantFile(t, dest, m.content)
}

func TestDownloadWithoutRanges(t *testing.T) {
	m := newMirror(t, 1<<20)
	m.cutAfter, m.noRange = 900<<10, true
	dest := t.TempDir() + "/f"
	items := []any{item(dest, m.URL, m.sha256())}
	fetchAll(t, moduletest.Options{}, "items", items, "attempts", 1)
	m.cutAfter = 0
	if r := fetchAll(t, moduletest.Options{}, "items", items); r.Failed {
		t.Fatal(r.Msg)
	}
	wantFile(t, dest, m.content)
}

func TestDownloadWrongDigest(t *testing.T) {
	m := newMirror(t, 100<<10)
	m.lies = 1
	dest := t.TempDir() + "/f"
	if r := fetchAll(t, moduletest.Options{}, "items", []any{item(dest, m.URL, m.sha256())}, "attempts", 1); r.Failed {
		t.Fatalf("one lie is not forgiven: %s", r.Msg)
	}
	wantFile(t, dest, m.content)
	other := t.TempDir() + "/g"
	m.lies = 9
	before := m.requests.Load()
	r := fetchAll(t, moduletest.Options{}, "items", []any{item(other, m.URL, m.sha256())})
	if !r.Failed || !strings.Contains(r.Msg, "instead of "+m.sha256()) || m.requests.Load()-before != 2 {
		t.Errorf("%d requests, %q", m.requests.Load()-before, r.Msg)
	}
	wantNone(t, other)
	wantNone(t, other+".part")
}

// A part of another file is found out by the digest, and a whole one is used.
func TestDownloadForeignPart(t *testing.T) {
	m := newMirror(t, 100<<10)
	for name, part := range map[string][]byte{"foreign": bytes.Repeat([]byte("x"), 50<<10),
		"longer": make([]byte, 200<<10), "whole": m.content} {
		dest := t.TempDir() + "/f"
		if err := os.WriteFile(dest+".part", part, 0o600); err != nil {
			t.Fatal(err)
		}
		if r := fetchAll(t, moduletest.Options{}, "items", []any{item(dest, m.URL, m.sha256())}, "attempts", 1); r.Failed {
			t.Errorf("%s: %s", name, r.Msg)
		}
		wantFile(t, dest, m.content)
	}
}

func TestDownloadTriesAgain(t *testing.T) {
	m := newMirror(t, 1000)
	m.status = []int{503, 429}
	dest := t.TempDir() + "/f"
	if r := fetchAll(t, moduletest.Options{}, "items", []any{item(dest, m.URL, m.sha256())}); r.Failed ||
		m.requests.Load() != 3 {
		t.Fatalf("%d requests: %s", m.requests.Load(), r.Msg)
	}
	r := fetchAll(t, moduletest.Options{}, "items", []any{
		item(dest+"1", m.URL+"/gone", m.sha256(), "version", "v9.9.9"),
		item(dest+"2", strings.Replace(m.URL, "http://", "http://user:hunter2@", 1)+"/two?token=hunter3", m.sha256()),
		item(dest+"3", m.URL, m.sha256()),
	}, "parallel", 1)
	if !r.Failed || m.requests.Load() != 6 || !strings.Contains(r.Msg, m.URL+"/gone (v9.9.9) was not found (404)") ||
		!strings.Contains(r.Msg, "/two") || strings.Contains(r.Msg, "hunter") {
		t.Errorf("%d requests: %s", m.requests.Load(), r.Msg)
	}
	wantFile(t, dest+"3", m.content) // the others came all the same
}

func TestDownloadOfANewDigest(t *testing.T) {
	m := newMirror(t, 1000)
	dest := t.TempDir() + "/f"
	if err := os.WriteFile(dest, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := fetchAll(t, moduletest.Options{}, "items", []any{item(dest, m.URL, m.sha256())}); !r.Changed {
		t.Errorf("an old file was kept: %s", r.Msg)
	}
	wantFile(t, dest, m.content)
}

func TestDownloadLocalFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/src", []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	take := func(more ...any) module.Result {
		d := value.NewDict("dest", dir+"/dst", "path", dir+"/src")
		d.Merge(value.NewDict(more...))
		return fetchAll(t, moduletest.Options{}, "items", []any{d})
	}
	if r := take("sha256", strings.Repeat("0", 64)); !r.Failed || !strings.Contains(r.Msg, dir+"/src has the sha256") {
		t.Errorf("got %s", r.Msg)
	}
	wantNone(t, dir+"/dst")
	wantNone(t, dir+"/dst.part")
	take()
	if err := os.WriteFile(dir+"/src", []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := take(); !r.Changed {
		t.Error("the new source was not taken")
	}
	wantFile(t, dir+"/dst", []byte("two"))
}

func TestDownloadThroughProxy(t *testing.T) {
	m := newMirror(t, 1000)
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "upstream.example:80" && r.URL.Host != "upstream.example" ||
			r.Header.Get("Proxy-Authorization") == "" {
			http.Error(w, r.URL.String(), http.StatusBadGateway)
			return
		}
		asked.Add(1)
		_, _ = w.Write(m.content)
	}))
	defer proxy.Close()
	address := strings.Replace(proxy.URL, "http://", "http://u:hunter2@", 1)
	dir := t.TempDir()
	run := func(name string, args ...any) module.Result {
		return fetchAll(t, moduletest.Options{},
			append(args, "items", []any{item(dir+"/"+name, "http://upstream.example/f", m.sha256())}, "attempts", 1)...)
	}
	if r := run("a", "proxy", address); r.Failed || asked.Load() != 1 {
		t.Errorf("proxy argument: %s", r.Msg)
	}
	t.Setenv("HTTP_PROXY", address)
	if r := run("b"); r.Failed || asked.Load() != 2 {
		t.Errorf("HTTP_PROXY: %s", r.Msg)
	}
	t.Setenv("NO_PROXY", "upstream.example")
	if r := run("c", "proxy", address, "timeout", 1); !r.Failed || asked.Load() != 2 ||
		strings.Contains(r.Msg, "hunter2") {
		t.Errorf("NO_PROXY is not heeded: %d, %s", asked.Load(), r.Msg)
	}
	if r := run("d", "proxy", "u:hunter2@x"); !r.Failed || strings.Contains(r.Msg, "hunter2") {
		t.Errorf("got %s", r.Msg)
	}
}

func TestDownloadByTwoRuns(t *testing.T) {
	m := newMirror(t, 4<<20)
	dest := t.TempDir() + "/f"
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			if r := fetchAll(t, moduletest.Options{}, "items", []any{item(dest, m.URL, m.sha256())}); r.Failed {
				t.Error(r.Msg)
			}
		})
	}
	wait.Wait()
	wantFile(t, dest, m.content)
	if n := m.requests.Load(); n != 1 {
		t.Errorf("%d requests for one file", n)
	}
}

func TestDownloadIsBoundedAndEnds(t *testing.T) {
	var now, most atomic.Int32
	hold := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(hold)
	dir := t.TempDir()
	var items []any
	for i := range 10 {
		items = append(items, item(fmt.Sprint(dir, "/", i), s.URL, ""))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := moduletest.Try(t, moduletest.Find(t, net.Modules(), "download"),
		value.NewDict("items", items, "parallel", 3), moduletest.Options{Context: ctx})
	if err == nil || most.Load() != 3 {
		t.Errorf("%d at once, %v", most.Load(), err)
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func TestDownloadUnreachable(t *testing.T) {
	l, err := stdnet.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://user:hunter2@" + l.Addr().String() + "/f"
	_ = l.Close()
	r := fetchAll(t, moduletest.Options{}, "items", []any{item(t.TempDir()+"/f", address, "")}, "attempts", 2)
	if !r.Failed || !strings.Contains(r.Msg, "connection refused") || strings.Contains(r.Msg, "hunter2") {
		t.Error(r.Msg)
	}
}

func TestDownloadFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	dir := t.TempDir()
	if err := mountSmall(dir); err != nil {
		t.Skip("cannot mount a small disk: ", err)
	}
	defer unmount(t, dir)
	m := newMirror(t, 2<<20)
	r := fetchAll(t, moduletest.Options{}, "items", []any{item(dir+"/f", m.URL, m.sha256())})
	if !r.Failed || !strings.Contains(r.Msg, "the disk of "+dir+" is full") || m.requests.Load() != 1 {
		t.Errorf("%d requests: %s", m.requests.Load(), r.Msg)
	}
	wantNone(t, dir+"/f")
}

func TestDownloadRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]any{
		"url must be an address":  {"items", []any{item("f", "ftp://x/y", "")}},
		"is not a sha256 digest":  {"items", []any{item("f", "http://x/y", "abc")}},
		"two different files":     {"items", []any{item("f", "http://x/y", ""), item("f", "http://x/z", "")}},
		"parallel must be 1 to":   {"items", []any{}, "parallel", 0},
		"attempts must be 1 to":   {"items", []any{}, "attempts", 0},
		"no such file or directo": {"items", []any{value.NewDict("dest", "f", "path", dir+"/nothing")}},
	} {
		r := fetchAll(t, moduletest.Options{}, append(args, "dir", dir)...)
		if !r.Failed || !strings.Contains(r.Msg, want) {
			t.Errorf("want %q, got %q", want, r.Msg)
		}
	}
}
