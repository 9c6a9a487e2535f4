// Package filters implements the filters that every playbook has, and functions that tests, lookups and methods
// share with them.
package filters

import (
	"kubekey/pkg/expr"
	"slices"
)

// Rows returns all filters. The rows belong to one Env, because they keep compiled patterns between calls.
func Rows() []expr.Filter {
	re := NewPatterns()
	return slices.Concat(
		textFilters(), htmlFilters(), numberFilters(), listFilters(), setFilters(), selectFilters(), dictFilters(),
		recordFilters(), regexFilters(re), dataFilters(), tomlFilters(), hashFilters(),
		vaultFilters(), pathFilters(), timeFilters(), addressFilters(),
	)
}
