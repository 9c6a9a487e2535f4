package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubekey/pkg/redact"
)

// TestPromptsAskAPerson answers the questions, and records how they were asked.
func TestPromptsAskAPerson(t *testing.T) {
	b := newBench(t, `
-- site.yml --
- hosts: h1
  gather_facts: false
  vars_prompt:
    - {name: plain, prompt: Who are you, private: false}
    - {name: hidden, default: opensesame}
    - {name: shown, default: 5, private: false}
    - {name: twice, confirm: true}
    - {name: text, unsafe: true}
  tasks:
    - assert: {that: [plain == 'me', hidden == 'opensesame', shown == '5', twice == 'b', "text == '{' ~ '{ plain }}'"]}
`)
	answers := []string{"me", "", "", "a", "x", "b", "b", "{{ plain }}"}
	var asked []string
	b.o.Ask = func(_ context.Context, prompt string, echo bool) (string, bool, error) {
		if echo {
			prompt += "(echo)"
		}
		asked = append(asked, strings.TrimSpace(prompt))
		answer := answers[0]
		answers = answers[1:]
		return answer, true, nil
	}
	b.expect(ExitOK)
	if shown := b.o.Redact.Text("opensesame"); shown != redact.Mask {
		t.Errorf("the default of a private prompt is shown as %s", shown)
	}
	again := "***** VALUES ENTERED DO NOT MATCH ****\n"
	want := []string{"Who are you: (echo)", "hidden [********]:", "shown [5]: (echo)", "twice:", "confirm twice:", again +
		"twice:", "confirm twice:", "text:"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}
