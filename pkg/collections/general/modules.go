// Package general contains the modules of community.general that kk's own playbooks do not use.
package general

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		alternativesSpec(), apacheModuleSpec(), cronVarSpec(), gitConfigSpec(), iniFileSpec(), localeGenSpec(),
		makeSpec(), npmSpec(), pamLimitsSpec(), pamdSpec(), partedSpec(), sshConfigSpec(), sudoersSpec(),
		xattrSpec(), xmlSpec(),
	}
}
