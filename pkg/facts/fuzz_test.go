package facts_test

import (
	"context"
	_ "embed"
	"regexp"
	"strings"
	"testing"

	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/facts"
	"kubekey/pkg/value"
)

//go:embed testdata/host.txt
var hostText string

var factsMark = regexp.MustCompile(`kk-facts-[A-Z0-9]+`)

// host answers the facts script with a text, in which @@ is the mark.
func host(text string) *connectortest.Fake {
	return &connectortest.Fake{Answer: func(_ context.Context, c connectortest.Call) connectortest.Answer {
		return connectortest.Answer{Stdout: strings.ReplaceAll(text, "@@", factsMark.FindString(c.Command.Line))}
	}}
}

// FuzzGather has hosts print anything instead of facts.
func FuzzGather(f *testing.F) {
	f.Add(hostText)
	sections := strings.SplitAfter(hostText, "\n\n")
	for _, s := range sections {
		f.Add(s + "\n@@ end\n")
		head, _, _ := strings.Cut(s, "\n")
		f.Add(head + "\n@@ end\n")
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, err := facts.Gather(context.Background(), host(text), facts.Options{})
		if err != nil {
			return
		}
		if _, err := value.JSON(found, value.JSONOptions{}); err != nil {
			t.Errorf("facts that cannot be encoded: %v", err)
		}
	})
}

// A section may begin with a line for something that has not begun, or lack its first line.
func TestSectionsThatBeginOddly(t *testing.T) {
	for _, s := range strings.Split(hostText, "\n\n@@ ")[1:] {
		name, text, _ := strings.Cut(s, "\n")
		lines := strings.Split(text, "\n")
		for i := range lines {
			odd := strings.Join(append(append([]string{"=", ":", " "}, lines[i:]...), lines[:i]...), "\n")
			found, err := facts.Gather(context.Background(), host("\n@@ "+name+"\n"+odd+"\n@@ end\n"), facts.Options{})
			if err != nil || !found.Has("module_setup") {
				t.Errorf("%s from line %d on: %v", name, i+1, err)
			}
		}
	}
}
