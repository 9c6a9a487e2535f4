// Package service holds the modules for services of systemd, OpenRC and System V.
package service

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		systemdSpec(), serviceSpec(), sysvinitSpec(), serviceFactsSpec(),
	}
}
