// Package file contains the modules that create, change, find and move files.
//
// Every module probes the host with one script (probe.go, host.sh), decides in Go, and makes changes with at most
// one more script. Contents are sent over standard input and put in place by connector.Put, or by kk_place for
// bundles of small files.
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
