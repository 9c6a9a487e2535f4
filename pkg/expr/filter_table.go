package expr

import "slices"

// filterRows are all filters. The rows belong to one Env: they keep compiled patterns between calls.
func filterRows() []filterSpec {
	re := newPatterns()
	return slices.Concat(
		textFilters(), htmlFilters(), numberFilters(), listFilters(), setFilters(), selectFilters(), dictFilters(), generalFilters(),
		keyFilters(re), recordFilters(), walkFilters(), unitFilters(), regexFilters(re), dataFilters(), tomlFilters(), hashFilters(),
		vaultFilters(), pathFilters(), timeFilters(), addressFilters(),
	)
}
