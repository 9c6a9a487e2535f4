// Package pki holds the modules that make certificates, keys and other secrets of the control
// node, and check certificates. All cryptography is Go's own.
package pki

import "kubekey/pkg/module"

// Modules describes gen_cert, gen_secret and x509_certificate_info.
func Modules() []module.Spec {
	return []module.Spec{genCertSpec(), genSecretSpec(), certInfoSpec()}
}
