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
	// Who starts the tests may have signals ignored (nohup, a shell's &), and a
	// child inherits that. One that is caught here is back to its default there.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
	defer signal.Stop(caught)
	for name, code := range map[string]int{"HUP": 129, "INT": 130, "QUIT": 131, "ABRT": 134, "KILL": 137, "SEGV": 139, "PIPE": 141, "ALRM": 142, "TERM": 143} {
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
