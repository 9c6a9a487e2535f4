package source

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// Decrypter decrypts texts that are encrypted with Ansible Vault.
type Decrypter interface {
	// Decrypt returns the plain text of a text for which IsVault is true. The caller must not modify the result. An
	// error may have a method Help() string with a hint.
	Decrypt(text []byte) ([]byte, error)
}

const vaultMark = "$ANSIBLE_VAULT;"

// IsVault reports whether a text begins with the header of Ansible Vault.
func IsVault(text []byte) bool { return bytes.HasPrefix(text, []byte(vaultMark)) }

// Raw returns a tree that does not decrypt files.
func (t Tree) Raw() Tree {
	t.raw = true
	return t
}

// Load reads a whole file of at most MaxFile bytes as a File. name is the name shown to users. Diagnostics do not
// show lines of a file that was encrypted.
func (t Tree) Load(path, name string) (*File, error) {
	text, err := t.Raw().Read(path, MaxFile)
	if err != nil || t.raw || !IsVault(text) {
		return NewFile(name, text), err
	}
	f := NewFile(name, text)
	plain, err := t.decrypt(f)
	return &File{Name: name, Text: plain, Secret: true}, err
}

func (t Tree) decrypt(f *File) ([]byte, error) {
	plain, err := Decrypt(t.Vault, Pos{File: f, Line: 1, Col: 1}, f.Text)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(plain), nil
}

// Decrypt decrypts the text at a position. The error is a *Diagnostic. A nil d decrypts nothing.
func Decrypt(d Decrypter, at Pos, text []byte) ([]byte, error) {
	if d == nil {
		return nil, Errorf(at, "this is encrypted with a vault, and nothing here opens vaults")
	}
	plain, err := d.Decrypt(text)
	if err != nil {
		bad := Errorf(at, "%s", err)
		var helper interface{ Help() string }
		if errors.As(err, &helper) {
			bad.Help = helper.Help()
		}
		return nil, bad
	}
	return plain, nil
}

// readVault replaces an encrypted text by its plain text.
func (t Tree) readVault(path string, text []byte) ([]byte, error) {
	if t.raw || !IsVault(text) {
		return text, nil
	}
	return t.decrypt(NewFile(Shown(path), text))
}

// openVault replaces an encrypted file by its plain text.
func (t Tree) openVault(path string, f *os.File) (fs.File, error) {
	info, err := f.Stat()
	if err != nil || t.raw || !info.Mode().IsRegular() || info.Size() < int64(len(vaultMark)) {
		return f, err
	}
	head := make([]byte, len(vaultMark))
	if _, err := io.ReadFull(f, head); err != nil || !IsVault(head) {
		_, err = f.Seek(0, io.SeekStart)
		return f, err
	}
	if info.Size() > MaxData {
		return nil, errors.Join(pathError(path, sizeError{MaxData}), f.Close())
	}
	rest, err := io.ReadAll(io.LimitReader(f, MaxData))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	plain, err := t.readVault(path, append(head, rest...))
	return &opened{bytes.NewReader(plain), openedInfo{info, int64(len(plain))}}, err
}

// opened is a decrypted file.
type opened struct {
	*bytes.Reader
	info openedInfo
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *opened) Close() error               { return nil }

type openedInfo struct {
	fs.FileInfo
	size int64
}

func (i openedInfo) Size() int64 { return i.size }
