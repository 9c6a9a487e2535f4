package module

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"sync"
	"time"

	"kubekey/pkg/value"
)

// Detacher is a Runner that can run its work in the background on the host, for the keyword async. Detach starts it
// there as the job with an ID, and returns at once: StartedJob, or why it failed. The host itself stops the job
// after limit.
type Detacher interface {
	Runner
	Detach(ctx context.Context, c *Call, id string, limit time.Duration) (Result, error)
}

// NewJobID returns a new ID of an async job, in Ansible's format.
func NewJobID() string { return fmt.Sprintf("j%012d.%d", rand.Int64N(1e12), os.Getpid()) }

// StartedJob is the result of a task that started a job. file is the path of the result on the host, or "" if kk
// itself does the work.
func StartedJob(id, file string) Result {
	r := Result{Changed: true, Data: value.NewDict("ansible_job_id", id, "started", 1, "finished", 0)}
	if file != "" {
		r.Data.Set("results_file", file)
	}
	return r
}

// EndsWithRun reports whether a result is that of a task that started a job of kk itself, which ends with the run.
func EndsWithRun(result *value.Dict) bool {
	finished, started := result.Get("finished")
	return started && !value.Truth(finished) && result.Has("ansible_job_id") && !result.Has("results_file")
}

// LateJob returns the message of a job that was stopped after its timeout.
func LateJob(limit time.Duration) string {
	return fmt.Sprintf("async task did not complete within the requested time - %vs", limit.Seconds())
}

// Jobs are the async tasks that kk itself runs, because their modules need more than one command on the host. They
// end with the run. Jobs is safe for concurrent use; a nil Jobs has no jobs.
type Jobs struct {
	mu   sync.Mutex
	jobs map[string]*Job
}

// Job is one task in the background.
type Job struct {
	What   string // the task and its host, for display
	done   chan struct{}
	result Result
	asked  bool
}

// Start does work in the background, for limit at most. With noLog its result must not be shown.
func (j *Jobs) Start(ctx context.Context, id, what string, limit time.Duration, noLog bool,
	work func(context.Context) (Result, error)) {
	job := &Job{What: what, done: make(chan struct{})}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.jobs == nil {
		j.jobs = map[string]*Job{}
	}
	j.jobs[id] = job
	go func() {
		defer close(job.done)
		job.result = Bounded(ctx, limit, work)
		job.result.NoLog = noLog
	}()
}

// Bounded does work for limit at most. An error becomes a failed result.
func Bounded(ctx context.Context, limit time.Duration, work func(context.Context) (Result, error)) Result {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := work(bounded)
	switch {
	case err == nil:
		return r
	case bounded.Err() != nil && ctx.Err() == nil:
		return Result{Failed: true, Msg: LateJob(limit)}
	}
	return Result{Failed: true, Msg: err.Error()}
}

// Result returns the result of a finished job. ok is false for an unknown ID.
func (j *Jobs) Result(id string) (r Result, finished, ok bool) {
	if j == nil {
		return Result{}, false, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	job := j.jobs[id]
	if job == nil {
		return Result{}, false, false
	}
	select {
	case <-job.done:
		job.asked = true
		return job.result, true, true
	default:
		return Result{}, false, true
	}
}

// Wait waits until a job has finished. It does not wait for an unknown ID.
func (j *Jobs) Wait(ctx context.Context, id string) error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	job := j.jobs[id]
	j.mu.Unlock()
	if job == nil {
		return nil
	}
	select {
	case <-job.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Forget deletes the result of a finished job.
func (j *Jobs) Forget(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if job := j.jobs[id]; job != nil && job.finished() {
		delete(j.jobs, id)
	}
}

// Running lists the jobs that have not finished.
func (j *Jobs) Running() []*Job { return j.list(func(job *Job) bool { return !job.finished() }) }

// Unseen lists the failed jobs whose result was never read.
func (j *Jobs) Unseen() []*Job {
	return j.list(func(job *Job) bool { return job.finished() && job.result.Failed && !job.asked })
}

func (j *Jobs) list(want func(*Job) bool) []*Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []*Job
	for _, job := range j.jobs {
		if want(job) {
			out = append(out, job)
		}
	}
	sort.Slice(out, func(a, b int) bool { return out[a].What < out[b].What })
	return out
}

func (job *Job) finished() bool {
	select {
	case <-job.done:
		return true
	default:
		return false
	}
}

// Wait waits until the job has finished. It returns why it failed, or "".
func (job *Job) Wait() string {
	<-job.done
	switch {
	case !job.result.Failed:
		return ""
	case job.result.NoLog:
		return "its result is hidden by no_log"
	}
	return job.result.Msg
}
