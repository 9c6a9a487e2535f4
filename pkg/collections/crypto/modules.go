// Package crypto contains the modules of community.crypto that kk's own playbooks do not use: keys, requests and
// certificates on hosts.
package crypto

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		privateKeySpec(), publicKeySpec(), keyInfoSpec(), csrSpec(), csrInfoSpec(), certificateSpec(), keyPairSpec(),
		pkcs12Spec(), dhparamSpec(),
	}
}
