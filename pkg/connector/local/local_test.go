package local_test

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/connectortest"
	"kubekey/pkg/connector/local"
)

func TestContract(t *testing.T) {
	connectortest.Contract(t, func(*testing.T) connector.Connector { return local.New() })
}

func TestSignalsHaveNames(t *testing.T) {
	// The tests may run with ignored signals (nohup, a shell's &), which children inherit.
	// A signal that is caught here has its default action in children.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
	defer signal.Stop(caught)
	signals := map[string]int{"HUP": 129, "INT": 130, "QUIT": 131, "ABRT": 134, "KILL": 137, "SEGV": 139,
		"PIPE": 141, "ALRM": 142, "TERM": 143}
	for name, code := range signals {
		_, _, exit := connectortest.Output(t, local.New(), connector.Command{Line: "ulimit -c 0; kill -" + name + " $$"})
		if exit.Signal != name || exit.Code != code {
			t.Errorf("kill -%s: %+v, want code %d", name, exit, code)
		}
	}
}

func TestTerminalTakesInput(t *testing.T) {
	cmd := connector.Command{Line: "cat", TTY: true, Stdin: strings.NewReader("typed\n")}
	out, _, exit := connectortest.Output(t, local.New(), cmd)
	if out != "typed\r\n" || exit.Code != 0 {
		t.Errorf("got %q, %+v", out, exit)
	}
}
