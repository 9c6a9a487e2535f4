package system

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed textfile.sh
var textFileScript string

// FileAttrs are the owner and the mode of a file that a module keeps.
type FileAttrs struct {
	Mode  schema.FileMode `kk:"mode" doc:"mode of the file. Default: it keeps its own, and a new one gets 0644"`
	Owner string          `kk:"owner" doc:"name or number of its owner"`
	Group string          `kk:"group" doc:"name or number of its group"`
}

// textFile is a text file of the host, and what is to become of it.
type textFile struct {
	path   string
	now    hostscript.Answer
	before string // "" if there is no file
	after  string
	remove bool
	folder bool   // make its folder
	fresh  string // octal mode of a new file; "" is 644
	backup bool
}

// readText reads a file; one that is missing is empty.
func readText(ctx context.Context, c *module.Call, path string) (*textFile, error) {
	s := hostscript.New(textFileScript, "textfile_read").Set("path", path)
	s.Probe = true
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSuffix(a.Get("text"), "x")
	return &textFile{path: path, now: a, before: text, after: text}, nil
}

func (f *textFile) exists() bool { return f.now.Has("text") }

// save makes the file what it is to be, unless it is, or only says so in check
// mode: it sets Changed, Diff and backup_file of the result.
func (f *textFile) save(ctx context.Context, c *module.Call, attrs FileAttrs, r *module.Result) error {
	write := f.after != f.before || !f.exists() && !f.remove && f.after != ""
	s := hostscript.New(textFileScript, "textfile_write").Set("path", f.path).Set("new_mode", f.fresh).Flag("folder", f.folder)
	s.Stdin = strings.NewReader(f.after)
	switch {
	case f.remove:
		r.Changed = r.Changed || f.exists()
		s.Flag("remove", true)
	case f.exists() || write:
		changed, err := attrs.differ(f, s)
		if err != nil {
			return err
		}
		r.Changed = r.Changed || write || changed
		s.Flag("write", write)
	}
	if c.Diff && (write || f.remove && f.exists()) {
		r.Diff = append(r.Diff, event.Diff{BeforeHeader: f.path, AfterHeader: f.path, Before: f.before, After: f.after})
	}
	if !r.Changed || c.Check {
		return nil
	}
	a, err := s.Flag("backup", f.backup && f.exists()).Run(ctx, c.Conn, c.Check)
	if err == nil && a.Has("backup") {
		if r.Data == nil {
			r.Data = value.NewDict()
		}
		r.Data.Set("backup_file", a.Get("backup"))
	}
	return err
}

// differ gives the script what of the attributes the file does not have.
func (w FileAttrs) differ(f *textFile, s *hostscript.Script) (bool, error) {
	changed := false
	for key, want := range map[string]string{"owner": w.Owner, "group": w.Group} {
		number, name, _ := strings.Cut(f.now.Get(key), " ")
		if want == "" || want == number || want == name {
			continue
		}
		s.Set(key, want)
		changed = changed || f.exists()
	}
	if !w.Mode.IsSet() {
		return changed, nil
	}
	had := f.now.Get("mode")
	if !f.exists() {
		had = "644"
	}
	bits, err := strconv.ParseUint(had, 8, 32)
	if err != nil {
		return false, fmt.Errorf("the host says that the mode of %s is %q", f.path, had)
	}
	want, err := w.Mode.Apply(schema.ModeOfUnix(uint32(bits)), false)
	if err != nil {
		return false, err
	}
	if got := schema.UnixMode(want); got != uint32(bits) || !f.exists() {
		s.Set("mode", strconv.FormatUint(uint64(got), 8))
		changed = changed || f.exists()
	}
	return changed, nil
}
