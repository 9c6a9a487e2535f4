package filters

import (
	"crypto/rand"
	"crypto/sha512"
	"math/big"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/mathext/prng"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// generator generates the same numbers as Python's Random with the same seed. Playbooks that spread jobs with
// `random(seed=inventory_hostname)` therefore keep the minutes that hosts have now. It follows Lib/random.py and
// Modules/_randommodule.c of CPython.
type generator struct{ mt *prng.MT19937 }

// newGenerator seeds as version 2 of Python's seeding does: a number is the seed itself, a text yields its bytes
// followed by their SHA-512.
func newGenerator(seed any) generator {
	n := new(big.Int)
	switch s := seed.(type) {
	case int:
		n.Abs(big.NewInt(int64(s)))
	case bool:
		if s {
			n.SetInt64(1)
		}
	default:
		text := []byte(value.Str(seed))
		sum := sha512.Sum512(text)
		n.SetBytes(append(text, sum[:]...))
	}
	var words []uint32
	for low := big.NewInt(1<<32 - 1); n.Sign() > 0; n.Rsh(n, 32) {
		words = append(words, uint32(new(big.Int).And(n, low).Uint64()))
	}
	if len(words) == 0 {
		words = []uint32{0}
	}
	g := generator{prng.NewMT19937()}
	g.mt.SeedFromKeys(words)
	return g
}

// Below returns a random number from 0 to n-1. n must be at least 1.
func (g generator) Below(n int) int {
	width := bits.Len(uint(n))
	for {
		if drawn := g.bits(width); drawn < uint64(n) {
			return int(drawn)
		}
	}
}

// bits returns a random number of the given number of bits, at most 64.
func (g generator) bits(width int) uint64 {
	var drawn uint64
	for at := 0; at < width; at += 32 {
		word := g.mt.Uint32() >> (32 - min(width-at, 32))
		drawn |= uint64(word) << at
	}
	return drawn
}

// NewGenerator returns a generator that depends only on the seed. Without a seed it depends on the run, the host
// and the input, so that a run can be repeated. When the Env has no seed either, it is random.
func NewGenerator(c *expr.Call, in, seed any) generator {
	switch {
	case seed != nil:
		return newGenerator(seed)
	case c.Env == nil || c.Env.Options().Seed == "":
		return newGenerator(rand.Text())
	}
	return newGenerator(c.Env.Options().Seed + "\x00" + ScopeText(c, "inventory_hostname") + "\x00" + value.Repr(in))
}

func filterShuffle(c *expr.Call, in any, p *expr.Bound) (any, error) {
	list, err := expr.Items(in)
	if err != nil {
		return in, nil // a single item has only one order
	}
	seed := p.Value("seed", nil)
	if !value.Truth(seed) {
		seed = nil
	}
	out, g := slices.Clone(list), NewGenerator(c, in, seed)
	for i := len(out) - 1; i > 0; i-- {
		j := g.Below(i + 1)
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}

// ScopeText returns a text variable of the scope, "" when there is none.
func ScopeText(c *expr.Call, name string) string {
	if c.Scope == nil {
		return ""
	}
	v, _, err := c.Scope.Lookup(name)
	if err != nil {
		return ""
	}
	s, _ := v.(string)
	return s
}
