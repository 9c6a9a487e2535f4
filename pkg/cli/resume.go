package cli

import (
	"fmt"
	"strings"

	"kubekey/pkg/engine"
	"kubekey/pkg/event"
	"kubekey/pkg/journal"
	"kubekey/pkg/project"
	"kubekey/pkg/shell"
	"kubekey/pkg/source"
)

// resumed is where an earlier run stopped.
type resumed struct {
	run   journal.Run
	stops []source.Pos // the task, then the includes that led to it
	open  *event.Task  // the last task that began
}

// Emit implements event.Sink: it looks for the first task that failed.
func (r *resumed) Emit(e event.Event) {
	switch e := e.(type) {
	case event.TaskStarted:
		r.open = e.Task
	case event.HostResult:
		if len(r.stops) == 0 && e.Status >= event.Failed && !e.Ignored && !e.Rescued {
			r.stopAt(e.Task)
		}
	}
}

func (r *resumed) stopAt(t *event.Task) {
	r.stops = []source.Pos{t.At}
	for _, f := range t.Trace {
		r.stops = append(r.stops, f.At)
	}
}

// resume says where to go on with a run of the journal: the playbooks of that
// run, when the command names none.
func (a *app) resume(r *runFlags, names []string) (*resumed, []string, error) {
	dir, err := workDir(r.workdir)
	if err != nil {
		return nil, nil, err
	}
	from := &resumed{}
	if from.run, err = journal.Find(dir, r.resume); err != nil {
		return nil, nil, &exitError{engine.ExitError, err}
	}
	if err := journal.Show(dir, from.run.ID, from, nil); err != nil {
		return nil, nil, &exitError{engine.ExitError, err}
	}
	interrupted := !from.run.Finished() || from.run.ExitCode == engine.ExitInterrupted
	if len(from.stops) == 0 && interrupted && from.open != nil {
		from.stopAt(from.open)
	}
	if len(from.stops) == 0 {
		return nil, nil, &exitError{engine.ExitError, fmt.Errorf("run %s has nothing to resume: no task failed in it", from.run.ID)}
	}
	if len(names) == 0 {
		names = from.run.Playbooks
	}
	if !interrupted && len(r.limit) == 0 {
		r.limit = from.run.Failed // the other hosts went on to the end
	}
	return from, names, nil
}

// start is the task to begin with: the one that failed, or the include that
// brought it in.
func (r *resumed) start(books []*project.Playbook) (string, error) {
	known := map[string]bool{}
	for _, pb := range books {
		for _, p := range pb.Plays {
			for _, t := range engine.Tasks(p) {
				known[t.At.String()] = true
			}
		}
	}
	for _, at := range r.stops {
		if known[at.String()] {
			return at.String(), nil
		}
	}
	return "", fmt.Errorf("resume run %s: the task at %s is no longer in the playbooks: name one with --start-at-task", r.run.ID, r.stops[0])
}

// goOn is the command line that goes on with a run that failed. Playbooks that
// kk carries are run again as they were: what is done stays as it is.
func (a *app) goOn(runID string, again bool) string {
	words := a.args
	if !again {
		words = append(withoutFlag(words, "--resume"), "--resume", runID)
	}
	return a.commandLine(words)
}

// commandLine is a call of kk as people may see it.
func (a *app) commandLine(args []string) string {
	words := []string{"kk"}
	for _, w := range args {
		words = append(words, a.secret.Text(w))
	}
	return shell.Join(words...)
}

// withoutFlag takes a flag and its value out of a command line.
func withoutFlag(words []string, flag string) []string {
	var out []string
	for i := 0; i < len(words); i++ {
		switch {
		case words[i] == flag:
			i++
		case !strings.HasPrefix(words[i], flag+"="):
			out = append(out, words[i])
		}
	}
	return out
}
