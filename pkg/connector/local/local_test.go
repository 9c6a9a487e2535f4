package local_test

import (
	"strings"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/local"
)

func TestContract(t *testing.T) {
	connectortest.Contract(t, func(*testing.T) connector.Connector { return local.New() })
}

func TestSignalsHaveNames(t *testing.T) {
	// Not HUP, INT, QUIT and PIPE: who starts the tests may have them ignored,
	// and a process started with a signal ignored does not end by it.
	for name, code := range map[string]int{"ABRT": 134, "KILL": 137, "SEGV": 139, "ALRM": 142, "TERM": 143} {
		_, _, exit := connectortest.Output(t, local.New(), connector.Command{Line: "ulimit -c 0; kill -" + name + " $$"})
		if exit.Signal != name || exit.Code != code {
			t.Errorf("kill -%s: %+v, want code %d", name, exit, code)
		}
	}
}

func TestTerminalTakesInput(t *testing.T) {
	out, _, exit := connectortest.Output(t, local.New(), connector.Command{Line: "cat", TTY: true, Stdin: strings.NewReader("typed\n")})
	if out != "typed\r\n" || exit.Code != 0 {
		t.Errorf("got %q, %+v", out, exit)
	}
}
