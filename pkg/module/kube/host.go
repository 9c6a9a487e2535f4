// Package kube holds the modules that change objects of a Kubernetes cluster:
// k8s, k8s_info, helm and helm_repository. They run kubectl and helm of a host.
//
// A module sends one POSIX shell script (pkg/hostscript) that looks, acts and
// answers in fields; lib.sh is what they share. Objects, values and charts
// travel on standard input, never in a command line, and lie on the host in a
// folder 0700 that the script removes.
package kube

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"kubekey/pkg/connector"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
)

//go:embed lib.sh
var library string

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{k8sSpec(), infoSpec(), helmSpec(), repositorySpec()}
}

// missingError means that the host lacks the command of a module, or the kubeconfig.
type missingError struct{ program string }

func (e *missingError) Error() string {
	return fmt.Sprintf("the host has no %s: a task before must put it there, or name its path", e.program)
}

// run runs the script. The fields fail and missing of its answer become the error.
func run(ctx context.Context, c *module.Call, s *hostscript.Script) (hostscript.Answer, error) {
	a, err := s.Run(ctx, c.Conn, c.Check)
	if program := a.Get("missing"); err == nil && program != "" {
		return a, &missingError{program}
	}
	return a, err
}

// lostHost reports whether the host failed, and not the command.
func lostHost(err error) bool {
	var lost *connector.UnreachableError
	return errors.As(err, &lost)
}
