// Command gen generates the reference pages of the manual from the code: modules, keywords, commands, filters,
// settings.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kubekey/pkg/cli"
	"kubekey/pkg/lint"
	"kubekey/pkg/playbook"
	"kubekey/pkg/settings"
)

//go:generate go run . ../reference

// pages is a set of files: text by slash-separated path.
type pages map[string]string

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 || strings.HasPrefix(args[0], "-") {
		return errors.New("usage: gen FOLDER")
	}
	p, err := reference()
	if err != nil {
		return err
	}
	return p.write(args[0])
}

// reference returns all pages.
func reference() (pages, error) {
	modules, err := cli.Modules()
	if err != nil {
		return nil, err
	}
	p := pages{
		"keywords.md":  keywordPage(playbook.Keywords(), playbook.Unsupported()),
		"filters.md":   expressionPage(cli.Expressions()),
		"variables.md": variablePage(playbook.MagicVariables(), playbook.ConnectionVariables(), settings.Table()),
		"settings.md":  settingsPage(settings.Table()),
	}
	more, err := modulePages(modules.Specs())
	if err != nil {
		return nil, err
	}
	maps.Copy(p, more)
	maps.Copy(p, commandPages(cli.Commands()))
	maps.Copy(p, rulePages(lint.Rules()))
	return p, nil
}

// write makes the folder contain exactly these pages. Pages of modules that no longer exist are removed.
func (p pages) write(dir string) error {
	if err := p.removeOthers(dir); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(p[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (p pages) removeOthers(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return filepath.SkipAll
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if _, wanted := p[filepath.ToSlash(name)]; wanted {
			return nil
		}
		return os.Remove(path)
	})
}
