// Package account holds the modules for users and groups and for what belongs
// to them: keys, known hosts, limits, cron jobs.
package account

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		userSpec(), groupSpec(), getentSpec(), authorizedKeySpec(), knownHostsSpec(),
		pamLimitsSpec(), pamdSpec(), cronSpec(), cronVarSpec(), sshConfigSpec(), sudoersSpec(),
	}
}

// deref is the value of an optional text, "" if there is none.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
