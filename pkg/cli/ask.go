package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"kubekey/pkg/engine"
	"kubekey/pkg/ui"
)

// holdForQuestions hides the status line during a prompt.
func holdForQuestions(o *engine.Options, screen ui.Sink) {
	if ask := o.Ask; ask != nil {
		o.Ask = func(ctx context.Context, prompt string, echo bool) (string, bool, error) {
			defer screen.Hold()()
			return ask(ctx, prompt, echo)
		}
	}
	if step := o.Step; step != nil {
		o.Step = func(ctx context.Context, task string) engine.Answer {
			defer screen.Hold()()
			return step(ctx, task)
		}
	}
}

// askPerson prompts on behalf of a playbook. ok is false without a terminal.
func (a *app) askPerson(ctx context.Context, prompt string, echo bool) (string, bool, error) {
	if !isTerminal(a.In) {
		return "", false, nil
	}
	return a.ask(ctx, prompt, echo)
}

// ask prompts at the terminal. Without a terminal it reads a line of standard input.
func (a *app) ask(ctx context.Context, prompt string, echo bool) (string, bool, error) {
	if f, ok := a.In.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		a.Err.Prompt(a.secret.Text(prompt))
		if !echo {
			b, err := term.ReadPassword(int(f.Fd()))
			fmt.Fprintln(a.Err)
			return string(b), err == nil, err
		}
		return a.line()
	}
	if echo {
		return "", false, nil // prompts of playbooks require a terminal
	}
	return a.line()
}

func (a *app) line() (string, bool, error) {
	var b strings.Builder
	one := make([]byte, 1)
	for {
		n, err := a.In.Read(one)
		if n > 0 && one[0] == '\n' {
			return strings.TrimSuffix(b.String(), "\r"), true, nil
		}
		if n > 0 {
			b.WriteByte(one[0])
		}
		if err == io.EOF {
			return b.String(), b.Len() > 0, nil
		}
		if err != nil {
			return "", false, err
		}
	}
}

// stepper asks before each task: (N)o, (y)es, (c)ontinue. Like Ansible, it repeats the question as a banner after
// the answer.
func (a *app) stepper(format string) func(context.Context, string) engine.Answer {
	in := bufio.NewReader(a.In)
	return func(_ context.Context, task string) engine.Answer {
		question := fmt.Sprintf("Perform task: %s (N)o/(y)es/(c)ontinue:", ui.Inline(a.secret.Text(task)))
		fmt.Fprint(a.Out, question+" ")
		text, err := in.ReadString('\n')
		if ui.Format(format) == ui.Ansible {
			fmt.Fprintf(a.Out, "\n%s %s\n", question, strings.Repeat("*", max(3, 79-len(question))))
		}
		if err != nil && text == "" {
			return engine.No
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return engine.Yes
		case "c", "continue":
			return engine.Continue
		}
		return engine.No
	}
}
