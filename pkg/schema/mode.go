package schema

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// FileMode holds permission bits as playbooks write them: "0644", the int that YAML makes of 0644, "u=rw,g=r,o-x",
// or "preserve". The zero value means not set.
type FileMode struct {
	text    string
	bits    fs.FileMode
	clauses []clause // of a symbolic mode
}

// clause is one change of a symbolic mode: who, operator, permissions.
type clause struct {
	who   uint32 // mask of the bits that it can change: 0700, 0070, 0007
	op    byte   // + - =
	perms string // of rwxXst, or one of u g o to copy from
	umask bool   // no u, g, o or a: the umask applies
}

// ParseMode parses a mode. An int is the number that YAML makes of an octal literal. Ints from literals without the
// leading zero (644) are rejected.
func ParseMode(v any) (FileMode, error) {
	switch v := v.(type) {
	case int:
		return modeOfInt(v)
	case string:
		return modeOfText(strings.TrimSpace(v))
	}
	return FileMode{}, fmt.Errorf("%s is none; write it as \"0644\" or \"u=rw,g=r,o=r\"", got(v))
}

func modeOfInt(n int) (FileMode, error) {
	switch n {
	case 600, 640, 644, 664, 666, 700, 711, 750, 755, 770, 775, 777, 1777, 2755, 2775, 4755:
		return FileMode{}, fmt.Errorf("%d is a decimal number; write \"0%d\"", n, n)
	}
	if n < 0 || n > 0o7777 {
		return FileMode{}, fmt.Errorf("%d is out of range; write an octal number such as \"0644\"", n)
	}
	m := ModeOfUnix(uint32(n))
	return FileMode{text: FormatMode(m), bits: m}, nil
}

func modeOfText(s string) (FileMode, error) {
	if s == "" || s == "preserve" {
		return FileMode{text: s}, nil
	}
	if s[0] >= '0' && s[0] <= '9' {
		n, err := strconv.ParseUint(strings.TrimPrefix(s, "0o"), 8, 32)
		if err != nil || n > 0o7777 {
			return FileMode{}, fmt.Errorf("%q is no octal number up to 07777", s)
		}
		return FileMode{text: s, bits: ModeOfUnix(uint32(n))}, nil
	}
	m := FileMode{text: s}
	for _, part := range strings.Split(s, ",") {
		clauses, err := parseClause(part)
		if err != nil {
			return FileMode{}, fmt.Errorf("%q: %w", s, err)
		}
		m.clauses = append(m.clauses, clauses...)
	}
	return m, nil
}

func parseClause(s string) ([]clause, error) {
	var who uint32
	i := 0
	for ; i < len(s) && strings.IndexByte("ugoa", s[i]) >= 0; i++ {
		who |= map[byte]uint32{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[s[i]]
	}
	umask := who == 0
	if umask {
		who = 0o777
	}
	var out []clause
	for i < len(s) {
		op := s[i]
		if strings.IndexByte("+-=", op) < 0 {
			break
		}
		end := i + 1
		for end < len(s) && strings.IndexByte("rwxXstugo", s[end]) >= 0 {
			end++
		}
		perms := s[i+1 : end]
		if len(perms) > 1 && strings.ContainsAny(perms, "ugo") {
			return nil, fmt.Errorf("cannot copy from several of u, g and o in %q", s)
		}
		out = append(out, clause{who, op, perms, umask})
		i = end
	}
	if i < len(s) || len(out) == 0 {
		return nil, fmt.Errorf("%q is no change such as u=rw or go-x", s)
	}
	return out, nil
}

// IsSet reports whether a mode was given.
func (m FileMode) IsSet() bool { return m.text != "" }

// IsPreserve reports whether the mode of the source file is to be kept.
func (m FileMode) IsPreserve() bool { return m.text == "preserve" }

// IsSymbolic reports whether the mode depends on the current mode of the file.
func (m FileMode) IsSymbolic() bool { return len(m.clauses) > 0 }

// String returns the mode as it was written; for an int, its four octal digits.
func (m FileMode) String() string { return m.text }

// Apply returns the permission bits (including setuid, setgid and sticky) for a file whose bits were old. A mode
// that is not set, and preserve, keep old. A symbolic change without u, g, o or a is limited by the umask 022.
func (m FileMode) Apply(old fs.FileMode, isDir bool) (fs.FileMode, error) {
	switch {
	case !m.IsSet() || m.IsPreserve():
		return old & permBits, nil
	case !m.IsSymbolic():
		return m.bits, nil
	}
	bits := UnixMode(old)
	for _, c := range m.clauses {
		bits = c.apply(bits, isDir)
	}
	return ModeOfUnix(bits), nil
}

func (c clause) apply(old uint32, isDir bool) uint32 {
	bits := c.bits(old, isDir)
	if c.umask {
		bits &^= 0o022
	}
	switch c.op {
	case '+':
		return old | bits
	case '-':
		return old &^ bits
	}
	keep := old &^ (c.who | c.special())
	if isDir {
		keep |= old & 0o6000 // like chmod, whose = keeps setuid and setgid of a folder
	}
	return keep | bits
}

// special is the mask of the setuid, setgid and sticky bits that the clause can change.
func (c clause) special() uint32 {
	var mask uint32
	if c.who&0o700 != 0 {
		mask |= 0o4000
	}
	if c.who&0o070 != 0 {
		mask |= 0o2000
	}
	if c.who&0o007 != 0 {
		mask |= 0o1000
	}
	return mask
}

func (c clause) bits(old uint32, isDir bool) uint32 {
	var one, special uint32
	for _, p := range c.perms {
		switch p {
		case 'r':
			one |= 4
		case 'w':
			one |= 2
		case 'x':
			one |= 1
		case 'X':
			if isDir || old&0o111 != 0 {
				one |= 1
			}
		case 's':
			special |= 0o6000 & c.special()
		case 't':
			special |= 0o1000
		case 'u':
			one |= old >> 6 & 7
		case 'g':
			one |= old >> 3 & 7
		case 'o':
			one |= old & 7
		}
	}
	return one*0o111&c.who | special
}

const permBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// ModeOfUnix converts the low twelve bits of a Unix mode to Go's.
func ModeOfUnix(bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	if bits&0o4000 != 0 {
		m |= fs.ModeSetuid
	}
	if bits&0o2000 != 0 {
		m |= fs.ModeSetgid
	}
	if bits&0o1000 != 0 {
		m |= fs.ModeSticky
	}
	return m
}

// UnixMode returns the low twelve bits of the Unix mode of m.
func UnixMode(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	if m&fs.ModeSetuid != 0 {
		bits |= 0o4000
	}
	if m&fs.ModeSetgid != 0 {
		bits |= 0o2000
	}
	if m&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	return bits
}

// FormatMode formats a mode as four octal digits, as results show it: "0644".
func FormatMode(m fs.FileMode) string { return fmt.Sprintf("%04o", UnixMode(m)) }
