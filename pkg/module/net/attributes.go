package net

import (
	"context"
	"io/fs"
	"strconv"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// attributes holds the arguments for owner and mode of a fetched file.
type attributes struct {
	Mode  schema.FileMode `kk:"mode" doc:"permission bits"`
	Owner string          `kk:"owner" doc:"name or number of the owner"`
	Group string          `kk:"group" doc:"name or number of the group"`
}

// file is a file on the host to be written, with its stat output from before.
func (d attributes) file(path, before string) (connector.File, error) {
	old, existed := parseStat(before)
	if !existed {
		old.mode = 0o644
	}
	mode, err := d.Mode.Apply(old.mode, false)
	return connector.File{Path: path, Mode: mode, Owner: d.Owner, Group: d.Group}, err
}

// statOf is the output of the host's stat for a file, "" if it does not exist.
func statOf(ctx context.Context, c *module.Call, path string) (string, error) {
	out, _, _, err := converse(ctx, c, shell.Script(`stat -L -c '%a %u %g %U %G %s' "$1"`, path), "", true)
	return strings.TrimSpace(out), err
}

// fileStat is the output of the host's stat.
type fileStat struct {
	mode                   fs.FileMode
	uid, gid, owner, group string
	size                   int
}

func parseStat(text string) (fileStat, bool) {
	w := strings.Fields(text)
	if len(w) != 6 {
		return fileStat{}, false
	}
	bits, err := strconv.ParseUint(w[0], 8, 32)
	size, sizeErr := strconv.Atoi(w[5])
	return fileStat{schema.ModeOfUnix(uint32(bits)), w[1], w[2], w[3], w[4], size}, err == nil && sizeErr == nil
}

// describe sets the keys of results.
func (s fileStat) describe(d *value.Dict) {
	uid, _ := strconv.Atoi(s.uid)
	gid, _ := strconv.Atoi(s.gid)
	d.Merge(value.NewDict("uid", uid, "gid", gid, "owner", s.owner, "group", s.group, "mode", schema.FormatMode(s.mode),
		"size", s.size, "state", "file"))
}

// attributesChanged reports whether owner, group or mode of a file changed.
func attributesChanged(before, after string) bool {
	old, there := parseStat(before)
	now, _ := parseStat(after)
	old.size, now.size = 0, 0
	return there && old != now
}
