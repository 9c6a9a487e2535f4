package badinput

import (
	"fmt"
	"strings"
	"testing"
)

// TestGenerated has the input that is too large or too odd for a file.
func TestGenerated(t *testing.T) {
	const play = "- hosts: all\n  vars:\n    x: "
	cases := []struct{ name, file, text, want string }{
		{"zero byte", "site.yml", "- hosts: all\n  name: a\x00b\n", "site.yml:2:10: a zero byte: this is not a text file"},
		{"latin-1", "site.yml", "- hosts: all\n  name: caf\xe9\n", "site.yml:2:12: byte 0xe9 is not valid UTF-8"},
		{"UTF-16", "site.yml", "\xff\xfe-\x00 \x00h\x00", "site.yml:1:1: byte 0xff is not valid UTF-8"},
		{"control character", "site.yml", "- hosts: all\n  name: a\x07b\n", "control characters are not allowed"},
		{"line of 100 MB", "site.yml", play + strings.Repeat("x", 100<<20),
			"site.yml cannot be read: it has more than 32 MiB, the most that is read"},
		{"line of 5 MB", "site.yml", play + strings.Repeat("x", 5<<20) + "\n  tsks: []\n", "'tsks' is not a valid attribute"},
		{"brackets 150 deep", "site.yml", play + strings.Repeat("[", 150) + strings.Repeat("]", 150) + "\n",
			"nested too deep"},
		{"brackets 5000 deep", "site.yml", play + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "\n",
			"nested too deep"},
		{"brackets 50000 deep", "site.yml", play + strings.Repeat("[", 50000), "site.yml:3:"},
		{"blocks 300 deep", "site.yml", "- hosts: all\n  tasks:\n" + blocks(300), "too deep"},
		{"parentheses 20000 deep", "site.yml", "- hosts: all\n  tasks:\n    - command: uptime\n      when: " +
			strings.Repeat("(", 20000) + "\n", "site.yml:4:"},
		{"braces 20000 deep", "site.yml", "- hosts: all\n  tasks:\n    - debug: {msg: \"" + strings.Repeat("{{ ", 20000) +
			"\"}\n", "site.yml:3:"},
		{"tags 5000 deep", "site.yml", "- hosts: all\n  tasks:\n    - debug: {msg: \"" + strings.Repeat("{% if a %}", 5000) +
			"\"}\n", "site.yml:3:"},
		{"keys 100000", "site.yml", "- hosts: all\n" + many("  key%d: 1\n", 3000), "'key2999' is not a valid attribute"},
		{"carriage returns", "site.yml", "- hosts: all\r\n  tsks: []\r\n", "site.yml:2:3: 'tsks'"},
		{"byte order mark", "site.yml", "\ufeff- hosts: all\n  tsks: []\n", "site.yml:2:3: 'tsks'"},
		{"inventory, zero byte", "hosts", "h1\x00\n", "hosts:1:1: this line contains a NUL byte"},
		{"inventory, latin-1", "hosts", "[web]\nh\xe9\n", "hosts:2:1: this line is not UTF-8"},
		{"inventory, long line", "hosts", strings.Repeat("x", 2<<20), "hosts:1:1: this line has 2097152 bytes"},
		{"inventory, range", "hosts", "h[1:99999999]\n", "hosts:1:1: "},
		{"inventory, ranges", "hosts", "h[1:999][1:999][1:999]\n", "hosts:1:1: "},
		{"config, zero byte", "c.yml", "a: \x00\n", "c.yml:1:4: a zero byte"},
		{"config, deep", "c.yml", "a: " + strings.Repeat("[", 500) + strings.Repeat("]", 500), "nested too deep"},
	}
	args := map[string][]string{
		"site.yml": {"run", "guard.yml", "site.yml"},
		"hosts":    {"run", "guard.yml", "-i", "hosts"},
		"c.yml":    {"run", "guard.yml", "-c", "c.yml"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			code, said := runKK(t, map[string]string{c.file: c.text}, args[c.file])
			if code != 4 || !strings.Contains(said, c.want) {
				t.Errorf("exit %d, want 4 and %q, said: %.600s", code, c.want, said)
			}
			if len(said) > 1<<20 {
				t.Errorf("kk says %d bytes", len(said))
			}
		})
	}
}

func blocks(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", 4+4*i) + "- block:\n")
	}
	b.WriteString(strings.Repeat(" ", 4+4*n) + "- command: uptime\n")
	return b.String()
}

func many(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}
