package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Check checks the frame of the file: the entry of each document and blob, and the end. It reads no blob.
func (f *File) Check() error {
	var problems []error
	for i, d := range f.Manifest.Documents {
		problems = append(problems, f.compare(f.documents[i], d.Name, d.Size))
	}
	var names map[string]string
	for i, at := range f.offsets {
		if at < 0 {
			continue
		}
		if err := errors.Join(f.checkHeader(i), f.checkPadding(i)); err != nil {
			if names == nil {
				names = f.users()
			}
			b := f.Manifest.Blobs[i]
			problems = append(problems, named(names[b.Digest], f.inParts(err, at, at+block+padded(b.Size))))
		}
	}
	return errors.Join(append(problems, f.checkEnd())...)
}

// checkPadding checks that nothing is between a blob and what follows.
func (f *File) checkPadding(i int) error {
	size := f.Manifest.Blobs[i].Size
	rest := make([]byte, padded(size)-size)
	if _, err := f.data.ReadAt(rest, f.offsets[i]+block+size); err != nil {
		return fmt.Errorf("%s: read what follows blob %s: %w", f.Path, f.Manifest.Blobs[i].Digest, cut(err))
	}
	if len(bytes.Trim(rest, "\x00")) > 0 {
		return fmt.Errorf("%s: data between blob %s and the next entry", f.Path, f.Manifest.Blobs[i].Digest)
	}
	return nil
}

// users names the items that each blob belongs to.
func (f *File) users() map[string]string {
	const most = 3 // of the items that share a blob
	lists := map[string][]string{}
	for _, i := range f.Manifest.Items {
		for _, d := range i.all() {
			lists[d] = append(lists[d], i.String())
		}
	}
	names := make(map[string]string, len(lists))
	for d, list := range lists {
		if n := len(list) - most; n > 0 {
			list = append(list[:most:most], fmt.Sprintf("%d more", n))
		}
		names[d] = strings.Join(list, ", ")
	}
	return names
}

// inParts adds the parts that have the bytes between two offsets to an error.
func (f *File) inParts(err error, from, to int64) error {
	if err == nil || f.parts == nil || len(f.parts.files) == 1 {
		return err
	}
	return fmt.Errorf("%w (in %s)", err, f.parts.names(from, to))
}

func named(items string, err error) error {
	if err == nil || items == "" {
		return err
	}
	return fmt.Errorf("%s: %w", items, err)
}

// Verify reads every byte of the file, or of the items for which only, if not nil, is true: digests of
// blobs, and digests and sizes of what is compressed in them; that images have what their indexes say, and
// the documents. What a delta does not have is read from its base. All problems are reported, with the
// items that they are in. progress may be nil.
func (f *File) Verify(ctx context.Context, only func(Item) bool, progress func(done, total int64)) error {
	v := &verification{ctx: ctx, progress: progress}
	v.add(f, only)
	return v.run()
}

// verification reads blobs of one file or of several, each once.
type verification struct {
	ctx      context.Context
	progress func(done, total int64)

	work     []task
	images   []image
	seen     map[task]bool
	names    map[*File]map[string]string
	encoded  map[task][]Item // that the blob holds; two at most, since two contents contradict each other
	problems []error         // of frames

	mu          sync.Mutex
	done, total int64
	damaged     map[string]bool // digests of blobs
}

// task is a blob to read.
type task struct {
	file   *File // that has it
	number int
}

// image is an image whose blobs are to be compared with its index.
type image struct {
	file *File
	item Item
}

// add plans to verify items of a file.
func (v *verification) add(f *File, only func(Item) bool) {
	if v.seen == nil {
		v.seen, v.damaged = map[task]bool{}, map[string]bool{}
		v.names, v.encoded = map[*File]map[string]string{}, map[task][]Item{}
	}
	if err := f.Check(); err != nil {
		v.problems = append(v.problems, err)
		return
	}
	if only == nil {
		for _, d := range f.Manifest.Documents {
			_, err := f.Document(d.Name)
			v.problems = append(v.problems, err)
		}
	}
	if f.delta != nil && f.base == nil {
		v.problems = append(v.problems, f.noBase())
		return
	}
	for _, item := range f.Manifest.Items {
		if only != nil && !only(item) {
			continue
		}
		if item.Kind == KindImage {
			v.images = append(v.images, image{f, item})
		}
		for _, digest := range item.all() {
			owner, i, err := f.locate(digest)
			if err != nil {
				v.problems = append(v.problems, named(item.String(), err))
			} else {
				v.read(task{owner, i}, item)
			}
		}
	}
}

// read plans to read a blob of an item.
func (v *verification) read(t task, item Item) {
	same := func(i Item) bool { return i.SHA256 == item.SHA256 && i.Size == item.Size }
	if all := v.encoded[t]; item.Encoding != Plain && len(all) < 2 && !slices.ContainsFunc(all, same) {
		v.encoded[t] = append(all, item)
	}
	if v.seen[t] {
		return
	}
	v.seen[t] = true
	v.work = append(v.work, t)
	v.total += t.file.Manifest.Blobs[t.number].Size
	if v.names[t.file] == nil {
		v.names[t.file] = t.file.users()
	}
}

// run reads everything, in the order of the files.
func (v *verification) run() error {
	order := map[*File]int{}
	for _, t := range v.work {
		if _, known := order[t.file]; !known {
			order[t.file] = len(order)
		}
	}
	slices.SortFunc(v.work, func(a, b task) int {
		if a.file != b.file {
			return order[a.file] - order[b.file]
		}
		return a.number - b.number
	})
	problems := make([]error, len(v.work))
	v.each(len(v.work), func(n int) { problems[n] = v.blob(v.work[n]) })
	structure := make([]error, len(v.images))
	v.each(len(v.images), func(n int) { structure[n] = v.image(v.images[n]) })
	return errors.Join(slices.Concat(v.problems, problems, structure, []error{v.ctx.Err()})...)
}

// each calls work for n numbers, on all cores, until the context ends.
func (v *verification) each(n int, work func(int)) {
	next := make(chan int)
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 8, n) {
		group.Go(func() {
			for i := range next {
				if v.ctx.Err() == nil {
					work(i)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}

func (v *verification) blob(t task) error {
	b := t.file.Manifest.Blobs[t.number]
	err := v.readBlob(t, b.Digest)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil // reported once
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done += b.Size
	if v.progress != nil {
		v.progress(v.done, v.total)
	}
	if err != nil {
		v.damaged[b.Digest] = true
		at := t.file.offsets[t.number]
		err = t.file.inParts(err, at, at+block+b.Size)
	}
	return named(v.names[t.file][b.Digest], err)
}

func (v *verification) readBlob(t task, digest string) error {
	if len(v.encoded[t]) == 0 {
		raw, err := t.file.Blob(digest)
		if err != nil {
			return err
		}
		return v.readAll(raw)
	}
	for _, item := range v.encoded[t] {
		// The decoder reads the blob to its end, so its own digest is verified too.
		c, err := t.file.Content(item)
		if err != nil {
			return err
		}
		if err := errors.Join(v.readAll(c), c.Close()); err != nil {
			return err
		}
	}
	return nil
}

func (v *verification) readAll(r io.Reader) error {
	_, err := io.CopyBuffer(discard{}, &stoppable{v.ctx, r}, make([]byte, copySize))
	return err
}

// discard is io.Discard without its own small buffers.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (v *verification) image(i image) error {
	if slices.ContainsFunc(i.item.Blobs, func(d string) bool { return v.damaged[d] }) {
		return nil // reported already
	}
	return named(i.item.String(), i.file.checkImage(v.ctx, i.item))
}

// stoppable fails when the context ends.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}
