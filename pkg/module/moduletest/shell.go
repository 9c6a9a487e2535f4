package moduletest

import (
	"context"

	"kubekey/pkg/connector"
	"kubekey/pkg/connector/local"
	"kubekey/pkg/shell"
)

// Shell is a connector to this machine's /bin/sh.
func Shell() connector.Connector { return local.New() }

// ShellOf is a connector to another POSIX shell of this machine, given by the
// words before -c: ShellOf("busybox", "sh").
func ShellOf(argv ...string) connector.Connector { return otherShell{local.New(), argv} }

type otherShell struct {
	connector.Connector
	argv []string
}

func (s otherShell) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Line = "exec " + shell.Join(append(append([]string{}, s.argv...), "-c", c.Line)...)
	return s.Connector.Run(ctx, c)
}
