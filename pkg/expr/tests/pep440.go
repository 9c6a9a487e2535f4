package tests

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// pep440Version is a version of a Python package, ordered by PEP 440.
type pep440Version struct {
	epoch   *big.Int
	release []*big.Int // without trailing zeros
	// Parts after the release, by decreasing precedence. For pre and dev, a version without the part comes after
	// versions with it; for post, before them.
	pre, post, dev pep440Mark
	local          []string
}

// pep440Mark is a part such as rc1: its rank among the alternatives, and its number.
type pep440Mark struct {
	rank   int
	number *big.Int
}

var pep440Form = regexp.MustCompile(`^v?(?:([0-9]+)!)?([0-9]+(?:\.[0-9]+)*)` +
	`(?:[-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?([0-9]*))?` +
	`(?:-([0-9]+)|[-_.]?(post|rev|r)[-_.]?([0-9]*))?` +
	`(?:[-_.]?(dev)[-_.]?([0-9]*))?` +
	`(?:\+([a-z0-9]+(?:[-_.][a-z0-9]+)*))?$`)

func comparePEP440(a, b string) (int, error) {
	x, err := parsePEP440(a)
	if err != nil {
		return 0, err
	}
	y, err := parsePEP440(b)
	if err != nil {
		return 0, err
	}
	return cmp.Or(
		x.epoch.Cmp(y.epoch),
		slices.CompareFunc(x.release, y.release, (*big.Int).Cmp),
		x.pre.compare(y.pre),
		x.post.compare(y.post),
		x.dev.compare(y.dev),
		slices.CompareFunc(x.local, y.local, comparePEP440Local),
	), nil
}

func parsePEP440(text string) (*pep440Version, error) {
	m := pep440Form.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return nil, fmt.Errorf("Invalid version: '%s' is no pep440 version",
			text) //nolint:staticcheck // users search for this text
	}
	v := &pep440Version{epoch: integer(m[1])}
	for _, part := range strings.Split(m[2], ".") {
		v.release = append(v.release, integer(part))
	}
	for len(v.release) > 1 && v.release[len(v.release)-1].Sign() == 0 {
		v.release = v.release[:len(v.release)-1]
	}
	v.pre = pep440Mark{math.MaxInt, new(big.Int)}
	v.dev = v.pre
	if word := m[3]; word != "" {
		v.pre = pep440Mark{pep440PreRank(word), integer(m[4])}
	}
	if m[5] != "" || m[6] != "" {
		v.post = pep440Mark{1, integer(m[5] + m[7])}
	}
	if m[8] != "" {
		v.dev = pep440Mark{0, integer(m[9])}
		if m[3] == "" && v.post.rank == 0 {
			v.pre.rank = 0 // 1.0.dev1 comes before 1.0a1
		}
	}
	v.post.number = cmp.Or(v.post.number, new(big.Int))
	if m[10] != "" {
		v.local = strings.FieldsFunc(m[10], func(r rune) bool { return strings.ContainsRune("-_.", r) })
	}
	return v, nil
}

func pep440PreRank(word string) int {
	switch word[0] {
	case 'a':
		return 1
	case 'b':
		return 2
	}
	return 3 // c, rc, pre and preview are the same
}

func (m pep440Mark) compare(o pep440Mark) int {
	return cmp.Or(cmp.Compare(m.rank, o.rank), m.number.Cmp(o.number))
}

// comparePEP440Local compares the parts after a plus. Numbers come after words.
func comparePEP440Local(a, b string) int {
	x, isNumber := new(big.Int).SetString(a, 10)
	y, isOther := new(big.Int).SetString(b, 10)
	switch {
	case isNumber && isOther:
		return x.Cmp(y)
	case isNumber:
		return 1
	case isOther:
		return -1
	}
	return strings.Compare(a, b)
}

// integer converts digits to a number; 0 without digits.
func integer(digits string) *big.Int {
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return new(big.Int)
	}
	return n
}
