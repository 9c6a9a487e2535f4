// Package journal stores the events of each run on disk, readable by the owner only, with secrets
// hidden: WORKDIR/runs/ID/events.jsonl has every event, run.json next to it the summary.
package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/redact"
)

const (
	runsDir    = "runs"
	eventsFile = "events.jsonl"
	runFile    = "run.json"
)

// Keep is how many runs are kept; Open removes older ones.
const Keep = 100

// Writer is a sink that journals one run.
type Writer struct {
	dir    string
	file   *os.File
	buf    *bufio.Writer
	hide   *redact.Set
	now    func() time.Time
	run    Run
	failed map[string]bool
	lines  map[place]int // printed so far

	outputs atomic.Int64 // bytes of long outputs that may still be stored

	err    error // the first error; nothing is written after it
	pruned error // why old runs could not be removed
}

var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// Open begins the journal of a run. The id must be new, and consist of letters, digits, dots,
// dashes and underscores. hide may be nil.
func Open(workdir, id string, hide *redact.Set) (*Writer, error) {
	if !validID.MatchString(id) {
		return nil, fmt.Errorf("open journal: %q is not a valid run id", id)
	}
	if hide == nil {
		hide = &redact.Set{}
	}
	runs := filepath.Join(workdir, runsDir)
	if err := os.MkdirAll(runs, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	dir := filepath.Join(runs, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, eventsFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	w := &Writer{
		dir: dir, file: file, buf: bufio.NewWriterSize(file, 64<<10), hide: hide, now: time.Now,
		run: Run{ID: id, Started: time.Now().UTC()}, failed: map[string]bool{}, lines: map[place]int{},
	}
	w.BoundOutputs(math.MaxInt64)
	w.save()
	if w.err != nil {
		return nil, w.Close()
	}
	w.pruned = prune(workdir, Keep)
	return w, nil
}

// Emit journals an event. The progress of transfers is not stored, and of very long outputs only
// a part. Errors are stored for Close: a full disk does not stop a run.
func (w *Writer) Emit(e event.Event) {
	if _, ok := e.(event.Progress); ok || w.err != nil || w.file == nil {
		return
	}
	w.note(e)
	if e = w.bound(e); e == nil {
		return
	}
	if _, err := w.buf.Write(append(w.encode(e), '\n')); err != nil {
		w.err = err
		return
	}
	if endsTask(e) {
		w.keep(w.buf.Flush())
	}
	switch e.(type) {
	case event.RunStarted, event.RunEnded:
		w.save()
	}
}

// encode encodes an event; a result in which a secret was hidden is marked, because a run
// cannot be resumed with it.
func (w *Writer) encode(e event.Event) []byte {
	hid := false
	hide := func(s string) string {
		shown := w.hide.Text(s)
		hid = hid || shown != s
		return shown
	}
	at := w.now()
	line := event.Encode(e, at, hide)
	if r, ok := e.(event.HostResult); ok && hid && !r.Partial {
		r.Partial = true
		line = event.Encode(r, at, hide)
	}
	return line
}

// keep stores the first error.
func (w *Writer) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

// endsTask reports whether the file is flushed after an event, so that a killed run loses
// little.
func endsTask(e event.Event) bool {
	switch e := e.(type) {
	case event.RunStarted, event.TaskStarted, event.PlayEnded, event.RunEnded:
		return true
	case event.HostResult:
		return !e.Recalled
	}
	return false
}

// note updates the summary of the run from an event.
func (w *Writer) note(e event.Event) {
	switch e := e.(type) {
	case event.RunStarted:
		w.run.Check, w.run.Version = e.Check, e.Version
		for _, p := range e.Playbooks {
			w.run.Playbooks = append(w.run.Playbooks, w.hide.Text(p))
		}
		if !e.Time.IsZero() {
			w.run.Started = e.Time.UTC()
		}
	case event.HostResult:
		if hasFailed(e) {
			w.failed[e.Host] = true
		}
	case event.RunEnded:
		w.end(e)
	}
}

// hasFailed reports whether the result removes the host from the run.
func hasFailed(e event.HostResult) bool {
	return e.Status >= event.Failed && !e.Ignored && !e.Rescued && e.Item == nil
}

func (w *Writer) end(e event.RunEnded) {
	w.run.Ended = e.Time.UTC()
	if e.Time.IsZero() {
		w.run.Ended = w.now().UTC()
	}
	w.run.ExitCode, w.run.Err = e.ExitCode, w.hide.Text(e.Err)
	w.run.Hosts = map[string]Counts{}
	for host, s := range e.Stats {
		w.run.Hosts[host] = Counts(*s)
		if s.Failed > 0 || s.Unreachable > 0 {
			w.failed[host] = true
		}
	}
	w.run.Failed = slices.Sorted(maps.Keys(w.failed))
}

// save replaces the summary.
func (w *Writer) save() { w.keep(w.run.write(filepath.Join(w.dir, runFile))) }

// Close ends the journal, and returns its first error.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	w.keep(w.buf.Flush())
	w.keep(w.file.Close())
	w.file = nil
	if w.err != nil {
		return fmt.Errorf("write journal %s: %w", w.dir, w.err)
	}
	return w.pruned
}

// prune removes the oldest runs beyond keep: only the files of a journal, and the folder if it
// is then empty. Long outputs are removed earlier.
func prune(workdir string, keep int) error {
	runs, err := list(workdir)
	if err != nil {
		return err
	}
	for _, r := range runs[min(keepOutputs, keep, len(runs)):] {
		if err := removeOutputs(filepath.Join(workdir, runsDir, r.ID)); err != nil {
			return fmt.Errorf("remove outputs of old runs: %w", err)
		}
	}
	for _, r := range runs[min(keep, len(runs)):] {
		dir := filepath.Join(workdir, runsDir, r.ID)
		for _, name := range []string{filepath.Join(dir, eventsFile), filepath.Join(dir, runFile), dir} {
			// Another run may prune at the same time, and the folder may contain files of the user.
			if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) && name != dir {
				return fmt.Errorf("remove old runs: %w", err)
			}
		}
	}
	return nil
}
