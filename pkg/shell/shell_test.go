package shell

import (
	"os/exec"
	"strings"
	"testing"
)

var odd = []string{"", "plain", "a b", "it's", `"`, `\`, "$HOME", "`id`", "$(id)", "a;b", "a\nb", "\t", "*", "~", "!x",
	"{a,b}", "#c", "-n", "ż€", "'''", "a=b", "%s\\n", "&|<>()"}

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "plain": "plain", "/a/b-c_d.e:f,g=h@i%j+k": "/a/b-c_d.e:f,g=h@i%j+k", "a b": "'a b'", "it's": `'it'\''s'`,
		"~": "'~'", "ż": "'ż'",
	} {
		if got := Quote(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// TestShellReadsBack lets a shell print the words that it read.
func TestShellReadsBack(t *testing.T) {
	out, err := exec.Command("/bin/sh", "-c", Join(append([]string{"printf", `%s\0`}, odd...)...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); strings.Join(got, "|") != strings.Join(odd,
		"|") {
		t.Errorf("%q, want %q", got, odd)
	}
}

func TestScript(t *testing.T) {
	script := `for w; do printf '%s\0' "$w"; done; echo "it's $#"`
	out, err := exec.Command("/bin/sh", "-c", Script(script, odd...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(odd, "\x00") + "\x00it's 23\n"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
}

func FuzzQuote(f *testing.F) {
	for _, w := range odd {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if strings.ContainsRune(word, 0) || len(word) > 1000 {
			t.Skip("no program takes such an argument")
		}
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q is read as %q, %v", word, out, err)
		}
	})
}
