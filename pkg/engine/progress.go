package engine

import (
	"sync"
	"time"

	"kubekey/pkg/event"
)

// progressInterval is the shortest time between two events of one transfer. Modules report every few kilobytes, which
// would be thousands of events per second.
const progressInterval = 100 * time.Millisecond

// progress returns what a module reports transfers to; nil if nobody may see them. The first report of a transfer, its
// last, and that it started again always become events.
func (x *execution) progress(secret bool) func(what string, done, total int64) {
	if secret {
		return nil
	}
	type report struct {
		at   time.Time
		done int64
	}
	var mu sync.Mutex
	reports := map[string]report{} // of transfers that go on
	return func(what string, done, total int64) {
		now := x.e.Now()
		mu.Lock() // until the event is on its way: a report that is older must not follow it
		defer mu.Unlock()
		last, known := reports[what]
		complete := total >= 0 && done >= total
		if known && !complete && done >= last.done && now.Sub(last.at) < progressInterval {
			return
		}
		if complete {
			delete(reports, what)
		} else {
			reports[what] = report{now, done}
		}
		x.tell(event.Progress{Task: x.ev, Host: x.w.name, What: what, Done: done, Total: total})
	}
}
