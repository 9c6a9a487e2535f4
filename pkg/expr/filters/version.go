package filters

import (
	"cmp"
	"strconv"
	"strings"
)

// CompareVersions orders versions as Python's LooseVersion does: runs of digits as numbers, runs of letters as
// text, a prefix before longer versions. Where Python fails to compare a number with text, the text is larger.
func CompareVersions(a, b string) int {
	x, y := versionParts(a), versionParts(b)
	for i := range min(len(x), len(y)) {
		if c := comparePart(x[i], y[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// versionParts splits a version at dots and between digits and letters.
func versionParts(v string) []string {
	var parts []string
	start, kind := 0, byte(0)
	flush := func(end int) {
		if part := v[start:end]; part != "" && part != "." {
			parts = append(parts, part)
		}
		start = end
	}
	for i := range len(v) {
		k := partKind(v[i])
		if k != kind || k == '.' {
			flush(i)
		}
		kind = k
	}
	flush(len(v))
	return parts
}

func partKind(c byte) byte {
	switch {
	case c == '.':
		return '.'
	case digit(c):
		return '0'
	case c >= 'a' && c <= 'z':
		return 'a'
	}
	return '-' // other characters form text parts, as in LooseVersion
}

func comparePart(x, y string) int {
	numX, numY := digit(x[0]), digit(y[0])
	switch {
	case numX && numY:
		return compareDigits(x, y)
	case numX:
		return -1
	case numY:
		return 1
	}
	return strings.Compare(x, y)
}

func compareDigits(x, y string) int {
	i, errX := strconv.ParseUint(x, 10, 64)
	j, errY := strconv.ParseUint(y, 10, 64)
	if errX == nil && errY == nil {
		return cmp.Compare(i, j)
	}
	x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
	if c := cmp.Compare(len(x), len(y)); c != 0 {
		return c
	}
	return strings.Compare(x, y)
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
