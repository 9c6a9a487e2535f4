package exec

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// outcome is how a command exited.
type outcome struct {
	RC             int
	Stdout, Stderr string
	start, end     time.Time
	Warnings       []string
	all            []*capture // the captures of stdout and stderr
}

// Execute runs a command, passing its output on as it arrives. If it did not exit by
// itself the outcome has the warnings.
func Execute(ctx context.Context, c *module.Call, command connector.Command) (outcome, error) {
	printed := newOutputs(c)
	o := outcome{start: c.Now()}
	command.Stdout, command.Stderr = &printed.stdout, &printed.stderr
	exit, err := c.Conn.Run(ctx, command)
	o.hold(printed)
	if err != nil {
		return outcome{Warnings: o.Warnings}, err
	}
	o.end, o.RC = c.Now(), exit.Code
	return o, nil
}

// hold closes the outputs and keeps them.
func (o *outcome) hold(printed *outputs) {
	printed.end()
	o.all = []*capture{&printed.stdout, &printed.stderr}
	o.Stdout, o.Stderr = printed.stdout.text(), printed.stderr.text()
	for _, c := range o.all {
		if w := c.warning(); w != "" {
			o.Warnings = append(o.Warnings, w)
		}
	}
}

// Describe adds the keys for truncated outputs to a result.
func (o outcome) Describe(d *value.Dict) *value.Dict {
	for _, c := range o.all {
		c.describe(d)
	}
	return d
}

// result makes the common part of a result.
func (o outcome) result() module.Result {
	r := module.Result{Changed: true, Warnings: o.Warnings, Data: o.Describe(value.NewDict(
		"rc", o.RC, "stdout", o.Stdout, "stderr", o.Stderr,
	))}
	if o.RC != 0 {
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

// commandResult makes the result of command and shell: outputs, stripped if requested,
// and the command.
func (o outcome) commandResult(cmd any, strip bool) module.Result {
	if strip {
		o.Stdout = strings.TrimRight(o.Stdout, "\r\n")
		o.Stderr = strings.TrimRight(o.Stderr, "\r\n")
	}
	r := o.timed(o.result())
	r.Data.Set("cmd", cmd)
	r.Data.Set("msg", r.Msg)
	return r
}

// notRun makes the result of a command that did not start.
func notRun(cmd any, rc int, stdout, msg string) module.Result {
	return module.Result{Msg: msg, Data: value.NewDict(
		"cmd", cmd, "rc", rc, "stdout", stdout, "stderr", "", "start", nil, "end", nil, "delta", nil,
	)}
}

// notFound makes the result of a program that could not be executed. It is named as
// one text, and has no times: nothing was started.
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
