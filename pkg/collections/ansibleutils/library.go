// Package ansibleutils implements the filters and tests of the collection ansible.utils.
package ansibleutils

import (
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
)

// Library returns the filters and tests of ansible.utils. kk's own playbooks do not use them: they are for users
// who compute addresses in inventories and templates.
func Library() expr.Library {
	return expr.Library{Filters: filterRows(), Tests: addressTests()}
}

func filterRows() []expr.Filter {
	return []expr.Filter{
		{Names: "ipsubnet", Of: filters.UtilsCollections, Params: "query index", Do: filterIPSubnet},
		{Names: "nthhost", Of: filters.UtilsCollections, Params: "query", Do: filterNthHost},
		{Names: "cidr_merge", Of: filters.UtilsCollections, Params: "action", Do: filterCIDRMerge},
		{Names: "network_in_usable", Of: filters.UtilsCollections, Params: "test!", Do: filters.FilterNetworkIn(true)},
		{Names: "next_nth_usable", Of: filters.UtilsCollections, Params: "offset!", Do: filterNthUsable(1)},
		{Names: "previous_nth_usable", Of: filters.UtilsCollections, Params: "offset!", Do: filterNthUsable(-1)},
		{Names: "reduce_on_network", Of: filters.UtilsCollections, Params: "network!", Do: filterReduceOnNetwork},
		{Names: "slaac", Of: filters.UtilsCollections, Params: "query!", Do: filterSLAAC},
		{Names: "hwaddr macaddr", Of: filters.UtilsCollections, Params: "query", Do: filterHWAddr},
		{Names: "fact_diff", Of: "ansible.utils", Params: "after!", Do: filterFactDiff},
		{Names: "index_of", Of: "ansible.utils", Params: "test! value key fail_on_missing wantlist", Do: filterIndexOf},
		{Names: "get_path", Of: "ansible.utils", Params: "path! wantlist", Do: filterGetPath},
		{Names: "to_paths", Of: "ansible.utils", Params: "prepend wantlist", Do: filterToPaths},
	}
}
