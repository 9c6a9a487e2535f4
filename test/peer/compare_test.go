package peer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// asides are keys that say how a task was run, not what it did.
var asides = []string{"warnings", "deprecations", "invocation", "exception"}

// moments are keys whose values are of a time or a run: both must tell them,
// and they need not agree.
var moments = []string{
	"start", "end", "delta", "elapsed", "atime", "mtime", "ctime", "inode", "dev", "version", "backup_file",
	"cache_update_time",
	"access_time", "modification_time", "stop", "ansible_job_id", "results_file", "date",
}

// sets are lists whose order is that of a folder.
var sets = []string{"archived", "expanded_paths"}

// verdicts must be the same, and one that is missing says no.
var verdicts = []string{"changed", "failed", "skipped"}

// comparison is of one step of a case.
type comparison struct {
	c      *peerCase
	step   step
	faults []string
}

func (d *comparison) errorf(format string, args ...any) {
	d.faults = append(d.faults, fmt.Sprintf(format, args...))
}

// faults is what the two programs tell of a case that it does not excuse, and
// the excuses that nothing needed.
func (c *peerCase) faults(theirs, ours results) []string {
	c.used = map[string]bool{}
	var faults []string
	for _, s := range c.steps() {
		v := c.variable(s)
		d := &comparison{c: c, step: s}
		d.results("", theirs[v], ours[v])
		faults = append(faults, d.faults...)
	}
	return append(faults, c.needless()...)
}

// results compares what a task or one item of its loop returned.
func (d *comparison) results(path string, theirs, ours map[string]any) {
	for _, key := range verdicts {
		if (theirs[key] == true) != (ours[key] == true) && !d.excused("other", d.c.Other, path+key) {
			d.errorf("%s: %s%s is %v in Ansible and %v here: %v / %v", d.step, path, key, theirs[key], ours[key], theirs["msg"],
				ours["msg"])
		}
	}
	failed := theirs["failed"] == true && ours["failed"] == true
	d.keys(path, theirs, ours, func(key string) bool {
		// A failure's message may say more here, of what to do.
		return slices.Contains(asides, key) || slices.Contains(verdicts, key) || key == "diff" && !d.c.Diff ||
			key == "msg" && failed && theirs["msg"] != nil && ours["msg"] != nil
	})
}

func (d *comparison) keys(path string, theirs, ours map[string]any, aside func(string) bool) {
	for key, value := range theirs {
		if _, there := ours[key]; !there && !aside(key) && !d.excused("only_ansible", d.c.OnlyAnsible, path+key) {
			d.errorf("%s: Ansible has %s%s=%v, which is missing here", d.step, path, key, value)
		}
	}
	for key, value := range ours {
		other, there := theirs[key]
		switch {
		case aside(key):
		case there:
			d.values(path+key, key, other, value)
		case !d.excused("only_kk", d.c.OnlyKK, path+key):
			d.errorf("%s: %s%s=%v is here alone", d.step, path, key, value)
		}
	}
}

func (d *comparison) values(path, key string, theirs, ours any) {
	if key == "diff" {
		theirs, ours = oneDiff(theirs), oneDiff(ours)
	}
	if slices.Contains(moments, key) {
		return
	}
	if a, ok := theirs.(map[string]any); ok {
		if b, ok := ours.(map[string]any); ok {
			d.keys(path+".", a, b, func(string) bool { return false })
			return
		}
	}
	if a, ok := theirs.([]any); ok {
		if b, ok := ours.([]any); ok && len(a) == len(b) {
			byPath(a)
			byPath(b)
			if slices.Contains(sets, key) {
				byText(a)
				byText(b)
			}
			for i := range a {
				d.element(path, key, a[i], b[i])
			}
			return
		}
	}
	if !reflect.DeepEqual(theirs, ours) && !d.excused("other", d.c.Other, path) &&
		!d.excused("sometimes", d.c.Sometimes, path) {
		d.errorf("%s: %s is %#v in Ansible and %#v here", d.step, path, theirs, ours)
	}
}

// byPath sorts a list of files: the order of a folder is of no meaning.
func byPath(list []any) {
	path := func(v any) string {
		m, _ := v.(map[string]any)
		p, _ := m["path"].(string)
		return p
	}
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(path(a), path(b)) })
}

func byText(list []any) {
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// oneDiff is the dictionary in a list of one: which of them it is differs from
// module to module in Ansible.
func oneDiff(v any) any {
	if list, ok := v.([]any); ok && len(list) == 1 {
		return list[0]
	}
	return v
}

// element compares elements of a list, which under the key "results" may be
// the results of a loop.
func (d *comparison) element(path, key string, theirs, ours any) {
	a, ok := theirs.(map[string]any)
	b, fine := ours.(map[string]any)
	if ok && fine && key == "results" && a["ansible_loop_var"] != nil {
		d.results(path+".", a, b)
		return
	}
	d.values(path, "", theirs, ours)
}

// excused says whether a list of the case allows a difference.
func (d *comparison) excused(list string, excuses map[string]string, path string) bool {
	task, mode := fmt.Sprintf(" of task %d", d.step.number), " in "+d.step.mode
	parent := path[:strings.LastIndex(path, ".")+1]
	for _, what := range []string{path, parent + "*", "*"} {
		for _, where := range []string{"", task, mode, task + mode} {
			if excuses[what+where] != "" {
				d.c.used[list+": "+what+where] = true
				return true
			}
		}
	}
	return false
}

// needless are the excuses that nothing needed.
func (c *peerCase) needless() []string {
	var faults []string
	for list, excuses := range map[string]map[string]string{"only_ansible": c.OnlyAnsible, "only_kk": c.OnlyKK,
		"other": c.Other} {
		for key := range excuses {
			if !c.used[list+": "+key] {
				faults = append(faults, fmt.Sprintf("%s: %s does not differ any more: take the line out", list, key))
			}
		}
	}
	return faults
}
