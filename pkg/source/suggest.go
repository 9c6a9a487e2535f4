package source

import (
	"fmt"
	"sort"
	"strings"
)

// DidYouMean returns `did you mean "x"?` for the candidate nearest to word, or "" if none is near.
func DidYouMean(word string, candidates []string) string {
	if near := Nearest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// Nearest returns the candidate with the smallest edit distance to word, or "" if none is near. The maximum
// distance is a third of the word's length, but at least one. Of equally near candidates, the first in alphabetical
// order is returned.
func Nearest(word string, candidates []string) string {
	sorted := append([]string(nil), candidates...)
	sort.Strings(sorted)
	limit := max(1, (len(word)+1)/3)
	best, name := limit+1, ""
	for _, c := range sorted {
		if d := distance(strings.ToLower(word), strings.ToLower(c), best); d < best {
			best, name = d, c
		}
	}
	return name
}

// distance returns the Damerau-Levenshtein distance (adjacent transpositions), or limit if it is not below that.
func distance(a, b string, limit int) int {
	if diff := len(a) - len(b); diff >= limit || -diff >= limit {
		return limit
	}
	before, prev := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur := make([]int, len(b)+1)
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev = prev, cur
	}
	return min(prev[len(b)], limit)
}
