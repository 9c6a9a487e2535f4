package net

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"kubekey/pkg/schema"
)

// job fetches one file.
type job struct {
	*download
	item     downloadItem
	origin   origin
	check    bool
	progress func(done, total int64)
}

func (j job) run(ctx context.Context) fetched {
	g := fetched{item: j.item}
	if ctx.Err() != nil {
		g.err = ctx.Err()
		return g
	}
	var err error
	if g.changed, g.bytes, err = j.ensure(ctx); err != nil {
		g.err = j.explain(err)
		return g
	}
	if info, err := os.Stat(j.item.Dest); err == nil {
		g.size = info.Size()
	}
	if j.check && j.Sizes && g.changed {
		if g.size, err = j.size(ctx); err != nil {
			g.err = j.explain(err)
		}
	}
	return g
}

// size is the size of a file that is missing.
func (j job) size(ctx context.Context) (int64, error) {
	switch {
	case j.item.open != nil:
		return j.item.size, nil
	case j.item.Path != "":
		info, err := os.Stat(j.item.Path)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	return j.origin.size(ctx, j.item.URL)
}

// ensure brings the file to its desired state.
func (j job) ensure(ctx context.Context) (changed bool, bytes int64, err error) {
	if good, err := j.good(j.item.Dest); err != nil || good {
		changed, modeErr := j.setMode(good)
		return changed, 0, errors.Join(err, modeErr)
	}
	if j.check {
		return true, 0, nil
	}
	if err := os.MkdirAll(filepath.Dir(j.item.Dest), 0o755); err != nil {
		return false, 0, err
	}
	part := j.item.Dest + ".part"
	unlock, err := lockPart(ctx, part)
	if err != nil {
		return false, 0, err
	}
	defer unlock()
	if good, err := j.good(j.item.Dest); err != nil || good { // another run was first
		return false, 0, errors.Join(err, os.Remove(part))
	}
	if j.item.open != nil {
		err = j.copyFrom(j.item.open, part, j.item.Dest)
	} else if j.item.Path != "" {
		err = j.copyFrom(func() (io.ReadCloser, error) { return os.Open(j.item.Path) }, part, j.item.Path)
	} else {
		bytes, err = j.fetch(ctx, part)
	}
	if err != nil {
		dropUseless(part, j.item.SHA256 != "" && j.item.Path == "")
		return false, bytes, err
	}
	return true, bytes, j.place(part)
}

// good reports whether the file matches the item. Without a digest, any existing file
// matches a URL, and only one with equal content matches a path.
func (j job) good(file string) (bool, error) {
	want := j.item.SHA256
	switch _, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case want == "" && j.item.Path == "":
		return true, nil
	case want == "":
		source, _, err := sums(j.item.Path, "sha256")
		if err != nil {
			return false, err
		}
		want = source["sha256"]
	}
	found, _, err := sums(file, "sha256")
	return found["sha256"] == want, err
}

// setMode sets the mode of a file that exists.
func (j job) setMode(there bool) (changed bool, err error) {
	info, err := os.Stat(j.item.Dest)
	if err != nil || !there {
		return false, nil
	}
	now, _ := (schema.FileMode{}).Apply(info.Mode(), false)
	mode, err := j.item.Mode.Apply(now, false)
	if err != nil || mode == now {
		return false, err
	}
	if j.check {
		return true, nil
	}
	return true, os.Chmod(j.item.Dest, mode)
}

// copyFrom copies content of this machine.
func (j job) copyFrom(open func() (io.ReadCloser, error), part, name string) error {
	src, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // only read
	dst, err := os.OpenFile(part, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	if err := errors.Join(err, dst.Close()); err != nil {
		return err
	}
	return j.verify(part, name)
}

// fetch tries until the file is complete, and returns the number of bytes received.
func (j job) fetch(ctx context.Context, part string) (bytes int64, err error) {
	var wrong *wrongDigest
	again := true // a wrong digest is retried once, from the start
	for attempt := 1; ; attempt++ {
		n, err := j.attempt(ctx, part)
		bytes += n
		switch {
		case err == nil:
			return bytes, nil
		case errors.As(err, &wrong):
			if err := os.Truncate(part, 0); err != nil || !again {
				return bytes, errors.Join(wrong, err)
			}
			again = false
			attempt--
			continue
		case ctx.Err() != nil || !worthTrying(err) || attempt >= j.Attempts:
			return bytes, err
		}
		select {
		case <-ctx.Done():
			return bytes, ctx.Err()
		case <-time.After(j.Backoff << min(attempt-1, 10)):
		}
	}
}

// attempt fetches the missing rest of the part, and verifies the file.
func (j job) attempt(ctx context.Context, part string) (bytes int64, err error) {
	var before int64
	if info, err := os.Stat(part); err == nil && j.item.SHA256 != "" {
		before = info.Size()
	}
	if before > 0 {
		if good, err := j.good(part); err != nil || good {
			return 0, err // the last run stopped between the last byte and the rename
		}
	}
	code, err := j.origin.download(ctx, j.item.URL, part, j.item.SHA256 != "", time.Time{}, j.progress)
	if code != http.StatusPartialContent {
		before = 0
	}
	if info, statErr := os.Stat(part); statErr == nil {
		bytes = max(0, info.Size()-before)
	}
	if err != nil {
		return bytes, err
	}
	return bytes, j.verify(part, redacted(j.item.URL))
}

// wrongDigest is a file whose digest differs from the expected one.
type wrongDigest struct{ from, got, want string }

func (e *wrongDigest) Error() string {
	return fmt.Sprintf("%s has the sha256 %s instead of %s: the file or the expected sha256 is wrong", e.from, e.got,
		e.want)
}

func (j job) verify(file, from string) error {
	if j.item.SHA256 == "" {
		return nil
	}
	found, _, err := sums(file, "sha256")
	if err != nil || found["sha256"] == j.item.SHA256 {
		return err
	}
	return &wrongDigest{from, found["sha256"], j.item.SHA256}
}

// place gives the complete file its mode and its name.
func (j job) place(part string) error {
	mode, err := j.item.Mode.Apply(0o644, false)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(part, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, j.item.Dest)
}

// worthTrying reports whether the same request may succeed the next time.
func worthTrying(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.code >= 500 || status.code == http.StatusTooManyRequests || status.code == http.StatusRequestTimeout
	}
	return !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) && !errors.Is(err, fs.ErrPermission)
}

// explain adds which file failed, and how to fix it.
func (j job) explain(err error) error {
	var status *statusError
	from := redacted(j.item.URL)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk of %s is full: free some space or choose another folder, and run again; what was "+
			"fetched so far is kept", filepath.Dir(j.item.Dest))
	case errors.As(err, &status) && status.code == http.StatusNotFound:
		return fmt.Errorf("%s%s was not found (404): check the version, or set another url or a path", from,
			ofVersion(j.item.Version))
	case errors.As(err, &status):
		return fmt.Errorf("%s: %w", from, status)
	case errors.As(err, new(*wrongDigest)), j.item.Path != "", j.item.open != nil:
		return fmt.Errorf("%s: %w", j.item.Dest, err)
	}
	var inURL *url.Error
	if errors.As(err, &inURL) {
		err = inURL.Err // from names it, without its secrets
	}
	return fmt.Errorf("%s: %w", from, err)
}

func ofVersion(v string) string {
	if v == "" {
		return ""
	}
	return " (" + v + ")"
}

// dropUseless removes a part that cannot be resumed.
func dropUseless(part string, resumable bool) {
	if info, err := os.Stat(part); err == nil && (!resumable || info.Size() == 0) {
		_ = os.Remove(part) // the next run starts from scratch in any case
	}
}

// lockPart creates the part, and waits until no other run works on it.
func lockPart(ctx context.Context, part string) (unlock func(), err error) {
	for {
		f, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil && isStill(f, part) {
			return func() { _ = f.Close() }, nil // closing unlocks
		}
		_ = f.Close() // nothing was written
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, fmt.Errorf("lock %s: %w", part, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// isStill reports whether the open file has this name: another run may have
// put it in place meanwhile.
func isStill(f *os.File, name string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(name)
	return err == nil && os.SameFile(opened, named)
}
