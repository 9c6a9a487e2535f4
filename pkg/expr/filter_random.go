package expr

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"kubekey/pkg/value"
)

// randomSource is a generator: the same for the same seed. Without one it is
// the same for one run, host and input (so that a run can be repeated), or a
// fresh one when the Env has no seed.
func randomSource(c *Call, in, seed any) *rand.Rand {
	switch {
	case seed != nil:
	case c.Env == nil || c.Env.opts.Seed == "":
		return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	default:
		seed = c.Env.opts.Seed + "\x00" + scopeText(c, "inventory_hostname") + "\x00" + value.Repr(in)
	}
	sum := sha256.Sum256([]byte(value.Str(seed)))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])))
}

func filterShuffle(c *Call, in any, p *bound) (any, error) {
	list, err := items(in)
	if err != nil {
		return in, nil // one thing has only one order
	}
	out := append([]any{}, list...)
	r := randomSource(c, in, p.value("seed", nil))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// scopeText is a text variable of the scope, "" when there is none.
func scopeText(c *Call, name string) string {
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
