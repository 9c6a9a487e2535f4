package strategy

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// Order sorts hosts according to a play's keyword order. The same seed gives the same shuffled order.
func Order(hosts []string, order, seed string) []string {
	switch order {
	case "sorted":
		slices.Sort(hosts)
	case "reverse_sorted":
		slices.Sort(hosts)
		slices.Reverse(hosts)
	case "reverse_inventory":
		slices.Reverse(hosts)
	case "shuffle":
		h := fnv.New64a()
		h.Write([]byte(seed))
		rand.New(rand.NewPCG(h.Sum64(), 1)).Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	}
	return hosts
}

// Batches splits hosts into batches of the given sizes. The last size applies to all further batches. Without sizes,
// or with a size of 0, all hosts are one batch.
func Batches(hosts []string, sizes []int) [][]string {
	if len(sizes) == 0 {
		return [][]string{hosts}
	}
	var out [][]string
	for i := 0; len(hosts) > 0; i++ {
		n := sizes[min(i, len(sizes)-1)]
		if n <= 0 || n > len(hosts) {
			n = len(hosts)
		}
		out = append(out, hosts[:n])
		hosts = hosts[n:]
	}
	return out
}
