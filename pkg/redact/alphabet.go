package redact

// alphabet is the set of bytes in texts that can contain secrets: printable ASCII, in which escapes and encodings
// are written, and all other bytes of the secrets.
type alphabet struct {
	has [256]bool
	// likely contains, for each position in a group of four base64 characters, the characters that such texts can have
	// there. Each lane of 16 bits is one alignment.
	likely [4][256]uint64
}

// add adds the bytes of a secret.
func (a *alphabet) add(secret string) {
	changed := false
	add := func(c byte) {
		changed = changed || !a.has[c]
		a.has[c] = true
	}
	for c := byte(' '); c < 0x7F; c++ {
		add(c)
	}
	for _, c := range []byte(secret + "\n\t\r") {
		add(c)
	}
	if changed {
		a.align()
	}
}

// align computes likely.
func (a *alphabet) align() {
	var sextets [4][64]bool // for each position, the values that two bytes can have there
	for c := range 256 {
		for d := range 256 {
			if a.has[c] && a.has[d] {
				sextets[0][c>>2] = true
				sextets[1][c&3<<4|d>>4] = true
				sextets[2][c&15<<2|d>>6] = true
				sextets[3][c&63] = true
			}
		}
	}
	for place := range 4 {
		for c := range 256 {
			a.likely[place][c] = 0
			for lane := range 4 {
				if s := sextet[c]; s != none && sextets[(place+lane)%4][s] {
					a.likely[place][c] |= 0xFFFF << (16 * lane)
				}
			}
		}
	}
}

// inARow returns count plus one if two hexadecimal digits form a byte of the alphabet, else 0.
func (a *alphabet) inARow(high, low byte, count int) int {
	if a.has[digit[high]<<4|digit[low]] {
		return count + 1
	}
	return 0
}
