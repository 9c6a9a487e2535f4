// Package pki holds the modules that make and judge certificates, keys and
// other secrets, on the control node or on hosts. All cryptography is Go's own.
package pki

import "kubekey/pkg/module"

// Modules describes the modules for files of the control node (gen_cert,
// gen_secret) and of hosts (openssl_*, openssh_keypair, x509_*).
func Modules() []module.Spec {
	return []module.Spec{genCertSpec(), genSecretSpec(), certInfoSpec(), privateKeySpec(), publicKeySpec(), csrSpec(), certificateSpec(), keyInfoSpec(), csrInfoSpec(), keyPairSpec(), dhparamSpec(), pkcs12Spec()}
}
