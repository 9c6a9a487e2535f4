// Package crypto holds the modules of community.crypto that nothing else in kk uses: keys,
// requests and certificates on hosts.
package crypto

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		privateKeySpec(), publicKeySpec(), keyInfoSpec(), csrSpec(), csrInfoSpec(), certificateSpec(), keyPairSpec(),
		pkcs12Spec(), dhparamSpec(),
	}
}
