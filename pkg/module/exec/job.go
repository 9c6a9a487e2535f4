package exec

import (
	"context"
	"io"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
)

// job is one command line of a task, and how its end is evaluated.
type job struct {
	ending
	line  string
	stdin io.Reader
}

// run runs the job and waits for it.
func (j job) run(ctx context.Context, c *module.Call) (module.Result, error) {
	o, err := Execute(ctx, c, connector.Command{Line: j.line, Stdin: j.stdin})
	if err != nil {
		return module.Result{Warnings: o.Warnings}, err
	}
	return j.result(ctx, c, o)
}

// The kinds of endings: command and shell, script, raw.
const (
	ofCommand = "command"
	ofScript  = "script"
	ofRaw     = "raw"
)

// ending makes the result of a command that exited. An async job stores it as
// JSON until the result is queried.
type ending struct {
	Kind    string
	Cmd     any    `json:",omitempty"` // as shown in the result
	Program string `json:",omitempty"` // the executed program, "" for the shell itself
	Mark    string `json:",omitempty"` // printed if the guard skips the command
	Strip   bool   `json:",omitempty"`
	Limit   int    `json:",omitempty"` // seconds; of an async job
	NoLog   bool   `json:",omitempty"` // of an async job: its task has no_log, which extends to async_status
	Keep    int    `json:",omitempty"` // bytes kept of an output of an async job
	guard
}

func (e ending) result(ctx context.Context, c *module.Call, o outcome) (module.Result, error) {
	if why := decided(e.Mark, o.Stdout); e.Mark != "" && o.RC == 0 && why != "" {
		return e.skipped(why), nil
	}
	if e.suspicious(o) {
		fault, err := e.diagnose(ctx, c, e.Program)
		if err != nil || fault.msg != "" {
			return e.refused(fault), err
		}
	}
	if e.Kind == ofCommand {
		return o.commandResult(e.Cmd, e.Strip), nil
	}
	return o.result(), nil
}

// skipped is the result of a command that the guard skipped.
func (e ending) skipped(why string) module.Result {
	if e.Kind == ofScript {
		return e.scriptSkipped(why)
	}
	msg, stdout := e.skipTexts(why, false)
	return notRun(e.Cmd, 0, stdout, msg)
}

func (e ending) refused(f fault) module.Result {
	switch {
	case e.Kind == ofScript:
		return module.Result{Failed: true, Msg: f.msg}
	case f.folder:
		return refused(e.Cmd, f.rc, f.msg)
	}
	return notFound(e.Cmd, f.rc, f.msg)
}

// suspicious reports whether the shell, not the command, may have failed.
func (e ending) suspicious(o outcome) bool {
	switch {
	case e.Kind == ofRaw:
		return false
	case e.Kind == ofScript:
		return o.RC == 2 && e.Chdir != ""
	case o.RC == 126, o.RC == 127:
		return e.Program != "" || e.Chdir != ""
	case o.RC == 1, o.RC == 2:
		return e.Chdir != "" && o.Stdout == "" && strings.Contains(o.Stderr, "cd: ")
	}
	return false
}

// newJob makes the job of command or shell.
func newJob(g guard, s streams, cmd any, body, program string) job {
	e := ending{Kind: ofCommand, Cmd: cmd, Program: program, Strip: s.StripEmptyEnd, guard: g}
	if g.decides() {
		e.Mark = newMark()
	}
	return job{ending: e, line: e.line(body), stdin: s.reader()}
}

// line is the whole command line. The common cases are short: the arguments
// themselves, or `cd -P X && exec ...`.
func (e ending) line(body string) string {
	if e.Mark == "" && e.Chdir != "" && strings.HasPrefix(body, "exec ") && e.Program != "" {
		return "cd -P " + Expandable(e.Chdir, false) + " && " + body
	}
	return e.prefix(e.Mark) + body
}

// quoteWord quotes a word for the shell, with expansion if expand is set.
func quoteWord(w string, expand bool) string {
	if expand {
		return Expandable(w, false)
	}
	return shell.Quote(w)
}

// predict is the result in check mode.
func predict(ctx context.Context, c *module.Call, g guard, cmd any) (module.Result, error) {
	if g.Chdir != "" {
		if f, err := g.diagnose(ctx, c, ""); err != nil || f.msg != "" {
			return refused(cmd, f.rc, f.msg), err
		}
	}
	if !g.decides() {
		r := notRun(cmd, 0, "", "Command would have run if not in check mode")
		r.Skipped = true
		return r, nil
	}
	why, err := g.probe(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	if why != "" {
		msg, stdout := g.skipTexts(why, true)
		return notRun(cmd, 0, stdout, msg), nil
	}
	r := notRun(cmd, 0, "", "Command would have run if not in check mode")
	r.Changed = true
	return r, nil
}
