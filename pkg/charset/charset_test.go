package charset

import (
	"strings"
	"testing"
)

func TestEncodings(t *testing.T) {
	for _, c := range []struct{ name, text, raw string }{
		{"", "ü€", "ü€"},
		{"UTF-8", "ü€", "ü€"},
		{"ascii", "plain", "plain"},
		{"latin-1", "ü", "\xfc"},
		{"iso8859_15", "ü€", "\xfc\xa4"},
		{"cp1252", "ü€", "\xfc\x80"},
		{"utf_16", "ü€", "\xff\xfe\xfc\x00\xac\x20"},
		{"utf-16-le", "𝄞", "\x34\xd8\x1e\xdd"},
		{"gbk", "你好", "\xc4\xe3\xba\xc3"},
		{"GB18030", "你€", "\xc4\xe3\xa2\xe3"},
		{"big5", "你", "\xa7\x41"},
		{"shift_jis", "日", "\x93\xfa"},
		{"euc_jp", "日", "\xc6\xfc"},
		{"EUC-KR", "한", "\xc7\xd1"},
		{"UTF-16BE", "ü€", "\x00\xfc\x20\xac"},
	} {
		raw, err := Encode(c.text, c.name)
		if err != nil || raw != c.raw {
			t.Errorf("%s: %q is %q, not %q (%v)", c.name, c.text, raw, c.raw, err)
		}
		if text, err := Decode(c.raw, c.name); err != nil || text != c.text {
			t.Errorf("%s: %q is %q, not %q (%v)", c.name, c.raw, text, c.text, err)
		}
	}
	if text, err := Decode("\xfe\xff\x00a", "utf-16"); err != nil || text != "a" {
		t.Errorf("the mark of the other order: %q, %v", text, err)
	}
	if !Known("Latin_1") || !Known("") || Known("klingon") {
		t.Error("which are known")
	}
}

func TestWhatCannotBe(t *testing.T) {
	for _, c := range []struct {
		do         func(text, name string) (string, error)
		text, name string
		want       string
	}{
		{Encode, "ü", "ascii", "a character that ascii cannot represent"},
		{Encode, "€", "latin-1", "a character that latin-1 cannot represent"},
		{Encode, "a", "klingon", "unknown encoding klingon"},
		{Decode, "\xfc", "us-ascii", "not valid us-ascii text"},
		{Decode, "\x81", "windows-1252", "not valid windows-1252 text"},
		{Decode, "\xc4\xff", "gbk", "not valid gbk text"},
		{Decode, "abc", "utf-16-le", "not valid utf-16-le text"},
		{Decode, "a", "klingon", "unknown encoding klingon"},
	} {
		if out, err := c.do(c.text, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q, %s: %q, %v", c.text, c.name, out, err)
		}
	}
}
