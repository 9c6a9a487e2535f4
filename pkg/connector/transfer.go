package connector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// File is where Put writes and what it must be there.
type File struct {
	Path    string
	Mode    fs.FileMode // permission bits with setuid, setgid, sticky; 0 keeps an existing file's, else 0644, unless ModeSet
	ModeSet bool        // Mode is wanted though it is 0
	Owner   string      // name or number; "" keeps
	Group   string      // name or number; "" keeps
	Size    int64       // bytes that will come; -1 when not known
	SHA256  string      // lower-case hex digest of the content; "" when not known
	Backup  bool        // keep the old content beside it, as PATH.PID.TIME~
	// IfSHA256 is the digest that the content in place must have to be replaced, or
	// Absent; else Put fails with ErrChanged. "" replaces whatever is there.
	IfSHA256 string
	// Validate is a command line in which %s is the temporary file's path; the
	// file is put in place only if it succeeds. "" is no validation.
	Validate string
	// Unsafe writes in place when the folder does not allow a rename.
	Unsafe   bool
	Progress Progress // may be nil
}

// Absent is the File.IfSHA256 of a file that must not be there.
const Absent = "absent"

// ErrChanged says that the file in place is not the one that File.IfSHA256 names.
var ErrChanged = errors.New("the file on the host is another than before")

// Progress is told how many bytes have gone so far; total is -1 when unknown.
type Progress func(done, total int64)

// PutResult says what Put did.
type PutResult struct {
	Changed bool   // the content in place was not the wanted one
	Backup  string // path of the backup, "" when none was made
	SHA256  string // digest of the content now in place
}

// Put streams src into a temporary file beside f.Path, verifies its sha256 on the
// host, sets owner and mode, and renames it into place, in one round trip. When
// f.SHA256 is known and the file has it already, nothing is replaced. On any
// failure, cancelling included, the old file is whole and no temporary file is left.
//
// Content of more than 64 KB is sent only after the host said that it lacks it,
// which over SSH costs no further round trip. Owner and mode, when given, are set on an unchanged
// file too. Errors wrap fs.ErrNotExist (no such folder) and fs.ErrPermission.
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
	exitIntegrity = 43 // what came is not what was sent
	exitOther     = 44 // explained on standard error
	exitChanged   = 45 // not the content that was to be replaced
)

// scriptError explains a transfer script that ended with a code other than 0.
func scriptError(exit Exit, stderr string) error {
	text := strings.ReplaceAll(strings.TrimSpace(stderr), "\n", "; ")
	if text == "" {
		text = "the shell on the host said nothing"
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
		return fmt.Errorf("ended by signal %s: %s", exit.Signal, text)
	}
	return fmt.Errorf("exit code %d: %s", exit.Code, text)
}

// hashScript sets hash to the command that prints the sha256 of standard input in
// hex, then anything. A variable, because a function would cost a process more.
const hashScript = `if command -v sha256sum >/dev/null 2>&1; then hash=sha256sum
elif command -v shasum >/dev/null 2>&1; then hash='shasum -a 256'
elif command -v openssl >/dev/null 2>&1; then hash='openssl dgst -sha256 -r'
else echo 'the host has none of sha256sum, shasum and openssl: install one' >&2; exit 44; fi
`

// tail keeps the last bytes written to it, max of them or up to twice as many: the end
// of an error output says why.
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
