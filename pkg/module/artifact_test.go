package module

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kubekey/pkg/artifact"
)

// offlineFile writes an offline file with one item.
func offlineFile(t *testing.T, path, content string) {
	t.Helper()
	item := filepath.Join(t.TempDir(), "item")
	if err := os.WriteFile(item, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	b := artifact.NewBuilder(t.TempDir(), artifact.Covers{}, nil)
	if err := b.AddFile(t.Context(), artifact.Item{Kind: artifact.KindFile, Name: "kubelet", File: "kubelet"}, item); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(t.Context(), path, artifact.Options{}); err != nil {
		t.Fatal(err)
	}
}

func kubelet(set artifact.Set) (string, error) {
	f, item, _ := set.File("kubelet")
	r, err := f.Content(item)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(r)
	return string(text), err
}

// Hosts of a run read one set at the same time; it is closed when the run ends.
func TestOfflineFilesAreShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubernetes.tar")
	offlineFile(t, path, "first")
	share := &Share{}
	sets := make([]artifact.Set, 20)
	var wg sync.WaitGroup
	for i := range sets {
		wg.Go(func() {
			set, err := (&Call{Share: share}).OfflineFiles([]string{path})
			if err != nil {
				t.Error(err)
				return
			}
			sets[i] = set
			if got, err := kubelet(set); got != "first" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	wg.Wait()
	for _, set := range sets {
		if set[0] != sets[0][0] {
			t.Fatal("the file is opened twice")
		}
	}

	offlineFile(t, path, "second")
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	set, err := (&Call{Share: share}).OfflineFiles([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := kubelet(set); got != "second" || err != nil {
		t.Errorf("of the file that changed: got %q, %v", got, err)
	}
	if err := share.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []artifact.Set{set, sets[0]} {
		if _, err := kubelet(s); err == nil {
			t.Error("a file is open after the end of the run")
		}
	}
}

// An error is not kept: the file can be put right meanwhile.
func TestOfflineFilesAreTriedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubernetes.tar")
	c := &Call{Share: &Share{}}
	if _, err := c.OfflineFiles([]string{path}); err == nil {
		t.Fatal("a file that does not exist is open")
	}
	offlineFile(t, path, "first")
	if _, err := c.OfflineFiles([]string{path}); err != nil {
		t.Error(err)
	}
	if err := c.Share.Close(); err != nil {
		t.Error(err)
	}
}
