package inventory

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// maxExpand bounds how many hosts one range expands to.
const maxExpand = 100_000

// expandHosts expands a host name of an inventory ("n[01:10:2]") and returns the port after
// it, 0 if there is none.
func expandHosts(text string) (names []string, port int, err error) {
	name, port, err := splitPort(text)
	if err != nil {
		return nil, 0, err
	}
	names, err = expandRanges(name)
	return names, port, err
}

// splitPort splits ":22" from "host:22", "n[1:3]:22" and "[2001:db8::1]:22".
func splitPort(text string) (name string, port int, err error) {
	if _, err := netip.ParseAddr(text); err == nil {
		return text, 0, nil
	}
	head, tail := text, ""
	if i := strings.LastIndexByte(text, ':'); i > strings.LastIndexByte(text, ']') {
		head, tail = text[:i], text[i+1:]
	} else {
		return unbracket(text), 0, nil
	}
	port, err = strconv.Atoi(tail)
	if err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q is not a valid port (1 to 65535)", tail)
	}
	return unbracket(head), port, nil
}

// unbracket turns "[2001:db8::1]" into the address within.
func unbracket(name string) string {
	if inner, ok := strings.CutPrefix(name, "["); ok && strings.HasSuffix(inner, "]") {
		if _, err := netip.ParseAddr(inner[:len(inner)-1]); err == nil {
			return inner[:len(inner)-1]
		}
	}
	return name
}

func expandRanges(name string) ([]string, error) {
	heads := []string{""}
	for {
		open := strings.IndexByte(name, '[')
		if open < 0 {
			return product(heads, []string{name})
		}
		end := strings.IndexByte(name[open:], ']')
		if end < 0 {
			return nil, fmt.Errorf("host range in %q is not closed by ]", name)
		}
		members, err := rangeMembers(name[open+1 : open+end])
		if err != nil {
			return nil, err
		}
		for i := range members {
			members[i] = name[:open] + members[i]
		}
		if heads, err = product(heads, members); err != nil {
			return nil, err
		}
		name = name[open+end+1:]
	}
}

func product(heads, tails []string) ([]string, error) {
	if len(heads)*len(tails) > maxExpand {
		return nil, fmt.Errorf("host range expands to more than %d hosts", maxExpand)
	}
	out := make([]string, 0, len(heads)*len(tails))
	for _, h := range heads {
		for _, t := range tails {
			out = append(out, h+t)
		}
	}
	return out, nil
}

// rangeMembers expands the text between the brackets: begin:end[:step].
func rangeMembers(text string) ([]string, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[1] == "" {
		return nil, fmt.Errorf("host range [%s] must have the form [begin:end] or [begin:end:step]", text)
	}
	step := 1
	if len(parts) == 3 {
		var err error
		if step, err = strconv.Atoi(parts[2]); err != nil || step < 1 {
			return nil, fmt.Errorf("host range [%s] has the step %q, which must be a number above 0", text, parts[2])
		}
	}
	begin, end := parts[0], parts[1]
	if begin == "" {
		begin = "0"
	}
	if isLetter(begin) && isLetter(end) {
		return letterRange(text, begin[0], end[0], step)
	}
	return numberRange(text, begin, end, step)
}

func isLetter(s string) bool {
	return len(s) == 1 && (s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

func letterRange(text string, begin, end byte, step int) ([]string, error) {
	if begin > end {
		return nil, fmt.Errorf("host range [%s] runs backwards: swap its two ends", text)
	}
	var out []string
	for c := int(begin); c <= int(end); c += step {
		if isLetter(string(rune(c))) {
			out = append(out, string(rune(c)))
		}
	}
	return out, nil
}

func numberRange(text, begin, end string, step int) ([]string, error) {
	from, err1 := strconv.Atoi(begin)
	to, err2 := strconv.Atoi(end)
	switch {
	case err1 != nil || err2 != nil || from < 0 || to < 0:
		return nil, fmt.Errorf("host range [%s] must go from number to number or from letter to letter", text)
	case from > to:
		return nil, fmt.Errorf("host range [%s] runs backwards: swap its two ends", text)
	case begin[0] == '0' && len(begin) > 1 && len(begin) != len(end):
		return nil, fmt.Errorf("host range [%s] has leading zeros, so both ends need the same number of digits", text)
	case (to-from)/step >= maxExpand:
		return nil, fmt.Errorf("host range [%s] expands to more than %d hosts", text, maxExpand)
	}
	width := 0
	if begin[0] == '0' {
		width = len(begin)
	}
	out := make([]string, 0, (to-from)/step+1)
	for n := from; n <= to; n += step {
		out = append(out, fmt.Sprintf("%0*d", width, n))
		if to-n < step {
			break // n += step might overflow
		}
	}
	return out, nil
}
