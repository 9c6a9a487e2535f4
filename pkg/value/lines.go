package value

// SplitLines splits a text where Python's str.splitlines does: not at \n alone.
func SplitLines(s string, keepEnds bool) []any {
	out := []any{}
	start, skip := 0, false
	for i, r := range s {
		if skip {
			skip = false
			continue
		}
		size := 1
		switch r {
		case '\n', '\v', '\f', '\x1c', '\x1d', '\x1e':
		case '\r':
			if i+1 < len(s) && s[i+1] == '\n' {
				size, skip = 2, true
			}
		case '\u0085':
			size = 2
		case '\u2028', '\u2029':
			size = 3
		default:
			continue
		}
		end := i
		if keepEnds {
			end += size
		}
		out = append(out, s[start:end])
		start = i + size
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
