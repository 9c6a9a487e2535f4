// Package account holds the modules for users, groups, known hosts, cron jobs and getent.
package account

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		userSpec(), groupSpec(), getentSpec(), knownHostsSpec(),
		cronSpec(),
	}
}
