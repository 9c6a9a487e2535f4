package shell

import "testing"

func TestFill(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"check %s":           `check "$v"`,
		"check '%s'":         `check ''"$v"''`,
		`check "%s"`:         `check "${v}"`,
		`check "a%sb"`:       `check "a${v}b"`,
		`sh -c 'test -s %s'`: `sh -c 'test -s '"$v"''`,
		`x "it's %s"`:        `x "it's ${v}"`,
		`x 'say "%s"'`:       `x 'say "'"$v"'"'`,
		`x \" %s`:            `x \" "$v"`,
		`x "\"%s"`:           `x "\"${v}"`,
		`x '\' %s`:           `x '\' "$v"`,
		"stat -c %%s %s":     `stat -c %s "$v"`,
	} {
		if got := Fill(in, "v"); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
