package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"kubekey/pkg/event"
	"kubekey/pkg/source"
)

// Run is the summary of a run, as in run.json.
type Run struct {
	ID        string            `json:"id"`
	Started   time.Time         `json:"started"`
	Ended     time.Time         `json:"ended,omitzero"` // zero: still running, or killed
	Playbooks []string          `json:"playbooks,omitempty"`
	Check     bool              `json:"check,omitempty"`
	Version   string            `json:"version,omitempty"`
	ExitCode  int               `json:"exit_code"`
	Err       string            `json:"error,omitempty"`
	Hosts     map[string]Counts `json:"hosts,omitempty"`
	Failed    []string          `json:"failed,omitempty"` // failed and unreachable hosts, sorted

	// Problems is the problems of the file; the summary is then computed from the events.
	Problems source.Diagnostics `json:"-"`
}

// Counts is a host's line of the recap.
type Counts struct {
	OK          int `json:"ok"`
	Changed     int `json:"changed"`
	Unreachable int `json:"unreachable"`
	Failed      int `json:"failed"`
	Skipped     int `json:"skipped"`
	Rescued     int `json:"rescued"`
	Ignored     int `json:"ignored"`
}

// Finished reports whether the run has ended normally.
func (r Run) Finished() bool { return !r.Ended.IsZero() }

// ErrNoRun reports that there is no run with the id, or none at all.
var ErrNoRun = errors.New("no such run in the journal")

// Last is an id that selects the latest run.
const Last = "last"

func (r Run) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// List returns the runs in a work folder, the latest first. A folder without a journal has
// none. For a run with an unreadable summary, it is computed from the events, and Problems is
// set.
func List(workdir string) ([]Run, error) {
	runs, err := list(workdir)
	for i, r := range runs {
		runs[i] = rebuilt(workdir, r)
	}
	sortRuns(runs)
	return runs, err
}

// list reads only the summaries.
func list(workdir string) ([]Run, error) {
	entries, err := os.ReadDir(filepath.Join(workdir, runsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var runs []Run
	for _, e := range entries {
		if r, ok := read(workdir, e); ok {
			runs = append(runs, r)
		}
	}
	sortRuns(runs)
	return runs, nil
}

func sortRuns(runs []Run) {
	sort.SliceStable(runs, func(i, j int) bool {
		if !runs[i].Started.Equal(runs[j].Started) {
			return runs[i].Started.After(runs[j].Started)
		}
		return runs[i].ID > runs[j].ID
	})
}

// read returns the summary of one run. A folder with neither events nor a summary is not a run.
func read(workdir string, e fs.DirEntry) (Run, bool) {
	dir := filepath.Join(workdir, runsDir, e.Name())
	events := filepath.Join(dir, eventsFile)
	info, err := os.Stat(events)
	if err == nil {
		return readSummary(dir, info.ModTime()), true
	}
	if info, summary := os.Stat(filepath.Join(dir, runFile)); summary == nil {
		r := readSummary(dir, info.ModTime())
		at := source.Pos{File: source.NewFile(events, nil)}
		r.Problems.Add(source.Errorf(at, "the events of run %s cannot be read: %s", r.ID, cause(err)))
		return r, true
	}
	return Run{}, false
}

// Find returns the run with an id, with the only id that has it as a prefix, or the last.
func Find(workdir, id string) (Run, error) {
	runs, err := list(workdir)
	if err != nil {
		return Run{}, err
	}
	if len(runs) == 0 {
		return Run{}, fmt.Errorf("%w: %s is empty", ErrNoRun, filepath.Join(workdir, runsDir))
	}
	if id == "" || id == Last {
		return rebuilt(workdir, runs[0]), nil
	}
	var found, ids []string
	byID := map[string]Run{}
	for _, r := range runs {
		ids = append(ids, r.ID)
		byID[r.ID] = r
		if strings.HasPrefix(r.ID, id) {
			found = append(found, r.ID)
		}
	}
	if r, ok := byID[id]; ok {
		return rebuilt(workdir, r), nil
	}
	switch len(found) {
	case 1:
		return rebuilt(workdir, byID[found[0]]), nil
	case 0:
		return Run{}, fmt.Errorf("%w: %q%s", ErrNoRun, id, hint(source.DidYouMean(id, ids)))
	}
	return Run{}, fmt.Errorf("%q is ambiguous: %d run ids begin with it: %s", id, len(found), strings.Join(found, ", "))
}

func hint(s string) string {
	if s == "" {
		return "; `kk runs list` lists them"
	}
	return " (" + s + ")"
}

// FailedHosts returns the hosts that failed or were unreachable in a run, sorted. For a run that
// was killed it reads the events; damaged ones are an error, because a host may be missing.
func FailedHosts(workdir, id string) ([]string, error) {
	run, err := Find(workdir, id)
	if err != nil {
		return nil, err
	}
	if run.Finished() && len(run.Problems) == 0 {
		return run.Failed, nil
	}
	failed := failures{}
	_, ds, err := Read(workdir, run.ID, failed, nil)
	if err != nil {
		return nil, err
	}
	if err := ds.Err(); err != nil {
		return nil, fmt.Errorf("the failed hosts of run %s are not known: %w", run.ID, err)
	}
	return slices.Sorted(maps.Keys(failed)), nil
}

// failures collects the failed hosts.
type failures map[string]bool

func (f failures) Emit(e event.Event) {
	if r, ok := e.(event.HostResult); ok && hasFailed(r) {
		f[r.Host] = true
	}
}
