package pki

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"kubekey/pkg/certs"
)

// write applies the steps, the key first: a run that stops before the certificate
// leaves a pair that does not match, or a key alone, and both are seen.
func (m *GenCert) write(w desired, f files, s steps) (files, error) {
	mode, err := m.Mode.Apply(0o644, false)
	if err != nil {
		return f, err
	}
	if s.newKey {
		if f.signer, err = w.kind.Generate(); err != nil {
			return f, err
		}
		text, err := certs.EncodeKey(f.signer)
		if err != nil {
			return f, err
		}
		if err := replace(m.Key, text, 0o600); err != nil {
			return f, err
		}
	}
	if s.narrow {
		if err := os.Chmod(m.Key, 0o600); err != nil {
			return f, err
		}
	}
	if s.newCert {
		if f.cert, err = w.sign(f.signer); err != nil {
			return f, fmt.Errorf("sign %s: %w", m.Cert, err)
		}
		if err := replace(m.Cert, certs.EncodeCert(f.cert.Raw), mode); err != nil {
			return f, err
		}
	}
	if s.pub {
		text, err := certs.EncodePublic(f.signer.Public())
		if err != nil {
			return f, err
		}
		return f, replace(m.Pub, text, mode)
	}
	return f, nil
}

// makeFolders makes the folders of files that are missing, for their owner alone.
func makeFolders(paths ...string) error {
	for _, p := range paths {
		if p == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// replace puts a file in place as a whole, and on the disk before it returns.
func replace(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockFolder waits until this is the only one that works on a folder's files.
// The lock is on the folder itself and leaves no file behind.
func lockFolder(ctx context.Context, path string) (unlock func(), err error) {
	d, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = d.Close() }, nil // closing unlocks
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), d.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), d.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
