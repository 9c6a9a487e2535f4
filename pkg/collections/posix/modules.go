// Package posix holds the modules of ansible.posix that nothing else in kk uses.
package posix

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{aclSpec(), authorizedKeySpec(), firewalldSpec(), patchSpec(), selinuxSpec(), sebooleanSpec()}
}
