// Package strategy decides the order in which the hosts and the tasks of a play run. It knows nothing about tasks and
// their results; the caller handles them.
package strategy

import (
	"context"
	"slices"
)

// Host is the position of a host in a play.
type Host[H any, T comparable] interface {
	comparable
	// Next returns the current task of the host, or the zero T at the end of the play.
	Next() T
	// Compare is negative if the host is behind other.
	Compare(other H) int
}

// Stepper runs a task on the hosts that are at it, and returns when it has ended on all of them.
type Stepper[H, T any] interface {
	Step(ctx context.Context, task T, hosts []H) error
}

// Linear runs a play task by task: all hosts at a task run it before any of them continues.
func Linear[H Host[H, T], T comparable](ctx context.Context, hosts []H, s Stepper[H, T]) error {
	var none T
	for ctx.Err() == nil {
		task, group := furthestBehind[H, T](hosts)
		if task == none {
			return nil
		}
		if err := s.Step(ctx, task, group); err != nil {
			return err
		}
	}
	return nil
}

// furthestBehind returns the task to run next, and the hosts that are at it.
func furthestBehind[H Host[H, T], T comparable](hosts []H) (task T, group []H) {
	var none T
	for _, h := range hosts {
		t := h.Next()
		if t == none {
			continue
		}
		if task == none {
			task, group = t, []H{h}
			continue
		}
		switch d := h.Compare(group[0]); {
		case d == 0 && t == task:
			group = append(group, h)
		case d < 0:
			task, group = t, []H{h}
		}
	}
	return task, group
}

// Starter runs tasks on single hosts, several at a time.
type Starter[H, T any] interface {
	// Limit returns how many hosts can run a task at a time; 0 is no limit.
	Limit(ctx context.Context, task T, host H) int
	// Start starts a task on a host. It returns false if nothing was started and the host moved on.
	Start(ctx context.Context, task T, host H) (running bool, err error)
	// Await waits for a started task to end, and returns the task and its host. If ctx is cancelled, the result of
	// the task is discarded.
	Await(ctx context.Context) (T, H, error)
}

// Forks limits the number of hosts that run at a time under Free.
type Forks struct {
	Most   int  // hosts at a time
	Pinned bool // a host that has started runs to its end before another one starts
}

// Free lets each host run independently. When it returns, no task is running.
func Free[H Host[H, T], T comparable](ctx context.Context, hosts []H, forks Forks, s Starter[H, T]) error {
	f := &free[H, T]{hosts: hosts, forks: forks, s: s, at: map[T]int{}, busy: map[H]bool{}}
	defer f.drain()
	for ctx.Err() == nil {
		progressed, err := f.startAll(ctx)
		if err != nil {
			return err
		}
		switch {
		case len(f.busy) > 0:
			if err := f.one(ctx); err != nil {
				return err
			}
		case !progressed:
			return nil
		}
	}
	return nil
}

type free[H Host[H, T], T comparable] struct {
	hosts  []H
	forks  Forks
	s      Starter[H, T]
	at     map[T]int // number of hosts that run a task
	busy   map[H]bool
	pinned []H // hosts that have started and have not reached their end
}

// startAll starts all tasks that can be started, and reports whether any host moved.
func (f *free[H, T]) startAll(ctx context.Context) (progressed bool, err error) {
	var none T
	for _, h := range f.hosts {
		if f.busy[h] || len(f.busy) >= f.forks.Most || !f.mayBegin(h) {
			continue
		}
		t := h.Next()
		if t == none {
			continue
		}
		if limit := f.s.Limit(ctx, t, h); limit > 0 && f.at[t] >= limit {
			continue
		}
		progressed = true
		running, err := f.s.Start(ctx, t, h)
		if err != nil {
			return progressed, err
		}
		if running {
			f.busy[h] = true
			f.at[t]++
		}
	}
	return progressed, nil
}

// mayBegin reports whether a host has a slot, or can get one.
func (f *free[H, T]) mayBegin(h H) bool {
	if !f.forks.Pinned || slices.Contains(f.pinned, h) {
		return true
	}
	var none T
	f.pinned = slices.DeleteFunc(f.pinned, func(o H) bool { return !f.busy[o] && o.Next() == none })
	if len(f.pinned) >= f.forks.Most {
		return false
	}
	f.pinned = append(f.pinned, h)
	return true
}

// one waits for a task to end.
func (f *free[H, T]) one(ctx context.Context) error {
	t, h, err := f.s.Await(ctx)
	delete(f.busy, h)
	f.at[t]--
	return err
}

// drain waits for the running tasks when a batch ends early.
func (f *free[H, T]) drain() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for len(f.busy) > 0 {
		_ = f.one(ended) // the error that ended the batch came first
	}
}
