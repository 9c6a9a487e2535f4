package serve

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/builtin"
	"kubekey/pkg/artifact/artifacttest"
	"kubekey/pkg/cli"
)

// asKK makes the test binary kk: it can be killed without the test.
const asKK = "KK_TEST_IS_KK"

func TestMain(m *testing.M) {
	if os.Getenv(asKK) != "" {
		os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Streams{Out: os.Stdout, Err: os.Stderr}, builtin.FS()))
	}
	os.Exit(m.Run())
}

// moments is how often an export is killed.
const moments = 10

// TestKilledExport kills an export at random moments, and runs it again each time. In the end the file has the bytes of
// an export that nobody killed, and nothing that was complete was fetched again.
func TestKilledExport(t *testing.T) {
	u := newMirror(t, kubernetes)
	want, err := os.ReadFile(export(t, u.Checksums, u.mirrors, u.host))
	check(t, err)
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "checksums.yaml"), []byte(u.Checksums), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "overlay.yaml"), []byte(u.mirrors), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(artifacttest.Config(u.host)), 0o600))
	work, out := filepath.Join(dir, "work"), filepath.Join(dir, "out.tar")
	args := []string{"artifact", "export", "-c", filepath.Join(dir, "config.yaml"), "--kubernetes", kubernetes, "--arch",
		"amd64", "--workdir", work, "-o", out}
	random := rand.New(rand.NewPCG(1, 0))
	fetched := 0
	for i := range moments {
		u.Asked()
		complete := completeIn(t, filepath.Join(work, "cache"))
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(2*time.Second))))
		// At this rate the first run takes some seconds.
		cmd := exec.CommandContext(ctx, os.Args[0], append(args, "--rate", "300K")...)
		cmd.Env = append(os.Environ(), asKK+"=1")
		text, err := cmd.CombinedOutput()
		stop()
		if err != nil && ctx.Err() == nil {
			t.Fatalf("run %d: %v\n%s", i, err, text)
		}
		for _, path := range u.Asked() {
			fetched++
			if complete[filepath.Base(path)] {
				t.Errorf("run %d fetched %s again", i, path)
			}
		}
		if got, err := os.ReadFile(out); err == nil && string(got) != string(want) {
			t.Errorf("run %d left another file", i)
		}
	}
	kk(t, args...)
	got, err := os.ReadFile(out)
	check(t, err)
	if string(got) != string(want) {
		t.Errorf("the file has other bytes: sha256 %s and %s", sha(got), sha(want))
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.part"))
	if check(t, err); len(left) > 0 || fetched == 0 {
		t.Errorf("%d files were fetched in killed runs; left over: %q", fetched, left)
	}
}

// completeIn lists the files and layers in a cache that are complete.
func completeIn(t *testing.T, cache string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	err := filepath.WalkDir(cache, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !strings.HasSuffix(path, ".part") {
			all[filepath.Base(path)] = true
		}
		return nil
	})
	check(t, err)
	return all
}
