package connectortest

import (
	"context"

	"kubekey/pkg/connector"
)

// Scripts returns c with each command run as a script of kk's own, after enough of them to
// start the persistent shell: the contract then tests that shell.
func Scripts(c connector.Connector) connector.Connector { return scripts{c} }

type scripts struct{ connector.Connector }

func (s scripts) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	c.Script = connector.Script{Code: c.Line}.Command().Script
	return s.Connector.Run(ctx, c)
}
