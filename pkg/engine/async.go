package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// asyncTask is what the keywords async and poll say. A limit of 0 is a task
// of the foreground, a poll of 0 one that is not waited for.
type asyncTask struct{ limit, poll time.Duration }

func (x *execution) async(v *vars.View) (a asyncTask, err error) {
	val, set, err := x.ownTyped(v, x.t.Async, playbook.Seconds, "async")
	if err != nil || !set {
		return a, err
	}
	a.limit, a.poll = val.(time.Duration), 15*time.Second
	if val, set, err = x.ownTyped(v, x.t.Poll, playbook.Seconds, "poll"); err == nil && set {
		a.poll = val.(time.Duration)
	}
	return a, err
}

// background runs the module as a job. Commands of the playbook's author are
// left to the host; the work of other modules is many commands, which kk goes
// on with. Check mode predicts at once, and keeps what it predicts as a job.
func (x *execution) background(ctx context.Context, v *vars.View, c *module.Call, a asyncTask) (module.Result, error) {
	if !x.t.Spec.CanDetach() {
		return module.Result{Failed: true, Msg: "async is not supported for this task."}, nil
	}
	id := module.NewJobID()
	what := fmt.Sprintf("%s of %s (%s)", x.ev.Name, x.w.name, x.t.At)
	noLog := connector.IsNoLog(ctx)
	work := func(ctx context.Context) (module.Result, error) {
		if noLog {
			ctx = connector.WithNoLog(ctx)
		}
		return x.contain(func() (module.Result, error) { return x.foreground(ctx, c) })
	}
	if c.Check {
		r, err := work(ctx)
		x.e.jobs.Start(v.Context(), id, what, a.limit, noLog, func(context.Context) (module.Result, error) { return r, err })
		return ended(id, r), err
	}
	runner, err := x.runner(c)
	if err != nil {
		return module.Result{}, err
	}
	if d, ok := runner.(module.Detacher); ok {
		r, err := d.Detach(ctx, c, id, a.limit)
		if err != nil || r.Failed || a.poll == 0 {
			return r, err
		}
		r, err = x.await(ctx, c, id, a)
		x.tellEnd(id, r, err)
		return r, err
	}
	if a.poll > 0 {
		r := module.Bounded(ctx, a.limit, work)
		x.tellEnd(id, r, ctx.Err())
		return ended(id, r), ctx.Err()
	}
	if err := x.fork(ctx, v, c); err != nil {
		return module.Result{}, err
	}
	x.e.jobs.Start(v.Context(), id, what, a.limit, noLog, work)
	return module.StartedJob(id, ""), nil
}

// tellEnd emits how a job that was waited for ended.
func (x *execution) tellEnd(id string, r module.Result, err error) {
	state := event.AsyncOK
	if r.Failed || err != nil {
		state = event.AsyncFailed
	}
	x.tell(event.Async{Task: x.ev, Host: x.w.name, Job: id, State: state})
}

// fork gives a call to another goroutine: variables that it alone works out,
// and nobody who listens to it.
func (x *execution) fork(ctx context.Context, v *vars.View, c *module.Call) (err error) {
	v = v.Fork()
	c.Scope, c.Output, c.Progress = v, nil, nil
	c.Args, err = x.arguments(ctx, v)
	c.Raw = c.Args
	return err
}

// ended adds to a result what a job's has.
func ended(id string, r module.Result) module.Result {
	d := value.NewDict("ansible_job_id", id, "started", 1, "finished", 1)
	d.Merge(r.Data)
	r.Data = d
	return r
}

const (
	firstLook = 250 * time.Millisecond // at a job; then twice as long each time, up to poll
	jobGrace  = 15 * time.Second       // that a host has to end a job whose time is over
)

// await waits for a job of the host. A host that is away is asked again until
// the job's time is over. Who stops waiting ends the job.
func (x *execution) await(ctx context.Context, c *module.Call, id string, a asyncTask) (module.Result, error) {
	deadline := time.Now().Add(a.limit + jobGrace)
	for pause := min(firstLook, a.poll); ; pause = min(2*pause, a.poll) {
		if module.Sleep(ctx, pause) != nil {
			x.endJob(ctx, c, id)
			return module.Result{}, ctx.Err()
		}
		r, err := x.askJob(ctx, c, id, "status")
		var lost *connector.UnreachableError
		late := time.Now().After(deadline)
		switch {
		case errors.As(err, &lost) && !late && ctx.Err() == nil:
			// What came of a new connection shows at the next look.
			_ = c.Reset(ctx)
		case err != nil:
			return r, err
		case jobFinished(r):
			_, err := x.askJob(ctx, c, id, "cleanup")
			return r, err
		case late:
			x.endJob(ctx, c, id)
			return module.Result{Failed: true, Msg: module.LateJob(a.limit), Data: r.Data}, nil
		case pause == a.poll: // looks before that are kk's own
			x.tell(event.Async{Task: x.ev, Host: x.w.name, Job: id, State: event.AsyncRuns})
		}
	}
}

func jobFinished(r module.Result) bool {
	n, _ := r.Data.Get("finished")
	return value.Truth(n)
}

// askJob runs async_status.
func (x *execution) askJob(ctx context.Context, c *module.Call, id, mode string) (module.Result, error) {
	spec := x.e.Linker.Modules.Find("async_status")
	if spec == nil {
		return module.Result{}, errors.New("there is no module async_status")
	}
	runner, err := spec.Decode(value.NewDict("jid", id, "mode", mode), x.e.Redact)
	if err != nil {
		return module.Result{}, err
	}
	return runner.Run(ctx, c)
}

// endJob ends the processes of a job that nobody waits for any longer.
func (x *execution) endJob(ctx context.Context, c *module.Call, id string) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobGrace)
	defer cancel()
	// The host ends it when its time is over, whatever comes of this.
	_, _ = x.askJob(bounded, c, id, "end")
	_, _ = x.askJob(bounded, c, id, "cleanup")
}

// awaitJobs waits for what kk itself does in the background, and tells of
// failures that no async_status has seen.
func (e *Engine) awaitJobs() {
	running := e.jobs.Running()
	if len(running) > 0 {
		names := make([]string, len(running))
		for i, j := range running {
			names[i] = j.What
		}
		e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "waiting for tasks in the background: %s", strings.Join(names, ", "))})
	}
	for _, j := range running {
		j.Wait()
	}
	for _, j := range e.jobs.Unseen() {
		e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "a task in the background failed: %s: %s", j.What, j.Wait())})
	}
}
