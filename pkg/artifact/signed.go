package artifact

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Signatures are entries behind the last blob. Their names are the digests of their texts.

const (
	signaturePrefix = "kk/signatures/"
	signatureSuffix = ".sig"
	// armor is how the text of an SSH signature begins.
	armor = "-----BEGIN SSH SIGNATURE-----\n"
	// maxSignature is the size of the longest signature that is read, and maxSignatures their number.
	maxSignature, maxSignatures = 64 << 10, 100
)

func signatureName(text []byte) string {
	return signaturePrefix + strings.TrimPrefix(digestOf(text), "sha256:") + signatureSuffix
}

// DetachedName returns the path of the signatures that lie next to the file.
func (f *File) DetachedName() string { return f.Path + signatureSuffix }

// Signatures returns the texts of all signatures: those in the file, and those that lie next to it. None
// of them is verified.
func (f *File) Signatures() ([][]byte, error) {
	appended, detached, err := f.SignaturesByPlace()
	return append(appended, detached...), err
}

// SignaturesByPlace returns the texts of the signatures in the file, and of those that lie next to it.
func (f *File) SignaturesByPlace() (appended, detached [][]byte, err error) {
	appended, err = f.appended()
	if err != nil || f.parts == nil {
		return appended, nil, err
	}
	detached, err = readDetached(f.DetachedName())
	return appended, detached, err
}

// readDetached reads the signatures in a file, one behind the other.
func readDetached(path string) ([][]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxSignature*maxSignatures:
		return nil, fmt.Errorf("%s is not a file of signatures", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, piece := range strings.SplitAfter(string(text), "-----END SSH SIGNATURE-----\n") {
		if strings.TrimSpace(piece) != "" {
			all = append(all, []byte(piece))
		}
	}
	return all, nil
}

// appended returns the texts of the signatures in the file.
func (f *File) appended() ([][]byte, error) {
	all, _, err := f.walkSignatures()
	return all, err
}

// walkSignatures reads the signatures in the file, and returns the offset behind the last one.
func (f *File) walkSignatures() (all [][]byte, end int64, err error) {
	head := &headReader{data: f.data, at: f.end, size: f.size}
	var names []string
	for {
		got := make([]byte, block)
		if _, err := f.data.ReadAt(got, head.at); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", f.Path, errCut)
		}
		if len(bytes.Trim(got, "\x00")) == 0 {
			return all, head.at, nil
		}
		name, size := entryOf(got)
		switch {
		case !strings.HasPrefix(name, signaturePrefix):
			return nil, 0, fmt.Errorf("%s: the entry at byte %d is not in the manifest: %s", f.Path, head.at, describe(got))
		case size > maxSignature || len(all) == maxSignatures:
			return nil, 0, fmt.Errorf("%s: at most %d signatures of %d bytes are read", f.Path, maxSignatures, maxSignature)
		case slices.Contains(names, name):
			return nil, 0, fmt.Errorf("%s: %s is in it twice", f.Path, name)
		}
		text, err := head.next(name)
		if err != nil {
			return nil, 0, fmt.Errorf("%s: %w", f.Path, err)
		}
		if want := signatureName(text); name != want {
			return nil, 0, fmt.Errorf("%s: the signature %s is damaged: its name should be %s", f.Path, name, want)
		}
		all, names = append(all, text), append(names, name)
	}
}

// checkEnd checks what follows the last blob: signatures and the end of the tar. When kk is killed while
// it adds a signature, the tar ends before it.
func (f *File) checkEnd() error {
	_, end, err := f.walkSignatures()
	if err != nil {
		return err
	}
	if end+trailer > f.size {
		return fmt.Errorf("%s: %w", f.Path, errCut)
	}
	rest := make([]byte, min(f.size-end, maxSignature+2*trailer))
	if _, err := f.data.ReadAt(rest, end); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	behind := bytes.TrimRight(rest[block:], "\x00")
	unfinished := f.size-end <= maxSignature+2*trailer && len(behind) > 0 &&
		(bytes.HasPrefix(behind, []byte(armor)) || bytes.HasPrefix([]byte(armor), behind))
	if !unfinished && (f.size > end+trailer || len(behind) > 0) {
		return fmt.Errorf("%s: %d bytes follow the end of the tar", f.Path, f.size-end-trailer)
	}
	return nil
}

// AppendSignature adds a signature to a file. No byte that is in it already changes but the end of the tar.
// Whenever the process is killed, the file is as before, or signed. changed is false if the file has this
// signature.
func AppendSignature(path string, text []byte) (changed bool, err error) {
	if !bytes.HasPrefix(text, []byte(armor)) || len(text) > maxSignature {
		return false, errors.New("that is not the text of an SSH signature")
	}
	p, whole, err := openParts(path, os.O_RDWR)
	if err != nil {
		return false, err
	}
	changed, err = appendSignature(whole, p, text)
	if err = errors.Join(err, p.Close()); err != nil {
		err = fmt.Errorf("sign %s: %w", path, err)
	}
	return changed, err
}

func appendSignature(path string, p *parts, text []byte) (changed bool, err error) {
	if err := syscall.Flock(int(p.files[0].Fd()), syscall.LOCK_EX); err != nil {
		return false, err
	}
	f, err := openFile(path, p)
	if err != nil {
		return false, err
	}
	all, at, err := f.walkSignatures()
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(all, func(s []byte) bool { return bytes.Equal(s, text) }) {
		return false, nil
	}
	if len(all) == maxSignatures {
		return false, fmt.Errorf("it has %d signatures, and that is the most", maxSignatures)
	}
	hdr, err := header(signatureName(text), int64(len(text)))
	if err != nil {
		return false, err
	}
	// The header comes last: before it is written, the tar ends where it ended.
	rest := make([]byte, padded(int64(len(text)))+trailer)
	copy(rest, text)
	if err := p.write(rest, at+block); err != nil {
		return false, err
	}
	if err := p.truncate(at + block + int64(len(rest))); err != nil { // what an attempt before this has left
		return false, err
	}
	return true, p.write(hdr, at)
}

// truncate cuts off what is behind an offset.
func (p *parts) truncate(size int64) error {
	for i, f := range p.files {
		start, end := p.bounds(i)
		if end <= size {
			continue
		}
		err := f.Truncate(max(0, size-start))
		if i > 0 && start >= size {
			err = os.Remove(f.Name())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes and syncs bytes at an offset. What is behind the last part goes into it, or into a further
// part if the last one is full.
func (p *parts) write(b []byte, at int64) error {
	for len(b) > 0 {
		i := p.at(at)
		if i == len(p.files) {
			if err := p.grow(int64(len(b))); err != nil {
				return err
			}
			continue
		}
		start, end := p.bounds(i)
		piece := b[:min(int64(len(b)), end-at)]
		if _, err := p.files[i].WriteAt(piece, at-start); err != nil {
			return err
		}
		if err := p.files[i].Sync(); err != nil {
			return err
		}
		b, at = b[len(piece):], at+int64(len(piece))
	}
	return nil
}

// grow makes room for up to n more bytes behind the end. The size of the file on disk grows when they are
// written.
func (p *parts) grow(n int64) error {
	last := len(p.files) - 1
	if last == 0 {
		p.ends[0] += n
		return nil
	}
	start, end := p.bounds(last)
	if room := p.ends[0] - (end - start); room > 0 {
		p.ends[last] += min(room, n)
		return nil
	}
	base, _ := partOf(p.files[last].Name())
	if len(p.files) == maxParts {
		return fmt.Errorf("%s has no room: sign with a signature next to the file", p.files[last].Name())
	}
	f, err := os.OpenFile(partName(base, len(p.files)+1), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	p.files, p.ends = append(p.files, f), append(p.ends, end+min(n, p.ends[0]))
	return nil
}

// entryOf returns the name and the size in a header block.
func entryOf(got []byte) (string, int64) {
	hdr, err := parseHeader(got)
	if err != nil {
		return "", 0
	}
	return hdr.Name, hdr.Size
}
