package source

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Builtin prefixes the paths of files that the binary bundles: such a path
// looks absolute to everything that joins and cleans paths. What such a file
// can be used for is decided in this file and in Tree alone.
const Builtin = "builtin:"

func isBundled(name string) bool { return strings.HasPrefix(name, Builtin) }

// Bundled reports whether the binary bundles the file.
func (f *File) Bundled() bool { return isBundled(f.Name) }

// Shown is a path as people are shown it: relative to the working folder when it is below that.
func Shown(name string) string {
	dir, err := os.Getwd()
	if err != nil {
		return name
	}
	return ShownFrom(dir, name)
}

// ShownFrom is a path as people in a folder are shown it; "" is no folder.
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

// Abs is filepath.Abs that knows builtin paths.
func Abs(name string) (string, error) {
	if isBundled(name) {
		return Clean(name), nil
	}
	return filepath.Abs(name)
}

// DiskDir is where programs run and files are written for a playbook's folder:
// there, or in the working folder, which is "", when the binary bundles it.
func DiskDir(dir string) string {
	if isBundled(dir) {
		return ""
	}
	return dir
}

// DiskPath is the path of a file that is written to, which a bundled one cannot be.
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
	return fs.Stat(fsys, p) // there are no links in a binary
}

// IsLink reports whether a path is a symbolic link.
func (t Tree) IsLink(name string) bool {
	info, err := t.Lstat(name)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// CopyMode is the mode for copies of a file. The one of a bundled file means
// nothing: it is read-only, whatever the file is for.
func (t Tree) CopyMode(name string) fs.FileMode {
	info, err := t.Stat(name)
	if err != nil || isBundled(name) {
		return 0o644
	}
	return info.Mode()
}
