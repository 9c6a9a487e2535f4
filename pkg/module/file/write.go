package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// writing writes content to a path that has been probed (with the flags p and h).
type writing struct {
	ans      *answer
	at       *entry
	follow   bool // write to the target of a link; otherwise replace the link
	body     *content
	attrs    *Attributes
	srcMode  fs.FileMode // source of mode "preserve"
	backup   bool
	validate string
	// guarded makes the write fail if the digest of the file is no longer at.sha256.
	guarded bool
}

// written is the result of a writing, or its prediction.
type written struct {
	path       string
	content    bool // the content changed
	attributes change
	backup     string
	hadBefore  bool
}

func (w *written) changed() bool { return w.content || w.attributes.changed() }

// describe sets the keys of results.
func (w *written) describe(d *value.Dict) { w.attributes.next.describe(d) }

func (w *writing) run(ctx context.Context, c *module.Call) (*written, error) {
	out, err := w.plan(c)
	switch {
	case err != nil || c.Check || !out.changed():
	case out.content:
		err = w.put(ctx, c, out)
	default:
		err = w.adjust(ctx, c, out)
	}
	if err != nil {
		return out, err
	}
	return out, w.attrs.setMarks(ctx, c, &out.attributes, out.path)
}

// ValidateRule returns the rule for commands that validate a file before it is put in place.
func ValidateRule() schema.Rule {
	return schema.Parses("a command with %s in it", func(command string) error {
		if !strings.Contains(shell.Fill(command, "kk_tmp"), "kk_tmp") {
			return fmt.Errorf("validate must contain %%s: %s", command)
		}
		return nil
	}, "validate")
}

// plan determines the necessary changes.
func (w *writing) plan(c *module.Call) (*written, error) {
	cur, path := w.at.self, w.at.path
	if w.follow {
		cur, path = w.at.followed(), w.at.resolved()
	}
	out := &written{path: path, hadBefore: cur.is(typeFile)}
	out.content = !cur.is(typeFile) || w.at.sha256 != w.body.sha256
	attrs := *w.attrs
	if err := w.preserve(&attrs); err != nil {
		return nil, err
	}
	base := w.ans.fresh(w.at, typeFile)
	if cur.is(typeFile) {
		base = *cur
	}
	var err error
	out.attributes, err = attrs.plan(c, w.ans, path, base)
	out.attributes.next.size = w.body.size
	return out, err
}

// preserve replaces mode "preserve" by the mode of the source file.
func (w *writing) preserve(attrs *Attributes) (err error) {
	if attrs.Mode.IsPreserve() {
		attrs.Mode, err = schema.ParseMode(schema.FormatMode(w.srcMode))
	}
	return err
}

func (w *writing) put(ctx context.Context, c *module.Call, out *written) error {
	f := connector.File{
		Path: out.path, Owner: w.attrs.Owner, Group: w.attrs.Group, Mode: out.attributes.next.mode(), ModeSet: true,
		Size: w.body.size, SHA256: w.body.sha256, Backup: w.backup && out.hadBefore,
		Validate: w.validate, IfSHA256: w.guard(), Unsafe: w.attrs.Unsafe,
	}
	if c.Progress != nil {
		f.Progress = func(done, total int64) { c.Progress(out.path, done, total) }
	}
	if w.at.isLink() && !w.follow {
		if err := w.unlink(ctx, c); err != nil {
			return err
		}
	}
	r, err := w.body.open()
	if err != nil {
		return err
	}
	defer r.Close()
	res, err := connector.Put(ctx, c.Conn, f, r)
	if err != nil {
		if errors.Is(err, connector.ErrChanged) {
			return fmt.Errorf("%s: the file changed on the host while it was being edited: run the task again", out.path)
		}
		return fmt.Errorf("write %s: %w", out.path, err)
	}
	out.backup = res.Backup
	return nil
}

// unlink removes the link that a file replaces. Otherwise a rename would follow a link to a folder, and an
// identical file at the link's target would count as unchanged.
func (w *writing) unlink(ctx context.Context, c *module.Call) error {
	var s script
	s.do("replace the link "+w.at.path, "rm", "-f", w.at.path)
	_, err := s.run(ctx, c)
	return err
}

// guard returns the digest that the file to be replaced must still have.
func (w *writing) guard() string {
	switch {
	case !w.guarded:
		return ""
	case w.at.sha256 == "":
		return connector.Absent
	}
	return w.at.sha256
}

// placement returns a call of kk_place that writes the output of a command to the path.
func (w *writing) placement(out *written, command ...string) string {
	n := out.attributes.next
	uid, gid, backup := "", "", "0"
	if n.uid != w.ans.self.id {
		uid = strconv.Itoa(n.uid)
	}
	if n.gid != w.ans.selfGroup.id {
		gid = strconv.Itoa(n.gid)
	}
	if w.backup && out.hadBefore {
		backup = "1"
	}
	return fmt.Sprintf("kk_want=%s kk_check=%s\nkk_place %s", w.body.sha256, shell.Quote(shell.Fill(w.validate, "kk_tmp")),
		shell.Join(append([]string{out.path, octal(n.perm()), uid, gid, backup}, command...)...))
}

// adjust sets the attributes of a file whose content is already correct.
func (w *writing) adjust(ctx context.Context, c *module.Call, out *written) error {
	var s script
	s.steps(out.attributes.steps)
	_, err := s.run(ctx, c)
	return err
}

// diff returns the diffs of the content and of the attributes, in this order.
func (w *writing) diff(out *written, srcHeader string) ([]event.Diff, error) {
	var diffs []event.Diff
	if out.content {
		after := Side{header: srcHeader, Exists: true, size: w.body.size}
		if after.size <= maxDiff {
			var err error
			if after.Text, err = w.body.bytes(); err != nil {
				return nil, err
			}
		}
		diffs = append(diffs, TextDiff(w.before(out), after))
	}
	if out.attributes.changed() && out.hadBefore {
		diffs = append(diffs, attrDiff(out.path, &out.attributes))
	}
	return diffs, nil
}

func (w *writing) before(out *written) Side {
	if !out.hadBefore {
		return Side{}
	}
	return Side{header: out.path, Exists: true, size: w.at.followed().size, Text: w.at.content}
}

// missingFolder returns the error for a write to a missing folder.
func missingFolder(e *entry) error {
	if e.followed() != nil || e.isLink() || e.parent.is(typeDir) {
		return nil
	}
	folder := parentOf(e.path)
	if e.parent != nil {
		return fmt.Errorf("destination directory %s is not a directory", folder)
	}
	//nolint:staticcheck // the text users know
	return fmt.Errorf("Destination directory %s does not exist (create it with the file module, state: directory)", folder)
}
