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

// generator draws the numbers that Random of Python draws from the same seed:
// who spreads jobs by `random(seed=inventory_hostname)` keeps the minutes that
// hosts have. The source is Lib/random.py and Modules/_randommodule.c of CPython.
type generator struct{ mt *prng.MT19937 }

// newGenerator seeds as version 2 of Python's seeds does: numbers stand for
// themselves, texts for their bytes with their SHA-512 behind them.
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

// Below draws a number from 0 up to and without n, which is at least 1.
func (g generator) Below(n int) int {
	width := bits.Len(uint(n))
	for {
		if drawn := g.bits(width); drawn < uint64(n) {
			return int(drawn)
		}
	}
}

// bits draws a number of so many bits, at most 64.
func (g generator) bits(width int) uint64 {
	var drawn uint64
	for at := 0; at < width; at += 32 {
		word := g.mt.Uint32() >> (32 - min(width-at, 32))
		drawn |= uint64(word) << at
	}
	return drawn
}

// NewGenerator is the same for the same seed. Without one it is the same
// for one run, host and input (so that a run can be repeated), or a fresh one
// when the Env has no seed.
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
		return in, nil // one thing has only one order
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

// ScopeText is a text variable of the scope, "" when there is none.
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
