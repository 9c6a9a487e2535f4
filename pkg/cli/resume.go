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

// resume reads what hosts did in a run of the journal. Without playbooks on
// the command line those of that run are gone on with.
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
		return nil, nil, &exitError{engine.ExitError, fmt.Errorf("run %s has nothing to resume: no task failed in it", run.ID)}
	}
	if ds := a.changedSince(run, memory, begun.dir); ds.Err() != nil {
		return nil, nil, &exitError{engine.ExitError, ds}
	}
	if len(names) == 0 {
		names = run.Playbooks
	}
	return memory, names, nil
}

// startAnew is what to do when a run cannot be gone on with.
const startAnew = "run the playbook from its start, or name a task with --start-at-task"

// beginning is how a run began.
type beginning struct{ dir string }

// Emit implements event.Sink.
func (b *beginning) Emit(e event.Event) {
	if e, ok := e.(event.RunStarted); ok {
		b.dir = e.Dir
	}
}

// changedSince finds the tasks that hosts did in a run, and that are not any
// more what they were: the hosts cannot be taken back to where they stopped.
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
		ds.Add(source.Errorf(source.Pos{}, "resume run %s: %s has changed in or before the task %q (line %d), which %s did in that run", run.ID, name, t.Name, t.At.Line, hosts[t]).
			WithHelp(startAnew))
	}
	slices.SortFunc(ds, func(x, y *source.Diagnostic) int { return strings.Compare(x.Summary, y.Summary) })
	return ds
}

// digest is that of a task as its file has it now, "" for one that is not there.
func (a *app) digest(t *event.Task, dir string) string {
	path := t.At.File.Name
	text, err := a.tree.ReadFile(source.Join(dir, path))
	if err != nil {
		return ""
	}
	return resume.Digest(source.Pos{File: source.NewFile(path, text), Line: t.At.Line, Col: t.At.Col}, t.Handler, t.Header)
}

// workingDir is where names of files begin, "" when nobody knows.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
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
	for _, w := range withoutSecrets(args) {
		words = append(words, quoted(a.secret.Text(w)))
	}
	return strings.Join(words, " ")
}

// quoted is a word for a shell, on one line of text whatever is in it.
func quoted(word string) string {
	if ui.Inline(word) == word {
		return shell.Quote(word)
	}
	return "$'" + ui.Inline(strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(word)) + "'"
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
