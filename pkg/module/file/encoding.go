package file

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	textunicode "golang.org/x/text/encoding/unicode"
)

// encode is text in the encoding of a name as Python knows it.
func encode(text, name string) (string, error) {
	plain := plainName(name)
	switch plain {
	case "", "utf8", "u8":
		return text, nil
	case "utf16":
		return encodeAs(text, name, textunicode.UTF16(textunicode.LittleEndian, textunicode.UseBOM))
	case "utf16le":
		return encodeAs(text, name, textunicode.UTF16(textunicode.LittleEndian, textunicode.IgnoreBOM))
	case "utf16be":
		return encodeAs(text, name, textunicode.UTF16(textunicode.BigEndian, textunicode.IgnoreBOM))
	case "latin1":
		plain = "iso88591"
	}
	if rest, ok := strings.CutPrefix(plain, "cp125"); ok {
		plain = "windows125" + rest
	}
	for _, e := range charmap.All {
		if c, ok := e.(*charmap.Charmap); ok && plainName(c.String()) == plain {
			return encodeAs(text, name, c)
		}
	}
	return "", fmt.Errorf("output_encoding %s is not known: utf-8, utf-16, and encodings of a byte a character such as windows-1252 are", name)
}

func encodeAs(text, name string, e encoding.Encoding) (string, error) {
	out, err := e.NewEncoder().String(text)
	if err != nil {
		return "", fmt.Errorf("the text has a character that %s lacks: %w", name, err)
	}
	return out, nil
}

// plainName is a name without what spellings of it differ in.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
