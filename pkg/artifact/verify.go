package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
)

// Check checks the frame of the file: the entry of each blob, and the end. It reads no blob.
func (f *File) Check() error {
	var problems []error
	for i := range f.Manifest.Blobs {
		if err := f.checkHeader(i); err != nil {
			problems = append(problems, f.named(i, err))
		}
	}
	return errors.Join(append(problems, f.checkEnd())...)
}

// checkEnd checks what follows the last blob.
func (f *File) checkEnd() error {
	at := f.offsets[len(f.offsets)-1]
	if f.size > at+trailer {
		return fmt.Errorf("%s: %d bytes follow the last entry", f.Path, f.size-at-trailer)
	}
	end := make([]byte, trailer)
	if _, err := f.data.ReadAt(end, at); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if len(bytes.Trim(end, "\x00")) > 0 {
		return fmt.Errorf("%s: the entry at byte %d is not in the manifest: %s", f.Path, at, describe(end[:block]))
	}
	return nil
}

// named adds the items that a blob belongs to.
func (f *File) named(blob int, err error) error {
	digest := f.Manifest.Blobs[blob].Digest
	for _, i := range f.Manifest.Items {
		if slices.Contains(i.all(), digest) {
			return fmt.Errorf("%s: %w", i, err)
		}
	}
	return err
}

// Verify reads every byte of the file, or of the items for which only, if not nil, is true: digests of
// blobs, and digests and sizes of what is compressed in them. All problems are reported, with the items
// that they are in. progress may be nil.
func (f *File) Verify(ctx context.Context, only func(Item) bool, progress func(done, total int64)) error {
	if err := f.Check(); err != nil {
		return err
	}
	work := f.blobsOf(only)
	var total, done int64
	for _, i := range work {
		total += f.Manifest.Blobs[i].Size
	}
	problems := make([]error, len(work))
	next := make(chan int)
	var group sync.WaitGroup
	var mu sync.Mutex
	for range min(runtime.GOMAXPROCS(0), 8, max(1, len(work))) {
		group.Go(func() {
			for n := range next {
				problems[n] = f.verifyBlob(ctx, work[n])
				mu.Lock()
				done += f.Manifest.Blobs[work[n]].Size
				if progress != nil {
					progress(done, total)
				}
				mu.Unlock()
			}
		})
	}
	for n := range work {
		next <- n
	}
	close(next)
	group.Wait()
	return errors.Join(append(problems, ctx.Err())...)
}

// blobsOf lists the numbers of the blobs of items, in the order of the file.
func (f *File) blobsOf(only func(Item) bool) []int {
	var work []int
	for _, item := range f.Manifest.Items {
		if only != nil && !only(item) {
			continue
		}
		for _, digest := range item.all() {
			if i, ok := f.find(digest); ok {
				work = append(work, i)
			}
		}
	}
	slices.Sort(work)
	return slices.Compact(work)
}

func (f *File) verifyBlob(ctx context.Context, number int) error {
	if ctx.Err() != nil {
		return nil
	}
	digest := f.Manifest.Blobs[number].Digest
	item := slices.IndexFunc(f.Manifest.Items, func(i Item) bool { return i.Blob == digest && i.Encoding != Plain })
	if item < 0 {
		r, err := f.Blob(digest)
		if err == nil {
			_, err = io.Copy(io.Discard, &stoppable{ctx, r})
		}
		return f.failed(number, err)
	}
	// What is decoded to the right content need not have its own digest read apart: the decoder reads
	// the blob to its end.
	c, err := f.Content(f.Manifest.Items[item])
	if err == nil {
		_, err = io.Copy(io.Discard, &stoppable{ctx, c})
		err = errors.Join(err, c.Close())
	}
	return f.failed(number, err)
}

func (f *File) failed(number int, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	return f.named(number, err)
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
