package file

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/shell"
)

// planLink makes the path a symbolic link to src.
func (j *fileJob) planLink() (string, error) {
	j.res.Set("dest", j.at.path)
	src := j.Src
	if src == "" {
		if !j.at.isLink() {
			return "src is required for creating new symlinks", nil
		}
		j.res.Set("src", j.at.link)
		return "", j.linkAttributes(j.at, j.at.self)
	}
	target := j.ans.entries[1]
	if strings.HasPrefix(src, "~") || strings.HasPrefix(src, "$") {
		src = target.path
	}
	j.res.Set("src", src)
	if target.followed() == nil && !j.Force {
		return fmt.Sprintf(`src file does not exist, use "force=yes" if you really want to create the link: %s`, target.path), nil
	}
	if j.at.isLink() && j.at.link == src {
		return "", j.linkAttributes(target, j.at.self)
	}
	if failed := j.clear("symlink"); failed != "" {
		return failed, nil
	}
	if err := missingFolder(j.at); err != nil && !j.c.Check {
		return "", err
	}
	j.note("state", j.at.self.state(), "link")
	if j.at.isLink() {
		j.note("src", j.at.link, src)
	}
	j.act.do("create the link "+j.at.path, "ln", "-sfn", normal(src), j.at.path)
	fresh := j.ans.fresh(j.at, typeLink)
	fresh.raw, fresh.size = typeLink|0o777, int64(len(src))
	return "", j.linkAttributes(target, &fresh)
}

// linkAttributes sets the attributes of what the link leads to, or without
// follow those of the link itself.
func (j *fileJob) linkAttributes(target *entry, link *inode) error {
	if j.Follow && target.followed() != nil {
		if err := j.attributes(target.resolved(), *target.followed()); err != nil {
			return err
		}
		j.next, j.path = link, j.at.path
		return nil
	}
	return j.attributes(j.at.path, *link)
}

// clear plans the removal of what is in the way of a link, or says why not.
func (j *fileJob) clear(kind string) string {
	cur := j.at.self
	switch {
	case cur == nil || cur.is(typeLink):
	case cur.is(typeDir) && !j.Force:
		return fmt.Sprintf("refusing to convert from directory to %s for %s", kind, j.at.path)
	case cur.is(typeDir):
		j.act.do(fmt.Sprintf("the directory %s is not empty, refusing to convert it", j.at.path), "rmdir", j.at.path)
	case !j.Force:
		return fmt.Sprintf("refusing to convert from %s to %s for %s", cur.state(), kind, j.at.path)
	}
	return ""
}

// planHard makes the path a further name of src.
func (j *fileJob) planHard() (string, error) {
	j.res.Set("dest", j.at.path)
	j.res.Set("src", j.Src)
	target := j.ans.entries[1]
	cur := j.at.self
	switch {
	case target.self == nil:
		return fmt.Sprintf("src does not exist: %s", target.path), nil
	case target.followed().is(typeDir):
		return fmt.Sprintf("hard links to folders are not possible: %s is one", target.path), nil
	case cur != nil && cur.ino == target.self.ino && cur.dev == target.self.dev:
		return "", j.attributes(j.at.path, *cur)
	case cur.is(typeDir):
		return j.clear("hard link"), nil
	case cur != nil && !j.Force:
		return fmt.Sprintf("Cannot link, different hard links exist at destination %s (use force: yes)", j.at.path), nil
	}
	if err := missingFolder(j.at); err != nil && !j.c.Check {
		return "", err
	}
	j.note("state", cur.state(), "hard")
	j.act.do("create the hard link "+j.at.path, "ln", "-f", target.path, j.at.path)
	next := *target.self
	next.links++
	return "", j.attributes(j.at.path, next)
}

// planTouch makes an empty file, or sets the times of what is there.
func (j *fileJob) planTouch() error {
	cur, p := j.at.self, j.at.path
	if j.Follow && j.at.isLink() {
		cur, p = j.at.followed(), j.at.resolved()
	}
	j.res.Set("dest", p)
	access, err := j.time(j.AccessTime, j.AccessForm)
	if err != nil {
		return fmt.Errorf("access_time: %w", err)
	}
	modified, err := j.time(j.ModTime, j.ModForm)
	if err != nil {
		return fmt.Errorf("modification_time: %w", err)
	}
	base := j.ans.fresh(j.at, typeFile)
	if cur != nil {
		base = *cur
	} else {
		if err := missingFolder(j.at); err != nil && !j.c.Check {
			return err
		}
		j.note("state", "absent", "touch")
		j.act.line("kk_do " + shell.Quote("create "+p) + " touch " + shell.Quote(p))
	}
	j.touch("-a", "atime", p, cur, access)
	j.touch("-m", "mtime", p, cur, modified)
	return j.attributes(p, base)
}

// touch plans one of the times of a file; at is "now", "" or seconds.
func (j *fileJob) touch(flag, key, p string, cur *inode, at string) {
	flags := []string{"touch", "-h", flag}
	if !j.at.isLink() || j.Follow {
		flags = []string{"touch", flag}
	}
	switch {
	case at == "":
		return
	case at == "now":
		if cur != nil {
			j.note(key, stamp(cur, key), "now")
		}
		j.act.do("set the times of "+p, append(flags, p)...)
		return
	case cur != nil && stamp(cur, key) == number(at):
		return
	}
	if cur != nil {
		j.note(key, stamp(cur, key), number(at))
	}
	j.act.do("set the times of "+p, append(flags, "-d", "@"+at, p)...)
}

func stamp(n *inode, key string) int {
	if key == "atime" {
		return int(n.atime)
	}
	return int(n.mtime)
}

// time is "now", "" for preserve, or seconds since 1970. Without a word the
// file is touched now.
func (j *fileJob) time(s, layout string) (string, error) {
	switch s {
	case "", "now":
		return "now", nil
	case "preserve":
		return "", nil
	}
	goLayout, err := goLayout(layout)
	if err != nil {
		return "", err
	}
	t, err := time.ParseInLocation(goLayout, s, time.FixedZone("host", j.ans.zone))
	if err != nil {
		return "", fmt.Errorf("%q does not read as %s", s, layout)
	}
	return strconv.FormatInt(t.Unix(), 10), nil
}

// goLayout is a strftime layout as package time has it.
func goLayout(layout string) (string, error) {
	parts := map[byte]string{
		'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06",
		'b': "Jan", 'B': "January", 'I': "03", 'p': "PM", 'z': "-0700", '%': "%",
	}
	var b strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' || i+1 == len(layout) {
			b.WriteByte(layout[i])
			continue
		}
		i++
		part, ok := parts[layout[i]]
		if !ok {
			return "", fmt.Errorf("the layout %q has an unknown %%%c", layout, layout[i])
		}
		b.WriteString(part)
	}
	return b.String(), nil
}
