//go:build !linux

package local

import (
	"context"
	"errors"
	"os/exec"

	"kubekey/pkg/connector"
)

func runTTY(context.Context, *exec.Cmd, connector.Command) (connector.Exit, error) {
	return connector.Exit{}, errors.New("a local command can have a terminal on Linux only: drop the terminal, or reach this machine over ssh")
}
