package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"kubekey/pkg/engine"
	"kubekey/pkg/engine/resume"
	"kubekey/pkg/event"
	"kubekey/pkg/journal"
	"kubekey/pkg/shell"
	"kubekey/pkg/source"
	"kubekey/pkg/ui"
)

// resume reads from the journal what a run did on its hosts. Without playbooks on the command line, the playbooks
// of that run are used.
func (a *app) resume(r *runFlags, names []string) (*resume.Memory, []string, error) {
	dir, err := workDir(r.workdir)
	if err != nil {
		return nil, nil, err
	}
	memory, begun := &resume.Memory{}, &beginning{}
	run, wrong, err := journal.Read(dir, r.resume, event.Fanout{memory, begun}, nil)
	if err != nil {
		return nil, nil, &exitError{engine.ExitError, err}
	}
	if wrong.Err() != nil {
		const why = "resume run %s: its journal is corrupt, so what the hosts did is unknown"
		wrong.Add(source.Errorf(source.Pos{}, why, run.ID).WithHelp(startAnew))
		return nil, nil, &exitError{engine.ExitError, wrong}
	}
	a.diagnostics(wrong)
	if run.Finished() && run.ExitCode == engine.ExitOK || !memory.Open() {
		return nil, nil, &exitError{engine.ExitError,
			fmt.Errorf("run %s has nothing to resume: no task failed in it", run.ID)}
	}
	if ds := a.changedSince(run, memory, begun.dir); ds.Err() != nil {
		return nil, nil, &exitError{engine.ExitError, ds}
	}
	if len(names) == 0 {
		names = run.Playbooks
	}
	return memory, names, nil
}

// startAnew is the advice for a run that cannot be resumed.
const startAnew = "run the playbook from its start, or name a task with --start-at-task"

// beginning collects the start of a run from its events.
type beginning struct{ dir string }

// Emit implements event.Sink.
func (b *beginning) Emit(e event.Event) {
	if e, ok := e.(event.RunStarted); ok {
		b.dir = e.Dir
	}
}

// changedSince finds the tasks that hosts completed in a run and that have changed since. Such hosts cannot resume
// where they stopped.
func (a *app) changedSince(run journal.Run, m *resume.Memory, dir string) (ds source.Diagnostics) {
	first := map[string]*event.Task{} // by file
	hosts := m.Done()
	for t := range hosts {
		if t.Digest == "" || t.At.File == nil || a.digest(t, dir) == t.Digest {
			continue
		}
		if was := first[t.At.File.Name]; was == nil || t.At.Line < was.At.Line {
			first[t.At.File.Name] = t
		}
	}
	for name, t := range first {
		ds.Add(source.Errorf(source.Pos{}, "resume run %s: %s has changed in or before the task %q (line %d), which %s "+
			"did in that run", run.ID, name, t.Name, t.At.Line, hosts[t]).
			WithHelp(startAnew))
	}
	slices.SortFunc(ds, func(x, y *source.Diagnostic) int { return strings.Compare(x.Summary, y.Summary) })
	return ds
}

// digest returns the digest of a task as it is in its file now, or "" if the task no longer exists.
func (a *app) digest(t *event.Task, dir string) string {
	path := t.At.File.Name
	text, err := a.tree.ReadFile(source.Join(dir, path))
	if err != nil {
		return ""
	}
	return resume.Digest(source.Pos{File: source.NewFile(path, text), Line: t.At.Line, Col: t.At.Col}, t.Handler, t.Header)
}

// workingDir returns the folder that relative file names refer to, or "" if it is unknown.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// goOn returns the command line that resumes a failed run. Builtin playbooks are run again with the same command
// line: they do not repeat finished work.
func (a *app) goOn(runID string, again bool) string {
	words := a.args
	if !again {
		words = append(withoutFlag(words, "--resume"), "--resume", runID)
	}
	return a.commandLine(words)
}

// commandLine returns a command line of kk for display, without secrets.
func (a *app) commandLine(args []string) string {
	words := []string{"kk"}
	for _, w := range withoutSecrets(args) {
		words = append(words, quoted(a.secret.Text(w)))
	}
	return strings.Join(words, " ")
}

// quoted quotes an argument for a shell. The result is always one line of text.
func quoted(word string) string {
	if ui.Inline(word) == word {
		return shell.Quote(word)
	}
	return "$'" + ui.Inline(strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(word)) + "'"
}

// withoutFlag removes a flag and its value from a command line.
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
