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

// edit is a text file of the host that is read, changed in Go, and written
// back unless somebody else changed it meanwhile.
type edit struct {
	ans    *answer
	at     *entry
	exists bool
	text   string
}

// openEdit reads the file at a path, links followed. A missing file is an
// error unless create.
func openEdit(ctx context.Context, c *module.Call, name string, attrs *Attributes, create bool) (*edit, error) {
	ans, err := probe(ctx, c, attrs.Owner, attrs.Group, asked{flags: "pc", path: name, limit: maxEdit})
	if err != nil {
		return nil, err
	}
	e := &edit{ans: ans, at: ans.entries[0]}
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
		return nil, fmt.Errorf("%s cannot be read on the host: is there no permission, or neither base64 nor openssl?", e.at.path)
	case there.size > 0 && there.size != int64(len(e.at.content)): // /proc has files of no size
		return nil, fmt.Errorf("%s changed while it was read: run the task again", e.at.path)
	}
	e.exists, e.text = true, string(e.at.content)
	body, err := contentOf(e.at.content)
	if err != nil {
		return nil, err
	}
	e.at.sha256 = body.sha256
	return e, nil
}

// unfit is a path with nothing to edit. Its status is of no command: it is how
// playbooks tell a folder from a file that is missing.
type unfit struct {
	word, path, why string
	status          int
}

func (e *unfit) Error() string { return fmt.Sprintf("%s %s %s !", e.word, e.path, e.why) }

// notEdited is the result of a task that got no file from openEdit.
func notEdited(err error) (module.Result, error) {
	if e := (*unfit)(nil); errors.As(err, &e) {
		return module.Result{Data: value.NewDict("rc", e.status)}, err
	}
	return module.Result{}, err
}

// asPath says of a missing file Path, as blockinfile and replace do.
func asPath(err error) error {
	if e := (*unfit)(nil); errors.As(err, &e) {
		return &unfit{"Path", e.path, e.why, e.status}
	}
	return err
}

// edited is how an edit ended, for the result.
type edited struct {
	text     string
	msg      string
	touched  bool // the text is to be written, though it may be the same
	backup   bool
	validate string
	data     *value.Dict
	// whole results name the file and tell its owner and mode, besides what was edited.
	whole bool
}

// save writes the new text, and the attributes, and makes the result.
func (e *edit) save(ctx context.Context, c *module.Call, attrs *Attributes, to edited) (module.Result, error) {
	res := module.Result{Msg: to.msg, Data: to.data}
	if !e.exists && !to.touched {
		return res, nil
	}
	if !e.exists && !c.Check && missingFolder(e.at) != nil {
		var s script
		s.do("create folder "+parentOf(e.at.path), "mkdir", "-p", normal(parentOf(e.at.path)))
		if _, err := s.run(ctx, c); err != nil {
			return module.Result{}, err
		}
	}
	body, err := contentOf([]byte(to.text))
	if err != nil {
		return module.Result{}, err
	}
	w := &writing{
		ans: e.ans, at: e.at, follow: true, body: body, attrs: attrs,
		backup: to.backup, validate: to.validate, guarded: true,
	}
	out, err := w.run(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	res.Changed = out.changed()
	if to.whole {
		to.data.Set("path", out.path)
		out.describe(to.data)
	}
	switch {
	case to.data.Has("backup"):
		to.data.Set("backup", out.backup)
	case out.backup != "":
		to.data.Set("backup_file", out.backup)
	}
	if out.attributes.changed() && out.hadBefore {
		res.Msg = joinMsg(res.Msg, "ownership, perms or SE linux context changed")
	}
	to.data.Set("msg", res.Msg) // also when it is empty, as playbooks compare it
	if c.Diff && res.Changed {
		res.Diff = e.diff(out, to.text)
	}
	return res, nil
}

func joinMsg(a, b string) string {
	if a == "" {
		return b
	}
	return a + " and " + b
}

func (e *edit) diff(out *written, text string) []event.Diff {
	var diffs []event.Diff
	if out.content {
		header := out.path + " (content)"
		before := side{header: header, exists: e.exists, size: int64(len(e.text)), text: e.at.content}
		diffs = append(diffs, textDiff(before, side{header: header, size: int64(len(text)), text: []byte(text)}))
	}
	if out.attributes.changed() && out.hadBefore {
		d := attrDiff(out.path, &out.attributes)
		d.BeforeHeader, d.AfterHeader = out.path+" (file attributes)", out.path+" (file attributes)"
		diffs = append(diffs, d)
	}
	return diffs
}

// splitLines splits text into lines that keep their line ends.
func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// chomp is a line without its line end.
func chomp(line string) string { return strings.TrimSuffix(line, "\n") }
