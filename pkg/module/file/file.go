package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// File is the module file.
type File struct {
	Attributes
	Path       string `kk:"path,required,path,alias=dest|name" doc:"path on the host"`
	State      string `kk:"state" choices:"absent,directory,file,hard,link,touch" doc:"what must be there; file only sets attributes. Default: what is there, else file (directory with recurse)"`
	Src        string `kk:"src,path" doc:"what a link leads to; of a relative one the folder of path counts"`
	Recurse    bool   `kk:"recurse" default:"no" doc:"give everything below a directory the same attributes; links are not followed"`
	Force      bool   `kk:"force" default:"no" doc:"make a link though src is missing, or a file or an empty folder is in the way"`
	Follow     bool   `kk:"follow" default:"yes" doc:"work on what a link at path leads to"`
	AccessTime string `kk:"access_time" doc:"for touch: now, preserve, or a time of the host in access_time_format. Default: now"`
	ModTime    string `kk:"modification_time" doc:"for touch: now, preserve, or a time of the host in modification_time_format. Default: now"`
	AccessForm string `kk:"access_time_format" default:"%Y%m%d%H%M.%S" doc:"layout of access_time, as strftime has it"`
	ModForm    string `kk:"modification_time_format" default:"%Y%m%d%H%M.%S" doc:"layout of modification_time, as strftime has it"`
}

func fileSpec() module.Spec {
	return module.Spec{
		Name:    "file",
		Summary: "Make or remove folders, links and empty files, and set owners and modes.",
		Notes: []string{
			"A folder is created with those above it that are missing; all that were created get the attributes.",
			"touch is a change always, unless both times are preserved.",
		},
		Examples: []string{
			"- name: A folder for the data\n  file:\n    path: /var/lib/app\n    state: directory\n    owner: app\n    mode: \"0750\"",
			"- name: Point to the current release\n  file:\n    src: /opt/app-1.2\n    path: /opt/app\n    state: link",
			"- name: Remove the old log\n  file:\n    path: /var/log/old.log\n    state: absent",
		},
		Returns: append([]module.Return{
			{Key: "path", Type: "str", Doc: "path that was worked on (not for link, hard and touch)"},
			{Key: "dest", Type: "str", Doc: "path that was worked on (for link, hard and touch)"},
			{Key: "src", Type: "str", Doc: "what a link leads to"},
		}, fileReturns()...),
		New: func() module.Runner { return new(File) },
	}
}

// fileJob is one run of File.
type fileJob struct {
	*File
	c   *module.Call
	ans *answer
	at  *entry
	all []*entry // what is below, with recurse

	act     script
	changed bool
	next    *inode // what will be there; nil: nothing
	path    string // of next
	before  *value.Dict
	after   *value.Dict
	res     *value.Dict
}

// Run implements module.Runner.
func (m *File) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if err := m.check(); err != nil {
		return module.Result{}, err
	}
	j := &fileJob{File: m, c: c, before: value.NewDict(), after: value.NewDict(), res: value.NewDict()}
	if err := j.probe(ctx); err != nil {
		return module.Result{}, err
	}
	if failed, err := j.plan(); err != nil || failed != "" {
		return j.failure(failed), err
	}
	if j.changed && !c.Check {
		if err := j.run(ctx); err != nil {
			return module.Result{}, err
		}
	}
	return j.result(), nil
}

func (m *File) check() error {
	switch {
	case m.Recurse && m.State != "" && m.State != "directory":
		return errors.New("recurse option requires state to be 'directory'")
	case m.Src != "" && m.State != "" && m.State != "link" && m.State != "hard":
		return errors.New("src option requires state to be 'link' or 'hard'")
	case m.Src == "" && m.State == "hard":
		return errors.New("src is required for creating new hardlinks")
	case strings.TrimRight(m.Path, "/") == "" && m.State == "absent":
		return errors.New("the root folder is not removed")
	}
	return nil
}

func (j *fileJob) probe(ctx context.Context) error {
	s := script{probe: true}
	ask := []asked{{flags: "p", path: trimSlashes(j.Path)}}
	if j.Src != "" {
		ask = append(ask, j.askSource())
	}
	for _, a := range ask {
		s.line(a.code())
	}
	if j.Owner != "" {
		s.line("kk_account U passwd " + shell.Quote(j.Owner))
	}
	if j.Group != "" {
		s.line("kk_account G group " + shell.Quote(j.Group))
	}
	if j.State == "touch" {
		s.line(`printf 'Z%s\0' "$(date +%z)"`)
	}
	if j.Recurse {
		s.line(listing{root: trimSlashes(j.Path) + "/"}.code() + " 2>/dev/null")
	}
	out, err := s.run(ctx, j.c)
	if err != nil {
		return fmt.Errorf("look at %s on the host: %w", j.Path, err)
	}
	j.ans = &answer{umask: 0o022}
	if err := j.ans.parse(out, j.Owner, j.Group); err != nil {
		return err
	}
	for i, a := range ask {
		if j.ans.entries[i].path == "" {
			j.ans.entries[i].path = a.whole()
		}
	}
	j.at, j.all = j.ans.entries[0], j.ans.entries[len(ask):]
	return nil
}

// askSource asks about what a link leads to.
func (j *fileJob) askSource() asked {
	src := j.Src
	if j.State != "hard" && !strings.HasPrefix(src, "/") && !strings.HasPrefix(src, "~") && !strings.HasPrefix(src, "$") {
		src = path.Dir(normal(trimSlashes(j.Path))) + "/" + src
	}
	return asked{flags: "p", path: src}
}

func trimSlashes(p string) string {
	if t := strings.TrimRight(p, "/"); t != "" {
		return t
	}
	return p
}

// state is what is to be there, worked out where the task does not say.
func (j *fileJob) state() string {
	switch {
	case j.State != "":
		return j.State
	case j.Src != "":
		return "link"
	case j.at.at(j.Follow).is(typeDir):
		return "directory"
	case j.at.isLink() && !j.Follow:
		return "link"
	case !j.at.exists() && j.Recurse:
		return "directory"
	}
	return "file"
}

// plan works out what there is to do; failed is the message of a failed result.
func (j *fileJob) plan() (failed string, err error) {
	j.path = j.at.path
	switch j.state() {
	case "absent":
		return "", j.planAbsent()
	case "directory":
		return j.planDirectory()
	case "touch":
		return "", j.planTouch()
	case "link":
		return j.planLink()
	case "hard":
		return j.planHard()
	}
	return j.planFile()
}

func (j *fileJob) note(key string, before, after any) {
	j.changed = true
	j.before.Set(key, before)
	j.after.Set(key, after)
}

func (j *fileJob) planAbsent() error {
	j.res.Set("path", j.path)
	if !j.at.exists() {
		return nil
	}
	j.note("state", j.at.self.state(), "absent")
	if j.at.self.is(typeDir) {
		j.act.do("remove folder "+j.path, "rm", "-rf", j.path)
	} else {
		j.act.do("remove "+j.path, "rm", "-f", j.path)
	}
	return nil
}

// attributes plans owner, group and mode of what is (or will be) at p.
func (j *fileJob) attributes(p string, cur inode) error {
	ch, err := j.Attributes.plan(j.c, j.ans, p, cur)
	if err != nil {
		return err
	}
	j.next, j.path = &ch.next, p
	j.act.steps(ch.steps)
	for k, v := range ch.before.All() {
		after, _ := ch.after.Get(k)
		j.note(value.Str(k), v, after)
	}
	return nil
}

func (j *fileJob) planFile() (string, error) {
	cur, p := j.at.self, j.at.path
	if j.Follow {
		cur, p = j.at.followed(), j.at.resolved()
	}
	j.res.Set("path", p)
	switch {
	case cur == nil:
		return fmt.Sprintf("file (%s) is absent, cannot continue", p), nil
	case cur.is(typeDir):
		return fmt.Sprintf("file (%s) is directory, cannot continue", p), nil
	}
	return "", j.attributes(p, *cur)
}

func (j *fileJob) planDirectory() (string, error) {
	cur, p := j.at.self, j.at.path
	if j.Follow {
		cur, p = j.at.followed(), j.at.resolved()
	}
	j.res.Set("path", p)
	switch {
	case cur.is(typeDir):
		if err := j.attributes(p, *cur); err != nil || !j.Recurse {
			return "", err
		}
		return "", j.below()
	case cur != nil || j.at.isLink():
		return fmt.Sprintf("%s already exists as a %s", p, j.at.self.state()), nil
	}
	return "", j.createFolder(p)
}

func (j *fileJob) createFolder(p string) error {
	fresh := j.ans.fresh(j.at, typeDir)
	ch, err := j.Attributes.plan(j.c, j.ans, p, fresh)
	if err != nil {
		return err
	}
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
	j.act.line("kk_folders " + shell.Join(p, mode, uid, gid) + " || exit")
	j.note("state", "absent", "directory")
	j.next, j.path = &ch.next, p
	return nil
}

// below plans the attributes of everything in the folder, with few commands.
func (j *fileJob) below() error {
	root := *j.next
	batches := map[string][]string{}
	var order []string
	for _, e := range j.all {
		if relative(e.path, j.path) == "" || e.self == nil {
			continue
		}
		ch, err := j.Attributes.plan(j.c, j.ans, e.path, *e.self)
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

// run acts, and looks at what came of it.
func (j *fileJob) run(ctx context.Context) error {
	j.act.line("kk_probe '' " + shell.Quote(j.path))
	out, err := j.act.run(ctx, j.c)
	if err != nil {
		return err
	}
	var after answer
	if err := after.parse(out, "", ""); err != nil {
		return err
	}
	j.next = after.entries[0].self
	return nil
}

func (j *fileJob) result() module.Result {
	if j.next != nil {
		j.next.describe(j.res)
	} else {
		j.res.Set("state", "absent")
	}
	res := module.Result{Changed: j.changed, Data: j.res}
	if j.c.Diff && j.changed {
		j.before.Set("path", j.path)
		j.after.Set("path", j.path)
		res.Diff = []event.Diff{{Before: j.before, After: j.after}}
	}
	return res
}

func (j *fileJob) failure(msg string) module.Result {
	if j.at != nil && j.at.self != nil {
		j.at.self.describe(j.res)
	} else {
		j.res.Set("state", "absent")
	}
	return module.Result{Failed: msg != "", Msg: msg, Data: j.res}
}
