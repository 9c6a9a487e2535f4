package moduletest

import (
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/source"
)

// environment is everything that expressions can call.
func environment(tree source.Tree) *expr.Env {
	return expr.New(expr.Options{Files: tree}, library.Standard())
}
