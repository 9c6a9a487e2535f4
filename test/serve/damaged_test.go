package serve

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/artifact/artifacttest"
)

// damages is how many files of a cache are damaged, one after the other, besides one of each folder.
const damages = 5

// TestDamagedCache changes a byte in files of the cache, or cuts them off. An export finds it: the file is fetched or
// made again, or the error names it. The offline file has the right bytes, or does not exist.
func TestDamagedCache(t *testing.T) {
	u := newMirror(t, kubernetes)
	dir := t.TempDir()
	for name, text := range map[string]string{"checksums.yaml": u.Checksums, "overlay.yaml": u.mirrors,
		"config.yaml": artifacttest.Config(u.host)} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	cache, out := filepath.Join(dir, "work", "cache"), filepath.Join(dir, "out.tar")
	args := []string{"artifact", "export", "-c", filepath.Join(dir, "config.yaml"), "--kubernetes", kubernetes, "--arch",
		"amd64", "--workdir", filepath.Join(dir, "work"), "-o", out}
	kk(t, args...)
	want, err := os.ReadFile(out)
	check(t, err)
	var others []string
	byFolder := map[string]string{}
	check(t, filepath.WalkDir(cache, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(path, "/charts/") { // upstream has no digests of charts
			return err
		}
		if dir := filepath.Dir(path); byFolder[dir] == "" {
			byFolder[dir] = path
		} else {
			others = append(others, path)
		}
		return nil
	}))
	random := rand.New(rand.NewPCG(2, 0))
	random.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for n, path := range slices.Concat(slices.Sorted(maps.Values(byFolder)), others[:damages]) {
		whole, err := os.ReadFile(path)
		check(t, err)
		if len(whole) == 0 {
			continue
		}
		text := slices.Clone(whole)
		text[len(text)/2] ^= 1
		if n%3 == 2 {
			text = text[:len(text)/2]
		}
		check(t, os.WriteFile(path, text, 0o600))
		check(t, os.Remove(out))
		code, printed := run(t, args...)
		if code != 0 {
			if _, err := os.Stat(out); err == nil || !strings.Contains(printed, path) {
				t.Errorf("%s is damaged, the file exists: %v; exit code %d\n%s", path, err == nil, code, printed)
			}
			check(t, os.Remove(path))
			kk(t, args...)
		}
		got, err := os.ReadFile(out)
		check(t, err)
		if string(got) != string(want) {
			t.Errorf("%s was damaged: the file has other bytes", path)
		}
	}
}
