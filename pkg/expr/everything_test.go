package expr_test

import (
	"kubekey/pkg/collections/ansibleutils"
	"kubekey/pkg/collections/general"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
)

// everything returns everything that kk's expressions can call.
func everything() []expr.Library {
	return []expr.Library{library.Standard(), ansibleutils.Library(), general.Library()}
}
