package connector

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// File is where Put writes and what it must be there.
type File struct {
	Path   string
	Mode   fs.FileMode // permission bits with setuid, setgid, sticky; 0 keeps an existing file's, else 0644
	Owner  string      // name or number; "" keeps
	Group  string      // name or number; "" keeps
	Size   int64       // bytes that will come; -1 when not known
	SHA256 string      // lower-case hex digest of the content; "" when not known
	Backup bool        // keep the old content beside it, as PATH.PID.TIME~
	// Validate is a command line in which %s is the temporary file's path; the
	// file is put in place only if it succeeds. "" is no validation.
	Validate string
	// Unsafe writes in place when the folder does not allow a rename.
	Unsafe   bool
	Progress Progress // may be nil
}

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
func Put(ctx context.Context, c Connector, f File, src io.Reader) (PutResult, error) {
	return PutResult{}, errors.New("stub")
}

// Get streams a file of the host into dst and returns its sha256, which is
// verified against the host's. A missing file is an error that wraps fs.ErrNotExist.
func Get(ctx context.Context, c Connector, path string, dst io.Writer, p Progress) (sha256 string, err error) {
	return "", errors.New("stub")
}
