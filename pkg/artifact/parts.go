package artifact

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// A file can lie in parts: FILE.001, FILE.002 and so on. All parts but the last have the same size.

// maxParts is the largest number of parts, because their names end in three digits.
const maxParts = 999

func partName(path string, number int) string { return fmt.Sprintf("%s.%03d", path, number) }

// partOf returns the path without the number of a part, and whether it has such a number.
func partOf(path string) (string, bool) {
	ext := filepath.Ext(path)
	n, err := strconv.Atoi(max(ext, ".")[1:])
	return path[:len(path)-len(ext)], err == nil && len(ext) == 4 && n > 0
}

// parts is the data of a file, in one piece or in parts.
type parts struct {
	files []*os.File
	ends  []int64 // offset of the end of each part in the whole
}

// openParts opens a file, or its parts if it lies in parts. The path can also be that of a part. whole is
// the path without the number of a part.
func openParts(path string, flag int) (p *parts, whole string, err error) {
	names, whole, err := partNames(path)
	if err != nil {
		return nil, "", err
	}
	p = &parts{}
	for _, name := range names {
		if err := p.add(name, flag); err != nil {
			return nil, "", errors.Join(err, p.Close())
		}
	}
	return p, whole, nil
}

// partNames lists the files that hold the file at path.
func partNames(path string) (names []string, whole string, err error) {
	whole = path
	if base, ok := partOf(path); ok && exists(partName(base, 1)) {
		whole = base
	} else if exists(path) || !exists(partName(path, 1)) {
		return []string{path}, path, nil
	}
	for n := range maxParts {
		if name := partName(whole, n+1); exists(name) {
			names = append(names, name)
			if want := partName(whole, len(names)); name != want {
				return nil, "", fmt.Errorf("the part %s is missing: copy it again", want)
			}
		}
	}
	return names, whole, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (p *parts) add(name string, flag int) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.OpenFile(name, flag, 0)
	if err != nil {
		return err
	}
	p.files = append(p.files, f)
	p.ends = append(p.ends, p.size()+info.Size())
	return nil
}

func (p *parts) size() int64 {
	if len(p.ends) == 0 {
		return 0
	}
	return p.ends[len(p.ends)-1]
}

// bounds returns where a part begins and ends in the whole.
func (p *parts) bounds(part int) (start, end int64) {
	if part > 0 {
		start = p.ends[part-1]
	}
	return start, p.ends[part]
}

// at returns the number of the part that has the byte at an offset.
func (p *parts) at(offset int64) int {
	return sort.Search(len(p.ends), func(i int) bool { return p.ends[i] > offset })
}

// ReadAt implements io.ReaderAt.
func (p *parts) ReadAt(b []byte, at int64) (n int, err error) {
	for n < len(b) {
		i := p.at(at)
		if i == len(p.files) {
			return n, io.EOF
		}
		start, end := p.bounds(i)
		piece := b[n:min(int64(len(b)), int64(n)+end-at)]
		got, err := p.files[i].ReadAt(piece, at-start)
		n, at = n+got, at+int64(got)
		if got < len(piece) {
			return n, err
		}
	}
	return n, nil
}

// Close closes all parts.
func (p *parts) Close() error {
	var problems []error
	for _, f := range p.files {
		problems = append(problems, f.Close())
	}
	return errors.Join(problems...)
}

// uneven reports parts that do not belong together: all but the last one have the size of the first one,
// and none begins behind the first `needed` bytes but for signatures.
func (p *parts) uneven(needed int64) error {
	var problems []error
	size := p.ends[0]
	for i, f := range p.files {
		start, end := p.bounds(i)
		has, last := end-start, i == len(p.files)-1
		if has < size && !last && end >= needed {
			for _, rest := range p.files[i+1:] {
				problems = append(problems, fmt.Errorf("the part %s is of another split: delete it", rest.Name()))
			}
			break
		}
		if has > size || has < size && !last || has == 0 && start < needed {
			problems = append(problems, fmt.Errorf("the part %s has %d bytes, and %s has %d: it is cut off, or of another "+
				"split; copy it again", f.Name(), has, p.files[0].Name(), size))
		}
	}
	return errors.Join(problems...)
}

// splitBy reports whether the file lies in parts of this size; 0 means in one piece. Needed is its size without
// signatures.
func (p *parts) splitBy(size, needed int64) bool {
	_, numbered := partOf(p.files[0].Name())
	if size == 0 || !numbered {
		return size == 0 && len(p.files) == 1 && !numbered
	}
	return p.ends[0] == size || len(p.files) == 1 && needed <= size
}

// names lists the parts that have bytes between two offsets.
func (p *parts) names(from, to int64) string {
	var names []string
	for i := p.at(from); i < len(p.files) && i <= p.at(max(from, to-1)); i++ {
		names = append(names, p.files[i].Name())
	}
	return strings.Join(names, ", ")
}

// short explains which part is missing if the file has less than size bytes.
func (p *parts) short(size int64) error {
	if len(p.files) == 1 {
		if base, ok := partOf(p.files[0].Name()); ok {
			return fmt.Errorf("%s is cut off, or the part %s is missing: it has %d bytes, and the file has %d",
				p.files[0].Name(), partName(base, 2), p.size(), size)
		}
		return fmt.Errorf("%w: it has %d bytes instead of %d", errCut, p.size(), size)
	}
	last := p.files[len(p.files)-1].Name()
	base, _ := partOf(last)
	if start, end := p.bounds(len(p.files) - 1); end-start < p.ends[0] {
		return fmt.Errorf("the part %s is cut off: copy it again", last)
	}
	return fmt.Errorf("the part %s is missing: copy it again", partName(base, len(p.files)+1))
}

// output writes a file, in parts if split is not 0. All parts get their names when they are complete.
type output struct {
	path      string
	split     int64
	part      *os.File
	left      int64
	unflushed int64
	names     []string // of the parts, with their final names
	old       []string // what an earlier file of this name has left
}

const unfinished = ".part"

// newOutput prepares writing size bytes.
func newOutput(path string, split, size int64) (*output, error) {
	if least := (size + maxParts - 1) / maxParts; split < 0 || split > 0 && split < least {
		return nil, fmt.Errorf("parts of %d bytes are too small: %d bytes make at most %d parts, of at least %d bytes each",
			split, size, maxParts, max(least, 1))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: name a file in it", path)
	}
	return &output{path: path, split: split, old: leftovers(path)}, os.MkdirAll(filepath.Dir(path), 0o755)
}

// leftovers lists the files of an earlier offline file at path, in one piece and in parts.
func leftovers(path string) []string {
	var old []string
	if isOffline(path) {
		old = append(old, path)
	}
	if !isOffline(partName(path, 1)) {
		return old
	}
	for n := range maxParts {
		name := partName(path, n+1)
		old = append(old, name, name+unfinished)
	}
	return old
}

// isOffline reports whether a file begins as an offline file does.
func isOffline(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	_, err = (&headReader{data: f, size: maxBlob}).next(layoutName)
	return err == nil
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (n int, err error) {
	for n < len(b) {
		if o.part == nil || o.split > 0 && o.left == 0 {
			if err := o.next(); err != nil {
				return n, err
			}
		}
		piece := b[n:]
		if o.split > 0 {
			piece = piece[:min(int64(len(piece)), o.left)]
		}
		wrote, err := o.part.Write(piece)
		n += wrote
		o.left -= int64(wrote)
		o.flush(int64(wrote))
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// flushSize is how many bytes are written before the kernel begins to bring them to the disk.
const flushSize = 8 << 20

// flush lets the kernel begin to write, so that less is left for the sync at the end. What fails is reported by that.
func (o *output) flush(wrote int64) {
	if o.unflushed += wrote; o.unflushed >= flushSize {
		beginToWrite(o.part)
		o.unflushed = 0
	}
}

// next begins the next part.
func (o *output) next() error {
	if err := o.finish(); err != nil {
		return err
	}
	name := o.path
	if o.split > 0 {
		name = partName(o.path, len(o.names)+1)
	}
	f, err := os.OpenFile(name+unfinished, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	o.part, o.left = f, o.split
	o.names = append(o.names, name)
	return nil
}

// finish syncs and closes the part.
func (o *output) finish() error {
	if o.part == nil {
		return nil
	}
	err := errors.Join(o.part.Sync(), o.part.Close())
	o.part = nil
	return err
}

// commit gives the parts their names, and removes what an earlier file of this name has left: further
// parts, or the file in one piece.
func (o *output) commit() error {
	if err := o.finish(); err != nil {
		return err
	}
	for _, name := range o.names {
		if err := os.Rename(name+unfinished, name); err != nil {
			return err
		}
	}
	var problems []error
	for _, name := range o.old {
		if !slices.Contains(o.names, name) {
			problems = append(problems, remove(name))
		}
	}
	return errors.Join(problems...)
}

// abort removes what was written.
func (o *output) abort() error {
	if o.part != nil {
		_ = o.part.Close() // it is removed
	}
	var problems []error
	for _, name := range o.names {
		problems = append(problems, remove(name+unfinished))
	}
	return errors.Join(problems...)
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
