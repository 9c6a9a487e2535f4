package artifact

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// build writes a file with a program and an archive.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	b := NewBuilder(dir, Covers{Kubernetes: []string{"v1.34.4"}}, nil)
	program := strings.Repeat("program ", 1000)
	if err := b.AddFile(t.Context(), Item{Kind: KindFile, Name: "kubeadm", Version: "v1.34.4", Architecture: "amd64",
		File: "amd64/kubeadm"}, put("kubeadm", program)); err != nil {
		t.Fatal(err)
	}
	if err := b.AddFile(t.Context(), Item{Kind: KindChart, Name: "flannel", Version: "v0.28.4",
		File: "charts/flannel.tgz"}, put("flannel.tgz", "\x1f\x8bnot really")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.tar")
	if changed, err := b.Write(t.Context(), out, Options{}); err != nil || !changed {
		t.Fatal(changed, err)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	f, err := Open(build(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := f.Verify(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	_, item, ok := Set{f}.File("amd64/kubeadm")
	if !ok || item.Encoding != Zstd {
		t.Fatalf("found %v %+v", ok, item)
	}
	c, err := f.Content(item)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if err != nil || string(text) != strings.Repeat("program ", 1000) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
