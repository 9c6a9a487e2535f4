package lookups

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"unicode"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// maxOutput limits the output of a command or the response of a URL, in bytes.
const maxOutput = 16 << 20

// shellOutput returns the output of a shell command on the control node.
func shellOutput(c *expr.Call, command string) (string, error) {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.Dir = source.DiskDir(filters.ScopeText(c, "playbook_dir"))
	out, err := source.Program{Cmd: cmd, Max: maxOutput}.Output(ctx)
	var bad *source.ProgramError
	if errors.As(err, &bad) {
		return "", fmt.Errorf("command failed: %w: %s", bad.Err, expr.Shorten(bad.Stderr))
	}
	return string(out), err
}

func lookupPipe(c *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		out, err := shellOutput(c, term)
		return strings.TrimRightFunc(out, unicode.IsSpace), err
	})
}

func lookupLines(c *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
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
	lines := filters.SplitLines(text)
	for i := range lines {
		lines[i] = strings.TrimRightFunc(lines[i], unicode.IsSpace)
	}
	return value.Of(lines).([]any)
}
