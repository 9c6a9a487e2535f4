package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kubekey/pkg/module"
)

// script is the module script.
type script struct {
	Cmd        string `kk:"cmd,required,file=word files" doc:"path of the script on the control node, and its arguments; may be given as free-form text"`
	Executable string `kk:"executable" doc:"interpreter of the script, with its options"`
	Decrypt    bool   `kk:"decrypt" default:"yes" doc:"decrypt a script that is encrypted with vault"`
	guard
}

// Run implements module.Runner.
func (m *script) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if c.Check {
		return m.predict(ctx, c)
	}
	j, err := m.job(c)
	if err != nil {
		return module.Result{}, err
	}
	return j.run(ctx, c)
}

// Detach implements module.Detacher.
func (m *script) Detach(ctx context.Context, c *module.Call, id string, limit time.Duration) (module.Result, error) {
	j, err := m.job(c)
	if err != nil {
		return module.Result{}, err
	}
	return j.detach(ctx, c, id, limit)
}

func (m *script) job(c *module.Call) (job, error) {
	name, args := cutWord(m.Cmd)
	if name == "" {
		return job{}, errNoScript
	}
	path, err := c.Find("files", name)
	if err != nil {
		return job{}, err
	}
	files := c.Files
	if !m.Decrypt {
		files = files.Raw()
	}
	text, err := files.ReadFile(path)
	if err != nil {
		return job{}, fmt.Errorf("read script: %w", err)
	}
	e := ending{Kind: ofScript, Mark: newMark(), guard: m.guard}
	return job{ending: e, line: m.line(e.Mark, args), stdin: bytes.NewReader(text)}, nil
}

var errNoScript = errors.New("no script given")

// line is shell text that receives the script, runs it and deletes it. If the folder
// for temporary files is mounted noexec, the interpreter named in the script is run on it.
func (m *script) line(mark, args string) string {
	run := `if [ -x "$kk_s" ]; then "$kk_s" ` + args + `
else
  IFS= read -r kk_l <"$kk_s"
  case $kk_l in '#!'*) kk_l=${kk_l#??} ;; *) kk_l=/bin/sh ;; esac
  $kk_l "$kk_s" ` + args + `
fi`
	if m.Executable != "" {
		run = m.Executable + ` "$kk_s" ` + args
	}
	return m.prefix(mark) + `kk_s=$(mktemp "${TMPDIR:-/tmp}/kk.XXXXXXXX") || exit 1
trap 'rm -f "$kk_s"' EXIT
trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 141' PIPE; trap 'exit 143' TERM
cat >"$kk_s" && chmod 700 "$kk_s" || exit 1
` + run + "\n"
}

func (m *script) predict(ctx context.Context, c *module.Call) (module.Result, error) {
	if name, _ := cutWord(m.Cmd); name == "" {
		return module.Result{}, errNoScript
	}
	if !m.decides() {
		return module.Result{Skipped: true, Msg: "Check mode is not supported for this task."}, nil
	}
	why, err := m.probe(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	if why != "" {
		return m.scriptSkipped(why), nil
	}
	return module.Result{Changed: true}, nil
}

// scriptSkipped is the result of a script that the guard skipped.
func (g guard) scriptSkipped(why string) module.Result {
	msg := g.Creates + " exists, matching creates option"
	if why == "removes" {
		msg = g.Removes + " does not exist, matching removes option"
	}
	return module.Result{Skipped: true, Msg: msg}
}

// cutWord splits off the first word, which may be quoted.
func cutWord(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	if s != "" && (s[0] == '\'' || s[0] == '"') {
		var b strings.Builder
		if n, err := quoted(&b, s); err == nil {
			return b.String(), strings.TrimSpace(s[n:])
		}
	}
	i := strings.IndexAny(s, " \t\n")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}
