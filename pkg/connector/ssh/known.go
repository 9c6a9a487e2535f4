package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kubekey/pkg/source"
)

// known is a list of known_hosts files, read once and again only after others changed them.
type known struct {
	files []string

	mu    sync.Mutex
	stamp string
	check ssh.HostKeyCallback
	added map[string]ssh.PublicKey // appended since the files were read, by address

	warn   func(text string)
	warned map[string]bool // files that a warning was reported for
}

// knownHosts returns the current content of the files.
func (s *Shared) knownHosts(files []string) (*known, error) {
	key := strings.Join(files, "\x00")
	s.mu.Lock()
	k := s.known[key]
	if k == nil {
		k = &known{files: files, warn: s.Warn, warned: map[string]bool{}}
		s.known[key] = k
	}
	s.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k, k.readLocked()
}

// readLocked reads the files unless they are unchanged. k.mu is held.
func (k *known) readLocked() error {
	stamp, there := stampOf(k.files)
	if k.check != nil && stamp == k.stamp {
		return nil
	}
	list := &keyList{revoked: map[string]knownhosts.KnownKey{}}
	for _, file := range there {
		text, err := source.Tree{}.Raw().Read(file, source.MaxFile)
		if err != nil {
			return fmt.Errorf("read known hosts: %w", err)
		}
		list.read(file, text)
	}
	k.warnLocked(list.skipped)
	k.check, k.stamp, k.added = list.check(), stamp, map[string]ssh.PublicKey{}
	return nil
}

// warnLocked warns once per file about lines that cannot be read. k.mu is held.
func (k *known) warnLocked(skipped []skippedLine) {
	for i, s := range skipped {
		if i > 0 && skipped[i-1].file == s.file || k.warned[s.file] {
			continue
		}
		k.warned[s.file] = true
		more := -1
		for _, other := range skipped {
			if other.file == s.file {
				more++
			}
		}
		text := fmt.Sprintf("%s:%d: this line is skipped: %s", s.file, s.line, s.err)
		if more > 0 {
			text += fmt.Sprintf(" (and %d more)", more)
		}
		k.warn(text)
	}
}

// stampOf changes when a file does; there lists the existing files.
func stampOf(files []string) (stamp string, there []string) {
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			continue
		}
		there = append(there, f)
		stamp += fmt.Sprintf("%s %d %d\n", f, info.Size(), info.ModTime().UnixNano())
	}
	return stamp, there
}

// verdict is nil for a known key, else the reason, as knownhosts reports it.
func (k *known) verdict(hostname string, remote net.Addr, key ssh.PublicKey) error {
	k.mu.Lock()
	check, own := k.check, k.added[knownhosts.Normalize(hostname)]
	k.mu.Unlock()
	switch {
	case own == nil:
		return check(hostname, remote, key)
	case bytes.Equal(own.Marshal(), key.Marshal()):
		return nil
	}
	return &knownhosts.KeyError{Want: []knownhosts.KnownKey{{Key: own, Filename: k.files[0]}}}
}

// accept appends key to the first known_hosts file, unless another connection has done so
// meanwhile: then the key must be the same.
func (k *known) accept(t *target, hostname string, key ssh.PublicKey) error {
	file := k.files[0]
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("store the host key: %w", err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("store the host key: %w", err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", file, err)
	}
	k.mu.Lock()
	err = k.readLocked()
	k.mu.Unlock()
	if err != nil {
		return err
	}
	var bad *knownhosts.KeyError
	again := k.verdict(hostname, &net.TCPAddr{}, key)
	switch {
	case again == nil:
		return nil
	case errors.As(again, &bad) && len(bad.Want) > 0:
		return t.changed(bad.Want, key)
	}
	return k.append(f, hostname, key)
}

// append writes the line; the file is locked.
func (k *known) append(f *os.File, hostname string, key ssh.PublicKey) error {
	name := knownhosts.Normalize(hostname)
	if err := appendLine(f, knownhosts.Line([]string{name}, key)); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.added[name] = key
	k.stamp, _ = stampOf(k.files)
	return nil
}
