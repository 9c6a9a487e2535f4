package engine

import (
	"errors"
	"fmt"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/value"
)

// contain calls a module and converts a panic to a failed result, so that until, failed_when and the end of a job
// handle it like any failure.
func (x *execution) contain(work func() (module.Result, error)) (r module.Result, err error) {
	defer func() {
		var p *connector.PanicError
		if recovered := recover(); recovered != nil {
			p = connector.NewPanicError(recovered)
		} else if !errors.As(err, &p) { // a PanicError comes from a goroutine of the connection
			return
		}
		r, err = module.Result{Failed: true, Msg: x.defect(fmt.Sprintf("module %q", x.t.Spec.Name), p)}, nil
		r.Data = value.NewDict(stackKey, p.Stack)
	}()
	return work()
}

// survive runs a part of the task's work on its host. A panic, for example caused by the host's output, fails only
// this task on this host. o.status is Failed in that case.
func (x *execution) survive(o *itemOutcome, work func()) {
	defer func() {
		recovered := recover()
		if recovered == nil {
			return
		}
		p := connector.NewPanicError(recovered)
		o.fail(x.defect(fmt.Sprintf("the task (%s)", x.t.Action), p))
		o.result.Set(stackKey, p.Stack)
		o.effects, o.facts, o.notify, o.include, o.diff, o.warnings = nil, nil, nil, nil, nil, nil
		defer func() { _ = recover() }() // if one of these panicked: secret, and not ignored
		o.noLog, o.ignored = true, false
		x.secrecy(x.view, o)
		x.ignore(x.view, o)
	}()
	work()
}

// lost returns an outcome that replaces one whose report panicked.
func (e *Engine) lost(x *execution, recovered any) *outcome {
	p := connector.NewPanicError(recovered)
	item := &itemOutcome{startedAt: e.Now(), noLog: x.t.Attrs.Value[project.NoLog] != nil}
	item.fail(x.defect(fmt.Sprintf("the result of the task (%s)", x.t.Action), p))
	item.result.Set(stackKey, p.Stack)
	o := &outcome{walker: x.w, task: x.t, status: item.status, result: item.result, items: []*itemOutcome{item}}
	e.report(o, x.ev)
	e.count(o)
	return o
}

// stackKey is the result key for a stack trace, as in results of Ansible's modules. It is shown with -vvv and stored
// in the journal.
const stackKey = "exception"

// defect returns the message of a task that panicked.
func (x *execution) defect(who string, p *connector.PanicError) string {
	return fmt.Sprintf("%s %s with the stack: `kk runs show %s -o json` has it as %s", who, p, x.e.RunID, stackKey)
}
