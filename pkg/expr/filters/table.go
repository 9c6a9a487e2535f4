// Package filters is the filters that every playbook has, and what tests, lookups and methods share with them.
package filters

import (
	"kubekey/pkg/expr"
	"slices"
)

// Rows are all filters. The rows belong to one Env: they keep compiled patterns between calls.
func Rows() []expr.Filter {
	re := NewPatterns()
	return slices.Concat(
		textFilters(), htmlFilters(), numberFilters(), listFilters(), setFilters(), selectFilters(), dictFilters(),
		recordFilters(), regexFilters(re), dataFilters(), tomlFilters(), hashFilters(),
		vaultFilters(), pathFilters(), timeFilters(), addressFilters(),
	)
}
