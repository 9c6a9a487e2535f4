package foreign

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a source.
const (
	maxEntries = 150_000  // each needs half a kilobyte of memory; large artifacts have some thousands
	maxNames   = 64 << 20 // bytes of all names
	maxName    = 4096     // bytes of one name
)

// tree is the files of a source, by their slash-separated names.
type tree struct {
	files map[string]file
	links map[string]string // symbolic links, and what they lead to
	seen  map[string]node   // by name in lower case
	text  int               // bytes of all names
	most  int               // files and folders that are read
	blobs map[string]file   // by digest, once that is needed
}

// node is a file or folder of a source.
type node struct {
	name   string
	isFile bool
}

// file is a file of the control node with its content's digest. All files of a folder share its name, and the digest is
// no text: a source can have many files.
type file struct {
	dir, name string // name is slash-separated
	size      int64
	sum       [sha256.Size]byte
}

func (f file) path() string { return filepath.Join(f.dir, filepath.FromSlash(f.name)) }

// sha256 is the digest as hexadecimal digits.
func (f file) sha256() string { return hex.EncodeToString(f.sum[:]) }

// digest sets size and digest to those of a content.
func (f *file) digest(ctx context.Context, r io.Reader) (err error) {
	h := sha256.New()
	f.size, err = io.Copy(h, stoppable{ctx, r})
	h.Sum(f.sum[:0])
	return err
}

// newTree returns an empty tree that holds some number of files and folders.
func newTree(most int) *tree {
	return &tree{files: map[string]file{}, links: map[string]string{}, seen: map[string]node{}, most: most}
}

// admit checks the name of an entry, and returns it in its shortest form.
func (t *tree) admit(raw string, isFile bool) (string, error) {
	if err := checkName(raw); err != nil {
		return "", err
	}
	name := path.Clean(raw)
	if t.text += len(name); t.text > maxNames {
		return "", fmt.Errorf("%q: the names of all entries are longer than %d bytes", raw, maxNames)
	}
	if name == "." && !isFile {
		return name, nil
	}
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if err := t.enter(dir, false); err != nil {
			return "", err
		}
	}
	return name, t.enter(name, isFile)
}

// enter notes the name of a file or folder, which no other may share.
func (t *tree) enter(name string, isFile bool) error {
	lower := strings.ToLower(name)
	before, ok := t.seen[lower]
	switch {
	case !ok && len(t.seen) == t.most:
		return fmt.Errorf("%q is one file or folder too many: at most %d are read", name, t.most)
	case !ok:
		t.seen[lower] = node{name, isFile}
		return nil
	case before.name != name:
		return fmt.Errorf("the names %q and %q differ in case only", before.name, name)
	case isFile && before.isFile:
		return fmt.Errorf("there is a second entry %q", name)
	case isFile != before.isFile:
		return fmt.Errorf("%q is both a file and a folder", name)
	}
	return nil
}

func checkName(raw string) error {
	switch {
	case raw == "":
		return errors.New("an entry has no name")
	case len(raw) > maxName:
		return fmt.Errorf("the name %q... has %d bytes: at most %d are read", raw[:64], len(raw), maxName)
	case path.IsAbs(raw):
		return fmt.Errorf("%q is an absolute name", raw)
	case slices.Contains(strings.Split(raw, "/"), ".."):
		return fmt.Errorf("%q leads out of its folder", raw)
	case !utf8.ValidString(raw) || strings.ContainsAny(raw, "\\\x00\r\n"):
		return fmt.Errorf("the name %q has a character that no name may have", raw)
	}
	return nil
}

// names lists the files in order.
func (t *tree) names() []string { return slices.Sorted(maps.Keys(t.files)) }

// has reports whether there is a file below a folder.
func (t *tree) has(dir string) bool {
	_, ok := t.seen[strings.ToLower(dir)]
	return ok
}

// find returns a file, or what a link leads to.
func (t *tree) find(name string) (file, bool) {
	if to, ok := t.links[name]; ok {
		name = to
	}
	f, ok := t.files[name]
	return f, ok
}

// noLinks rejects links.
func (t *tree) noLinks() error {
	var problems problemList
	for _, name := range slices.Sorted(maps.Keys(t.links)) {
		problems.add(linkError(name, t.links[name]))
	}
	return problems.join()
}

func linkError(name, to string) error {
	return fmt.Errorf("%q is a link to %q: links are not followed; copy the file itself", name, to)
}

// digests maps digests to the files with that content.
func (t *tree) digests() map[string]file {
	if t.blobs == nil {
		t.blobs = make(map[string]file, len(t.files))
		for _, f := range t.files {
			t.blobs[f.sha256()] = f
		}
	}
	return t.blobs
}

// damaged reports files that are named by another digest than their own.
func (t *tree) damaged() error {
	var problems problemList
	for _, name := range t.names() {
		want, ok := strings.CutPrefix(path.Base(name), "sha256:")
		if !ok {
			dir, base := path.Split(name)
			want, ok = base, strings.HasSuffix(dir, "blobs/sha256/")
		}
		if got := t.files[name].sha256(); ok && got != want {
			problems.add(fmt.Errorf("%s is damaged: it has the digest sha256:%s", name, got))
		}
	}
	return problems.join()
}

// readFolder reads a folder of the control node.
func readFolder(ctx context.Context, dir string) (*tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only read
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	t := newTree(maxEntries)
	return t, fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || name == "." {
			return err
		}
		if !d.IsDir() && !d.Type().IsRegular() {
			return notRegular(name, d.Type())
		}
		if _, err := t.admit(name, !d.IsDir()); err != nil || d.IsDir() {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // only read
		read := file{dir: dir, name: name}
		err = read.digest(ctx, f)
		t.files[name] = read
		return err
	})
}

func notRegular(name string, mode fs.FileMode) error {
	if mode&fs.ModeSymlink != 0 {
		return fmt.Errorf("%q is a link: links are not followed; copy the file itself", name)
	}
	return fmt.Errorf("%q is neither a file nor a folder", name)
}

// stoppable fails when the context ends.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}
