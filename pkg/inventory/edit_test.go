package inventory

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"kubekey/pkg/source"
)

// TestEdit runs the cases of testdata/edit. Each line of a case's comment is an edit of its first file:
//
//	add GROUP NAME=ADDRESS...
//	remove NAME...
//
// The file "want" is the text after all of them, or the problems.
func TestEdit(t *testing.T) {
	eachCase(t, "testdata/edit", editCase)
}

func editCase(t *testing.T, path string, archive *txtar.Archive) {
	if len(archive.Files) == 1 {
		archive.Files = append(archive.Files, txtar.File{Name: "want"})
	}
	file, want := archive.Files[0], &archive.Files[len(archive.Files)-1]
	dir := t.TempDir()
	var problems strings.Builder
	text := file.Data
	for line := range strings.Lines(string(archive.Comment)) {
		write(t, filepath.Join(dir, file.Name), string(text))
		after, ds := editOnce(t, dir, file.Name, strings.Fields(line))
		for _, d := range ds {
			problems.WriteString(strings.ReplaceAll(d.Render(), dir, "$DIR") + "\n")
		}
		if ds.Err() == nil {
			text = after
		}
	}
	got := problems.String()
	if got == "" {
		got = string(text)
	}
	if *update {
		want.Data = []byte(got)
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want.Data), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// editOnce makes one edit of a file and returns its text after it.
func editOnce(t *testing.T, dir, name string, words []string) ([]byte, source.Diagnostics) {
	t.Helper()
	ctx := context.Background()
	inv, ds := Load(ctx, []string{name}, Options{Dir: dir})
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	before, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if words[0] == "remove" {
		inv.AddGroup("of_the_run")
		edits, _, ds := inv.Remove(ctx, removal(words[1:]))
		if ds.Err() != nil || len(edits) == 0 {
			return before, ds
		}
		return edits[0].After, ds
	}
	edit, _, ds := inv.Add(ctx, additions(words[1], words[2:]))
	if ds.Err() != nil || edit == nil {
		return before, ds
	}
	return edit.After, ds
}

func additions(group string, hosts []string) []Addition {
	near := map[string]string{"kube_worker": "kube_control_plane", "kube_control_plane": "kube_worker"}
	var out []Addition
	for _, h := range hosts {
		name, address, _ := strings.Cut(h, "=")
		out = append(out, Addition{Name: name, Address: address, Group: group, Near: near[group]})
	}
	return out
}

func removal(names []string) Removal {
	return Removal{Names: names, From: []string{"kube_control_plane", "kube_worker", "etcd"},
		Keep: []string{"image_registry", "nfs"}}
}

// FuzzEdit adds and removes a host in any file that is an inventory. What Add and Remove check themselves (nothing else
// is changed) is not checked again: here it is that they do not panic, that lines of the file stay as they are, and
// that removing undoes adding for the hosts.
func FuzzEdit(f *testing.F) {
	cases, _ := filepath.Glob("testdata/edit/*.txtar")
	for _, path := range cases {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data, strings.HasSuffix(archive.Files[0].Name, ".yaml"))
	}
	f.Fuzz(func(t *testing.T, text []byte, isYAML bool) {
		dir, name := t.TempDir(), "hosts"
		if isYAML {
			name = "hosts.yaml"
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		inv, ds := Load(ctx, []string{name}, Options{Dir: dir})
		if ds.Err() != nil || inv.Has("added") {
			t.Skip("the text is no inventory, or has the host already")
		}
		edit, after, ds := inv.Add(ctx, additions("kube_worker", []string{"added=192.0.2.77"}))
		if ds.Err() != nil {
			return
		}
		if !after.Has("added") {
			t.Fatalf("not added to\n%s\n->\n%s", edit.Before, edit.After)
		}
		edits, without, ds := after.Remove(ctx, removal([]string{"added"}))
		if ds.Err() != nil {
			t.Fatalf("cannot be removed again: %v\n%s", ds, edit.After)
		}
		if len(edits) != 1 || without.Has("added") {
			t.Fatalf("not removed from\n%s", edit.After)
		}
		rest := edit.After
		for line := range bytes.Lines(edit.Before) {
			line = bytes.TrimRight(line, "\r\n")
			if bytes.ContainsAny(line, "{}[]") {
				continue // the host may be added to this line
			}
			i := bytes.Index(rest, line)
			if i < 0 {
				t.Fatalf("the line %q is lost or moved in\n%s\n->\n%s", line, edit.Before, edit.After)
			}
			rest = rest[i+len(line):]
		}
	})
}
