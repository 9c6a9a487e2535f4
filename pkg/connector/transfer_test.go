package connector_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/shell"
)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// big is content that is not sent without asking.
var big = bytes.Repeat([]byte("0123456789abcdef"), 20_000)

// onlyReader hides that a reader can seek.
type onlyReader struct{ io.Reader }

func put(t *testing.T, f connector.File, src io.Reader) (connector.PutResult, error) {
	t.Helper()
	res, err := connector.Put(context.Background(), local.New(), f, src)
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(f.Path), ".kk-*"))
	if len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	return res, err
}

func TestPutWritesEveryKindOfSource(t *testing.T) {
	for name, tc := range map[string]struct {
		content []byte
		src     func([]byte) io.Reader
		known   bool
	}{
		"empty":               {nil, func(b []byte) io.Reader { return bytes.NewReader(b) }, false},
		"small":               {[]byte("hi\n"), func(b []byte) io.Reader { return bytes.NewReader(b) }, false},
		"small, digest known": {[]byte("hi\n"), func(b []byte) io.Reader { return bytes.NewReader(b) }, true},
		"big, seekable":       {big, func(b []byte) io.Reader { return bytes.NewReader(b) }, false},
		"big, digest known":   {big, func(b []byte) io.Reader { return onlyReader{bytes.NewReader(b)} }, true},
		"big, stream":         {big, func(b []byte) io.Reader { return onlyReader{bytes.NewReader(b)} }, false},
		"big, stream by a byte": {big[:70_000], func(b []byte) io.Reader { return iotest.HalfReader(bytes.NewReader(b)) },
			false},
	} {
		t.Run(name, func(t *testing.T) {
			f := connector.File{Path: filepath.Join(t.TempDir(), "it's a file"), Size: -1}
			if tc.known {
				f.SHA256, f.Size = sum(tc.content), int64(len(tc.content))
			}
			for i, changed := range []bool{true, false} {
				res, err := put(t, f, tc.src(tc.content))
				if err != nil {
					t.Fatal(err)
				}
				if want := (connector.PutResult{Changed: changed, SHA256: sum(tc.content)}); res != want {
					t.Errorf("time %d: got %+v, want %+v", i+1, res, want)
				}
			}
			got, err := os.ReadFile(f.Path)
			if err != nil || !bytes.Equal(got, tc.content) {
				t.Errorf("the file has %d bytes, want %d (%v)", len(got), len(tc.content), err)
			}
			if info, _ := os.Stat(f.Path); info.Mode() != 0o644 {
				t.Errorf("mode is %v, want 0644", info.Mode())
			}
		})
	}
}

func TestPutDoesNotReadWhatTheHostHas(t *testing.T) {
	f := connector.File{Path: filepath.Join(t.TempDir(), "f"), Size: int64(len(big)), SHA256: sum(big)}
	if err := os.WriteFile(f.Path, big, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := put(t, f, iotest.ErrReader(errors.New("must not be read")))
	if err != nil || res.Changed {
		t.Errorf("got %+v, %v", res, err)
	}
	if info, _ := os.Stat(f.Path); info.Mode() != 0o600 {
		t.Errorf("mode is %v, want it kept", info.Mode())
	}
}

func TestPutLeavesTheOldFileWhole(t *testing.T) {
	content := big
	for name, tc := range map[string]struct {
		f    connector.File
		src  io.Reader
		want string
	}{
		"cut short": {connector.File{SHA256: sum(content), Size: int64(len(content))},
			bytes.NewReader(content[:100_000]), "100000 of 320000 bytes were received"},
		"cut short, size unknown": {connector.File{SHA256: sum(content), Size: -1},
			bytes.NewReader(content[:100_000]), "the sha256 of the received content is"},
		"small and cut short": {connector.File{SHA256: sum([]byte("hello")), Size: 5},
			strings.NewReader("hell"), "4 of 5 bytes were received"},
		"other content": {connector.File{SHA256: sum([]byte("hello")), Size: 5},
			strings.NewReader("world"), "the sha256 of the received content is"},
		"source breaks": {connector.File{Size: -1},
			io.MultiReader(onlyReader{bytes.NewReader(content)}, iotest.ErrReader(errors.New("disk on fire"))), "disk on fire"},
		"validation fails": {connector.File{Size: -1, Validate: "grep -q nothing %s || { echo no such line; false; }"},
			strings.NewReader("hi"), "failed to validate: rc:1 error:no such line"},
		"unknown owner": {connector.File{Size: -1, Owner: "no-such-user"},
			strings.NewReader("hi"), "cannot change its owner to no-such-user"},
		"digest is not one": {connector.File{Size: -1, SHA256: "ABC"},
			strings.NewReader("hi"), `sha256 "ABC" is not 64 lower-case hex digits`},
	} {
		t.Run(name, func(t *testing.T) {
			tc.f.Path = filepath.Join(t.TempDir(), "f")
			if err := os.WriteFile(tc.f.Path, []byte("old"), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := put(t, tc.f, tc.src)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q in it", err, tc.want)
			}
			if got, _ := os.ReadFile(tc.f.Path); string(got) != "old" {
				t.Errorf("the file is now %.40q", got)
			}
		})
	}
}

func TestPutSetsModeAndKeepsIt(t *testing.T) {
	f := connector.File{Path: filepath.Join(t.TempDir(), "f"), Size: -1, Mode: 0o750}
	mustPut := func(f connector.File, content string) connector.PutResult {
		t.Helper()
		res, err := put(t, f, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	mode := func() fs.FileMode {
		info, err := os.Stat(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	mustPut(f, "one")
	if mode() != 0o750 {
		t.Errorf("mode is %v, want 0750", mode())
	}
	f.Mode = 0
	mustPut(f, "two")
	if mode() != 0o750 {
		t.Errorf("mode is %v, want 0750 kept", mode())
	}
	f.Mode = fs.ModeSetuid | 0o755
	if res := mustPut(f, "two"); res.Changed {
		t.Error("a new mode alone is reported as new content")
	}
	if mode() != fs.ModeSetuid|0o755 {
		t.Errorf("mode is %v, want setuid 0755", mode())
	}
}

func TestPutKeepsABackup(t *testing.T) {
	f := connector.File{Path: filepath.Join(t.TempDir(), "f"), Size: -1, Backup: true}
	if res, err := put(t, f, strings.NewReader("one")); err != nil || res.Backup != "" {
		t.Fatalf("got %+v, %v", res, err)
	}
	res, err := put(t, f, strings.NewReader("two"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(res.Backup, f.Path+".") || !strings.HasSuffix(res.Backup, "~") {
		t.Errorf("backup is %q", res.Backup)
	}
	if old, _ := os.ReadFile(res.Backup); string(old) != "one" {
		t.Errorf("backup holds %q", old)
	}
}

func TestPutNamesWhatIsWrongWithThePath(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir + "/no/f": "folder " + dir + "/no does not exist on the host",
		dir:           "it is a folder on the host",
		dir + "/":     "the path must be that of a file, not of a folder",
		"":            "the path must be that of a file, not of a folder",
	} {
		for _, content := range [][]byte{[]byte("x"), big} {
			_, err := connector.Put(context.Background(), local.New(), connector.File{Path: path, Size: -1},
				bytes.NewReader(content))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("put %q: got %v, want %q", path, err, want)
			}
		}
	}
	_, err := put(t, connector.File{Path: dir + "/no/f", Size: -1}, strings.NewReader("x"))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap fs.ErrNotExist", err)
	}
}

func TestGet(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string][]byte{"empty": nil, "small": []byte("hi"), "big": big} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		var done int64
		digest, err := connector.Get(context.Background(), local.New(), path, &got, func(d, _ int64) { done = d })
		if err != nil || digest != sum(content) || !bytes.Equal(got.Bytes(), content) || done != int64(len(content)) {
			t.Errorf("%s: got %d bytes, progress %d, digest %s, %v", name, got.Len(), done, digest, err)
		}
	}
	var version bytes.Buffer
	if _, err := connector.Get(context.Background(), connector.ReadOnly(local.New()), "/proc/version", &version,
		nil); err != nil || version.Len() == 0 {
		t.Errorf("a file without a size: %q, %v", version.String(), err)
	}
	if _, err := connector.Get(context.Background(), local.New(), dir+"/none", io.Discard, nil); !errors.Is(err,
		fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := connector.Get(context.Background(), local.New(), dir, io.Discard, nil); err == nil ||
		!strings.Contains(err.Error(), "it is a folder") {
		t.Errorf("a folder: %v", err)
	}
}

func TestPutReplacesOnlyTheExpectedContent(t *testing.T) {
	for name, tc := range map[string]struct {
		there, guard string
		refused      bool
	}{
		"as expected":            {"old", sum([]byte("old")), false},
		"another":                {"other", sum([]byte("old")), true},
		"gone":                   {"", sum([]byte("old")), true},
		"absent as expected":     {"", connector.Absent, false},
		"made meanwhile":         {"other", connector.Absent, true},
		"done by somebody else":  {"new", sum([]byte("old")), false},
		"made so by another too": {"new", connector.Absent, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := connector.File{Path: filepath.Join(t.TempDir(), "f"), Size: -1, IfSHA256: tc.guard}
			if tc.there != "" {
				if err := os.WriteFile(f.Path, []byte(tc.there), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want := "new"
			if tc.refused {
				want = tc.there
			}
			if _, err := put(t, f, strings.NewReader("new")); errors.Is(err, connector.ErrChanged) != tc.refused {
				t.Errorf("got %v", err)
			}
			if got, _ := os.ReadFile(f.Path); string(got) != want {
				t.Errorf("the file has %q, want %q", got, want)
			}
		})
	}
	if _, err := put(t, connector.File{Path: t.TempDir() + "/f", IfSHA256: "zzz"}, strings.NewReader("")); err == nil {
		t.Error("a guard that is no digest is accepted")
	}
}

func TestPutCanTakeEveryRight(t *testing.T) {
	f := connector.File{Path: filepath.Join(t.TempDir(), "f"), Size: -1, ModeSet: true}
	if _, err := put(t, f, strings.NewReader("one")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode() != 0 {
		t.Errorf("mode is %v, want none (%v)", info.Mode(), err)
	}
}

func TestPutUnderAnOddName(t *testing.T) {
	dir := t.TempDir()
	f := connector.File{Path: dir + "/two\nlines $(id) 'and' \"quotes\" \\ %s", Size: -1, Backup: true}
	for _, content := range []string{"one", "two"} {
		res, err := put(t, f, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if content == "one" {
			continue
		}
		if old, err := os.ReadFile(res.Backup); err != nil || string(old) != "one" {
			t.Errorf("backup %q holds %q (%v)", res.Backup, old, err)
		}
	}
}

// TestPutOnABareHost has nothing on the path but busybox and a shell.
func TestPutOnABareHost(t *testing.T) {
	box, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed: this test stands for a host that has nothing else")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(box, "--install", "-s", bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := busybox{local.New(), bin}
	for name, content := range map[string][]byte{"small": []byte("hi"), "big": big, "stream": big} {
		f := connector.File{Path: filepath.Join(dir, name), Size: -1, Mode: 0o640, Backup: true}
		for i, want := range [][]byte{content, content, append(content[:len(content):len(content)], 'x')} {
			var src io.Reader = bytes.NewReader(want)
			if name == "stream" {
				src = onlyReader{src}
			}
			res, err := connector.Put(context.Background(), c, f, src)
			if err != nil || res.Changed != (i != 1) || (res.Backup != "") != (i == 2) {
				t.Errorf("%s, time %d: %+v, %v", name, i+1, res, err)
			}
		}
		var back bytes.Buffer
		if _, err := connector.Get(context.Background(), c, f.Path, &back, nil); err != nil || back.Len() != len(content)+1 {
			t.Errorf("get %s: %d bytes, %v", name, back.Len(), err)
		}
	}
}

// busybox runs every command with busybox's shell and programs alone.
type busybox struct {
	connector.Connector
	bin string
}

func (b busybox) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = "PATH=" + b.bin + " exec " + b.bin + "/sh -c " + shell.Quote(c.Line)
	return b.Connector.Run(ctx, c)
}

// TestPutInPlace writes where no file can be made beside: a file that is mounted.
func TestPutInPlace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a user who may write a file and not its folder needs root to be made")
	}
	name := connectortest.NewUser(t, "p4ss-word", "/bin/sh", "")
	dir, err := os.MkdirTemp("/tmp", "kk-unsafe-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "f")
	if err := errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chmod(path, 0o666),
		os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	c := connector.Become(local.New(), connector.BecomeOptions{Method: "su", User: name})
	f := connector.File{Path: path, Size: -1}
	if _, err := connector.Put(context.Background(), c, f, strings.NewReader("new")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("without unsafe: %v", err)
	}
	f.Unsafe = true
	if res, err := connector.Put(context.Background(), c, f, strings.NewReader("new")); err != nil || !res.Changed {
		t.Errorf("unsafe: %+v, %v", res, err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("the file has %q", got)
	}
	if left, _ := filepath.Glob("/tmp/.kk-*"); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}
