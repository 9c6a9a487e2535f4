package ui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/event"
)

// transfer is a file being transferred.
type transfer struct {
	task        int // ID
	host, what  string
	since       time.Time
	from        int64 // bytes that existed at the start, from a previous attempt
	done, total int64 // bytes; total < 0 when unknown
}

const (
	// shownTransfers is how many transfers have a line of their own.
	shownTransfers = 6
	// shownAfter is the age at which a transfer gets one: small files would only flicker.
	shownAfter = 500 * time.Millisecond
	// barColumns is the width of a bar.
	barColumns = 20
)

// transfers are those in progress, in the order in which they began.
type transfers []*transfer

func (ts *transfers) follow(e event.Event, now time.Time) {
	switch e := e.(type) {
	case event.Progress:
		ts.progress(e, now)
	case event.HostResult: // of an item too: a host works on one at a time
		*ts = slices.DeleteFunc(*ts, func(t *transfer) bool { return t.task == e.Task.ID && t.host == e.Host })
	case event.PlayEnded, event.NoMoreHosts, event.RunEnded:
		*ts = nil
	}
}

func (ts *transfers) progress(e event.Progress, now time.Time) {
	i := slices.IndexFunc(*ts, func(t *transfer) bool {
		return t.task == e.Task.ID && t.host == e.Host &&
			t.what == e.What
	})
	if e.Total >= 0 && e.Done >= e.Total {
		if i >= 0 {
			*ts = slices.Delete(*ts, i, i+1)
		}
		return
	}
	if i < 0 {
		i = len(*ts)
		*ts = append(*ts, &transfer{task: e.Task.ID, host: e.Host, what: e.What, since: now, from: e.Done})
	}
	t := (*ts)[i]
	if e.Done < t.done { // it started again
		t.since, t.from = now, e.Done
	}
	t.done, t.total = e.Done, e.Total
}

// lines are the lines of the transfers that have one, the oldest first.
func (ts transfers) lines(now time.Time) []string {
	var out []string
	more := 0
	for _, t := range ts {
		switch age := now.Sub(t.since); {
		case age < shownAfter:
		case len(out) == shownTransfers:
			more++
		default:
			out = append(out, t.line(age))
		}
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("  and %d more", more))
	}
	return out
}

// line is a bar, the percentage, the size, the average rate, and the name of the file.
func (t *transfer) line(age time.Duration) string {
	bar, part, bytes := "", "", t.done
	if t.total > 0 {
		bar = strings.Repeat("=", int(barColumns*t.done/t.total))
		part = fmt.Sprintf("%d%%", 100*t.done/t.total)
		bytes = t.total
	}
	rate := float64(t.done-t.from) / age.Seconds()
	return fmt.Sprintf("  [%-*s] %4s %10s %12s  %s: %s", barColumns, bar, part, Size(bytes), Size(int64(rate))+"/s",
		t.host, t.what)
}
