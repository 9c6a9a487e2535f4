package exec

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// outcome is how a command ended.
type outcome struct {
	rc             int
	stdout, stderr string
	start, end     time.Time
	warnings       []string
}

// execute runs a command, passing its output on as it comes.
func execute(ctx context.Context, c *module.Call, command connector.Command) (outcome, error) {
	var lock sync.Mutex
	stdout := &capture{limit: keep, emit: emitter(c, false), lock: &lock}
	stderr := &capture{limit: keep, emit: emitter(c, true), lock: &lock}
	o := outcome{start: c.Now()}
	command.Stdout, command.Stderr = stdout, stderr
	exit, err := c.Conn.Run(ctx, command)
	if err != nil {
		return outcome{}, err
	}
	o.end, o.rc = c.Now(), exit.Code
	o.stdout, o.stderr = stdout.text(), stderr.text()
	for _, w := range []string{stdout.warning("stdout"), stderr.warning("stderr")} {
		if w != "" {
			o.warnings = append(o.warnings, w)
		}
	}
	return o, nil
}

func emitter(c *module.Call, stderr bool) func(string) {
	if c.Output == nil {
		return nil
	}
	return func(line string) { c.Output(line, stderr) }
}

// result makes the common part of a result.
func (o outcome) result() module.Result {
	r := module.Result{Changed: true, Warnings: o.warnings, Data: value.NewDict(
		"rc", o.rc, "stdout", o.stdout, "stderr", o.stderr,
	)}
	if o.rc != 0 {
		r.Failed, r.Msg = true, "non-zero return code"
	}
	return r
}

const timeLayout = "2006-01-02 15:04:05.000000"

// timed adds start, end and delta to a result.
func (o outcome) timed(r module.Result) module.Result {
	r.Data.Set("start", o.start.Format(timeLayout))
	r.Data.Set("end", o.end.Format(timeLayout))
	r.Data.Set("delta", delta(o.end.Sub(o.start)))
	return r
}

// delta is a duration as Python prints a timedelta: 1 day, 0:00:00.004613.
func delta(d time.Duration) string {
	d = max(d, 0)
	days, d := d/(24*time.Hour), d%(24*time.Hour)
	s := fmt.Sprintf("%d:%02d:%02d.%06d", d/time.Hour, d/time.Minute%60, d/time.Second%60, d/time.Microsecond%1e6)
	switch days {
	case 0:
		return s
	case 1:
		return "1 day, " + s
	}
	return fmt.Sprintf("%d days, %s", days, s)
}

// commandResult makes the result of command and shell: outputs stripped if
// wanted, and what was run.
func (o outcome) commandResult(cmd any, strip bool) module.Result {
	if strip {
		o.stdout = strings.TrimRight(o.stdout, "\r\n")
		o.stderr = strings.TrimRight(o.stderr, "\r\n")
	}
	r := o.timed(o.result())
	r.Data.Set("cmd", cmd)
	r.Data.Set("msg", r.Msg)
	return r
}

// notRun makes the result of a command that did not begin.
func notRun(cmd any, rc int, stdout, msg string) module.Result {
	return module.Result{Msg: msg, Data: value.NewDict(
		"cmd", cmd, "rc", rc, "stdout", stdout, "stderr", "", "start", nil, "end", nil, "delta", nil,
	)}
}

// notFound makes the result of a program that could not be executed. It is
// named as one text, and no time is told: nothing began.
func notFound(cmd any, rc int, msg string) module.Result {
	if words, ok := cmd.([]any); ok {
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = shell.Quote(fmt.Sprint(w))
		}
		cmd = strings.Join(quoted, " ")
	}
	return module.Result{Failed: true, Msg: msg, Data: value.NewDict("cmd", cmd, "rc", rc, "stdout", "", "stderr", "")}
}

func refused(cmd any, rc int, msg string) module.Result {
	r := notRun(cmd, rc, "", msg)
	r.Failed = true
	return r
}
