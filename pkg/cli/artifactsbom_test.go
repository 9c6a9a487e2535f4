package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/builtin"
	"kubekey/pkg/artifact"
	"kubekey/pkg/engine"
)

// offlineFile writes an offline file with two items.
func offlineFile(t *testing.T, path string) {
	t.Helper()
	dir := t.TempDir()
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	for _, name := range []string{"runc", "notes"} {
		from := filepath.Join(dir, name)
		if err := os.WriteFile(from, []byte("text of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
		item := artifact.Item{Kind: artifact.KindFile, Name: name, Version: "v1", Architecture: "amd64"}
		if err := b.AddFile(t.Context(), item, from); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Write(t.Context(), path, artifact.Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestArtifactSBOM(t *testing.T) {
	dir := t.TempDir()
	file, work := filepath.Join(dir, "o.tar"), filepath.Join(dir, "work")
	offlineFile(t, file)
	for _, c := range []struct {
		args []string
		code int
		want string // on one of the streams
	}{
		{[]string{file}, 0, `"spdxVersion": "SPDX-2.3"`},
		{[]string{file, "--format", "cyclonedx"}, 0, `"specVersion": "1.6"`},
		{[]string{file, "--item", "runc"}, 0, `"name": "runc"`},
		{[]string{file, "-a", file}, 0, `"name": "notes"`},
		{[]string{file, "--item", "kubelet"}, engine.ExitInput, `has no item "kubelet": it has notes, runc`},
		{[]string{file, "--format", "xml"}, engine.ExitUsage, "use one of [spdx cyclonedx]"},
		{nil, engine.ExitUsage, "needs one offline file"},
		{[]string{filepath.Join(dir, "none.tar")}, engine.ExitInput, "none.tar: no such file"},
		{[]string{file, "-a", os.DevNull}, engine.ExitInput, "is not a regular file"},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"artifact", "sbom", "--workdir", work}, c.args...)
		code := Main(t.Context(), args, Streams{Out: &out, Err: &errs}, builtin.FS())
		if code != c.code || !strings.Contains(out.String()+errs.String(), c.want) {
			t.Errorf("%q: exit code %d, want %d and %s:\n%s%s", c.args, code, c.code, c.want, out.String(), errs.String())
		}
		if code == 0 && (!json.Valid(out.Bytes()) || errs.Len() > 0) {
			t.Errorf("%q: printed %s%s", c.args, out.String(), errs.String())
		}
		if strings.Contains(strings.Join(c.args, " "), "--item runc") && strings.Contains(out.String(), "notes") {
			t.Errorf("%q: other items are listed", c.args)
		}
	}
	if kept, err := os.ReadDir(filepath.Join(work, "sbom")); err != nil || len(kept) != 2 {
		t.Errorf("%d findings are in the work folder, want 2; %v", len(kept), err)
	}
}
