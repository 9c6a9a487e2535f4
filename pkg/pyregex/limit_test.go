package pyregex

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestLimits tests searches that never finish, and searches that need too much memory.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name, pattern, text string
		limit               time.Duration
		err                 error
	}{
		{"lookahead", `^(?=(a+)+$)`, strings.Repeat("a", 40) + "!", 20 * time.Millisecond, errTime},
		{"back reference", `^(a*)*\1$`, strings.Repeat("a", 40) + "!", 20 * time.Millisecond, errTime},
		{"every place of a text", `(?!x)a*(?!a)b`, strings.Repeat("a", 1<<17), 20 * time.Millisecond, errTime},
		{"depth", `^(?=(?:a|bc)*$)`, strings.Repeat("abc", 1<<19), time.Minute, errDepth},
		{"linear", `^(a+)+$`, strings.Repeat("a", 40) + "!", time.Nanosecond, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			re, err := Compile(c.pattern, 0, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := re.Find(c.text); !errors.Is(err, c.err) || m != nil {
				t.Errorf("%v, %v, not %v", m, err, c.err)
			}
		})
	}
}

// TestLongTexts checks that repeating parts of fixed length needs no stack.
func TestLongTexts(t *testing.T) {
	text := strings.Repeat("aé", 1<<20)
	for _, pattern := range []string{`(?=a)(?:(?!b).)*$`, `(?=a)(?:[ab]é)*$`, `(?=a).*?$`, `(?=a)\w+$`} {
		re, err := Compile(pattern, 0, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if m, err := re.Find(text); err != nil || len(m) != 2 || m[1] != len(text) {
			t.Errorf("%s: %v, %v", pattern, m, err)
		}
	}
}

func TestNesting(t *testing.T) {
	for _, open := range []string{"(", "(?:", "(?=", "(?>", "(?i:", "[a](?<=", "(a)?(?(1)("} {
		if _, err := Compile(strings.Repeat(open, 1<<16), 0, time.Second); err == nil {
			t.Errorf("%s nests without an end", open)
		}
	}
}

func TestReplaceHasALimit(t *testing.T) {
	re, err := Compile("(a)", 0, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := re.Template(`\1\1`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := re.FindAll("aaaa", 3)
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	if out, ok := tmpl.Replace("aaaa", all, 6); out != "aaaaaaa" || !ok {
		t.Errorf("%q, %v", out, ok)
	}
	if _, ok := tmpl.Replace("aaaa", all, 5); ok {
		t.Error("the limit was passed")
	}
}

// FuzzPattern compares the two engines: for each pattern that the linear engine accepts, both must return the same.
func FuzzPattern(f *testing.F) {
	for _, seed := range [][2]string{
		{`(a|b)*?c$`, "abc\n"}, {`(?i)[^\W_]+\b`, "aÉb"}, {`(?x) a{,2} # b`, "aa"}, {`(?<=(?P<n>.))(?P=n)|`, "aab"},
		{`\g<1>[]-a]`, "\xff"},
	} {
		f.Add(seed[0], seed[1], uint16(0))
	}
	f.Fuzz(func(t *testing.T, pattern, text string, flags uint16) {
		const limit = 5 * time.Millisecond
		re, err := Compile(pattern, Flags(flags)&(Whole<<1-1), limit)
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("%q", err)
			}
			return
		}
		linear, err := re.FindAll(text, 100)
		if err != nil {
			return
		}
		if tmpl, err := re.Template(pattern); err == nil {
			tmpl.Replace(text, linear, 1<<20)
		}
		re.linear = nil
		slow, err := re.FindAll(text, 100)
		if err != nil {
			return
		}
		if len(linear) != len(slow) {
			t.Fatalf("%d matches, and backtracking finds %d", len(linear), len(slow))
		}
		for i := range linear {
			for at := range linear[i] {
				if linear[i][at] != slow[i][at] {
					t.Fatalf("match %d is %v, and by backtracking %v", i, linear[i], slow[i])
				}
			}
		}
	})
}
