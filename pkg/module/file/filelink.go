package file

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/expr/filters"
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
		return fmt.Sprintf(`src file does not exist, use "force=yes" if you really want to create the link: %s`, target.path),
			nil
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
	j.act.do("create the link "+j.at.path, "ln", "-sfn", NormalPath(src), j.at.path)
	fresh := j.ans.fresh(j.at, typeLink)
	fresh.raw, fresh.size = typeLink|0o777, int64(len(src))
	return "", j.linkAttributes(target, &fresh)
}

// linkAttributes sets the attributes of the link's target or, without follow, of the link itself.
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

// clear plans the removal of an obstacle to a link, or returns why it must not be removed.
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

// planHard makes the path a hard link to src.
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

// planTouch creates an empty file, or sets the times of the existing one.
func (j *fileJob) planTouch() error {
	cur, p := j.at.self, j.at.path
	if j.Follow && j.at.isLink() {
		cur, p = j.at.followed(), j.at.resolved()
	}
	j.res.Set("dest", p)
	base := j.ans.fresh(j.at, typeFile)
	if cur != nil {
		base = *cur
	} else {
		if err := missingFolder(j.at); err != nil && !j.c.Check {
			return err
		}
		j.note("state", "absent", "touch")
		j.act.line("kk_do " + shell.Quote("create "+p) + " touch " + shell.Quote(p))
		// a new file is removed if its owner cannot be set
		j.act.line("kk_made=" + shell.Quote(p) + `; trap '[ "$?" = 0 ] || rm -f "$kk_made"' EXIT`)
	}
	if err := j.times(p, cur); err != nil {
		return err
	}
	return j.attributes(p, base)
}

// times plans the times of the file at p. cur is nil if it is new.
func (j *fileJob) times(p string, cur *inode) error {
	access, err := j.time(j.AccessTime, j.AccessForm)
	if err != nil {
		return err
	}
	modified, err := j.time(j.ModTime, j.ModForm)
	if err != nil {
		return err
	}
	if access != "now" || modified != "now" {
		j.touch("-a", "atime", p, cur, access)
		j.touch("-m", "mtime", p, cur, modified)
		return nil
	}
	if cur != nil { // anyone with write permission can set both at once
		j.note("atime", cur.atime, "now")
		j.note("mtime", cur.mtime, "now")
		j.act.do("set the times of "+p, append(j.touchWords(), p)...)
	}
	return nil
}

func (j *fileJob) touchWords() []string {
	if j.at.isLink() && !j.Follow {
		return []string{"touch", "-h"}
	}
	return []string{"touch"}
}

// touch plans one of the times of a file. at is "now", "" or seconds.
func (j *fileJob) touch(flag, key, p string, cur *inode, at string) {
	flags := append(j.touchWords(), flag)
	switch {
	case at == "":
		return
	case at == "now":
		if cur != nil {
			j.note(key, stamp(cur, key), "now")
		}
		j.act.do("set the times of "+p, append(flags, p)...)
		return
	case cur != nil && stamp(cur, key) == seconds(at):
		return
	}
	if cur != nil {
		j.note(key, stamp(cur, key), seconds(at))
	}
	j.act.do("set the times of "+p, append(flags, "-d", "@"+at, p)...)
}

func stamp(n *inode, key string) float64 {
	if key == "atime" {
		return n.atime
	}
	return n.mtime
}

// time returns "now", "" for preserve, or seconds since 1970. By default touch means now, and other states preserve
// the time.
func (j *fileJob) time(s, layout string) (string, error) {
	switch {
	case s == "now" || s == "" && j.State == "touch":
		return "now", nil
	case s == "" || s == "preserve":
		return "", nil
	}
	t, err := filters.ParseTime(s, layout, time.FixedZone("host", j.ans.zone))
	if err != nil {
		//nolint:staticcheck // the text users know
		return "", fmt.Errorf("Error while obtaining timestamp for time %s using format %s: %w", s, layout, err)
	}
	return strconv.FormatInt(t.Unix(), 10), nil
}
