package file

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// File is the module file.
type File struct {
	Attributes
	Path       string `kk:"path,required,path,alias=dest|name" doc:"path on the host"`
	State      string `kk:"state" choices:"absent,directory,file,hard,link,touch" doc:"desired state; file only sets attributes. Default: the current state, otherwise file (directory with recurse)"`
	Src        string `kk:"src,path" doc:"target of a link; a relative one starts at the folder of path"`
	Recurse    bool   `kk:"recurse" default:"no" doc:"set the attributes of everything below a directory too, including link targets unless follow is no"`
	Force      bool   `kk:"force" default:"no" doc:"create a link even if src does not exist, or replace a file or an empty folder at path"`
	Follow     bool   `kk:"follow" default:"yes" doc:"change the target of a link at path"`
	AccessTime string `kk:"access_time" doc:"now, preserve, or a time on the host in access_time_format. Default: now for touch, otherwise preserve"`
	ModTime    string `kk:"modification_time" doc:"now, preserve, or a time on the host in modification_time_format. Default: now for touch, otherwise preserve"`
	AccessForm string `kk:"access_time_format" default:"%Y%m%d%H%M.%S" doc:"layout of access_time in the syntax of strftime"`
	ModForm    string `kk:"modification_time_format" default:"%Y%m%d%H%M.%S" doc:"layout of modification_time in the syntax of strftime"`
}

func fileSpec() module.Spec {
	return module.Spec{
		Name:    "file",
		Summary: "Creates or removes folders, links and empty files, and sets owners and modes.",
		Notes: []string{
			"Missing parent folders are created; all created folders get the attributes.",
			"touch is always a change, unless both times are preserved.",
		},
		Examples: []string{
			"- name: Create a folder for the data\n  file:\n    path: /var/lib/app\n    state: directory\n    owner: app\n" +
				"    mode: \"0750\"",
			"- name: Point to the current release\n  file:\n    src: /opt/app-1.2\n    path: /opt/app\n    state: link",
			"- name: Remove the old log\n  file:\n    path: /var/log/old.log\n    state: absent",
		},
		Returns: append([]module.Return{
			{Key: "path", Type: "str", Doc: "the path (not for link, hard and touch)"},
			{Key: "dest", Type: "str", Doc: "the path (for link, hard and touch)"},
			{Key: "src", Type: "str", Doc: "target of a link"},
			{Key: "diff", Type: "dict", Doc: "before and after, each with path, state and the attributes that change; " +
				"before a folder is removed also path_content: its directories and files, with --diff"},
		}, FileReturns()...),
		New: func() module.Runner { return new(File) },
	}
}

// fileJob is one run of File.
type fileJob struct {
	*File
	c   *module.Call
	ans *answer
	at  *entry
	all []*entry // entries below the path, with recurse

	act     script
	marked  []string // paths whose flags and contexts are set
	changed bool
	next    *inode // desired state; nil means absent
	path    string // path of next
	before  *value.Dict
	after   *value.Dict
	res     *value.Dict
}

// Rules implements schema.Ruled.
func (*File) Rules() schema.Rules {
	return schema.Rules{
		schema.Refuses("recurse").With("state").Unless("state",
			"directory").Says("recurse option requires state to be 'directory'"),
		schema.Refuses("src").With("state").Unless("state", "link",
			"hard").Says("src option requires state to be 'link' or 'hard'"),
		schema.Needs("src").If("state", "hard").Says("src is required for creating new hardlinks"),
		schema.Looks("below the root folder", func(p string) bool { return strings.Trim(p, "/") != "" },
			"path").If("state", "absent").
			Says("the root folder is not removed"),
	}
}

// Run implements module.Runner.
func (m *File) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	j := &fileJob{File: m, c: c, before: value.NewDict(), after: value.NewDict(), res: value.NewDict()}
	if err := j.probe(ctx); err != nil {
		return module.Result{}, err
	}
	if failed, err := j.plan(); err != nil || failed != "" {
		return j.failure(failed), err
	}
	if j.changed && !c.Check {
		if err := j.run(ctx); err != nil {
			return module.Result{Data: value.NewDict("path", j.at.path)}, err
		}
	}
	if err := j.mark(ctx); err != nil {
		return module.Result{Data: value.NewDict("path", j.at.path)}, err
	}
	return j.result(), nil
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
	if j.State == "hard" && j.Src != "" { // in a folder the link gets the name of src
		ask = append(ask, asked{flags: "p", path: trimSlashes(j.Path), below: path.Base(j.Src)})
		s.line(ask[2].code())
	}
	if j.State == "touch" || j.AccessTime+j.ModTime != "" {
		s.line(`printf 'Z%s\0' "$(date +%z)"`)
	}
	if j.Recurse || j.State == "absent" && j.c.Diff {
		s.line(listing{root: trimSlashes(j.Path) + "/", follow: j.Recurse && j.Follow}.code() + " 2>/dev/null")
	}
	out, err := s.run(ctx, j.c)
	if err != nil {
		return fmt.Errorf("inspect %s on the host: %w", j.Path, err)
	}
	j.ans = &answer{umask: 0o022}
	if err := j.ans.parse(out, j.Owner, j.Group, len(ask)); err != nil {
		return err
	}
	for i, a := range ask {
		if j.ans.entries[i].path == "" {
			j.ans.entries[i].path = a.whole()
		}
	}
	j.at, j.all = j.ans.entries[0], j.ans.entries[len(ask):]
	if len(ask) == 3 && j.at.followed().is(typeDir) {
		j.at = j.ans.entries[2]
	}
	return nil
}

// askSource probes the target of a link.
func (j *fileJob) askSource() asked {
	src := j.Src
	if j.State != "hard" && !strings.HasPrefix(src, "/") && !strings.HasPrefix(src, "~") && !strings.HasPrefix(src, "$") {
		src = path.Dir(NormalPath(trimSlashes(j.Path))) + "/" + src
	}
	return asked{flags: "p", path: src}
}

func trimSlashes(p string) string {
	if t := strings.TrimRight(p, "/"); t != "" {
		return t
	}
	return p
}

// state returns the desired state. Its default depends on the other arguments and on the path.
func (j *fileJob) state() string {
	switch {
	case j.State != "":
		return j.State
	case j.Src != "" && j.at.self.state() == "hard":
		return "hard"
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

// plan determines the necessary changes. failed is the message of a failed result.
func (j *fileJob) plan() (failed string, err error) {
	j.path = j.at.path
	state := j.state()
	if j.Recurse && state != "directory" {
		return "recurse option requires state to be 'directory'", nil
	}
	switch state {
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

// mark sets the flags and the context of the path.
func (j *fileJob) mark(ctx context.Context) error {
	if j.next == nil || j.next.is(typeLink) && j.Follow {
		return nil
	}
	ch := change{before: j.before, after: j.after}
	if err := j.setMarks(ctx, j.c, &ch, append([]string{j.path}, j.marked...)...); err != nil {
		return err
	}
	j.changed = j.changed || j.after.Has("attributes") || j.after.Has("secontext")
	return nil
}

// attributes plans owner, group and mode of the (existing or planned) file at p.
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
	case cur == nil || cur.is(typeDir) || cur.is(typeLink):
		return fmt.Sprintf("file (%s) is %s, cannot continue", p, cur.state()), nil
	}
	if err := j.times(p, cur); err != nil {
		return "", err
	}
	return "", j.attributes(p, *cur)
}

// run makes the changes and probes the result.
func (j *fileJob) run(ctx context.Context) error {
	j.act.line("kk_probe '' " + shell.Quote(j.path))
	out, err := j.act.run(ctx, j.c)
	var failed *stepError
	if errors.As(err, &failed) && strings.HasPrefix(failed.what, "create folder ") {
		//nolint:staticcheck // the text users know
		return fmt.Errorf("There was an issue creating %s as requested: %s", j.path, failed.reason)
	}
	if err != nil {
		return err
	}
	var after answer
	if err := after.parse(out, "", "", 1); err != nil {
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
	j.before.Set("path", j.path)
	j.after.Set("path", j.path)
	diff := event.Diff{Before: j.before, After: j.after}
	j.res.Set("diff", diff.Value()) // set whether or not a diff was requested, because playbooks read it
	res := module.Result{Changed: j.changed, Data: j.res}
	if j.c.Diff && j.changed {
		res.Diff = []event.Diff{diff}
	}
	return res
}

func (j *fileJob) failure(msg string) module.Result {
	if j.at != nil && j.at.self != nil {
		j.at.self.describe(j.res)
	} else {
		j.res.Set("state", "absent")
	}
	j.res.Set("path", j.at.path)
	return module.Result{Failed: msg != "", Msg: msg, Data: j.res}
}
