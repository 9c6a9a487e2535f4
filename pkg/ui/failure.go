package ui

import (
	"fmt"
	"strings"

	"kubekey/pkg/event"
	"kubekey/pkg/value"
)

// failure shows a failed or unreachable host: the message, and the outputs as lines. The Ansible
// format, and -v, show the result as JSON.
func (p *printer) failure(e event.HostResult) {
	c := red
	if e.Status == event.Unreachable {
		c = brightRed
	}
	if !e.Loop { // the items of a loop were shown already
		head := failureHead(e)
		if p.o.Format == Ansible {
			p.json(c, head, p.dump(p.clean(e), e.Verbose))
		} else {
			p.explain(e, c, head)
		}
	}
	if e.Ignored && e.Item == nil {
		p.print(cyan, "...ignoring")
	}
}

func failureHead(e event.HostResult) string {
	switch {
	case e.Item != nil:
		return fmt.Sprintf("failed: [%s] (item=%s) => ", label(e), e.Item.Label)
	case e.Status == event.Unreachable:
		return fmt.Sprintf("fatal: [%s]: UNREACHABLE! => ", label(e))
	}
	return fmt.Sprintf("fatal: [%s]: FAILED! => ", label(e))
}

func (p *printer) explain(e event.HostResult, c color, head string) {
	if p.o.Verbosity > 0 {
		p.json(c, head, p.dump(p.clean(e), e.Verbose))
	} else {
		first, rest, _ := strings.Cut(p.o.Redact.Text(message(e)), "\n")
		p.print(c, head+first)
		if rest != "" {
			p.block(c, "  ", rest)
		}
	}
	p.details(e)
	if at := e.Task.At; at.IsValid() {
		line := fmt.Sprintf("  at %s:%d", at.File.Name, at.Line)
		if len(e.Task.Trace) > 0 {
			line += ", in " + trace(e.Task.Trace)
		}
		p.print(darkGray, line)
	}
}

// message is the message of a failure.
func message(e event.HostResult) string {
	if e.Message != "" {
		return strings.TrimRight(e.Message, "\n")
	}
	for _, key := range []string{"msg", "reason", "censored"} {
		if v, ok := e.Result.Get(key); ok && value.Str(v) != "" {
			return strings.TrimRight(value.Str(v), "\n")
		}
	}
	return "the module gave no message"
}

// details shows the command of a failure, and its output, as lines.
func (p *printer) details(e event.HostResult) {
	if v, ok := e.Result.Get("assertion"); ok {
		p.detail("assertion", value.Str(v))
	}
	if v, ok := e.Result.Get("cmd"); ok && v != nil {
		p.detail("cmd", command(v))
	}
	if v, ok := e.Result.Get("rc"); ok && v != nil {
		p.detail("rc", value.Str(v))
	}
	for _, key := range []string{"stdout", "stderr", "module_stdout", "module_stderr"} {
		v, _ := e.Result.Get(key)
		if text, _ := v.(string); strings.TrimSpace(text) != "" {
			p.print("", "  "+key+":")
			p.block("", "    ", strings.TrimRight(text, "\n"))
		}
	}
}

// detail shows a text next to its name, and the rest of its lines below.
func (p *printer) detail(name, text string) {
	first, rest, more := strings.Cut(strings.TrimRight(p.o.Redact.Text(text), "\n"), "\n")
	p.print("", "  "+name+": "+first)
	if more {
		p.block("", "    ", rest)
	}
}

// command is a command line, or its arguments.
func command(v any) string {
	words, ok := v.([]any)
	if !ok {
		return value.Str(v)
	}
	parts := make([]string, len(words))
	for i, w := range words {
		parts[i] = value.Str(w)
	}
	return strings.Join(parts, " ")
}
