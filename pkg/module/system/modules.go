// Package system holds the modules for system-wide state of a host: its name, kernel
// parameters and modules, mounts and file systems, time zone.
//
// Modules that edit a table (mount, sysctl) read with one script, decide
// in Go, and act with a second one only if there is something to change.
package system

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		hostnameSpec(), sysctlSpec(), modprobeSpec(), mountSpec(), mountFactsSpec(),
		filesystemSpec(), lvgSpec(), lvolSpec(), timezoneSpec(), capabilitiesSpec(),
	}
}
