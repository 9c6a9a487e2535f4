package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"

	"kubekey/pkg/redact"
)

// outputsDir is the folder, in a run's folder, of outputs that are too long for a result.
const outputsDir = "outputs"

const (
	// keepOutputs is the number of runs whose outputs are kept: they are large, and soon obsolete.
	keepOutputs = 10
	// reserve is the disk space, in bytes, that outputs leave free.
	reserve = 512 << 20
	// lookEvery is the number of bytes between checks of the free space.
	lookEvery = 64 << 20
)

// Output stores one long output of a command on disk, with secrets hidden. Writing to it never
// fails: a full disk does not stop a run.
type Output struct {
	dir    string
	file   *os.File
	hidden *redact.Writer
	left   *atomic.Int64 // bytes that the run may still store
	kept   int64
	free   int64 // bytes that may be written before the next check of the disk
	lost   error
}

// Output starts storing an output (stdout or stderr) of a task on a host. It may be called from
// any goroutine before Close. The total size is limited by BoundOutputs.
func (w *Writer) Output(id int, task, host, stream string) *Output {
	o := &Output{dir: filepath.Join(w.dir, outputsDir), left: &w.outputs}
	name := fmt.Sprintf("%d-%s.%s", id, fileWord(w.hide.Text(task)), fileWord(w.hide.Text(host)))
	o.file, o.lost = create(o.dir, name, stream)
	o.hidden = w.hide.NewWriter(storing{o})
	return o
}

// BoundOutputs sets the limit, in bytes, for all outputs of the run together.
func (w *Writer) BoundOutputs(most int64) { w.outputs.Store(most) }

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	if o.lost == nil {
		_, o.lost = o.hidden.Write(p)
	}
	return len(p), nil
}

// End closes the file. It returns its path, how many bytes of the output it has, and why not
// all. The path is "" if there is no file.
func (o *Output) End() (file string, kept int64, lost error) {
	if o.file == nil {
		return "", 0, o.lost
	}
	if o.lost == nil {
		o.lost = o.hidden.Close()
	}
	if err := o.file.Close(); o.lost == nil {
		o.lost = err
	}
	return o.file.Name(), o.kept, o.lost
}

// storing is the file of an output.
type storing struct{ o *Output }

func (s storing) Write(p []byte) (int, error) {
	o, n := s.o, int64(len(p))
	if o.left.Add(-n) < 0 {
		o.left.Add(n)
		return 0, errors.New("the long outputs of this run have reached the limit of the setting output_disk")
	}
	if o.free -= n; o.free < 0 {
		if err := room(o.dir); err != nil {
			return 0, err
		}
		o.free = lookEvery
	}
	wrote, err := o.file.Write(p)
	o.kept += int64(wrote)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err // the message already names the file
	}
	return wrote, err
}

// room is an error if the disk of a folder is nearly full.
func room(dir string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return fmt.Errorf("check the free disk space: %w", err)
	}
	if free := uint64(s.Bavail) * uint64(s.Bsize); free < reserve { //nolint:unconvert // their types differ between systems
		return fmt.Errorf("less than %d MiB are free on the journal's disk", reserve>>20)
	}
	return nil
}

// create creates the file of an output. A task in a loop has several.
func create(dir, name, stream string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for n := 1; ; n++ {
		again := ""
		if n > 1 {
			again = fmt.Sprintf(".%d", n)
		}
		f, err := os.OpenFile(filepath.Join(dir, name+again+"."+stream), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

var noFileWord = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// fileWord converts a name to a part of a file name.
func fileWord(name string) string {
	word := strings.Trim(noFileWord.ReplaceAllString(name, "_"), "._")
	return word[:min(len(word), 60)]
}

var outputName = regexp.MustCompile(`^\d+-.*\.(stdout|stderr)$`)

// removeOutputs removes the outputs of a run.
func removeOutputs(dir string) error {
	dir = filepath.Join(dir, outputsDir)
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, f := range files {
		if !outputName.MatchString(f.Name()) {
			continue
		}
		// Another run may remove them at the same time.
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	_ = os.Remove(dir) // it may contain files of the user
	return err
}
