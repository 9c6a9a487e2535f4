// Package account holds the modules for users and groups and for what belongs
// to them: keys, known hosts, limits, cron jobs.
package account

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		userSpec(), groupSpec(), getentSpec(), knownHostsSpec(),
		cronSpec(),
	}
}
