package expr

import "strings"

// builtinFilters returns the filters that every Env has, by short name. The
// table belongs to its Env: it keeps compiled patterns between calls.
func builtinFilters() map[string]filter {
	re := newPatterns()
	table := map[string]filter{}
	for _, rows := range [][]filterSpec{
		textFilters(), htmlFilters(), numberFilters(), listFilters(), setFilters(), selectFilters(),
		dictFilters(), generalFilters(), keyFilters(re), recordFilters(), walkFilters(), unitFilters(), regexFilters(re), dataFilters(), tomlFilters(), hashFilters(), vaultFilters(), pathFilters(), timeFilters(), addressFilters(),
	} {
		for _, row := range rows {
			for _, name := range strings.Fields(row.names) {
				table[name] = row.filter(name)
			}
		}
	}
	table["default"] = filterDefault
	table["d"] = filterDefault
	return table
}
