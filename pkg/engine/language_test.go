package engine

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
)

// readByCommands reports whether a file is read by the commands and not by the engine: settings, and the filters and
// tests of a project.
func readByCommands(f txtar.File) bool {
	return f.Name == "kk.yaml" || f.Name == "ansible.cfg" || strings.Contains(f.Name, "_plugins/")
}

// TestLanguageCases runs the cases of test/language through the engine alone. It skips cases that need flags or that
// fail to load.
func TestLanguageCases(t *testing.T) {
	root := filepath.Join("..", "..", "test", "language", "testdata")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		a, err := txtar.ParseFile(path)
		if err != nil {
			return err
		}
		exit := 0
		for _, line := range strings.Split(string(a.Comment), "\n") {
			switch word, rest, _ := strings.Cut(line, " "); word {
			case "exec", "args":
				return nil
			case "ssh":
				if rest == "only" {
					return nil
				}
			case "exit":
				fmt.Sscan(rest, &exit)
			}
		}
		if exit == 4 || strings.Contains(path, "unreachable") || slices.ContainsFunc(a.Files, readByCommands) {
			return nil
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			t.Setenv("HOME", t.TempDir())
			b := newBench(t, string(txtar.Format(a)))
			b.o.Connect = func(context.Context, Target) (connector.Connector, error) { return local.New(), nil }
			b.o.Defaults.Connection = "local"
			b.expect(exit)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
