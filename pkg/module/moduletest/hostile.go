package moduletest

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Hostile fuzzes the modules that work on hosts: each is run, with the arguments of its
// examples, on a host that answers every command with what the fuzzer made up. A module may
// fail then, with a text; it does not panic, it ends, and its result can be written down.
// What else a module needs as an argument adjust sets; it may be nil.
func Hostile(f *testing.F, specs []module.Spec, adjust func(module string, args *value.Dict)) {
	samples := samplesOf(f, specs, adjust)
	for i := range samples {
		for n := i % seedShare; n < len(usualAnswers); n += seedShare {
			f.Add(uint16(i), byte(n), byte(n), []byte(usualAnswers[n]))
		}
	}
	c := controlNode(f)
	f.Fuzz(func(t *testing.T, sample uint16, choice, flags byte, answers []byte) {
		s := samples[int(sample)%len(samples)].choose(int(choice))
		// In a bubble a pause takes no time, and what waits for ever is a failure.
		synctest.Test(t, func(t *testing.T) { s.run(t, c, flags, answers) })
	})
}

// usualAnswers are what the fuzzer begins with, as hostile reads them.
var usualAnswers = []string{
	"", "\n", "0\n", "yes", "{}", "[]", "null", "[{\"a\": 1}]", "<a><b c=\"d\">e</b></a>",
	"[section]\nkey = value\n", "a=b\x00c=d\x00",
	everyKey("1"), everyKey(""), everyKey("a b c"), everyKey("0 root"), everyKey("a:b:c:d:e:f:g"), everyKey("a\tb\tc\nd"),
	everyKey("[{\"a\": {\"b\": [null, 1.5]}}]"), everyKey("[a]\nb = c\n"), everyKey("k=v"), everyKey("644"),
	"\x1f\x1f1", "\x1fan error\x1f127", "ok\x1f\x1f0\x1ealso ok\x1f\x1f0\x1e\x1fno\x1f2",
}

// seedShare is which part of them is a seed for each sample: all seeds are run before the
// fuzzer begins.
const seedShare = 3

// everyKey says the same for keys of a script.
func everyKey(text string) string {
	var out strings.Builder
	for key := 'a'; key <= 'z'; key++ {
		out.WriteString("@" + string(key) + text + "\x00")
	}
	return out.String()
}

// sample is a module with arguments.
type sample struct {
	spec    module.Spec
	args    *value.Dict
	choices [][2]string // argument and choice
}

func samplesOf(t testing.TB, specs []module.Spec, adjust func(string, *value.Dict)) []sample {
	t.Helper()
	var out []sample
	for _, spec := range specs {
		if spec.Where != module.OnHost || spec.Action {
			continue
		}
		choices, before := choicesOf(t, spec), len(out)
		for _, example := range spec.Examples {
			for _, args := range examplesOf(t, spec, example) {
				if adjust != nil {
					adjust(spec.Name, args)
				}
				if err := schema.Decode(spec.New(), args, &redact.Set{}); err == nil { // some have templates
					out = append(out, sample{spec, args, choices})
				}
			}
		}
		if len(out) == before {
			t.Fatalf("no example of %s has arguments that can be used as they are: set them", spec.Name)
		}
	}
	return out
}

func examplesOf(t testing.TB, spec module.Spec, example string) []*value.Dict {
	t.Helper()
	tasks, err := value.DecodeYAML(yaml.NewDecoder(strings.NewReader(example)))
	if err != nil {
		t.Fatalf("an example of %s: %v", spec.Name, err)
	}
	list, _ := tasks.([]any)
	var out []*value.Dict
	for _, task := range list {
		d, _ := task.(*value.Dict)
		for k, v := range d.All() {
			if !spec.Is(value.Str(k)) {
				continue
			}
			args, _ := v.(*value.Dict)
			if args == nil {
				args = value.NewDict()
			}
			if text, ok := v.(string); ok && spec.FreeForm != "" {
				args.Set(spec.FreeForm, text)
			}
			out = append(out, args)
		}
	}
	return out
}

func choicesOf(t testing.TB, spec module.Spec) (out [][2]string) {
	t.Helper()
	all, err := schema.Describe(spec.New())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if a.Type == "bool" {
			a.Choices = []string{"true", "false"}
		}
		for _, c := range a.Choices {
			out = append(out, [2]string{a.Name, c})
		}
	}
	return out
}

// choose is the sample with the n-th choice of an argument, and as it is for 0.
func (s sample) choose(n int) sample {
	if n == 0 || len(s.choices) == 0 {
		return s
	}
	c := s.choices[(n-1)%len(s.choices)]
	args := s.args.Copy()
	args.Set(c[0], c[1])
	if err := schema.Decode(s.spec.New(), args, &redact.Set{}); err == nil {
		s.args = args
	}
	return s
}

// controlNode is a call with what a control node has: files to send, and the room to keep some.
func controlNode(t testing.TB) *module.Call {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("one line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Call(t, value.NewDict(), Options{WorkDir: filepath.Join(dir, "work"), Output: func(string, bool) {}})
	c.Reset = func(context.Context) error { return nil }
	c.Find = func(string, string) (string, error) { return file, nil }
	return c
}

func (s sample) run(t *testing.T, shared *module.Call, flags byte, answers []byte) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	h := &hostile{answers: bytes.Split(answers, []byte{0x1e}), cancel: cancel}
	c := *shared
	c.Args, c.Raw, c.Check, c.Diff, c.Conn = s.args, s.args, flags&1 != 0, flags&2 != 0, h
	if c.Check && s.spec.Check == module.Skips {
		return
	}
	if c.Check {
		c.Conn = connector.ReadOnly(h)
	}
	if err := os.RemoveAll(c.WorkDir); err != nil {
		t.Fatal(err)
	}
	runner := s.spec.New()
	if err := schema.Decode(runner, s.args, &redact.Set{}); err != nil {
		t.Fatal(err)
	}
	r, err := runner.Run(ctx, &c)
	if err != nil {
		if err.Error() == "" {
			t.Errorf("%s %s fails without a text: %#v", s.spec.Name, value.Repr(s.args), err)
		}
		return
	}
	text, err := value.JSON(value.NewDict("data", r.Data, "facts", r.Facts), value.JSONOptions{})
	if err != nil {
		t.Errorf("%s %s has a result that cannot be written down: %v", s.spec.Name, value.Repr(s.args), err)
	}
	const most = 1 << 20
	if size := len(text) + len(r.Msg); size > most+64*h.said {
		t.Errorf("%s %s makes %d bytes of result of %d bytes of answers", s.spec.Name, value.Repr(s.args), size, h.said)
	}
}

// hostile is a host that answers its commands in turn, the last answer again and again.
//
// The answers are between bytes 1E; each is standard output, standard error and the exit
// code between bytes 1F. In the output a field that ends in NUL and begins with @ and a byte is
// the key of that number, of those that the script may say, and its text.
type hostile struct {
	answers  [][]byte
	cancel   func()
	commands int
	said     int
}

// maxCommands is after how many commands a host is gone: some modules ask until they get the right answer.
const maxCommands = 64

func (h *hostile) Close() error { return nil }

func (h *hostile) Run(ctx context.Context, c connector.Command) (connector.Exit, error) {
	if h.commands++; h.commands > maxCommands {
		h.cancel()
		return connector.Exit{}, &connector.UnreachableError{Host: "h1", Reason: "it has said enough"}
	}
	if c.Stdin != nil { // is read meanwhile, as over a connection
		go func() { _, _ = io.Copy(io.Discard, c.Stdin) }()
	}
	stdout, stderr, exit := h.answer(c)
	h.said += len(stdout) + len(stderr)
	for _, out := range []struct {
		to   io.Writer
		text string
	}{{c.Stdout, stdout}, {c.Stderr, stderr}} {
		if out.to != nil && out.text != "" {
			_, _ = io.WriteString(out.to, out.text)
		}
	}
	return connector.Exit{Code: exit}, ctx.Err()
}

func (h *hostile) answer(c connector.Command) (stdout, stderr string, exit int) {
	parts := bytes.SplitN(h.answers[min(h.commands, len(h.answers))-1], []byte{0x1f}, 3)
	stdout = withKeys(parts[0], c.Line)
	if len(parts) > 1 {
		stderr = string(parts[1])
	}
	if len(parts) > 2 {
		exit, _ = strconv.Atoi(string(parts[2]))
	}
	return stdout, stderr, exit
}

var sayKey = regexp.MustCompile(`\bsay ([a-z_0-9]+)`)

func withKeys(stdout []byte, script string) string {
	var keys []string
	fields := strings.Split(string(stdout), "\x00")
	for i, field := range fields[:len(fields)-1] {
		if len(field) < 2 || field[0] != '@' {
			continue
		}
		if keys == nil {
			for _, m := range sayKey.FindAllStringSubmatch(script, -1) {
				if !slices.Contains(keys, m[1]) {
					keys = append(keys, m[1])
				}
			}
		}
		if len(keys) > 0 {
			fields[i] = keys[int(field[1])%len(keys)] + "=" + field[2:]
		}
	}
	return strings.Join(fields, "\x00")
}
