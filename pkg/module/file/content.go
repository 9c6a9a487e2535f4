package file

import (
	"bytes"
	"crypto/md5"  //nolint:gosec // a documented key of results
	"crypto/sha1" //nolint:gosec // a documented key of results
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"unicode/utf8"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/source"
)

// content is data on the control node to be sent to a host, with its digests.
type content struct {
	size              int64
	sha256, sha1, md5 string
	open              func() (io.ReadCloser, error)
}

func contentOf(b []byte) (*content, error) {
	return digested(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
}

// contentAt returns a file of the control node to be sent to hosts. Its digests are computed once, for the first
// host.
func contentAt(c *module.Call, name string, decrypt bool) (*content, error) {
	tree := files(c, decrypt)
	info, err := tree.Stat(name)
	if err != nil {
		return nil, unread(name, err)
	}
	key := fmt.Sprintf("digests of %s %d %d %t", name, info.Size(), info.ModTime().UnixNano(), decrypt)
	v, err := c.Share.Do(key, func() (any, error) { return localFile(tree, name) })
	if err != nil {
		return nil, err
	}
	ct, _ := v.(*content)
	return ct, nil
}

// localFile returns a file of the control node with its digests, which are computed immediately.
func localFile(tree source.Tree, name string) (*content, error) {
	ct, err := digested(func() (io.ReadCloser, error) { return tree.Open(name) })
	if err != nil {
		return nil, unread(name, err)
	}
	return ct, nil
}

func unread(name string, err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("read %s: %w", name, p.Err)
	}
	return err
}

func digested(open func() (io.ReadCloser, error)) (*content, error) {
	r, err := open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	h256, h1, h5 := sha256.New(), sha1.New(), md5.New() //nolint:gosec // as above
	n, err := io.Copy(io.MultiWriter(h256, h1, h5), r)
	if err != nil {
		return nil, err
	}
	return &content{
		size: n, open: open,
		sha256: hex.EncodeToString(h256.Sum(nil)), sha1: hex.EncodeToString(h1.Sum(nil)),
		md5: hex.EncodeToString(h5.Sum(nil)),
	}, nil
}

func (ct *content) bytes() ([]byte, error) {
	r, err := ct.open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// maxDiff is the maximum size of a text in a diff, in bytes.
const maxDiff = 104448

// isBinary reports whether b is binary, so that a diff would not be useful.
func isBinary(b []byte) bool {
	return bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b)
}

// Side is one side of a diff.
type Side struct {
	header string
	Exists bool
	size   int64
	Text   []byte
}

// TextDiff returns the diff of two texts, or the reason why it is not shown.
func TextDiff(before, after Side) event.Diff {
	d := event.Diff{BeforeHeader: before.header, AfterHeader: after.header, Before: "", After: ""}
	switch {
	case before.Exists && before.size > maxDiff:
		d.Note = fmt.Sprintf("diff skipped: destination file size is greater than %d", maxDiff)
	case after.size > maxDiff:
		d.Note = fmt.Sprintf("diff skipped: source file size is greater than %d", maxDiff)
	case isBinary(before.Text):
		d.Note = "diff skipped: destination file appears to be binary"
	case isBinary(after.Text):
		d.Note = "diff skipped: source file appears to be binary"
	default:
		d.Before, d.After = string(before.Text), string(after.Text)
	}
	return d
}

// attrDiff returns the diff of changed attributes.
func attrDiff(path string, ch *change) event.Diff {
	ch.before.Set("path", path)
	ch.after.Set("path", path)
	return event.Diff{Before: ch.before, After: ch.after}
}
