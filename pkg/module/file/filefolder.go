package file

import (
	"fmt"
	"path"
	"strconv"

	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

func (j *fileJob) planAbsent() error {
	j.res.Set("path", j.path)
	if !j.at.exists() {
		return nil
	}
	j.note("state", j.at.self.state(), "absent")
	if j.at.self.is(typeDir) {
		j.before.Set("path_content", j.contents())
		j.act.do("remove folder "+j.path, "rm", "-rf", j.path)
	} else {
		j.act.do("remove "+j.path, "rm", "-f", j.path)
	}
	return nil
}

// contents returns the content of a folder that is removed, for the diff.
func (j *fileJob) contents() *value.Dict {
	folders, files := []any{}, []any{}
	for _, e := range j.all {
		name := relative(e.path, j.path)
		switch {
		case name == "" || e.self == nil:
		case e.self.is(typeDir):
			folders = append(folders, path.Join(j.path, name))
		default:
			files = append(files, path.Join(j.path, name))
		}
	}
	return value.NewDict("directories", folders, "files", files)
}

func (j *fileJob) planDirectory() (string, error) {
	cur, p := j.at.self, j.at.path
	if j.Follow {
		cur, p = j.at.followed(), j.at.resolved()
	}
	j.res.Set("path", p)
	switch {
	case cur.is(typeDir):
		if err := j.times(p, cur); err != nil {
			return "", err
		}
		if err := j.attributes(p, *cur); err != nil || !j.Recurse {
			return "", err
		}
		return "", j.below()
	case cur != nil || j.at.isLink():
		return fmt.Sprintf("%s already exists as a %s", p, j.at.self.state()), nil
	}
	if err := j.createFolder(p); err != nil {
		return "", err
	}
	return "", j.times(p, nil)
}

func (j *fileJob) createFolder(p string) error {
	fresh := j.ans.fresh(j.at, typeDir)
	ch, err := j.Attributes.plan(j.c, j.ans, p, fresh)
	if err != nil {
		return err
	}
	j.act.folders(p, &ch)
	j.note("state", "absent", "directory")
	j.next, j.path = &ch.next, p
	return nil
}

// folders creates a folder and its missing parents, all with the attributes that ch sets for the last.
func (s *script) folders(p string, ch *change) {
	mode, uid, gid := "", "", ""
	if ch.before.Has("mode") {
		mode = octal(ch.next.perm())
	}
	if ch.before.Has("owner") {
		uid = strconv.Itoa(ch.next.uid)
	}
	if ch.before.Has("group") {
		gid = strconv.Itoa(ch.next.gid)
	}
	s.line("kk_folders " + shell.Join(NormalPath(p), mode, uid, gid) + " || exit")
}

// below plans the attributes of everything in the folder, with few commands.
func (j *fileJob) below() error {
	root := *j.next
	batches := map[string][]string{}
	var order []string
	for _, e := range j.all {
		cur := e.at(j.Follow)
		if relative(e.path, j.path) == "" || cur == nil {
			continue
		}
		ch, err := j.Attributes.plan(j.c, j.ans, e.path, *cur)
		if err != nil {
			return err
		}
		for _, s := range ch.steps {
			key := shell.Join(s.words[:len(s.words)-1]...)
			if batches[key] == nil {
				order = append(order, key)
			}
			batches[key] = append(batches[key], e.path)
		}
		j.changed = j.changed || ch.changed()
		if !cur.is(typeLink) {
			j.marked = append(j.marked, e.path)
		}
	}
	for _, key := range order {
		for paths := batches[key]; len(paths) > 0; {
			n := min(len(paths), 200)
			j.act.line("kk_do " + shell.Quote("set attributes below "+j.path) + " " + key + " " + shell.Join(paths[:n]...))
			paths = paths[n:]
		}
	}
	j.next = &root
	return nil
}
