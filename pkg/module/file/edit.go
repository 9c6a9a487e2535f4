package file

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// Edit is a text file on the host that is read, changed in Go and written back. Writing fails if the file was
// changed in the meantime.
type Edit struct {
	ans    *answer
	at     *entry
	Exists bool
	Text   string
}

// OpenEdit reads the file at a path and follows links. A missing file is an error unless create is set.
func OpenEdit(ctx context.Context, c *module.Call, name string, attrs *Attributes, create bool) (*Edit, error) {
	ans, err := probe(ctx, c, attrs.Owner, attrs.Group, asked{flags: "pc", path: name, limit: maxEdit})
	if err != nil {
		return nil, err
	}
	e := &Edit{ans: ans, at: ans.entries[0]}
	there := e.at.followed()
	switch {
	case there.is(typeDir):
		return nil, &unfit{"Path", e.at.path, "is a directory", 256}
	case there == nil && !create:
		return nil, &unfit{"Destination", e.at.path, "does not exist", 257}
	case there == nil:
		return e, nil
	case !there.is(typeFile):
		return nil, fmt.Errorf("%s is not a regular file", e.at.path)
	case there.size > maxEdit:
		return nil, fmt.Errorf("%s has %d bytes: at most %d are edited", e.at.path, there.size, maxEdit)
	case !e.at.hasText || len(e.at.content) == 0 && there.size > 0:
		return nil, fmt.Errorf("%s cannot be read on the host: check its permissions, and that base64 or openssl is "+
			"installed", e.at.path)
	case there.size > 0 && there.size != int64(len(e.at.content)): // files in /proc report size 0
		return nil, fmt.Errorf("%s changed while it was read: run the task again", e.at.path)
	}
	e.Exists, e.Text = true, string(e.at.content)
	body, err := contentOf(e.at.content)
	if err != nil {
		return nil, err
	}
	e.at.sha256 = body.sha256
	return e, nil
}

// unfit is the error for a path that cannot be edited. Its status does not come from a command: playbooks use it to
// distinguish a folder from a missing file.
type unfit struct {
	word, path, why string
	status          int
}

func (e *unfit) Error() string { return fmt.Sprintf("%s %s %s !", e.word, e.path, e.why) }

// NotEdited returns the result of a task for an error of OpenEdit.
func NotEdited(err error) (module.Result, error) {
	if e := (*unfit)(nil); errors.As(err, &e) {
		return module.Result{Data: value.NewDict("rc", e.status)}, err
	}
	return module.Result{}, err
}

// asPath changes the error for a missing file to "Path ...", as in blockinfile and replace.
func asPath(err error) error {
	if e := (*unfit)(nil); errors.As(err, &e) {
		return &unfit{"Path", e.path, e.why, e.status}
	}
	return err
}

// Edited is the outcome of an edit.
type Edited struct {
	Text     string
	Msg      string
	Touched  bool // write the text even if it is unchanged
	Backup   bool
	Validate string
	Data     *value.Dict
	// Whole adds the path, the owner and the mode of the file to the result.
	Whole bool
}

// Save writes the new text and the attributes, and creates the result.
func (e *Edit) Save(ctx context.Context, c *module.Call, attrs *Attributes, to Edited) (module.Result, error) {
	res := module.Result{Msg: to.Msg, Data: to.Data}
	if !e.Exists && !to.Touched {
		return res, nil
	}
	if !e.Exists && !c.Check && missingFolder(e.at) != nil {
		var s script
		s.do("create folder "+parentOf(e.at.path), "mkdir", "-p", NormalPath(parentOf(e.at.path)))
		if _, err := s.run(ctx, c); err != nil {
			return module.Result{}, err
		}
	}
	body, err := contentOf([]byte(to.Text))
	if err != nil {
		return module.Result{}, err
	}
	w := &writing{
		ans: e.ans, at: e.at, follow: true, body: body, attrs: attrs,
		backup: to.Backup, validate: to.Validate, guarded: true,
	}
	out, err := w.run(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	res.Changed = out.changed()
	if to.Whole {
		to.Data.Set("path", out.path)
		out.describe(to.Data)
	}
	switch {
	case to.Data.Has("backup"):
		to.Data.Set("backup", out.backup)
	case out.backup != "":
		to.Data.Set("backup_file", out.backup)
	}
	if out.attributes.changed() && out.hadBefore {
		res.Msg = joinMsg(res.Msg, "ownership, perms or SE linux context changed")
	}
	to.Data.Set("msg", res.Msg) // set even if it is empty, because playbooks compare it
	if c.Diff && res.Changed {
		res.Diff = e.diff(out, to.Text)
	}
	return res, nil
}

func joinMsg(a, b string) string {
	if a == "" {
		return b
	}
	return a + " and " + b
}

func (e *Edit) diff(out *written, text string) []event.Diff {
	var diffs []event.Diff
	if out.content {
		header := out.path + " (content)"
		before := Side{header: header, Exists: e.Exists, size: int64(len(e.Text)), Text: e.at.content}
		diffs = append(diffs, TextDiff(before, Side{header: header, size: int64(len(text)), Text: []byte(text)}))
	}
	if out.attributes.changed() && out.hadBefore {
		d := attrDiff(out.path, &out.attributes)
		d.BeforeHeader, d.AfterHeader = out.path+" (file attributes)", out.path+" (file attributes)"
		diffs = append(diffs, d)
	}
	return diffs
}

// SplitLines splits text into lines that keep their line breaks.
func SplitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Chomp returns a line without its line break.
func Chomp(line string) string { return strings.TrimSuffix(line, "\n") }
