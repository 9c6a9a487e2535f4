// Package posix contains the modules of ansible.posix that kk's own playbooks do not use.
package posix

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{aclSpec(), authorizedKeySpec(), patchSpec(), selinuxSpec(), sebooleanSpec()}
}
