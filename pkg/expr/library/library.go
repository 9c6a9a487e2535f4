// Package library combines everything that expressions can call without a collection.
package library

import (
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/expr/lookups"
	"kubekey/pkg/expr/methods"
	"kubekey/pkg/expr/tests"
)

// Standard returns the filters, tests, lookups, functions and methods of Jinja2, of ansible.builtin and of kk, and
// those of collections that kk's own playbooks use.
func Standard() expr.Library {
	return expr.Library{
		Filters: filters.Rows(), Tests: tests.Rows(), Lookups: lookups.Rows(), Functions: methods.Functions(),
		Methods: methods.Rows(),
	}
}
