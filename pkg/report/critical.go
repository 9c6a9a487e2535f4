package report

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/journal"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// CriticalPath is what determined how long a run took: without the time of one of its steps, the run would have been
// that much shorter, until another chain of tasks is the longest.
type CriticalPath struct {
	Took  time.Duration // of the run
	Steps []CriticalStep
}

// CriticalStep is a part of the critical path. Each begins where the one before ends.
type CriticalStep struct {
	Task  string        // with its role; "" if no task ran: kk worked, or waited for an answer
	Host  string        // whose result the run waited for, the last of several
	Hosts int           // how many hosts of the task are part of the step, one after the other
	Job   bool          // the task ran in the background; the step ends where the run no longer waited for it
	Brief int           // how many short tasks the step stands for; they have no Task
	From  time.Duration // after the start of the run
	Took  time.Duration
}

// Critical returns the critical path of a run, and the problems of its journal.
func Critical(workdir, id string) (*CriticalPath, source.Diagnostics, error) {
	run, err := journal.Find(workdir, id)
	if err != nil {
		return nil, nil, err
	}
	b := newBuilder(run)
	_, wrong, err := journal.Read(workdir, run.ID, b, b.moment)
	if err != nil {
		return nil, nil, err
	}
	b.close()
	path := &CriticalPath{Took: microseconds(b.doc.Run.Took)}
	for _, s := range b.doc.Path {
		step := CriticalStep{Hosts: len(s.Cells), Job: s.Job, Brief: s.Brief, From: microseconds(s.From),
			Took: microseconds(s.To - s.From)}
		if s.Brief == 0 && len(s.Cells) > 0 {
			last := s.Cells[len(s.Cells)-1]
			t := b.doc.Tasks[b.doc.Cells.Task[last]]
			step.Task, step.Host = t.fullName(), b.doc.Hosts[b.doc.Cells.Host[last]].Name
		}
		path.Steps = append(path.Steps, step)
	}
	return path, wrong, nil
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func (t task) fullName() string {
	if t.Role != "" {
		return t.Role + " : " + t.Name
	}
	return t.Name
}

// step is a part of the critical path, as the page has it. Without cells no task ran: kk itself worked.
type step struct {
	Cells []int `json:"cells,omitempty"` // indexes of the cells in their columns, in the order of time
	Job   bool  `json:"job,omitempty"`
	Brief int   `json:"brief,omitempty"` // how many short tasks were joined to this step
	From  int64 `json:"from"`
	To    int64 `json:"to"`
}

// jobs relates tasks that started a job in the background to those that waited for it.
type jobs struct {
	started map[string]int // the cell that started a job, by its id
	pending map[place]waits
	waits   map[int]string // by cell: the job that it waited for longest
}

// waits is what the items of a task waited for.
type waits struct {
	job  string
	took time.Duration
}

// note keeps which job a result is about. A task waited for a job if it asked more than once.
func (j *jobs) note(at place, e event.HostResult) {
	if e.Result == nil {
		return
	}
	job := e.Result.String("ansible_job_id")
	attempts, _ := e.Result.Get("attempts")
	if n, _ := attempts.(int); job == "" || n < 2 || e.Task.Action == "" {
		return
	}
	if w := j.pending[at]; e.Duration >= w.took {
		j.pending[at] = waits{job, e.Duration}
	}
}

// cell keeps the job that a cell started, or waited for.
func (j *jobs) cell(at place, cell int, e event.HostResult) {
	if w, ok := j.pending[at]; ok {
		j.waits[cell] = w.job
		delete(j.pending, at)
	}
	if e.Result == nil {
		return
	}
	for _, result := range append([]*value.Dict{e.Result}, itemsOf(e.Result)...) {
		finished, has := result.Get("finished")
		job := result.String("ansible_job_id")
		if _, known := j.started[job]; has && job != "" && !value.Truth(finished) && !known {
			j.started[job] = cell
		}
	}
}

// itemsOf returns the results of the items of a loop.
func itemsOf(result *value.Dict) []*value.Dict {
	list, _ := result.Get("results")
	items, _ := list.([]any)
	var out []*value.Dict
	for _, i := range items {
		if d, ok := i.(*value.Dict); ok {
			out = append(out, d)
		}
	}
	return out
}

// span is a cell as the search for the critical path sees it.
type span struct {
	cell, host, task int
	from, to         int64
}

// sameMoment is how much later than the end of one task another one begins that waited for it, and how much two clock
// readings of one moment differ, in microseconds.
const sameMoment = 20_000

// chains finds what a task waited for.
type chains struct {
	byEnd  []span
	byHost map[int][]span
	byCell map[int]span
	jobs   *jobs
}

// newChains sorts the cells by their ends. Cells without a duration, such as skipped ones, determine nothing.
func newChains(c *columns, j *jobs) *chains {
	out := &chains{byHost: map[int][]span{}, byCell: map[int]span{}, jobs: j}
	at := int64(0)
	for i := range c.Host {
		at += c.Start[i]
		if c.Took[i] <= 0 {
			continue
		}
		s := span{i, c.Host[i], c.Task[i], at, at + c.Took[i]}
		out.byEnd = append(out.byEnd, s)
		out.byCell[i] = s
	}
	slices.SortStableFunc(out.byEnd, func(a, b span) int { return cmp.Or(cmp.Compare(a.to, b.to), a.cell-b.cell) })
	for _, s := range out.byEnd {
		out.byHost[s.host] = append(out.byHost[s.host], s)
	}
	return out
}

// latest returns the cell that ended last, at a time or before it.
func latest(sorted []span, at int64) (span, bool) {
	i := sort.Search(len(sorted), func(i int) bool { return sorted[i].to > at })
	if i == 0 {
		return span{}, false
	}
	return sorted[i-1], true
}

// before returns what a cell waited for: the previous task of its host if that ended just then, as without a barrier
// between hosts, and otherwise the host that ended last before it.
func (c *chains) before(s span) (span, bool) {
	limit := s.from + sameMoment/4
	last, ok := latest(c.byEnd, limit)
	for ok && last.from >= s.from { // it is no longer than the tolerance, or the cell itself
		last, ok = latest(c.byEnd, last.to-1)
	}
	own, has := latest(c.byHost[s.host], limit)
	for has && own.from >= s.from {
		own, has = latest(c.byHost[s.host], own.to-1)
	}
	if has && own.to+sameMoment >= min(last.to, s.from) {
		return own, true
	}
	return last, ok
}

// critical returns the critical path of a run, found from its end: each task, back to what it waited for.
func (b *builder) critical() []step {
	c := newChains(&b.doc.Cells, &b.jobs)
	var path []step // from the end
	next := b.doc.Run.Took
	add := func(s step) {
		s.To = min(s.To, next)
		if s.To < next {
			path = append(path, step{From: s.To, To: next}) // no task ran
		}
		path = append(path, s)
		next = s.From
	}
	for s, ok := latest(c.byEnd, next+sameMoment); ok && s.from < next; s, ok = c.before(s) {
		job := c.jobs.waits[s.cell]
		cell, known := c.jobs.started[job]
		start, there := c.byCell[cell]
		if job != "" && known && there && start.from < s.from {
			add(step{Cells: []int{cell}, Job: true, From: start.from, To: s.to})
			s = start
			continue
		}
		add(step{Cells: []int{s.cell}, From: s.from, To: s.to})
	}
	if next > 0 {
		path = append(path, step{To: next})
	}
	slices.Reverse(path)
	return b.joined(path)
}

// joined joins the steps of one task, one host after the other, and neighbors that are short. A moment in which no task
// ran is part of the step before it; that before the first step is part of the first.
func (b *builder) joined(path []step) []step {
	brief := max(50_000, b.doc.Run.Took/500)
	path = join(path, func(last, s step) bool {
		return b.sameTask(last, s) || len(s.Cells) == 0 && s.To-s.From < brief
	})
	if len(path) > 1 && len(path[0].Cells) == 0 && path[0].To-path[0].From < brief {
		path[1].From = path[0].From
		path = path[1:]
	}
	path = join(path, b.sameTask)
	for i := range path {
		if s := &path[i]; s.To-s.From < brief && len(s.Cells) > 0 {
			s.Brief = 1
		}
	}
	path = join(path, func(last, s step) bool { return last.Brief > 0 && s.Brief > 0 })
	for i := range path {
		if path[i].Brief == 1 {
			path[i].Brief = 0 // a task alone keeps its name
		}
	}
	return path
}

// join joins each step to the one before it where the function says so.
func join(path []step, one func(last, s step) bool) []step {
	var out []step
	for _, s := range path {
		if len(out) == 0 || !one(out[len(out)-1], s) {
			out = append(out, s)
			continue
		}
		last := &out[len(out)-1]
		last.Cells, last.To, last.Brief = append(last.Cells, s.Cells...), s.To, last.Brief+s.Brief
	}
	return out
}

func (b *builder) sameTask(x, y step) bool {
	return !x.Job && !y.Job && len(x.Cells) > 0 && len(y.Cells) > 0 &&
		b.doc.Cells.Task[x.Cells[len(x.Cells)-1]] == b.doc.Cells.Task[y.Cells[0]]
}
