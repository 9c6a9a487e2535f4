package exec

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// streams holds the options of command and shell for input and output.
type streams struct {
	Stdin         *string `kk:"stdin" doc:"standard input of the command"`
	AddNewline    bool    `kk:"stdin_add_newline" default:"yes" doc:"append a newline to stdin"`
	StripEmptyEnd bool    `kk:"strip_empty_ends" default:"yes" doc:"strip trailing newlines from stdout and stderr"`
}

func (s streams) reader() io.Reader {
	if s.Stdin == nil {
		return nil
	}
	text := *s.Stdin
	if s.AddNewline {
		text += "\n"
	}
	return strings.NewReader(text)
}

// outdated holds options of command and shell that only older playbooks set.
type outdated struct {
	Warn bool `kk:"warn" default:"yes" doc:"without effect: accepted for older playbooks"`
}

type command struct {
	Cmd  string   `kk:"cmd" doc:"command to run; may be given as free-form text"`
	Argv []string `kk:"argv" doc:"command as a list of arguments, instead of cmd"`
	guard
	streams
	outdated
	Executable string `kk:"executable,path" doc:"without effect: the command runs without a shell"`
	Expand     bool   `kk:"expand_argument_vars" default:"yes" doc:"expand ~ and variables in the arguments, on the host"`
}

// Run implements module.Runner.
func (m *command) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	words, problem := m.words()
	if problem != "" {
		return refused(nil, 256, problem), nil
	}
	if c.Check {
		return predict(ctx, c, m.guard, value.List(words))
	}
	r, err := m.job(words).run(ctx, c)
	if m.Executable != "" {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the parameter 'executable' is no longer supported with the "+
			"'command' module. Not using '%s'.", m.Executable))
	}
	return r, err
}

// CheckLiterals implements module.Checker.
func (m *command) CheckLiterals() []schema.Problem { return checkWords("cmd", m.Cmd) }

// checkWords reports a command that cannot be split into arguments.
func checkWords(argument, text string) []schema.Problem {
	_, err := splitWords(text)
	if err == nil {
		return nil
	}
	return []schema.Problem{{Path: argument, Msg: notSplit + err.Error(),
		Help: "close the quote, or escape it with a backslash"}}
}

const notSplit = "the command cannot be split into arguments: "

// Detach implements module.Detacher.
func (m *command) Detach(ctx context.Context, c *module.Call, id string, limit time.Duration) (module.Result, error) {
	words, problem := m.words()
	if problem != "" {
		return refused(nil, 256, problem), nil
	}
	return m.job(words).detach(ctx, c, id, limit)
}

func (m *command) job(words []string) job {
	return newJob(m.guard, m.streams, value.List(words), "exec "+m.line(words), words[0])
}

func (m *command) words() (words []string, problem string) {
	switch {
	case m.Cmd != "" && len(m.Argv) > 0:
		return nil, "only command or argv can be given, not both"
	case len(m.Argv) > 0:
		return m.Argv, ""
	}
	words, err := splitWords(m.Cmd)
	if err != nil {
		return nil, notSplit + err.Error()
	}
	if len(words) == 0 {
		return nil, noCommand
	}
	return words, ""
}

func (m *command) line(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quoteWord(w, m.Expand)
	}
	return strings.Join(out, " ")
}
