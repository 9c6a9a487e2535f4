// Package charset encodes and decodes text in the encodings that playbooks name. Names are those of Python's codecs.
package charset

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	textunicode "golang.org/x/text/encoding/unicode"
)

// Encode encodes text; encoding "" is UTF-8. An unknown encoding, or a character that it cannot represent, is an error.
func Encode(text, name string) (string, error) {
	e, err := find(name)
	if err != nil {
		return "", err
	}
	if e == nil {
		return text, nil
	}
	out, err := e.NewEncoder().String(text)
	if err != nil || isASCII(name) && out != text {
		return "", fmt.Errorf("the text contains a character that %s cannot represent", name)
	}
	return out, nil
}

// Decode is the reverse of Encode.
func Decode(raw, name string) (string, error) {
	e, err := find(name)
	if err != nil {
		return "", err
	}
	if e == nil {
		return raw, nil
	}
	out, err := e.NewDecoder().String(raw)
	if err != nil || strings.ContainsRune(out, utf8.RuneError) || isASCII(name) && out != raw {
		return "", fmt.Errorf("the bytes are not valid %s text", name)
	}
	return out, nil
}

func isASCII(name string) bool { return strings.HasSuffix(plainName(name), "ascii") }

// Known reports whether an encoding is known by a name.
func Known(name string) bool {
	_, err := find(name)
	return err == nil
}

// find returns the encoding with a name, nil for UTF-8.
func find(name string) (encoding.Encoding, error) {
	plain := plainName(name)
	switch plain {
	case "", "utf8", "u8":
		return nil, nil
	case "ascii", "usascii":
		return charmap.ISO8859_1, nil // of which it is the first half
	case "utf16":
		return textunicode.UTF16(textunicode.LittleEndian, textunicode.UseBOM), nil
	case "utf16le":
		return textunicode.UTF16(textunicode.LittleEndian, textunicode.IgnoreBOM), nil
	case "utf16be":
		return textunicode.UTF16(textunicode.BigEndian, textunicode.IgnoreBOM), nil
	case "latin1":
		return charmap.ISO8859_1, nil
	case "gbk", "cp936", "ms936", "936", "gb2312", "euccn", "chinese":
		return simplifiedchinese.GBK, nil // of which gb2312 is a part
	case "gb18030", "gb180302000":
		return simplifiedchinese.GB18030, nil
	case "big5", "cp950":
		return traditionalchinese.Big5, nil
	case "shiftjis", "sjis", "cp932", "ms932":
		return japanese.ShiftJIS, nil
	case "eucjp", "ujis":
		return japanese.EUCJP, nil
	case "euckr", "cp949", "uhc":
		return korean.EUCKR, nil
	}
	if rest, ok := strings.CutPrefix(plain, "cp125"); ok {
		plain = "windows125" + rest
	}
	for _, e := range charmap.All {
		if c, ok := e.(*charmap.Charmap); ok && plainName(c.String()) == plain {
			return c, nil
		}
	}
	return nil, fmt.Errorf("unknown encoding %s: use utf-8, utf-16, gbk, gb18030, big5, shift_jis, euc-jp, euc-kr, or "+
		"a single-byte encoding such as windows-1252", name)
}

// plainName normalizes a name: case, hyphens and underscores do not matter.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}
