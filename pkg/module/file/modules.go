// Package file holds the modules that make, change, find and move files.
//
// Every module looks at the host with one script (probe.go, host.sh), decides
// in Go, and acts with at most one more. Contents go over standard input and
// are put in place by connector.Put, or by kk_place for bundles of small files.
package file

import "kubekey/pkg/module"

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{
		copySpec(),
		templateSpec(),
		fileSpec(),
		lineInFileSpec(),
		blockInFileSpec(),
		replaceSpec(),
		statSpec(),
		slurpSpec(),
		fetchSpec(),
		findSpec(),
		tempFileSpec(),
		unarchiveSpec(),
		assembleSpec(),
		archiveSpec(),
		jsonPatchSpec(),
		htpasswdSpec(),
	}
}
