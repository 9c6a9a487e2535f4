package relay

import "math/bits"

// set is a set of small numbers.
type set []uint64

func newSet(n int) set { return make(set, (n+63)/64) }

func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }
func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) remove(i int)   { s[i/64] &^= 1 << (i % 64) }

// first returns the first number that is in s and in with, and in no set of without, beginning at from and
// continuing at 0 behind the last. It is -1 if there is none.
func (s set) first(from int, with set, without ...set) int {
	words := len(s)
	if words == 0 {
		return -1
	}
	start := from / 64 % words
	for k := range words + 1 {
		w := (start + k) % words
		word := s[w] & with[w]
		for _, o := range without {
			word &^= o[w]
		}
		switch low := uint64(1)<<(from%64) - 1; k {
		case 0:
			word &^= low
		case words:
			word &= low
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}
