// Package strategy decides in which order the hosts of a play and its tasks get
// their turn. What a task is and what becomes of it is the driver's business.
package strategy

import (
	"context"
	"slices"
)

// Host is where a host is in a play.
type Host[H any, T comparable] interface {
	comparable
	// Next is the task that the host is at, the zero T when the play is over for it.
	Next() T
	// Compare is negative for a host that is further behind than another.
	Compare(other H) int
}

// Stepper runs a task on hosts that are at it, to its end on all of them.
type Stepper[H, T any] interface {
	Step(ctx context.Context, task T, hosts []H) error
}

// Linear runs a play task by task: all hosts that are at a task run it before
// any goes on.
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

// furthestBehind is the task to run next, and the hosts that are at it.
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
	// Limit is how many hosts may run a task at a time; 0 is no limit.
	Limit(ctx context.Context, task T, host H) int
	// Start begins a task on a host. It returns false when nothing runs, and the host went on.
	Start(ctx context.Context, task T, host H) (running bool, err error)
	// Await waits for a task that was started to end, and returns what it is and where. When
	// ctx has ended, what the task did has no effect.
	Await(ctx context.Context) (T, H, error)
}

// Forks bounds what runs under Free.
type Forks struct {
	Most   int  // hosts at a time
	Pinned bool // a host that began goes on to its end before another begins
}

// Free lets each host go on alone. When it returns nothing runs.
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
	at     map[T]int // hosts that run a task
	busy   map[H]bool
	pinned []H // hosts that have begun and are not at their end
}

// startAll starts what can be started, and reports whether any host moved.
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

// mayBegin reports whether a host has a place, or gets one.
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

// drain waits for what still runs when a batch ends early.
func (f *free[H, T]) drain() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for len(f.busy) > 0 {
		_ = f.one(ended) // the error that ended the batch was before it
	}
}
