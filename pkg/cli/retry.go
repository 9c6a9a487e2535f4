package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/source"
)

// retrySink writes the failed hosts of a run to a file for --limit @FILE when retry_files_enabled is set. It does
// so before it forwards the event of the run's end.
type retrySink struct {
	folder   string // "" for the folder of the playbook
	next     event.Sink
	playbook string // the playbook that was started last
}

// Emit implements event.Sink: it forwards e.
func (r *retrySink) Emit(e event.Event) {
	switch ev := e.(type) {
	case event.PlaybookStarted:
		r.playbook = ev.Path
	case event.RunEnded:
		var err error
		if ev.Retry, err = r.write(ev.Stats); err != nil {
			r.next.Emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "could not write the retry file: %s", err)})
		}
		e = ev
	}
	r.next.Emit(e)
}

// write returns the name of the file, or "" if no host failed.
func (r *retrySink) write(stats map[string]*event.Stats) (string, error) {
	var failed strings.Builder
	for _, host := range slices.Sorted(maps.Keys(stats)) {
		if s := stats[host]; s.Failed > 0 || s.Unreachable > 0 {
			failed.WriteString(host + "\n")
		}
	}
	if failed.Len() == 0 || r.playbook == "" {
		return "", nil
	}
	base := filepath.Base(r.playbook)
	folder := r.folder
	if folder == "" {
		folder = source.DiskDir(source.Dir(r.playbook))
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", err
	}
	path := filepath.Join(folder, strings.TrimSuffix(base, filepath.Ext(base))+".retry")
	if err := os.WriteFile(path, []byte(failed.String()), 0o666); err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return path, nil
}
