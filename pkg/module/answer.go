package module

import (
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/value"
)

// ResultOf starts a result from what a script answered: whether it changed the
// host, its warnings, and the data.
func ResultOf(a hostscript.Answer, pairs ...any) Result {
	return Result{Changed: a.Changed(), Warnings: a["warn"], Data: value.NewDict(pairs...)}
}

// StateDiff is a difference between two states, which are shown as JSON.
func StateDiff(header string, before, after *value.Dict) []event.Diff {
	return []event.Diff{{BeforeHeader: header, AfterHeader: header, Before: before, After: after}}
}

// TextDiff is a difference between two texts of a file.
func TextDiff(header, before, after string) []event.Diff {
	return []event.Diff{{BeforeHeader: header, AfterHeader: header, Before: before, After: after}}
}

// Lines splits a text into lines without their ends.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// JoinLines is the counterpart of Lines.
func JoinLines(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "\n") + "\n"
}

// Printed is what a program printed, with the line end that $(...) took away.
func Printed(text string) string { return JoinLines(Lines(text)) }
