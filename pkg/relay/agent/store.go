package agent

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"kubekey/pkg/relay"
)

// store is the folder of the blobs. A file there has the digest's digits as its name; it gets its name when it is
// whole and verified.
type store struct {
	root *os.Root
	lock *os.File

	mu     sync.Mutex
	good   map[string]int64 // names of verified files → size
	closed bool
}

// partPrefix begins the names of files that are not whole.
const partPrefix = ".part-"

// ErrBusy means that another program uses the folder.
var ErrBusy = errors.New("another run of kk distributes files to this host: wait until it has ended")

// openStore makes the folder where it does not exist. One program at a time uses it, so parts that lie there were left
// behind, and are removed.
func openStore(dir string) (*store, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &store{root: root, good: map[string]int64{}}
	if s.lock, err = root.Open("."); err == nil {
		err = lock(s.lock)
	}
	if err == nil {
		err = s.clean()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return s, nil
}

// close removes the parts of what is under way.
func (s *store) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.lock != nil {
		_ = s.clean() // the next program tries again
		_ = s.lock.Close()
	}
	_ = s.root.Close()
}

func (s *store) clean() error {
	dir, err := s.root.Open(".")
	if err != nil {
		return err
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, partPrefix) || strings.HasPrefix(name, relay.ProgramPrefix) {
			err = errors.Join(err, s.root.Remove(name))
		}
	}
	return err
}

// list returns the places of the blobs that are whole. What has a blob's name and other bytes is removed.
func (s *store) list(ctx context.Context, blobs []relay.Blob) ([]int, error) {
	var has []int
	for i, b := range blobs {
		ok, err := s.verify(ctx, b)
		if err != nil {
			return nil, err
		}
		if ok {
			has = append(has, i)
		}
	}
	return has, nil
}

func (s *store) verify(ctx context.Context, b relay.Blob) (bool, error) {
	name := b.Hex()
	f, err := s.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // only read
	h := sha256.New()
	n, err := io.Copy(h, &stoppable{ctx, f})
	if err != nil {
		return false, err
	}
	if n != b.Size || hex.EncodeToString(h.Sum(nil)) != name {
		return false, s.remove(b)
	}
	s.setGood(name, n)
	return true, nil
}

func (s *store) setGood(name string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.good[name] = size
}

// open opens a verified file.
func (s *store) open(name string) (*os.File, int64, error) {
	s.mu.Lock()
	size, ok := s.good[name]
	s.mu.Unlock()
	if !ok {
		return nil, 0, errors.New("not verified here")
	}
	f, err := s.root.Open(name)
	return f, size, err
}

func (s *store) remove(b relay.Blob) error {
	s.mu.Lock()
	delete(s.good, b.Hex())
	s.mu.Unlock()
	if err := s.root.Remove(b.Hex()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// create makes a file for what is not whole.
func (s *store) create() (name string, f *os.File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", nil, fs.ErrClosed
	}
	suffix := make([]byte, 8)
	_, _ = rand.Read(suffix) // never fails
	name = partPrefix + hex.EncodeToString(suffix)
	f, err = s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return name, f, err
}

// add stores a blob. Its file appears when all bytes have come and match.
func (s *store) add(b relay.Blob, from io.Reader) (err error) {
	part, f, err := s.create()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = s.root.Remove(part)
		}
	}()
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(from, b.Size+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); n != b.Size || got != b.Hex() {
		text := fmt.Sprintf("%d bytes with sha256 %s came instead of %d with %s", n, got, b.Size, b.Hex())
		return &relay.TransferError{Fault: relay.Wrong, Text: text}
	}
	if err := s.root.Rename(part, b.Hex()); err != nil {
		return err
	}
	s.setGood(b.Hex(), n)
	return nil
}

// maxWindow is the memory that a zstd stream may make the decoder use.
const maxWindow = 64 << 20

// unpack decodes a blob that is zstd.
func (s *store) unpack(ctx context.Context, packed, content relay.Blob) error {
	if ok, err := s.verify(ctx, content); ok || err != nil {
		return err
	}
	f, _, err := s.open(packed.Hex())
	if err != nil {
		return fmt.Errorf("%s: %w", packed.Digest, err)
	}
	defer func() { _ = f.Close() }() // only read
	d, err := zstd.NewReader(&stoppable{ctx, f}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxWindow))
	if err != nil {
		return err
	}
	defer d.Close()
	if err := s.add(content, d); err != nil {
		return fmt.Errorf("unpack %s: %w", packed.Digest, err)
	}
	return nil
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
