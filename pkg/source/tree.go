package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Tree reads the files of the control node by absolute path: files of the operating system, and files that the
// binary bundles, below "builtin:/". The zero value only reads files of the operating system. Of these, files
// encrypted with Ansible Vault are decrypted.
type Tree struct {
	Embedded fs.FS
	Vault    Decrypter // nil: reading an encrypted file is an error
	// Ended, when closed, cancels reads from inputs that do not respond. Nil never cancels.
	Ended <-chan struct{}
	// Patience is how long such an input may be silent. 0 means the constant Patience.
	Patience time.Duration

	raw bool
}

// IsAbs reports whether a path is absolute, including builtin paths.
func IsAbs(name string) bool { return filepath.IsAbs(name) || isBundled(name) }

// Join joins a path to a folder, unless the path is absolute. "" is the working folder.
func Join(dir, name string) string {
	if IsAbs(name) || dir == "" {
		return Clean(name)
	}
	return Clean(dir + "/" + name)
}

// Clean is filepath.Clean with support for builtin paths. The result never leaves their root.
func Clean(name string) string {
	if rest, ok := strings.CutPrefix(name, Builtin); ok {
		return Builtin + path.Clean("/"+rest)
	}
	return filepath.Clean(name)
}

// Dir returns the folder of a path.
func Dir(name string) string {
	if rest, ok := strings.CutPrefix(Clean(name), Builtin); ok {
		return Builtin + path.Dir(rest)
	}
	return filepath.Dir(name)
}

var errNoEmbedded = errors.New("this kk carries no files")

func (t Tree) split(name string) (fs.FS, string, error) {
	rest, ok := strings.CutPrefix(name, Builtin)
	if !ok {
		return nil, name, nil
	}
	if t.Embedded == nil {
		return nil, "", fmt.Errorf("open %s: %w", name, errNoEmbedded)
	}
	rest = strings.TrimPrefix(path.Clean("/"+rest), "/")
	if rest == "" {
		rest = "."
	}
	return t.Embedded, rest, nil
}

// Open opens a file of any size for reading. Pipes and devices are rejected because their size is not known in
// advance.
func (t Tree) Open(name string) (fs.File, error) {
	fsys, p, err := t.split(name)
	if err != nil {
		return nil, err
	}
	if fsys != nil {
		return fsys.Open(p)
	}
	if info, err := os.Stat(p); err == nil && !info.Mode().IsRegular() && !info.IsDir() && p != os.DevNull {
		return nil, &fs.PathError{Op: "open", Path: p, Err: fmt.Errorf("it is %s, and not a file", kindOf(info.Mode()))}
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, err
	}
	return t.openVault(p, f)
}

// ReadFile reads a whole file of at most MaxData bytes.
func (t Tree) ReadFile(name string) ([]byte, error) { return t.Read(name, MaxData) }

// Stat describes a file, following links.
func (t Tree) Stat(name string) (fs.FileInfo, error) {
	fsys, p, err := t.split(name)
	if err != nil {
		return nil, err
	}
	if fsys == nil {
		return os.Stat(p)
	}
	return fs.Stat(fsys, p)
}

// ReadDir lists a folder, sorted by name.
func (t Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	fsys, p, err := t.split(name)
	if err != nil {
		return nil, err
	}
	if fsys == nil {
		return os.ReadDir(p)
	}
	return fs.ReadDir(fsys, p)
}

// Glob lists the paths that match a shell pattern, sorted.
func (t Tree) Glob(pattern string) ([]string, error) {
	fsys, p, err := t.split(pattern)
	if err != nil {
		return nil, err
	}
	if fsys == nil {
		return filepath.Glob(p)
	}
	found, err := fs.Glob(fsys, p)
	for i := range found {
		found[i] = Builtin + "/" + found[i]
	}
	return found, err
}

// IsFile reports whether a path is a regular file, or a link to one.
func (t Tree) IsFile(name string) bool {
	info, err := t.Stat(name)
	return err == nil && !info.IsDir()
}

// IsDir reports whether a path is a folder, or a link to one.
func (t Tree) IsDir(name string) bool {
	info, err := t.Stat(name)
	return err == nil && info.IsDir()
}

// kindOf describes the type of something that is not a regular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}
