package engine

import (
	"errors"
	"fmt"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/value"
)

// contain calls a module. Its panic is a failed result, so that what follows a failure
// does: until, failed_when, the end of a job.
func (x *execution) contain(work func() (module.Result, error)) (r module.Result, err error) {
	defer func() {
		var p *connector.PanicError
		if recovered := recover(); recovered != nil {
			p = connector.NewPanicError(recovered)
		} else if !errors.As(err, &p) { // on a goroutine of the connection
			return
		}
		r, err = module.Result{Failed: true, Msg: x.defect(fmt.Sprintf("module %q", x.t.Spec.Name), p)}, nil
		r.Data = value.NewDict(stackKey, p.Stack)
	}()
	return work()
}

// survive does a part of the task's work on its host. A panic, over what the host said for
// one, fails the task there, and nothing else. o.status is Failed then.
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
		defer func() { _ = recover() }() // what panicked may be these: then it is a secret, and counts
		o.noLog, o.ignored = true, false
		x.secrecy(x.view, o)
		x.ignore(x.view, o)
	}()
	work()
}

// lost is an outcome in the place of one that panicked when it was made known.
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

// stackKey is the key of a result that has a stack, as results of Ansible's modules do. People
// see it with -vvv; the journal has it.
const stackKey = "exception"

// defect is what a task says that panicked.
func (x *execution) defect(who string, p *connector.PanicError) string {
	return fmt.Sprintf("%s %s with the stack: `kk runs show %s -o json` has it as %s", who, p, x.e.RunID, stackKey)
}
