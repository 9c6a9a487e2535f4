package value

import "testing"

func TestSplitLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "[]",
		"\n":                            "['']",
		"a\n\nb":                        "['a', '', 'b']",
		"a\r\nb\rc\r\r\n":               "['a', 'b', 'c', '']",
		"5%\r10%\rdone\n":               "['5%', '10%', 'done']",
		"\va\fb\x1cc\x1dd\x1ee\u0085f":  "['', 'a', 'b', 'c', 'd', 'e', 'f']",
		"é\u2028ü\u2029":                "['é', 'ü']",
		"a\n\xff\u2028b\x85c\r\n\u0085": "['a', '\ufffd', 'b\ufffdc', '']",
	} {
		lines := SplitLines(text, false)
		joined := ""
		for _, l := range SplitLines(text, true) {
			joined += l.(string)
		}
		if got := Repr(lines); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		if joined != text {
			t.Errorf("%q: the lines with their ends are %q", text, joined)
		}
	}
}
