//go:build !linux

package local

import (
	"context"
	"errors"
	"os/exec"

	"kubekey/pkg/connector"
)

func runTTY(context.Context, *exec.Cmd, connector.Command) (connector.Exit, error) {
	return connector.Exit{}, errors.New("local commands have a terminal only on Linux: " +
		"run the command without one, or reach this machine over ssh")
}
