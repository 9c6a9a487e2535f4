// Package packages holds the modules for package managers, their repositories and keys,
// and pip.
package packages

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		packageSpec(), aptSpec(), dnfSpec(), zypperSpec(), apkSpec(),
		packageFactsSpec(), aptRepositorySpec(), aptKeySpec(), deb822RepositorySpec(), yumRepositorySpec(),
		rpmKeySpec(), pipSpec(), debconfSpec(), dpkgSelectionsSpec(),
	}
}
