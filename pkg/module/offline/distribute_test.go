package offline

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kubekey/pkg/artifact"
	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/relay/program"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// relayHost is a host on this machine: in a mount namespace of its own, /var/lib/kubekey is another folder.
type relayHost struct {
	connector.Connector
	dir string
}

func (m relayHost) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	inner := "mount --bind " + shell.Quote(m.dir) + " /var/lib/kubekey && exec sh -c " + shell.Quote(c.Line)
	c.Line, c.Script = "exec unshare -m sh -c "+shell.Quote(inner), nil
	return m.Connector.Run(ctx, c)
}

// site is hosts, and an offline file with two files: one that is packed in it, and one that is not.
type site struct {
	*testing.T
	file  string
	names []string
	data  map[string][]byte // by name on the host
	dirs  map[string]string
	build func(arch string) (program.Program, bool)
}

func newSite(t *testing.T, count int) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mount namespaces need root")
	}
	if err := os.MkdirAll("/var/lib/kubekey", 0o755); err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, data: map[string][]byte{}, dirs: map[string]string{}}
	archive := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(archive)
	copy(archive, "\x1f\x8b") // as a gzip begins
	dir := t.TempDir()
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	for name, data := range map[string][]byte{"amd64/program": bytes.Repeat([]byte("program "), 1<<17), "charts/a.tgz": archive} {
		path := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := b.AddFile(t.Context(), artifact.Item{Kind: artifact.KindFile, Name: filepath.Base(name), File: name}, path); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		s.data[hex.EncodeToString(sum[:])] = data
	}
	s.file = filepath.Join(dir, "file.tar")
	if _, err := b.Write(t.Context(), s.file, artifact.Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		name := fmt.Sprintf("node%d", i)
		s.names, s.dirs[name] = append(s.names, name), t.TempDir()
	}
	return s
}

// built returns kk-relay as kk embeds it.
func built(t *testing.T) func(string) (program.Program, bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kk-relay")
	build := exec.Command("go", "build", "-o", path, "kubekey/cmd/kk-relay")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(packed.Bytes())
	return func(arch string) (program.Program, bool) {
		return program.Program{Gzip: packed.Bytes(), SHA256: hex.EncodeToString(sum[:])}, arch == runtime.GOARCH
	}
}

func without(string) (program.Program, bool) { return program.Program{}, false }

func (s *site) connect(_ context.Context, host string) (connector.Connector, error) {
	dir, ok := s.dirs[host]
	if !ok {
		return nil, &connector.UnreachableError{Host: host, Reason: "no route to " + host}
	}
	return relayHost{moduletest.Shell(), dir}, nil
}

// run distributes to hosts; args are further arguments.
func (s *site) run(hosts []string, args ...any) module.Result {
	s.Helper()
	var list []any
	for _, name := range hosts {
		list = append(list, value.NewDict("name", name, "address", "127.0.0.1", "arch", runtime.GOARCH,
			"files", []any{"amd64/program", "charts/a.tgz"}))
	}
	spec := distributeSpec()
	spec.New = func() module.Runner { return &distribute{program: s.build} }
	all := value.NewDict("artifact", []any{s.file}, "hosts", list)
	all.Merge(value.NewDict(args...))
	return moduletest.Run(s, spec, all, moduletest.Options{Connect: s.connect, Context: s.Context()})
}

// check fails unless each host has exactly the files.
func (s *site) check() {
	s.Helper()
	for name, dir := range s.dirs {
		entries, err := os.ReadDir(filepath.Join(dir, "blobs"))
		if err != nil {
			s.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
			text, err := os.ReadFile(filepath.Join(dir, "blobs", e.Name()))
			if err != nil || !bytes.Equal(text, s.data[e.Name()]) {
				s.Errorf("%s: %s has %d bytes, %v", name, e.Name(), len(text), err)
			}
		}
		if len(got) != len(s.data) {
			s.Errorf("%s has %q", name, got)
		}
	}
}

func number(r module.Result, key string) int {
	v, _ := r.Data.Get(key)
	n, _ := v.(int)
	return n
}

func TestDistribute(t *testing.T) {
	for _, c := range []struct {
		name  string
		count int
		mode  string
		build func(string) (program.Program, bool)
		most  float64 // of what arrives, the control node sends
		warns bool
	}{
		{"relay", 9, "auto", built(t), 0.7, false},
		{"direct", 2, "auto", built(t), 1, false},
		{"relay without the program", 2, "relay", without, 1, true},
		{"direct without the program", 2, "direct", without, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, c.count)
			s.build = c.build
			r := s.run(s.names, "mode", c.mode)
			if r.Failed || !r.Changed || (len(r.Warnings) > 0) != c.warns {
				t.Fatalf("%+v %s", r, value.Repr(r.Data))
			}
			s.check()
			arrived, sent := number(r, "arrived"), number(r, "sent")
			if arrived == 0 || float64(sent) > c.most*float64(arrived) {
				t.Errorf("%d bytes arrived, of which the control node sent %d", arrived, sent)
			}
			if r := s.run(s.names, "mode", c.mode); r.Failed || r.Changed || number(r, "arrived") > 0 {
				t.Errorf("again: %+v %s", r, value.Repr(r.Data))
			}
			s.check()
		})
	}
}

// TestDistributeFailures checks what is reported of hosts that cannot be served, and that others are.
func TestDistributeFailures(t *testing.T) {
	s := newSite(t, 2)
	s.build = built(t)
	r := s.run(append(slices.Clone(s.names), "gone"), "mode", "relay")
	if !r.Failed || !strings.Contains(r.Msg, "gone: no route to gone") {
		t.Errorf("%+v %s", r, value.Repr(r.Data))
	}
	if failed, _ := r.Data.Get("failed_hosts"); value.Repr(failed) != "['gone']" {
		t.Errorf("failed hosts: %s", value.Repr(failed))
	}
	s.check()
	s.busy()
	r = s.run([]string{"node0"}, "hosts", []any{value.NewDict("name", "node0", "files", []any{"amd64/other"}),
		value.NewDict("name", "node0", "images", []any{"registry.k8s.io/pause:3.10"})})
	for _, want := range []string{"amd64/other is not in the offline file", "image registry.k8s.io/pause:3.10 is not in",
		"node0 is listed twice"} {
		if !r.Failed || !strings.Contains(r.Msg, want) {
			t.Errorf("%q is not in %q", want, r.Msg)
		}
	}
}

// busy checks that a folder that another run uses is left alone.
func (s *site) busy() {
	s.Helper()
	folder, err := os.Open(filepath.Join(s.dirs["node0"], "blobs"))
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = folder.Close() }() // ends the lock
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		s.Fatal(err)
	}
	for name := range s.data {
		if err := os.Remove(filepath.Join(folder.Name(), name)); err != nil {
			s.Fatal(err)
		}
	}
	r := s.run(s.names, "mode", "relay")
	if !r.Failed || !strings.Contains(r.Msg, "node0: exit code 75: kk-relay: ") ||
		!strings.Contains(r.Msg, "another run of kk distributes files to this host: wait until it has ended") {
		s.Errorf("while another run uses the folder: %+v", r)
	}
	left, err := os.ReadDir(folder.Name())
	if err != nil || len(left) > 0 {
		s.Errorf("another run's folder has %v, %v", left, err)
	}
}
