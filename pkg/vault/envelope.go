// Package vault reads and writes the format of ansible-vault: texts encrypted with a password, in
// the formats 1.1 and 1.2 of Ansible Vault. See
// https://docs.ansible.com/ansible/latest/vault_guide/vault_using_encrypted_content.html.
package vault

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
)

// Mark begins every encrypted text.
const Mark = "$ANSIBLE_VAULT"

// DefaultID is the ID of a password that is given without an ID.
const DefaultID = "default"

// IsEncrypted reports whether a text begins like an encrypted one.
func IsEncrypted(text []byte) bool { return bytes.HasPrefix(text, []byte(Mark)) }

// FormatError reports a text that begins like an encrypted one but is damaged.
type FormatError struct {
	Line int // of the text, from 1
	Msg  string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("the vault is damaged at line %d: %s", e.Line, e.Msg)
}

// envelope is a parsed encrypted text.
type envelope struct {
	id                 string // DefaultID in format 1.1
	salt, mac, payload []byte
}

const (
	cipherName = "AES256"
	lineLength = 80
)

func parse(text []byte) (envelope, error) {
	lines := bytes.Split(text, []byte("\n"))
	e, err := parseHeader(string(lines[0]))
	if err != nil {
		return e, err
	}
	inner, err := unhexLines(lines[1:])
	if err != nil {
		return e, err
	}
	parts := bytes.Split(inner, []byte("\n"))
	last := len(lines)
	for last > 2 && len(bytes.TrimSpace(lines[last-1])) == 0 {
		last--
	}
	if len(parts) != 3 {
		return e, &FormatError{last, "the end is missing: expected salt, checksum and data"}
	}
	for i, into := range []*[]byte{&e.salt, &e.mac, &e.payload} {
		if *into, err = hex.AppendDecode(nil, parts[i]); err != nil {
			return e, &FormatError{last, "salt, checksum and data must be hexadecimal digits"}
		}
	}
	if len(e.mac) != macSize || len(e.payload) == 0 || len(e.payload)%blockSize != 0 {
		return e, &FormatError{last, "the data is truncated"}
	}
	return e, nil
}

func parseHeader(line string) (envelope, error) {
	fields := strings.Split(strings.TrimSpace(line), ";")
	bad := func(format string, args ...any) (envelope, error) {
		return envelope{}, &FormatError{1, fmt.Sprintf(format, args...)}
	}
	if fields[0] != Mark || len(fields) < 3 {
		return bad("the header is not %s;1.1;%s", Mark, cipherName)
	}
	version, cipher := fields[1], fields[2]
	if version != "1.1" && version != "1.2" {
		return bad("unknown format %s: use 1.1 or 1.2", version)
	}
	if cipher != cipherName {
		return bad("unknown cipher %s: use %s", cipher, cipherName)
	}
	if len(fields) > 3 && version == "1.2" {
		return envelope{id: strings.TrimSpace(fields[3])}, nil
	}
	return envelope{id: DefaultID}, nil
}

// unhexLines decodes lines of hex digits as one text; a line may end within a pair.
func unhexLines(lines [][]byte) ([]byte, error) {
	var digits []byte
	last := 1
	for i, line := range lines {
		line = bytes.TrimSpace(line)
		for _, c := range line {
			if !isHex(c) {
				return nil, &FormatError{i + 2, fmt.Sprintf("%q is not a hexadecimal digit", c)}
			}
		}
		if len(line) > 0 {
			last = i + 2
		}
		digits = append(digits, line...)
	}
	if len(digits)%2 != 0 {
		return nil, &FormatError{last, "a digit is missing"}
	}
	return hex.AppendDecode(nil, digits)
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// format encodes the envelope: as 1.1 for the default ID, else as 1.2.
func (e envelope) format() []byte {
	inner := strings.Join([]string{hex.EncodeToString(e.salt), hex.EncodeToString(e.mac), hex.EncodeToString(e.payload)},
		"\n")
	var out bytes.Buffer
	if e.id == "" || e.id == DefaultID {
		fmt.Fprintf(&out, "%s;1.1;%s\n", Mark, cipherName)
	} else {
		fmt.Fprintf(&out, "%s;1.2;%s;%s\n", Mark, cipherName, e.id)
	}
	for digits := hex.EncodeToString([]byte(inner)); digits != ""; {
		n := min(lineLength, len(digits))
		out.WriteString(digits[:n] + "\n")
		digits = digits[n:]
	}
	return out.Bytes()
}
