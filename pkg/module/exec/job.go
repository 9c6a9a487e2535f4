package exec

import (
	"context"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/shell"
)

// job is one run of command or shell.
type job struct {
	guard
	streams
	cmd     any    // as the result shows it
	body    string // shell text
	program string // what body executes, "" when the shell itself
}

// quoteWord quotes a word for the shell, expandable if wanted.
func quoteWord(w string, expand bool) string {
	if expand {
		return expandable(w, false)
	}
	return shell.Quote(w)
}

func (j job) run(ctx context.Context, c *module.Call) (module.Result, error) {
	mark := ""
	if j.decides() {
		mark = newMark()
	}
	o, err := execute(ctx, c, j.line(mark), j.reader())
	if err != nil {
		return module.Result{}, err
	}
	if mark != "" && o.rc == 0 {
		if why := decided(mark, o.stdout); why != "" {
			msg, stdout := j.skipTexts(why, false)
			return notRun(j.cmd, 0, stdout, msg), nil
		}
	}
	if j.suspicious(o) {
		rc, msg, err := j.diagnose(ctx, c, j.program)
		if err != nil || msg != "" {
			return refused(j.cmd, rc, msg), err
		}
	}
	return o.commandResult(j.cmd, j.StripEmptyEnd), nil
}

// line is the whole command line. The common cases are short: the words
// themselves, or `cd X && exec ...`.
func (j job) line(mark string) string {
	if !j.decides() && j.Chdir != "" && strings.HasPrefix(j.body, "exec ") && j.program != "" {
		return "cd " + expandable(j.Chdir, false) + " && " + j.body
	}
	return j.prefix(mark) + j.body
}

// suspicious reports whether the shell, not the command, may have failed.
func (j job) suspicious(o outcome) bool {
	switch o.rc {
	case 126, 127:
		return j.program != "" || j.Chdir != ""
	case 1, 2:
		return j.Chdir != "" && o.stdout == "" && strings.Contains(o.stderr, "cd: ")
	}
	return false
}

// predict is the result in check mode.
func predict(ctx context.Context, c *module.Call, g guard, cmd any) (module.Result, error) {
	if !g.decides() {
		r := notRun(cmd, 0, "", "Command would have run if not in check mode")
		r.Skipped = true
		return r, nil
	}
	why, err := g.probe(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	if why != "" {
		msg, stdout := g.skipTexts(why, true)
		return notRun(cmd, 0, stdout, msg), nil
	}
	r := notRun(cmd, 0, "", "Command would have run if not in check mode")
	r.Changed = true
	return r, nil
}

// shellModule is the shell module.
type shellModule struct {
	Cmd        string `kk:"cmd" doc:"the text to run; may be given as the module's text"`
	Executable string `kk:"executable,path" doc:"the shell that runs it, by absolute path; else the host's /bin/sh"`
	guard
	streams
}

// Run implements module.Runner.
func (m *shellModule) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if strings.TrimSpace(m.Cmd) == "" {
		return refused(nil, 256, "no command given"), nil
	}
	if c.Check {
		return predict(ctx, c, m.guard, m.Cmd)
	}
	j := job{guard: m.guard, streams: m.streams, cmd: m.Cmd, body: m.Cmd, program: m.Executable}
	if m.Executable != "" {
		j.body = "exec " + expandable(m.Executable, false) + " -c " + shell.Quote(m.Cmd)
	}
	return j.run(ctx, c)
}

// raw is the raw module.
type raw struct {
	Cmd        string `kk:"cmd,required" doc:"the text to run; may be given as the module's text"`
	Executable string `kk:"executable,path" doc:"the shell that runs it"`
}

// Run implements module.Runner.
func (m *raw) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	line := m.Cmd
	if m.Executable != "" {
		line = shell.Join(m.Executable, "-c", m.Cmd)
	}
	o, err := execute(ctx, c, line, nil)
	if err != nil {
		return module.Result{}, err
	}
	return o.result(), nil
}
