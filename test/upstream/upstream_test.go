package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tiny is a program of one file in a folder of source.
func tiny(t *testing.T) (program, string) {
	t.Helper()
	src := t.TempDir()
	write(t, filepath.Join(src, "tiny/go.mod"), "module tiny\n\ngo 1.26\n")
	write(t, filepath.Join(src, "tiny/main.go"),
		"package main\n\nvar version = \"none\"\n\nfunc main() { println(version) }\n")
	return program{name: "tiny", ldflags: "-X main.version={v}", commands: []command{{"tiny", "."}}}, src
}

func TestVersionIsThatOfGoMod(t *testing.T) {
	pins := "module x\n\nrequire example.org/one v1.2.3\n\nrequire (\n\texample.org/two v0.4.5 // indirect\n\texample.org/two/v3 v3.0.1\n)\n"
	for module, want := range map[string]string{"example.org/one": "v1.2.3", "example.org/two": "v0.4.5",
		"example.org/two/v3": "v3.0.1", "": "v1.0.0"} {
		if got := (program{module: module}).version(pins); got != want {
			t.Errorf("%q has the version %s, want %s", module, got, want)
		}
	}
}

// Every program has a folder that pins its module.
func TestProgramsArePinned(t *testing.T) {
	names := map[string]bool{}
	for _, p := range programs() {
		pins, err := os.ReadFile(filepath.Join(p.name, "go.mod"))
		if err != nil {
			t.Error(err)
			continue
		}
		if p.module != "" && !regexp.MustCompile(`(?m)\b`+regexp.QuoteMeta(p.module)+` v`).Match(pins) {
			t.Errorf("%s/go.mod does not require %s", p.name, p.module)
		}
		if names[p.name] || len(p.commands) == 0 {
			t.Errorf("%s is there twice, or builds nothing", p.name)
		}
		names[p.name] = true
	}
}

// A key changes with all that goes into a program, and with nothing else.
func TestKey(t *testing.T) {
	p, src := tiny(t)
	key := func(p program) string {
		t.Helper()
		k, err := p.key(src)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	seen := map[string]string{key(p): "nothing"}
	differs := func(what, k string) {
		t.Helper()
		if other, known := seen[k]; known {
			t.Errorf("the key with %s is that with %s", what, other)
		}
		seen[k] = what
	}
	write(t, filepath.Join(src, "tiny/README.md"), "no source")
	write(t, filepath.Join(src, "other/main.go"), "package main")
	if seen[key(p)] == "" {
		t.Error("the key changes with files that are no source of the program")
	}
	write(t, filepath.Join(src, "tiny/go.sum"), "example.org/one v1.0.0 h1:AAAA=\n")
	differs("sums", key(p))
	write(t, filepath.Join(src, "tiny/go.sum"), "example.org/one v1.0.0 h1:BBBB=\n")
	differs("other sums", key(p))
	write(t, filepath.Join(src, "tiny/go.mod"), "module tiny\n\ngo 1.25\n")
	differs("another go.mod", key(p))
	write(t, filepath.Join(src, "tiny/more.go"), "package main\n")
	differs("a further file", key(p))
	for what, change := range map[string]func(*program){
		"cgo":             func(p *program) { p.cgo = true },
		"a tag":           func(p *program) { p.args = []string{"-tags", "x"} },
		"two arguments":   func(p *program) { p.args = []string{"-tags x"} },
		"other flags":     func(p *program) { p.ldflags = "" },
		"another command": func(p *program) { p.commands = []command{{"other", "."}} },
	} {
		changed := p
		change(&changed)
		differs(what, key(changed))
	}
	if _, err := (program{name: "missing"}).key(src); err == nil {
		t.Error("a program without go.mod has a key")
	}
}

// A program is built once, and again when its key changes.
func TestBuildIsKept(t *testing.T) {
	p, src := tiny(t)
	cache := t.TempDir()
	build := func() (built, string) {
		t.Helper()
		var log bytes.Buffer
		b, err := p.build(t.Context(), src, cache, &log)
		if err != nil {
			t.Fatal(err)
		}
		return b, log.String()
	}
	b, log := build()
	if out, err := exec.CommandContext(t.Context(), b.path("tiny")).CombinedOutput(); err != nil ||
		strings.TrimSpace(string(out)) != "v1.0.0" || log == "" {
		t.Errorf("it prints %q, %v; the log is %q", out, err, log)
	}
	if _, log := build(); log != "" {
		t.Errorf("it is built again: %s", log)
	}
	write(t, filepath.Join(src, "tiny/main.go"), "package main\n\nfunc main() { println(1 }\n")
	if _, err := p.build(t.Context(), src, cache, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "syntax error") {
		t.Errorf("a mistake in the source: %v", err)
	}
	write(t, filepath.Join(src, "tiny/main.go"), "package main\n\nfunc main() { println(1) }\n")
	if _, log := build(); !strings.Contains(log, "build tiny v1.0.0") {
		t.Errorf("new source is not built: %q", log)
	}
}

// A file of the mirror is packed once for a key.
func TestPublishIsKept(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	b := built{version: "v1.0.0", dir: dir}
	write(t, b.path(keyFile), "one")
	packed := 0
	r := release{path: "example.org/v1/file", from: b, write: func(w io.Writer) error {
		packed++
		_, err := io.WriteString(w, "content")
		return err
	}}
	const digest = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	for _, step := range []struct {
		key    string
		packed int
	}{{"one", 1}, {"one", 1}, {"two", 2}} {
		write(t, b.path(keyFile), step.key)
		if got, err := r.publish(root); got != digest || err != nil || packed != step.packed {
			t.Errorf("key %s: digest %s, %v, packed %d times, want %d", step.key, got, err, packed, step.packed)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, r.path)); string(text) != "content" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

func TestOneBuildAtATime(t *testing.T) {
	cache := t.TempDir()
	unlock, err := lock(t.Context(), cache, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := lock(short, cache, &printed); !errors.Is(err, context.DeadlineExceeded) ||
		strings.Count(printed.String(), "another build") != 1 {
		t.Errorf("a second build: %v, printed %q", err, printed.String())
	}
	second := make(chan error)
	go func() {
		unlock, err := lock(t.Context(), cache, io.Discard)
		if err == nil {
			unlock()
		}
		second <- err
	}()
	unlock()
	if err := <-second; err != nil {
		t.Errorf("after the first: %v", err)
	}
}
