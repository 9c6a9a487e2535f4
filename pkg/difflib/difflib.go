// Package difflib makes unified diffs that equal those of Python's difflib.
package difflib

import (
	"fmt"
	"slices"
	"strings"
)

// diffContext is how many equal lines surround a change.
const diffContext = 3

// popularFrom is the length from which lines that make up more than a
// hundredth of a text do not anchor a match; as in Python's difflib.
const popularFrom = 200

// block is a match: n lines of the first text from a on equal n lines of the second from b on.
type block struct{ a, b, n int }

// matcher finds what two texts have in common, as Python's SequenceMatcher:
// the longest common block, then the same to its left and to its right.
type matcher struct {
	a, b  []string
	where map[string][]int // lines of b, unpopular ones
}

func newMatcher(a, b []string) *matcher {
	m := &matcher{a: a, b: b, where: map[string][]int{}}
	for i, line := range b {
		m.where[line] = append(m.where[line], i)
	}
	if n := len(b); n >= popularFrom {
		for line, at := range m.where {
			if len(at) > n/100+1 {
				delete(m.where, line)
			}
		}
	}
	return m
}

// longest returns the longest block within the bounds; of several the one
// that begins first in a, then in b.
func (m *matcher) longest(alo, ahi, blo, bhi int) block {
	best := block{alo, blo, 0}
	runs := map[int]int{} // by line of b: length of the run that ends there
	for i := alo; i < ahi; i++ {
		next := map[int]int{}
		for _, j := range m.where[m.a[i]] {
			if j < blo {
				continue
			}
			if j >= bhi {
				break
			}
			k := runs[j-1] + 1
			next[j] = k
			if k > best.n {
				best = block{i - k + 1, j - k + 1, k}
			}
		}
		runs = next
	}
	return m.extend(best, alo, ahi, blo, bhi)
}

// extend grows a block by popular lines around it.
func (m *matcher) extend(k block, alo, ahi, blo, bhi int) block {
	for k.a > alo && k.b > blo && m.a[k.a-1] == m.b[k.b-1] {
		k = block{k.a - 1, k.b - 1, k.n + 1}
	}
	for k.a+k.n < ahi && k.b+k.n < bhi && m.a[k.a+k.n] == m.b[k.b+k.n] {
		k.n++
	}
	return k
}

// blocks returns all common blocks in order, adjacent ones joined, and an
// empty one at the end.
func (m *matcher) blocks() []block {
	type bounds struct{ alo, ahi, blo, bhi int }
	var found []block
	for pending := []bounds{{0, len(m.a), 0, len(m.b)}}; len(pending) > 0; {
		t := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		k := m.longest(t.alo, t.ahi, t.blo, t.bhi)
		if k.n == 0 {
			continue
		}
		found = append(found, k)
		if t.alo < k.a && t.blo < k.b {
			pending = append(pending, bounds{t.alo, k.a, t.blo, k.b})
		}
		if k.a+k.n < t.ahi && k.b+k.n < t.bhi {
			pending = append(pending, bounds{k.a + k.n, t.ahi, k.b + k.n, t.bhi})
		}
	}
	slices.SortFunc(found, func(x, y block) int {
		if x.a != y.a {
			return x.a - y.a
		}
		return x.b - y.b
	})
	return append(joined(found), block{len(m.a), len(m.b), 0})
}

func joined(blocks []block) []block {
	var out []block
	for _, k := range blocks {
		if n := len(out); n > 0 && out[n-1].a+out[n-1].n == k.a && out[n-1].b+out[n-1].n == k.b {
			out[n-1].n += k.n
			continue
		}
		out = append(out, k)
	}
	return out
}

// edit turns lines a1:a2 into b1:b2.
type edit struct {
	equal          bool
	a1, a2, b1, b2 int
}

func edits(a, b []string) []edit {
	var out []edit
	i, j := 0, 0
	for _, k := range newMatcher(a, b).blocks() {
		if i < k.a || j < k.b {
			out = append(out, edit{false, i, k.a, j, k.b})
		}
		if k.n > 0 {
			out = append(out, edit{true, k.a, k.a + k.n, k.b, k.b + k.n})
		}
		i, j = k.a+k.n, k.b+k.n
	}
	return out
}

// hunks groups edits with their context: equal stretches that are longer
// than two contexts part them.
func hunks(all []edit) [][]edit {
	if len(all) == 0 {
		return nil
	}
	if e := &all[0]; e.equal {
		e.a1, e.b1 = max(e.a1, e.a2-diffContext), max(e.b1, e.b2-diffContext)
	}
	if e := &all[len(all)-1]; e.equal {
		e.a2, e.b2 = min(e.a2, e.a1+diffContext), min(e.b2, e.b1+diffContext)
	}
	var out [][]edit
	var group []edit
	for _, e := range all {
		if e.equal && e.a2-e.a1 > 2*diffContext {
			head := edit{true, e.a1, e.a1 + diffContext, e.b1, e.b1 + diffContext}
			out = append(out, append(group, head))
			group = nil
			e.a1, e.b1 = e.a2-diffContext, e.b2-diffContext
		}
		group = append(group, e)
	}
	if len(group) > 1 || len(group) == 1 && !group[0].equal {
		out = append(out, group)
	}
	return out
}

// Unified returns the lines of a unified diff, nil when the texts are equal. Lines of a and b include their line ends.
func Unified(a, b []string, from, to string) []string {
	var out []string
	for _, h := range hunks(edits(a, b)) {
		if out == nil {
			out = append(out, "--- "+from+"\n", "+++ "+to+"\n")
		}
		first, last := h[0], h[len(h)-1]
		out = append(out, fmt.Sprintf("@@ -%s +%s @@\n", span(first.a1, last.a2), span(first.b1, last.b2)))
		for _, e := range h {
			if e.equal {
				out = append(out, prefixed(" ", a[e.a1:e.a2])...)
				continue
			}
			out = append(out, prefixed("-", a[e.a1:e.a2])...)
			out = append(out, prefixed("+", b[e.b1:e.b2])...)
		}
	}
	return out
}

func prefixed(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = mark + line
	}
	return out
}

// span is a range as hunk headers write it.
func span(start, end int) string {
	switch n := end - start; n {
	case 0:
		return fmt.Sprintf("%d,0", start)
	case 1:
		return fmt.Sprint(start + 1)
	default:
		return fmt.Sprintf("%d,%d", start+1, n)
	}
}

// Lines splits a text into lines that include their ends, and marks a missing newline at the end of the text.
func Lines(text string) []string {
	if text == "" {
		return nil
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n\\ No newline at end of file\n"
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		n := len(lines)
		lines[n-2] += lines[n-1] + "\n" // the marker is part of the line
		return lines[:n-1]
	}
	lines := strings.SplitAfter(text, "\n")
	return lines[:len(lines)-1]
}
