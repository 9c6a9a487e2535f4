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

// asyncTask has the values of the keywords async and poll. With a limit of 0 the task runs in the foreground; with a
// poll of 0 kk does not wait for it.
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

// background runs the module as a job. Commands of the playbook's author run detached on the host. Other modules run
// several commands each, so kk itself continues them in the background. Check mode predicts the result at once and
// stores it as a finished job.
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

// tellEnd emits the end of a job that kk waited for.
func (x *execution) tellEnd(id string, r module.Result, err error) {
	state := event.AsyncOK
	if r.Failed || err != nil {
		state = event.AsyncFailed
	}
	x.tell(event.Async{Task: x.ev, Host: x.w.name, Job: id, State: state})
}

// fork prepares a call for use on another goroutine: with its own variables, and without output and progress.
func (x *execution) fork(ctx context.Context, v *vars.View, c *module.Call) (err error) {
	v = v.Fork()
	c.Scope, c.Output, c.Progress = v, nil, nil
	c.Args, err = x.arguments(ctx, v)
	c.Raw = c.Args
	return err
}

// ended adds the job's keys to a result.
func ended(id string, r module.Result) module.Result {
	d := value.NewDict("ansible_job_id", id, "started", 1, "finished", 1)
	d.Merge(r.Data)
	r.Data = d
	return r
}

const (
	firstLook = 250 * time.Millisecond // until the first query of a job; doubles each time, up to poll
	jobGrace  = 15 * time.Second       // time that a host has to end a job after its limit
)

// await waits for a job on the host. If the host is unreachable, it is queried again until the job's limit is over.
// If the wait is cancelled, the job is ended.
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
			// If the new connection fails, too, the next query shows it.
			_ = c.Reset(ctx)
		case err != nil:
			return r, err
		case jobFinished(r):
			_, err := x.askJob(ctx, c, id, "cleanup")
			return r, err
		case late:
			x.endJob(ctx, c, id)
			return module.Result{Failed: true, Msg: module.LateJob(a.limit), Data: r.Data}, nil
		case pause == a.poll: // more frequent queries are internal
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

// endJob ends the processes of a job that nothing waits for any more.
func (x *execution) endJob(ctx context.Context, c *module.Call, id string) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), jobGrace)
	defer cancel()
	// If this fails, the host ends the job when its limit is over.
	_, _ = x.askJob(bounded, c, id, "end")
	_, _ = x.askJob(bounded, c, id, "cleanup")
}

// awaitJobs waits for the jobs that kk itself runs in the background, and reports failures that no async_status has
// read.
func (e *Engine) awaitJobs() {
	running := e.jobs.Running()
	if len(running) > 0 {
		names := make([]string, len(running))
		for i, j := range running {
			names[i] = j.What
		}
		e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "waiting for tasks in the background: %s",
			strings.Join(names, ", "))})
	}
	for _, j := range running {
		j.Wait()
	}
	for _, j := range e.jobs.Unseen() {
		e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "a task in the background failed: %s: %s", j.What,
			j.Wait())})
	}
}
