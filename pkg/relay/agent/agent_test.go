package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"kubekey/pkg/relay"
)

// program builds kk-relay. The tests run the program itself: it gives up rights that a test needs.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kk-relay")
	build := exec.Command("go", "build", "-o", path, "kubekey/cmd/kk-relay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // a program with cgo cannot change the rights of all its threads
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// lab is some programs on this host, with the blobs of a control node.
type lab struct {
	*testing.T
	path  string
	ca    *relay.CA
	bytes map[string][]byte
}

func newLab(t *testing.T) *lab {
	ca, err := relay.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &lab{T: t, path: program(t), ca: ca, bytes: map[string][]byte{}}
}

// blob makes a blob of some size.
func (l *lab) blob(size int) relay.Blob {
	data := make([]byte, size)
	r := rand.NewChaCha8([32]byte{byte(len(l.bytes)), byte(size)})
	_, _ = r.Read(data)
	return l.blobOf(data)
}

func (l *lab) blobOf(data []byte) relay.Blob {
	sum := sha256.Sum256(data)
	b := relay.Blob{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
	l.bytes[b.Digest] = data
	return b
}

func (l *lab) open(b relay.Blob) (io.ReadCloser, error) {
	data, ok := l.bytes[b.Digest]
	if !ok {
		return nil, errors.New("no such blob")
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

type host struct {
	*relay.Session
	in  io.Writer // of the program
	dir string
	cmd *exec.Cmd
	log string // its standard error
}

// said returns what the program printed on standard error.
func (h *host) said() string {
	text, _ := os.ReadFile(h.log)
	return string(text)
}

// start starts the program with a folder.
func (l *lab) start(name string, change func(*relay.Start)) *host {
	l.Helper()
	dir := filepath.Join(l.TempDir(), "blobs")
	h := l.attach(name, dir)
	cert, key, err := l.ca.Issue(name)
	if err != nil {
		l.Fatal(err)
	}
	start := relay.Start{Address: "127.0.0.1", Now: time.Now(), CA: l.ca.PEM(), Cert: cert, Key: key}
	if change != nil {
		change(&start)
	}
	if err := h.Start(l.Context(), name, start); err != nil {
		l.Fatalf("%s: %v; %s", name, err, h.said())
	}
	return h
}

func (l *lab) attach(name, dir string) *host {
	l.Helper()
	h := &host{dir: dir, cmd: exec.Command(l.path, dir), log: filepath.Join(l.TempDir(), "log")}
	log, err := os.Create(h.log)
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	h.cmd.Stderr = log
	in, err := h.cmd.StdinPipe()
	if err != nil {
		l.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		l.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		l.Fatal(err)
	}
	h.in, h.Session = in, relay.NewSession(name, in, out, l.open, nil)
	l.Cleanup(func() {
		_ = h.Close()
		_ = h.cmd.Wait() // whatever its code
	})
	return h
}

// has fails unless the folder has exactly these blobs.
func (l *lab) has(h *host, blobs ...relay.Blob) {
	l.Helper()
	var want, got []string
	for _, b := range blobs {
		want = append(want, b.Hex())
		data, err := os.ReadFile(filepath.Join(h.dir, b.Hex()))
		if err != nil || !bytes.Equal(data, l.bytes[b.Digest]) {
			l.Errorf("%s: %v, %d bytes", b.Digest, err, len(data))
		}
	}
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		l.Fatal(err)
	}
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		l.Errorf("%s has %q, want %q", h.dir, got, want)
	}
}

func TestSendAndFetch(t *testing.T) {
	l := newLab(t)
	a, b := l.start("a.relay", nil), l.start("b.relay", nil)
	ctx := t.Context()
	empty, small, large := l.blob(0), l.blob(1), l.blob(5<<20)
	for _, blob := range []relay.Blob{empty, small, large} {
		if err := a.Send(ctx, blob); err != nil {
			t.Fatal(err)
		}
		if err := b.Fetch(ctx, blob, a.Source()); err != nil {
			t.Fatal(err)
		}
	}
	l.has(a, empty, small, large)
	l.has(b, empty, small, large)
	missing := l.blob(10)
	for _, h := range []*host{a, b} {
		if has, err := h.Has(ctx, []relay.Blob{small, missing, large}); err != nil ||
			!slices.Equal(has, []bool{true, false, true}) {
			t.Errorf("has %v, %v", has, err)
		}
	}
	if err := b.Fetch(ctx, missing, a.Source()); !isFault(err, relay.Refused) {
		t.Errorf("fetched what is missing: %v", err)
	}
}

func isFault(err error, f relay.Fault) bool {
	var t *relay.TransferError
	return errors.As(err, &t) && t.Fault == f
}

// TestFolder checks who may enter the folder, and that a file with other bytes is removed before it is served.
func TestFolder(t *testing.T) {
	l := newLab(t)
	good, bad := l.blob(1000), l.blob(2000)
	a := l.start("a.relay", nil)
	for _, b := range []relay.Blob{good, bad} {
		if err := a.Send(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(a.dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatal(info.Mode(), err)
	}
	second := l.attach("second", a.dir)
	_ = second.cmd.Wait()
	if !strings.Contains(second.said(), "another run of kk") {
		t.Errorf("a second program in one folder: %q", second.said())
	}
	_ = a.Close()
	_ = a.cmd.Wait()
	for name, text := range map[string]string{bad.Hex(): strings.Repeat("x", 2000), ".part-left": "half", "other": ""} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	again := l.attach("again", a.dir)
	has, err := again.Has(t.Context(), []relay.Blob{good, bad})
	if err != nil || !slices.Equal(has, []bool{true, false}) {
		t.Errorf("has %v, %v", has, err)
	}
	if err := os.Remove(filepath.Join(a.dir, "other")); err != nil {
		t.Error("a file that is not its own was removed")
	}
	l.has(a, good)
}

// TestSourceOfWrongBytes corrupts a blob after it was verified.
func TestSourceOfWrongBytes(t *testing.T) {
	l := newLab(t)
	a, b := l.start("a.relay", nil), l.start("b.relay", nil)
	blob := l.blob(100_000)
	if err := a.Send(t.Context(), blob); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(a.dir, blob.Hex()), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("corrupt"), 50_000)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := b.Fetch(t.Context(), blob, a.Source()); !isFault(err, relay.Wrong) {
		t.Errorf("fetched wrong bytes: %v", err)
	}
	l.has(b)
}

// TestStrangers checks that only hosts of the run are talked to, whatever their clocks.
func TestStrangers(t *testing.T) {
	l := newLab(t)
	blob := l.blob(10)
	wrongClock := func(s *relay.Start) { s.Now = time.Now().Add(time.Hour) }
	a, b := l.start("a.relay", wrongClock), l.start("b.relay", nil)
	if err := a.Send(t.Context(), blob); err != nil {
		t.Fatal(err)
	}
	if err := b.Fetch(t.Context(), blob, relay.Source{Name: "c.relay", Address: a.Source().Address}); !isFault(err, relay.Unreachable) {
		t.Errorf("fetched from another host than was meant: %v", err)
	}
	other, err := relay.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	stranger := l.start("d.relay", func(s *relay.Start) {
		cert, key, err := other.Issue("d.relay")
		if err != nil {
			t.Fatal(err)
		}
		s.Cert, s.Key = cert, key // but the CA of this run
	})
	if err := stranger.Fetch(t.Context(), blob, a.Source()); !isFault(err, relay.Unreachable) {
		t.Errorf("a host of another run has fetched: %v", err)
	}
	if err := b.Fetch(t.Context(), blob, a.Source()); err != nil {
		t.Error(err)
	}
}

// TestNothingIsLeft ends the program in the middle of a blob, in several ways.
func TestNothingIsLeft(t *testing.T) {
	l := newLab(t)
	blob := l.blob(8 << 20)
	for name, end := range map[string]func(*host){
		"input closed": func(h *host) { _ = h.Close() },
		"interrupted":  func(h *host) { _ = h.cmd.Process.Signal(os.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			source := l.start("source.relay", func(s *relay.Start) { s.Rate = 1 << 20 })
			if err := source.Send(t.Context(), blob); err != nil {
				t.Fatal(err)
			}
			h := l.start("h.relay", nil)
			failed := make(chan error, 1)
			go func() { failed <- h.Fetch(t.Context(), blob, source.Source()) }()
			waitFor(t, "a part", func() bool { return len(entries(h.dir)) > 0 })
			end(h)
			if err := <-failed; !isFault(err, relay.Lost) {
				t.Errorf("the fetch ended with %v", err)
			}
			_ = h.cmd.Wait()
			l.T = t
			l.has(h)
		})
	}
	t.Run("interrupted while the control node sends", func(t *testing.T) {
		l.T = t
		h := l.start("h.relay", nil)
		stuck := l.blob(1 << 20)
		if err := relay.WriteLine(h.in, relay.Request{ID: 1000, Do: relay.DoPut, Blob: &stuck}); err != nil { // but no bytes
			t.Fatal(err)
		}
		waitFor(t, "a part", func() bool { return len(entries(h.dir)) > 0 })
		_ = h.cmd.Process.Signal(os.Interrupt)
		_ = h.cmd.Wait()
		l.has(h)
	})
	t.Run("silence", func(t *testing.T) {
		l.T = t
		h := l.attach("h", filepath.Join(t.TempDir(), "blobs"))
		cert, key, err := l.ca.Issue("h")
		if err != nil {
			t.Fatal(err)
		}
		// Silence is shorter than its program is used to, so the session's pings are too late.
		q := relay.Request{ID: 1000, Do: relay.DoStart, Start: &relay.Start{Address: "127.0.0.1", Now: time.Now(),
			CA: l.ca.PEM(), Cert: cert, Key: key, Silence: 100 * time.Millisecond}}
		if err := relay.WriteLine(h.in, q); err != nil {
			t.Fatal(err)
		}
		select {
		case <-h.Ended():
		case <-time.After(10 * time.Second):
			t.Error("it waits for a control node that is gone")
		}
	})
}

func entries(dir string) []os.DirEntry {
	all, _ := os.ReadDir(dir)
	return all
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no %s after 5 s", what)
}

func TestCancel(t *testing.T) {
	l := newLab(t)
	blob := l.blob(8 << 20)
	source := l.start("source.relay", func(s *relay.Start) { s.Rate = 1 << 20 })
	h := l.start("h.relay", nil)
	if err := source.Send(t.Context(), blob); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if err := h.Fetch(ctx, blob, source.Source()); err == nil || isFault(err, relay.Lost) || time.Since(begin) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(begin), err)
	}
	l.has(h)
	if err := h.Send(t.Context(), blob); err != nil {
		t.Errorf("after a cancelled fetch: %v", err)
	}
}

func TestRate(t *testing.T) {
	l := newLab(t)
	blob := l.blob(1 << 20)
	source := l.start("source.relay", func(s *relay.Start) { s.Rate = 2 << 20 })
	h := l.start("h.relay", nil)
	if err := source.Send(t.Context(), blob); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := h.Fetch(t.Context(), blob, source.Source()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < 400*time.Millisecond {
		t.Errorf("1 MiB at 2 MiB/s took %s", took)
	}
}

func TestUnpack(t *testing.T) {
	l := newLab(t)
	content := l.blobOf([]byte(strings.Repeat("program ", 100_000)))
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	packed := l.blobOf(encoder.EncodeAll(l.bytes[content.Digest], nil))
	h := l.start("h.relay", nil)
	if err := h.Send(t.Context(), packed); err != nil {
		t.Fatal(err)
	}
	if err := h.Unpack(t.Context(), packed, content); err != nil {
		t.Fatal(err)
	}
	l.has(h, packed, content)
	short := content
	short.Size = 1000
	if err := h.Remove(t.Context(), content); err != nil {
		t.Fatal(err)
	}
	if err := h.Unpack(t.Context(), packed, short); !isFault(err, relay.Wrong) {
		t.Errorf("unpacked more than the size: %v", err)
	}
	l.has(h, packed)
}

// TestConfined checks that the program reads nothing outside of its folder when it serves.
func TestConfined(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be confined to a folder")
	}
	l := newLab(t)
	h := l.start("h.relay", nil)
	root, err := os.Readlink(fmt.Sprintf("/proc/%d/root", h.cmd.Process.Pid))
	if err != nil || root != h.dir {
		t.Errorf("its root folder is %s, %v", root, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "NoNewPrivs:\t1"} {
		if !strings.Contains(string(status), line) {
			t.Errorf("its status has not %q", line)
		}
	}
}
