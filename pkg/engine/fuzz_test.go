package engine

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/event"
	"kubekey/pkg/ui"
)

// hostileRun passes output of a host to as many places as possible. h1 is the hostile host, h2 is not.
const hostileRun = `
-- site.yml --
- hosts: h1,h2
  tasks:
    - {name: text, command: a, register: text}
    - {name: yaml, command: b, register: yaml, register_type: yaml, ignore_errors: true}
    - {name: json, command: c, register: json, register_type: json, failed_when: json is undefined}
    - {name: job, command: d, async: 5, poll: 0, register: job, ignore_errors: true}
    - {name: asked, async_status: {jid: "{{ job.ansible_job_id }}"}, ignore_errors: true}
    - {name: kept, set_fact: {a: "{{ text.stdout }}", b: "{{ yaml }}", c: "{{ json }}"}}
    - {name: loop, debug: {msg: "{{ item }}"}, loop: "{{ text.stdout_lines }}",
       loop_control: {label: "{{ item }}", extended: true}}
    - {name: shown, debug: {msg: "{{ a }} {{ b }} {{ c }} {{ ansible_facts }}"}}
    - {name: sorted, debug: {msg: "{{ [yaml, json, text.stdout] | map('string') | sort | unique | to_json }}"}}
    - {name: until, command: e, until: r.stdout is search('yes'), retries: 1, delay: 0,
       register: r, ignore_errors: true}
    - {name: files, slurp: {src: /etc/motd}, ignore_errors: true}
    - {name: added, add_host: {name: "x{{ text.stdout | hash }}", groups: [more], said: "{{ yaml }}"}}
    - {name: grouped, group_by: {key: "said_{{ text.stdout }}"}}
    - {name: last, ping: {}}
`

var factsMark = regexp.MustCompile(`kk-facts-[A-Z0-9]+`)

// FuzzHost runs a playbook on a host with arbitrary answers. The answers are separated by bytes 1E. In each, standard
// output, standard error and exit code are separated by bytes 1F; @@ is the mark of facts. The other host must reach
// the end of the play, and it must be possible to show and store all output.
func FuzzHost(f *testing.F) {
	for _, text := range []string{
		"", "@@ end\n", "\n@@ block\nsectors=1\n\n@@ end\n\x1eone\ntwo\x1e{a: [1, *x]}\x1e[1, {\"a\": null}]\x1e\x1f\x1f1",
		"\n@@ end\n\x1e\x1b[2J\x00\xff{{ x }}\x1e- &a [*a]\x1e{}\x1e!!binary x", "\x1ftext\x1f127",
		"\n@@ end\n\x1ea\x1e? [a]\n: {b: c}\x1e1e999\x1eyes",
		"\n@@ local x.fact\n{\"a\": 1}\n\n@@ localrc x.fact\n0\n\n@@ end\n\x1ex: y\x1e\"\\ud800\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		b := newBench(t, hostileRun)
		answers := bytes.Split(said, []byte{0x1e})
		b.answer = func(_ context.Context, c connectortest.Call) connectortest.Answer {
			mark := factsMark.FindString(c.Command.Line)
			if c.Host != "h1" {
				return connectortest.Answer{Stdout: "\n" + mark + " end\n"}
			}
			parts := strings.SplitN(strings.ReplaceAll(string(answers[0]), "@@", mark), "\x1f", 3)
			answers = append(answers[1:], answers[0])
			parts = append(parts, "", "")
			return connectortest.Answer{Stdout: parts[0], Stderr: parts[1], Exit: connector.Exit{Code: len(parts[2])}}
		}
		if code := b.run(t.Context()); code != ExitOK && code != ExitFailed && code != ExitUnreachable {
			t.Errorf("exit code %d: %s", code, b.messages())
		}
		if !slices.Contains(b.results("last"), "h2 ok") {
			t.Errorf("h2 does not come to its end: %s", b.messages())
		}
		if text := b.messages(); strings.Contains(text, "this is a bug in kk") || strings.Contains(text, "internal error") {
			t.Error(text)
		}
		b.shown(t)
	})
}

// shown shows the run in every format and stores it.
func (b *bench) shown(t *testing.T) {
	t.Helper()
	for _, format := range ui.Formats() {
		sink, err := ui.New(ui.Options{
			Out: io.Discard, Err: io.Discard, Format: ui.Format(format), Verbosity: 3, Redact: b.o.Redact,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range b.events.Events {
			sink.Emit(e)
		}
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, e := range b.events.Events {
		if _, _, err := event.Decode(event.Encode(e, time.Time{}, b.o.Redact.Text)); err != nil {
			t.Errorf("%T cannot be read again: %v", e, err)
		}
	}
}
