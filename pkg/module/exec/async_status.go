package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// asyncStatus is the module async_status.
type asyncStatus struct {
	ID   string `kk:"jid,required" doc:"ansible_job_id of the task that started the job"`
	Mode string `kk:"mode" default:"status" choices:"status,wait,cleanup,end" doc:"status returns the status of the job; wait waits until it has finished, then returns it (kk only); cleanup deletes its status file; end stops its processes, then returns the status (kk only)"`
}

// poll is how often a host is asked for a job while a task waits for it.
const poll = time.Second

// Run implements module.Runner.
func (m *asyncStatus) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.Mode != "wait" {
		return m.query(ctx, c, m.Mode)
	}
	if err := c.Jobs.Wait(ctx, m.ID); err != nil {
		return module.Result{}, err
	}
	for {
		r, err := m.query(ctx, c, "status")
		if finished, _ := r.Data.Get("finished"); err != nil || c.Check || finished == 1 {
			return r, err
		}
		if err := module.Sleep(ctx, poll); err != nil {
			return module.Result{}, err
		}
	}
}

// query asks once: for the status of the job, or to clean up or end it.
func (m *asyncStatus) query(ctx context.Context, c *module.Call, mode string) (module.Result, error) {
	if r, finished, ok := c.Jobs.Result(m.ID); ok {
		return m.ofRun(c, r, finished), nil
	}
	if !jobName.MatchString(m.ID) {
		return m.missing(""), nil
	}
	if c.Check {
		mode = "status"
	}
	line := shell.Script(jobScript, m.ID, mode, connector.KillMarked(m.ID))
	out, err := connector.Collect(ctx, c.Conn, connector.Command{Line: line, Probe: mode == "status"},
		connector.MaxLargeAnswer)
	if err != nil {
		return module.Result{}, err
	}
	state, rest, _ := strings.Cut(string(out.Stdout), "\n")
	file, text, told := strings.Cut(rest, "\n")
	switch {
	case out.Code != 0 || !told:
		return module.Result{}, fmt.Errorf("query the job: %s", strings.TrimSpace(out.Stderr))
	case state == "missing":
		return m.missing(file), nil
	case m.Mode == "cleanup":
		return m.about(module.Result{}, 0, 0, "erased", file), nil
	}
	return m.ofHost(ctx, c, text, state == "up", file)
}

// jobName keeps an id from escaping the folder of jobs.
var jobName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

func (m *asyncStatus) missing(file string) module.Result {
	return m.about(module.Result{Failed: true, Msg: "could not find job"}, 1, 1, "results_file", file)
}

// about adds the keys of the job itself to a result.
func (m *asyncStatus) about(r module.Result, started, finished int, key, file string) module.Result {
	d := value.NewDict("ansible_job_id", m.ID, "started", started, "finished", finished, "stdout", "", "stderr", "")
	if file != "" {
		d.Set(key, file)
	}
	d.Merge(r.Data)
	r.Data = d
	return r
}

// ofRun is the result for a job that kk itself runs.
func (m *asyncStatus) ofRun(c *module.Call, r module.Result, finished bool) module.Result {
	switch {
	case m.Mode == "cleanup":
		if !c.Check {
			c.Jobs.Forget(m.ID)
		}
		return m.about(module.Result{}, 0, 0, "", "")
	case !finished:
		return m.about(module.Result{}, 1, 0, "", "")
	}
	return m.about(r, 1, 1, "", "")
}

// written is the status file of a job on the host.
type written struct {
	Finished       int
	RC             int
	Start, End     string
	Late           int
	Stdout, Stderr string
	StdoutBytes    int64   `json:"stdout_bytes"`
	StderrBytes    int64   `json:"stderr_bytes"`
	Note           *ending `json:"kk"`
}

// ofHost makes the result from the status file on the host.
func (m *asyncStatus) ofHost(ctx context.Context, c *module.Call, text string, up bool,
	file string) (module.Result, error) {
	var w written
	err := json.Unmarshal([]byte(text), &w)
	switch {
	case err == nil && w.Finished == 0 && up:
		return m.about(module.Result{}, 1, 0, "results_file", file), nil
	case err == nil && w.Finished == 0:
		gone := module.Result{Failed: true, Msg: "the job ended without a result: the host was rebooted, or the process " +
			"that supervises the job was killed"}
		return m.about(gone, 1, 1, "results_file", file), nil
	case err != nil || w.Note == nil:
		unknown := module.Result{Failed: true, Msg: "Could not parse job output: " + text,
			NoLog: strings.Contains(text, `"NoLog":true`)}
		return m.about(unknown, 1, 1, "results_file", file), nil
	}
	r, err := w.Note.result(ctx, c, w.outcome(c))
	if err != nil {
		return module.Result{}, err
	}
	r.NoLog = w.Note.NoLog
	if w.Late == 1 {
		r.Failed, r.Msg = true, module.LateJob(time.Duration(w.Note.Limit)*time.Second)
		r.Data.Set("msg", r.Msg)
	}
	return m.about(r, 1, 1, "results_file", file), nil
}

// kept is an output of a job, of which the host keeps only the end.
func kept(all *outputs, name, text string, total int64) capture {
	c := capture{all: all, name: name, total: total, dropped: total > int64(all.bound.Keep)}
	c.store([]byte(text))
	return c
}

func (w written) outcome(c *module.Call) outcome {
	bound := module.Outputs{Keep: w.Note.Keep, Secrets: c.Bound().Secrets, Why: "the host kept no more of the job"}
	printed := &outputs{bound: bound}
	printed.stdout = kept(printed, "stdout", w.Stdout, w.StdoutBytes)
	printed.stderr = kept(printed, "stderr", w.Stderr, w.StderrBytes)
	o := outcome{RC: w.RC}
	o.hold(printed)
	o.start, _ = time.Parse(timeLayout, w.Start)
	o.end, _ = time.Parse(timeLayout, w.End)
	return o
}
