package expr

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf16"
)

// unitOrder is how the two bytes of a unit of UTF-16 stand.
type unitOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

// byteOrder is that of a name of UTF-16, and whether a mark of the order
// stands before the text; ok is false for any other name.
func byteOrder(encoding string) (order unitOrder, mark, ok bool) {
	switch encoding {
	case "utf16":
		return binary.LittleEndian, true, true
	case "utf16le":
		return binary.LittleEndian, false, true
	case "utf16be":
		return binary.BigEndian, false, true
	}
	return nil, false, false
}

// encodingName is the name of an encoding without what spellings of it differ in.
func encodingName(name string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
}

func noEncoding(name string) error {
	return fmt.Errorf("encoding %q is not supported (there are utf-8, ascii, latin-1, utf-16, utf-16-le, utf-16-be)", name)
}

// encodeText is text in one of the encodings that Python knows by this name.
func encodeText(s, encoding string) ([]byte, error) {
	name := encodingName(encoding)
	switch name {
	case "utf8":
		return []byte(s), nil
	case "ascii", "usascii":
		return singleBytes(s, 0x7f, encoding)
	case "latin1", "iso88591":
		return singleBytes(s, 0xff, encoding)
	}
	order, mark, ok := byteOrder(name)
	if !ok {
		return nil, noEncoding(encoding)
	}
	var out []byte
	if mark {
		out = order.AppendUint16(out, 0xfeff)
	}
	for _, unit := range utf16.Encode([]rune(s)) {
		out = order.AppendUint16(out, unit)
	}
	return out, nil
}

func singleBytes(s string, last rune, encoding string) ([]byte, error) {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r > last {
			return nil, fmt.Errorf("%q cannot be written in %s", r, encoding)
		}
		out = append(out, byte(r))
	}
	return out, nil
}

// decodeText is the reverse of encodeText.
func decodeText(raw []byte, encoding string) (string, error) {
	name := encodingName(encoding)
	switch name {
	case "utf8", "ascii", "usascii":
		return string(raw), nil
	case "latin1", "iso88591":
		runes := make([]rune, len(raw))
		for i, b := range raw {
			runes[i] = rune(b)
		}
		return string(runes), nil
	}
	order, mark, ok := byteOrder(name)
	switch {
	case !ok:
		return "", noEncoding(encoding)
	case len(raw)%2 != 0:
		return "", fmt.Errorf("%d bytes are no text in %s: the number is odd", len(raw), encoding)
	}
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = order.Uint16(raw[2*i:])
	}
	if mark && len(units) > 0 {
		switch units[0] {
		case 0xfffe: // the other order
			return decodeText(raw[2:], "utf-16-be")
		case 0xfeff:
			units = units[1:]
		}
	}
	return string(utf16.Decode(units)), nil
}
