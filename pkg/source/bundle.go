package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Builtin is the prefix of the paths of files that the binary bundles. Such a path is treated as absolute when
// paths are joined and cleaned. The supported operations on such files are defined in this file and in Tree only.
const Builtin = "builtin:"

func isBundled(name string) bool { return strings.HasPrefix(name, Builtin) }

// Bundled reports whether the binary bundles the file.
func (f *File) Bundled() bool { return isBundled(f.Name) }

// Shown returns a path for display: relative to the working folder if it is below it.
func Shown(name string) string {
	dir, err := os.Getwd()
	if err != nil {
		return name
	}
	return ShownFrom(dir, name)
}

// ShownFrom returns a path for display to users in a folder. "" means no folder.
func ShownFrom(dir, name string) string {
	if dir == "" || isBundled(name) {
		return name
	}
	rel, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return name
	}
	return rel
}

// Abs is filepath.Abs with support for builtin paths.
func Abs(name string) (string, error) {
	if isBundled(name) {
		return Clean(name), nil
	}
	return filepath.Abs(name)
}

// DiskDir returns the folder on disk where programs run and files are written for a playbook's folder. For a
// bundled folder this is "", the working folder.
func DiskDir(dir string) string {
	if isBundled(dir) {
		return ""
	}
	return dir
}

// DiskPath returns the path of a file to write. Bundled files cannot be written.
func DiskPath(name string) (string, error) {
	if isBundled(name) {
		return "", fmt.Errorf("%s is inside the program (give an absolute path)", name)
	}
	return name, nil
}

// Lstat describes a file without following links.
func (t Tree) Lstat(name string) (fs.FileInfo, error) {
	fsys, p, err := t.split(name)
	if err != nil {
		return nil, err
	}
	if fsys == nil {
		return os.Lstat(p)
	}
	return fs.Stat(fsys, p) // a binary contains no links
}

// IsLink reports whether a path is a symbolic link.
func (t Tree) IsLink(name string) bool {
	info, err := t.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// CopyMode returns the mode for copies of a file. The mode of a bundled file is ignored because it is always
// read-only.
func (t Tree) CopyMode(name string) fs.FileMode {
	info, err := t.Stat(name)
	if err != nil || isBundled(name) {
		return 0o644
	}
	return info.Mode()
}
