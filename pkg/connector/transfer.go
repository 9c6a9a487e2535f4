package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// File is the target of Put and its attributes.
type File struct {
	Path string
	// Mode is permission bits with setuid, setgid, sticky. 0 without ModeSet keeps an existing
	// file's mode, and is 0644 for a new file.
	Mode    fs.FileMode
	ModeSet bool   // Mode applies even if it is 0
	Owner   string // name or number; "" keeps the current one
	Group   string // name or number; "" keeps the current one
	Size    int64  // length of the content in bytes; -1 if not known
	SHA256  string // lower-case hex digest of the content; "" if not known
	Backup  bool   // keep the previous content as PATH.PID.TIME~
	// IfSHA256 is the digest that the existing content must have to be replaced, or
	// Absent; otherwise Put fails with ErrChanged. "" replaces any content.
	IfSHA256 string
	// Validate is a command line in which %s is the temporary file's path; the file is
	// put in place only if it succeeds. "" skips validation.
	Validate string
	// Unsafe writes in place if the folder does not allow a rename.
	Unsafe   bool
	Progress Progress // may be nil
}

// Absent is the File.IfSHA256 of a file that must not exist.
const Absent = "absent"

// ErrChanged reports that the existing file is not the one that File.IfSHA256 describes.
var ErrChanged = errors.New("the file on the host has changed")

// Progress is called with the bytes transferred so far; total is -1 if unknown.
type Progress func(done, total int64)

// PutResult is the result of Put.
type PutResult struct {
	Changed bool   // the content in place was replaced
	Backup  string // path of the backup, "" if none was made
	SHA256  string // digest of the content that is now in place
}

// Put streams src into a temporary file next to f.Path, verifies its sha256 on the host,
// sets owner and mode, and renames it into place, in one round trip. If f.SHA256 is known
// and the file has it already, nothing is replaced. On any failure, including cancellation,
// the previous file is intact and no temporary file remains.
//
// Content of more than 64 KB is sent only after the host has reported that it needs it,
// which over SSH costs no extra round trip. Owner and mode, if set, are applied to an
// unchanged file too. Errors wrap fs.ErrNotExist (no such folder) and fs.ErrPermission.
func Put(ctx context.Context, c Connector, f File, src io.Reader) (PutResult, error) {
	res, err := put(ctx, c, f, src)
	if err != nil {
		return PutResult{}, fmt.Errorf("put %s: %w", f.Path, err)
	}
	return res, nil
}

// Get streams a file of the host into dst and returns its sha256, which is
// verified against the host's. A missing file is an error that wraps fs.ErrNotExist.
func Get(ctx context.Context, c Connector, path string, dst io.Writer, p Progress) (sha256 string, err error) {
	sum, err := get(ctx, c, path, dst, p)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", path, err)
	}
	return sum, nil
}

// The exit codes of the transfer scripts, apart from what a shell uses itself.
const (
	exitMissing   = 40 // no such file or folder
	exitDenied    = 41 // no permission
	exitKind      = 42 // a folder, or not a regular file
	exitIntegrity = 43 // the received content differs from the sent one
	exitOther     = 44 // explained on standard error
	exitChanged   = 45 // the existing content is not the expected one
)

// scriptError explains a transfer script that exited with a code other than 0.
func scriptError(exit Exit, stderr string) error {
	text := strings.ReplaceAll(strings.TrimSpace(stderr), "\n", "; ")
	if text == "" {
		text = "the shell on the host printed no message"
	}
	switch exit.Code {
	case exitMissing:
		return fmt.Errorf("%s: %w", text, fs.ErrNotExist)
	case exitDenied:
		return fmt.Errorf("%s: %w", text, fs.ErrPermission)
	case exitChanged:
		return fmt.Errorf("%s: %w", text, ErrChanged)
	case exitKind, exitIntegrity, exitOther:
		return fmt.Errorf("%s", text)
	}
	if exit.Signal != "" {
		return fmt.Errorf("killed by signal %s: %s", exit.Signal, text)
	}
	return fmt.Errorf("exit code %d: %s", exit.Code, text)
}

// hashScript sets hash to the command that prints the sha256 of standard input in hex,
// then anything. It is a variable because a function would cost one process more.
const hashScript = `if command -v sha256sum >/dev/null 2>&1; then hash=sha256sum
elif command -v shasum >/dev/null 2>&1; then hash='shasum -a 256'
elif command -v openssl >/dev/null 2>&1; then hash='openssl dgst -sha256 -r'
else echo 'the host has none of sha256sum, shasum and openssl: install one' >&2; exit 44; fi
`

// tail keeps the last max bytes written to it, or up to twice as many: the end of an error
// output is the useful part.
type tail struct {
	text []byte
	max  int
}

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if len(t.text) > 2*t.max {
		t.text = append(t.text[:0], t.text[len(t.text)-t.max:]...)
	}
	return len(p), nil
}
