package expr

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
	"unicode"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// maxOutput bounds what a command or an address may return.
const maxOutput = 16 << 20

// shellOutput is the output of a shell command on the control node.
func shellOutput(c *Call, command string) (string, error) {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &capped{b: &out}, &capped{b: &complaints}
	cmd.WaitDelay = time.Second
	if dir := scopeText(c, "playbook_dir"); dir != "" && !source.IsBuiltin(dir) {
		cmd.Dir = dir
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("command failed: %w: %s", err, truncateText(strings.TrimSpace(complaints.String())))
	}
	return out.String(), nil
}

// capped is a buffer that refuses to grow beyond maxOutput.
type capped struct{ b *bytes.Buffer }

// Write implements io.Writer.
func (w *capped) Write(p []byte) (int, error) {
	if w.b.Len()+len(p) > maxOutput {
		return 0, errors.New("too much output")
	}
	return w.b.Write(p)
}

func lookupPipe(c *Call, terms []any, _ *bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		out, err := shellOutput(c, term)
		return strings.TrimRightFunc(out, unicode.IsSpace), err
	})
}

func lookupLines(c *Call, terms []any, _ *bound) ([]any, error) {
	var out []any
	err := eachTerm(terms, func(term string) error {
		text, err := shellOutput(c, term)
		out = append(out, textLines(text)...)
		return err
	})
	return out, err
}

func textLines(text string) []any {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	lines := splitLines(text)
	for i := range lines {
		lines[i] = strings.TrimRightFunc(lines[i], unicode.IsSpace)
	}
	return value.Of(lines).([]any)
}
