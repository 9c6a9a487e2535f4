// Package storage holds the modules for disks: partitions, volume groups,
// logical volumes, and the file systems on them.
package storage

import "kubekey/pkg/module"

// Modules describes filesystem, parted, lvg and lvol.
func Modules() []module.Spec {
	return []module.Spec{filesystemSpec(), partedSpec(), lvgSpec(), lvolSpec()}
}
