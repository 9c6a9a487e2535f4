package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// expect runs a command in a terminal on the host and answers its prompts.
type expect struct {
	Command string `kk:"command,required" doc:"command to run, without a shell"`
	guard
	Responses *value.Dict   `kk:"responses,required" doc:"dict of prompts and responses: the key is a Python regular expression that matches the end of the prompt, the value is the response, or a list of responses, one for each time that the prompt appears"`
	Timeout   time.Duration `kk:"timeout" default:"30" doc:"how long to wait for the next prompt or the end of the command; 0 means forever"`
	Echo      bool          `kk:"echo" default:"no" doc:"include the responses in stdout, as a terminal would show them"`
}

func expectSpec() module.Spec {
	return module.Spec{
		Name:    "expect",
		Summary: "Runs a command in a terminal on the host, and responds to its prompts.",
		Notes: []string{
			"Responses are sent on standard input: they do not appear in a command line, a result or a log, unless the " +
				"command prints them.",
			"The regular expressions are matched against the output since the last response, including line breaks; the " +
				"earliest match counts. Prefix one with (?i) to ignore case.",
			"A prompt without a response fails the task after timeout, and the command is killed.",
			"In check mode the command is not run: the result is skipped, unless creates or removes decides.",
		},
		Examples: []string{
			"- name: Answer the prompts of passwd\n  expect:\n    command: passwd ada\n    responses:\n" +
				"      '(?i)password:':\n        - \"{{ ada_password }}\"\n        - \"{{ ada_password }}\"\n  no_log: true",
			"- name: Accept the license once\n  expect:\n    command: /opt/app/install\n    creates: /opt/app/installed\n" +
				"    responses:\n      'Accept\\? \\[y/n\\]': y\n      'Folder:': /srv/app",
		},
		Returns: []module.Return{
			{Key: "stdout", Type: "str", Doc: "output of the command, stdout and stderr combined"},
			{Key: "rc", Type: "int", Doc: "exit status"},
			{Key: "cmd", Type: "str", Doc: "the command that was run"},
			{Key: "start", Type: "str", Doc: "start time of the command"},
			{Key: "end", Type: "str", Doc: "end time of the command"},
			{Key: "delta", Type: "str", Doc: "duration of the command"},
		},
		New: func() module.Runner { return &expect{} },
	}
}

// Run implements module.Runner.
func (m *expect) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	words, err := splitWords(m.Command)
	if err != nil {
		return refused(m.Command, 256, notSplit+err.Error()), nil
	}
	if len(words) == 0 {
		return refused(m.Command, 256, noCommand), nil
	}
	questions, err := m.questions()
	if err != nil {
		return module.Result{}, err
	}
	if c.Check {
		return predict(ctx, c, m.guard, m.Command)
	}
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = quoteWord(w, false)
	}
	mark := newMark()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	printed := newOutputs(c)
	printed.output = nil // the output of a dialogue is shown at its end
	d := &dialogue{questions: questions, typed: newTyping(), stop: cancel, over: ctx.Done(), echo: m.Echo,
		all: &printed.stdout}
	defer close(d.typed.over)
	if m.Timeout > 0 {
		d.patience = m.Timeout
		d.clock = time.AfterFunc(d.patience, func() { cancel(errNoQuestion) })
		defer d.clock.Stop()
	}
	o := outcome{start: c.Now()}
	exit, err := c.Conn.Run(ctx, connector.Command{
		Line: m.prefix(mark) + "exec " + strings.Join(line, " "), TTY: true, Stdin: d.typed, Stdout: d,
	})
	o.end, o.RC = c.Now(), exit.Code
	o.hold(printed)
	o.Stdout = strings.ReplaceAll(o.Stdout, "\r\n", "\n")
	if cause := context.Cause(ctx); cause != nil &&
		(errors.Is(cause, errNoQuestion) || errors.As(cause, new(noAnswer)) || errors.As(cause, new(noSearch))) {
		r := o.commandResult(m.Command, true)
		r.Data.Set("rc", nil)
		r.Failed, r.Msg = true, cause.Error()
		return r, nil
	}
	if err != nil {
		return module.Result{Warnings: o.Warnings}, err
	}
	if why := decided(mark, o.Stdout); why != "" {
		msg, stdout := m.skipTexts(why, false)
		return notRun(m.Command, 0, stdout, msg), nil
	}
	r := o.commandResult(m.Command, true)
	r.Data.Delete("stderr")
	return r, nil
}

// errNoQuestion means that no known prompt appeared in time.
var errNoQuestion = errors.New("command exceeded timeout")

// matchLimit bounds prompts that backtrack.
const matchLimit = time.Second

// noAnswer is a prompt that appeared more often than it has responses.
type noAnswer struct{ question string }

func (e noAnswer) Error() string {
	return fmt.Sprintf("No remaining responses for '%s'", e.question)
}

// noSearch is a prompt whose expression could not be matched.
type noSearch struct{ error }

// question is a prompt that the command may print.
type question struct {
	text    string
	match   *pyregex.Regexp
	answers []string
	always  bool // the single response serves every time
}

// CheckLiterals implements module.Checker.
func (m *expect) CheckLiterals() []schema.Problem {
	out := checkWords("command", m.Command)
	if m.Responses == nil { // templated responses are not known yet
		return out
	}
	if _, err := m.questions(); err != nil {
		out = append(out, schema.Problem{Path: "responses", Msg: err.Error()})
	}
	return out
}

func (m *expect) questions() ([]*question, error) {
	var all []*question
	for key, v := range m.Responses.All() {
		q := &question{text: value.Str(key)}
		var err error
		if q.match, err = pyregex.Compile(q.text, pyregex.DotAll|pyregex.ASCII, matchLimit); err != nil {
			return nil, fmt.Errorf("responses: %q: %w", q.text, err)
		}
		list, several := v.([]any)
		if !several {
			list, q.always = []any{v}, true
		}
		for _, a := range list {
			q.answers = append(q.answers, value.Str(a))
		}
		all = append(all, q)
	}
	if len(all) == 0 {
		return nil, errors.New("responses is empty: add at least one prompt")
	}
	return all, nil
}

// dialogue reads the output of a command, and types the responses.
type dialogue struct {
	questions []*question
	typed     *typing
	stop      context.CancelCauseFunc
	over      <-chan struct{} // closed when the command is no longer awaited
	all       *capture
	echo      bool
	patience  time.Duration
	clock     *time.Timer

	mu      sync.Mutex
	pending string // output since the last response
}

// longestQuestion is how much of the last output is searched for prompts.
const longestQuestion = 64 << 10

// Write implements io.Writer for the command's output.
func (d *dialogue) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.all.Write(p) // never fails
	d.pending += string(p)
	if over := len(d.pending) - longestQuestion; over > 0 {
		d.pending = d.pending[over:]
	}
	for d.answer() {
	}
	return len(p), nil
}

// answer types the response to the first pending prompt.
func (d *dialogue) answer() bool {
	var asked *question
	var at pyregex.Match
	for _, q := range d.questions {
		found, err := q.match.Find(d.pending)
		if err != nil {
			d.stop(noSearch{fmt.Errorf("responses: %q: %w", q.text, err)})
			return false
		}
		if found != nil && found[1] > 0 && (at == nil || found[0] < at[0]) {
			asked, at = q, found
		}
	}
	if asked == nil {
		return false
	}
	d.pending = d.pending[at[1]:]
	if len(asked.answers) == 0 {
		d.stop(noAnswer{asked.text})
		return false
	}
	text := asked.answers[0] + "\n"
	if !asked.always {
		asked.answers = asked.answers[1:]
	}
	if d.echo {
		_, _ = d.all.Write([]byte(text)) // never fails
	}
	if d.clock != nil {
		d.clock.Reset(d.patience)
	}
	select {
	case d.typed.lines <- text:
	case <-d.over: // the command prompts and does not read
		return false
	}
	return true
}

// typing is the input of a command: the typed text, until the command exits.
type typing struct {
	lines chan string
	over  chan struct{}
	rest  string
}

// newTyping makes an input with room for more responses than a command leaves unread.
func newTyping() *typing {
	return &typing{lines: make(chan string, 1024), over: make(chan struct{})}
}

// Read implements io.Reader.
func (t *typing) Read(p []byte) (int, error) {
	if t.rest == "" {
		select {
		case t.rest = <-t.lines:
		case <-t.over:
			return 0, io.EOF
		}
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}
