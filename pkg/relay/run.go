package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Report is what a distribution did.
type Report struct {
	Arrived int64 // bytes that came to hosts
	Sent    int64 // bytes of these that the control node sent
	GivenUp []int // numbers of the members that did not get everything
	Failed  []error
}

// Run brings its blobs to every member; nodes are their hosts, in the same order. It ends when each host has
// everything or is given up, or with the context. The report has an error for each host that is given up.
func Run(ctx context.Context, members []Member, nodes []Node, o Options) (Report, error) {
	r := &runner{ctx: ctx, nodes: nodes, members: members, ended: make(chan ended)}
	notify := o.Notify
	o.Notify = func(e Event) {
		if e.Kind == GivenUp {
			r.report.Failed = append(r.report.Failed, fmt.Errorf("%s: %s", e.Host, e.Cause))
		}
		if notify != nil {
			notify(e)
		}
	}
	r.options, r.plan = o, NewPlan(members, o)
	r.look()
	for r.plan.Remaining() > 0 && ctx.Err() == nil {
		for _, t := range r.plan.Next() {
			r.start(t)
		}
		r.take(<-r.ended)
	}
	for r.moving > 0 {
		r.take(<-r.ended)
	}
	r.report.GivenUp = r.plan.GivenUp()
	return r.report, ctx.Err()
}

type runner struct {
	ctx     context.Context
	members []Member
	nodes   []Node
	options Options
	plan    *Plan
	ended   chan ended
	moving  int
	total   int64
	report  Report
}

// ended is how a transfer ended.
type ended struct {
	Transfer
	took time.Duration
	err  error
}

// maxLooks is how many hosts are asked at a time what they have.
const maxLooks = 32

// look finds out what hosts have.
func (r *runner) look() {
	has := make([][]bool, len(r.nodes))
	problems := make([]error, len(r.nodes))
	slots := make(chan struct{}, maxLooks)
	var wait sync.WaitGroup
	for i, n := range r.nodes {
		slots <- struct{}{}
		wait.Go(func() {
			has[i], problems[i] = n.Has(r.ctx, r.members[i].Blobs)
			<-slots
		})
	}
	wait.Wait()
	for i, n := range r.nodes {
		if n.Source().Address == "" {
			r.plan.Direct(i)
		}
		if problems[i] == nil && len(has[i]) != len(r.members[i].Blobs) {
			problems[i] = fmt.Errorf("asked for %d blobs, it answered for %d", len(r.members[i].Blobs), len(has[i]))
		}
		if problems[i] != nil {
			r.plan.GiveUp(i, problems[i])
			continue
		}
		for k, b := range r.members[i].Blobs {
			if has[i][k] {
				r.plan.Has(i, b)
			} else {
				r.total += b.Size
			}
		}
	}
}

// start begins a transfer.
func (r *runner) start(t Transfer) {
	r.moving++
	limit := r.plan.Limit(t)
	go func() {
		ctx, cancel := r.ctx, context.CancelFunc(func() {})
		if limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		defer cancel()
		begin := time.Now()
		err := r.move(ctx, t)
		took := time.Since(begin)
		if err != nil && ctx.Err() != nil && r.ctx.Err() == nil && faultOf(err) != Lost {
			err = &TransferError{Slow, fmt.Sprintf("%s took more than %s", t.Blob.Digest, limit.Round(time.Second))}
		}
		r.ended <- ended{t, took, err}
	}()
}

func (r *runner) move(ctx context.Context, t Transfer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if t.FromControl() {
		return r.nodes[t.To].Send(ctx, t.Blob)
	}
	return r.nodes[t.To].Fetch(ctx, t.Blob, r.nodes[t.From].Source())
}

// take takes in how a transfer ended.
func (r *runner) take(e ended) {
	r.moving--
	if e.err != nil && r.ctx.Err() != nil {
		return
	}
	r.plan.Done(e.Transfer, e.took, e.err)
	if e.err != nil {
		return
	}
	r.report.Arrived += e.Blob.Size
	if e.FromControl() {
		r.report.Sent += e.Blob.Size
	}
	if r.options.Progress != nil {
		r.options.Progress(r.report.Arrived, max(r.total, r.report.Arrived))
	}
}

// Err joins the failures.
func (r Report) Err() error { return errors.Join(r.Failed...) }
