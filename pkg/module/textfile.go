package module

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed textfile.sh
var textFileScript string

// TextFileScript returns the shell functions textfile_read and textfile_write, for scripts that must first find the
// file p_path.
func TextFileScript() string { return textFileScript }

// FileAttrs are the owner and the mode of a file that a module manages.
type FileAttrs struct {
	Mode  schema.FileMode `kk:"mode" doc:"mode of the file. Default: unchanged; 0644 for a new file"`
	Owner string          `kk:"owner" doc:"name or number of the owner"`
	Group string          `kk:"group" doc:"name or number of the group"`
}

// TextFile is a text file on the host, and its desired state.
type TextFile struct {
	Path   string
	Now    hostscript.Answer
	Before string // "" if the file does not exist
	After  string
	Remove bool
	Folder bool   // create its folder
	Fresh  string // octal mode of a new file; "" is 644
	Backup bool
}

// ReadText reads a file. A missing file is read as empty.
func ReadText(ctx context.Context, c *Call, path string) (*TextFile, error) {
	s := hostscript.New(textFileScript, "textfile_read").Set("path", path)
	a, err := c.Probe(ctx, s)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(a.Get("text"), "x")
	return &TextFile{Path: path, Now: a, Before: text, After: text}, nil
}

func (f *TextFile) Exists() bool { return f.Now.Has("text") }

// Save writes the desired state of the file if it differs, or only reports it in check
// mode: it sets Changed, Diff and backup_file of the result.
func (f *TextFile) Save(ctx context.Context, c *Call, attrs FileAttrs, r *Result) error {
	write := f.After != f.Before || !f.Exists() && !f.Remove && f.After != ""
	s := hostscript.New(textFileScript, "textfile_write").Set("path", f.Path).Set("new_mode", f.Fresh).Flag("folder",
		f.Folder)
	s.Stdin = strings.NewReader(f.After)
	switch {
	case f.Remove:
		r.Changed = r.Changed || f.Exists()
		s.Flag("remove", true)
	case f.Exists() || write:
		changed, err := attrs.differ(f, s)
		if err != nil {
			return err
		}
		r.Changed = r.Changed || write || changed
		s.Flag("write", write)
	}
	if c.Diff && (write || f.Remove && f.Exists()) {
		r.Diff = append(r.Diff, event.Diff{BeforeHeader: f.Path, AfterHeader: f.Path, Before: f.Before, After: f.After})
	}
	if !r.Changed || c.Check {
		return nil
	}
	a, err := s.Flag("backup", f.Backup && f.Exists()).Run(ctx, c.Conn, c.Check)
	if err == nil && a.Has("backup") {
		if r.Data == nil {
			r.Data = value.NewDict()
		}
		r.Data.Set("backup_file", a.Get("backup"))
	}
	return err
}

// Restore restores the file to its state when it was read, if it existed.
func (f *TextFile) Restore(ctx context.Context, c *Call) error {
	s := hostscript.New(textFileScript, "textfile_write").Set("path", f.Path).Set("new_mode", "644").Flag("remove",
		!f.Exists()).Flag("write", f.Exists())
	s.Stdin = strings.NewReader(f.Before)
	_, err := s.Run(ctx, c.Conn, c.Check)
	return err
}

// differ passes to the script the attributes that the file does not have yet.
func (w FileAttrs) differ(f *TextFile, s *hostscript.Script) (bool, error) {
	changed := false
	for key, want := range map[string]string{"owner": w.Owner, "group": w.Group} {
		number, name, _ := strings.Cut(f.Now.Get(key), " ")
		if want == "" || want == number || want == name {
			continue
		}
		s.Set(key, want)
		changed = changed || f.Exists()
	}
	if !w.Mode.IsSet() {
		return changed, nil
	}
	had := f.Now.Get("mode")
	if !f.Exists() {
		had = "644"
	}
	bits, err := strconv.ParseUint(had, 8, 32)
	if err != nil {
		return false, fmt.Errorf("the host returned %q as the mode of %s", f.Path, had)
	}
	want, err := w.Mode.Apply(schema.ModeOfUnix(uint32(bits)), false)
	if err != nil {
		return false, err
	}
	if got := schema.UnixMode(want); got != uint32(bits) || !f.Exists() {
		s.Set("mode", strconv.FormatUint(uint64(got), 8))
		changed = changed || f.Exists()
	}
	return changed, nil
}
