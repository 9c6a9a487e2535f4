package engine

import (
	"context"
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/event"
)

// TestLateWorkEndsWithItsPlay checks that work deferred by tasks is done before the next play, and that its failure
// is reported.
func TestLateWorkEndsWithItsPlay(t *testing.T) {
	b := newBench(t, `
-- site.yml --
- hosts: h1
  gather_facts: false
  tasks:
    - command: leave
- hosts: h2
  gather_facts: false
  tasks:
    - debug:
`)
	var conn connector.Connector
	b.answer = func(ctx context.Context, c connectortest.Call) connectortest.Answer {
		switch {
		case strings.Contains(c.Command.Line, "leave"):
			if _, err := conn.Run(ctx, connector.Command{Line: "reload", Deferral: connector.Deferred}); err != nil {
				t.Error(err)
			}
		case c.Command.Line == "reload":
			return connectortest.Answer{Exit: connector.Exit{Code: 1}, Stderr: "no"}
		}
		return connectortest.Answer{}
	}
	b.o.Connect = func(ctx context.Context, target Target) (c connector.Connector, err error) {
		c, err = b.connect(ctx, target)
		conn = connector.PersistentShell(c)
		return conn, err
	}
	b.expect(0)
	plays := 0
	for _, e := range b.events.Events {
		switch e := e.(type) {
		case event.PlayStarted:
			plays++
		case event.Warning:
			if text := e.Diagnostic.Error(); plays != 1 ||
				!strings.Contains(text, "h1: reload, which an earlier task deferred, exited with status 1: no") {
				t.Errorf("in play %d: %s", plays, text)
			}
			plays += 10
		}
	}
	if plays != 12 {
		t.Errorf("no warning: %s", b.story())
	}
}
