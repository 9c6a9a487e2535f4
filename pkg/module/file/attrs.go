package file

import (
	"context"
	"fmt"
	"strconv"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Attributes are the arguments that all modules which create files have in common.
type Attributes struct {
	Mode   schema.FileMode `kk:"mode" doc:"permission bits: \"0644\" or u=rw,g=r,o=r; where a source file is copied also preserve. Default: those of an existing file, otherwise set by the umask"`
	Owner  string          `kk:"owner" doc:"owner, by name or number. Default: unchanged"`
	Group  string          `kk:"group" doc:"group, by name or number. Default: unchanged"`
	Unsafe bool            `kk:"unsafe_writes" default:"no" doc:"write in place if the folder does not allow an atomic rename"`
	module.Marks
}

// change contains the steps that set the attributes of one path.
type change struct {
	next          inode
	steps         []step
	before, after *value.Dict // the attributes that differ
}

func (ch *change) changed() bool { return ch.before.Len() > 0 }

func (ch *change) note(key string, before, after any) {
	ch.before.Set(key, before)
	ch.after.Set(key, after)
}

// step is one command on the host. what describes it in errors.
type step struct {
	what  string
	words []string
}

func (s *script) steps(steps []step) {
	for _, st := range steps {
		s.do(st.what, st.words...)
	}
}

// plan determines the steps that change cur, at path, to the attributes in a. The mode of links is not changed
// because it has no effect.
func (a *Attributes) plan(c *module.Call, ans *answer, path string, cur inode) (change, error) {
	ch := change{next: cur, before: value.NewDict(), after: value.NewDict()}
	if err := a.planOwner(c, ans, path, &ch); err != nil {
		return ch, err
	}
	if cur.is(typeLink) || !a.Mode.IsSet() || a.Mode.IsPreserve() {
		return ch, nil
	}
	mode, err := a.Mode.Apply(cur.mode(), cur.is(typeDir))
	if err != nil {
		return ch, err
	}
	ch.chmod(path, schema.UnixMode(mode))
	return ch, nil
}

func (ch *change) chmod(path string, perm uint32) {
	old := ch.next.perm()
	ownerChanged := len(ch.steps) > 0 // chown clears setuid and setgid
	if old == perm && !(ownerChanged && perm&0o6000 != 0) {
		return
	}
	ch.next.raw = ch.next.raw&typeMask | perm
	text := octal(perm)
	ch.steps = append(ch.steps, step{"set the mode of " + path, []string{"chmod", text, path}})
	if old != perm {
		ch.note("mode", modeText(old), modeText(perm))
	}
}

func (a *Attributes) planOwner(c *module.Call, ans *answer, path string, ch *change) error {
	if a.Owner != "" {
		user, err := found(c, ans.user, "user", a.Owner)
		if err != nil {
			return err
		}
		if user.id != ch.next.uid {
			ch.note("owner", ch.next.uid, user.id)
			ch.next.uid, ch.next.owner = user.id, user.name
			ch.steps = append(ch.steps, step{"set the owner of " + path, unfollowed("chown", ch, strconv.Itoa(user.id), path)})
		}
	}
	if a.Group != "" {
		group, err := found(c, ans.group, "group", a.Group)
		if err != nil {
			return err
		}
		if group.id != ch.next.gid {
			ch.note("group", ch.next.gid, group.id)
			ch.next.gid, ch.next.group = group.id, group.name
			ch.steps = append(ch.steps, step{"set the group of " + path, unfollowed("chgrp", ch, strconv.Itoa(group.id), path)})
		}
	}
	return nil
}

// unfollowed returns a command that changes the link itself if the path is a link.
func unfollowed(tool string, ch *change, id, path string) []string {
	if ch.next.is(typeLink) {
		return []string{tool, "-h", id, path}
	}
	return []string{tool, id, path}
}

// setMarks sets the marks of paths and records the changes in ch.
func (a *Attributes) setMarks(ctx context.Context, c *module.Call, ch *change, paths ...string) error {
	marks, err := a.Apply(ctx, c, paths...)
	for _, m := range marks {
		ch.note(m.Name, m.Before, m.After)
	}
	return err
}

// found returns an account that exists on the host. In check mode it may be missing, because an earlier task would
// perhaps create it.
func found(c *module.Call, acct *account, kind, name string) (account, error) {
	switch {
	case acct != nil:
		return *acct, nil
	case c.Check:
		return account{name, -1}, nil
	}
	tool := map[string]string{"user": "chown", "group": "chgrp"}[kind]
	return account{}, fmt.Errorf("%s failed: failed to look up %s %s (create the %s first)", tool, kind, name, kind)
}

// fresh returns the inode of a new file at the path of e.
func (ans *answer) fresh(e *entry, kind uint32) inode {
	perm := uint32(0o666)
	if kind == typeDir {
		perm = 0o777
	}
	if kind != typeLink {
		perm &^= ans.umask
	}
	n := inode{raw: kind | perm, uid: ans.self.id, owner: ans.self.name, gid: ans.selfGroup.id,
		group: ans.selfGroup.name, links: 1}
	if p := e.parent; p != nil && p.raw&0o2000 != 0 {
		n.gid, n.group = p.gid, p.group
		if kind == typeDir {
			n.raw |= 0o2000
		}
	}
	return n
}

func octal(perm uint32) string { return fmt.Sprintf("%04o", perm) }

// modeText formats a mode for results: a zero and at least three digits, so 01777 where stat prints 1777.
func modeText(perm uint32) string { return fmt.Sprintf("0%03o", perm) }

// describe sets the keys that results have for an existing file.
func (n *inode) describe(d *value.Dict) {
	d.Set("uid", n.uid)
	d.Set("gid", n.gid)
	d.Set("owner", n.owner)
	d.Set("group", n.group)
	d.Set("mode", modeText(n.perm()))
	d.Set("size", int(n.size))
	d.Set("state", n.state())
}

// FileReturns documents the keys that describe sets.
func FileReturns() []module.Return {
	return []module.Return{
		{Key: "owner", Type: "str", Doc: "name of the owner, or the number when it has none"},
		{Key: "group", Type: "str", Doc: "name of the group, or the number when it has none"},
		{Key: "uid", Type: "int", Doc: "number of the owner"},
		{Key: "gid", Type: "int", Doc: "number of the group"},
		{Key: "mode", Type: "str", Doc: "permission bits: a zero and at least three octal digits"},
		{Key: "size", Type: "int", Doc: "bytes"},
		{Key: "state", Type: "str", Doc: "file, directory, link, hard or absent"},
	}
}
