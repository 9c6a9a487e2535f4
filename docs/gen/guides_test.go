package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/shlex"

	"kubekey/builtin"
	"kubekey/pkg/cli"
)

var update = flag.Bool("update", false, "write into the pages what the commands print, and their blocks of code into those in Chinese")

// TestWhatGuidesShow runs the commands in the guides and compares their output. In a page,
//
//	```yaml NAME (or ini, jinja, text)
//
// is a file in the page's folder, and each line of
//
//	```console
//
// that begins with "$ kk" is run there. The following lines are its output; a line "..." matches any lines. Blocks
// marked "console hosts" need hosts, or show times, and are not run.
func TestWhatGuidesShow(t *testing.T) {
	found, err := filepath.Glob("../guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := append([]string{"../../README.md"}, found...)
	if len(pages) < 2 {
		t.Fatal("no guides found: is the test still two folders below the root?")
	}
	for _, page := range pages {
		path, err := filepath.Abs(page)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(page), func(t *testing.T) { checkPage(t, path) })
	}
}

func checkPage(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("KK_WORKDIR", filepath.Join(t.TempDir(), "kk"))
	t.Setenv("NO_COLOR", "1")
	changed := fence.ReplaceAllStringFunc(string(text), func(block string) string {
		m := fence.FindStringSubmatch(block)
		language, name, body := m[1], m[2], m[3]
		switch {
		case language == "console" && name == "":
			return "```console\n" + session(t, dir, body) + "```"
		case language != "console" && name != "":
			save(t, filepath.Join(dir, name), body)
		}
		return block
	})
	if *update && changed != string(text) {
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```")

func save(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// session runs the commands of a block and returns the block with their actual output.
func session(t *testing.T, dir, body string) string {
	t.Helper()
	var real strings.Builder
	lines := strings.SplitAfter(body, "\n")
	for i := 0; i < len(lines); {
		command := lines[i]
		i++
		var want strings.Builder
		for i < len(lines) && !strings.HasPrefix(lines[i], "$ ") {
			want.WriteString(lines[i])
			i++
		}
		if command == "" {
			continue
		}
		args, ok := strings.CutPrefix(command, "$ kk ")
		if !ok {
			t.Fatalf("%q: only kk can be run here; mark the block \"console hosts\"", command)
		}
		got := kk(t, dir, args)
		real.WriteString(command)
		if matches(want.String(), got) {
			got = want.String()
		} else if !*update {
			t.Errorf("$ kk %sprints\n%s\nand the page says\n%s\nif it is right now: go test ./docs/gen -run Guides -update",
				args, got, want.String())
		}
		real.WriteString(got)
	}
	return real.String()
}

// kk runs one command and returns all of its output. The page's folder is shown as /srv/project, the work folder as
// /root/.kk.
func kk(t *testing.T, dir, command string) string {
	t.Helper()
	args, err := shlex.Split(command)
	if err != nil {
		t.Fatalf("kk %s: %v", command, err)
	}
	var out bytes.Buffer
	cli.Main(context.Background(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, builtin.FS())
	text := strings.NewReplacer(dir, "/srv/project", os.Getenv("KK_WORKDIR"), "/root/.kk").Replace(out.String())
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n")) + "\n"
}

// matches compares output with the text on a page, in which a line "..." matches any lines.
func matches(want, got string) bool {
	parts := strings.Split("\n"+want, "\n...\n")
	pattern := make([]string, len(parts))
	for i, p := range parts {
		pattern[i] = regexp.QuoteMeta(p)
	}
	ok, err := regexp.MatchString(`\A`+strings.Join(pattern, `\n(?s:.*\n)?`)+`\z`, "\n"+got)
	return err == nil && ok
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		ok        bool
	}{
		{"a\n", "a\n", true},
		{"a\n", "b\n", false},
		{"a\n", "a\nb\n", false},
		{"a\n...\nd\n", "a\nb\nc\nd\n", true},
		{"a\n...\nd\n", "a\nd\n", true},
		{"...\nd\n", "b\nd\n", true},
		{"a\n...\n", "a\nb\n", true},
		{"a\n...\nd\n", "a\nb\n", false},
	} {
		if matches(c.want, c.got) != c.ok {
			t.Errorf("%q shows %q: want %v", c.want, c.got, c.ok)
		}
	}
}
