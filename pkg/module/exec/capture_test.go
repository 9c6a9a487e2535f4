package exec

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// shelf is an Overflow in memory.
type shelf struct {
	strings.Builder
	lost error
}

func (s *shelf) End() (string, int64, error) { return "/shelf", int64(s.Len()), s.lost }

func bounded(keep int, open func(string) module.Overflow) *outputs {
	return newOutputs(&module.Call{Now: time.Now,
		Outputs: &module.Outputs{Keep: keep, Open: open, Why: "storage unavailable"}})
}

func fill(t *testing.T, c *capture, text string, step int) {
	t.Helper()
	for i := 0; i < len(text); i += step {
		if _, err := c.Write([]byte(text[i:min(len(text), i+step)])); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOutputKeepsTheEnd(t *testing.T) {
	all := &shelf{}
	o := bounded(200<<10, func(string) module.Overflow { return all })
	lines := 0
	o.output = func(string, bool) { lines++ }
	text := strings.Repeat("0123456789abcde\n", 1<<16) // 1 MiB
	fill(t, &o.stdout, text, 1000)
	fill(t, &o.stderr, "at the end\n", 3)
	var out outcome
	out.hold(o)
	if len(out.Stdout) < 140<<10 || len(out.Stdout) > 200<<10 {
		t.Errorf("kept %d bytes", len(out.Stdout))
	}
	if !strings.HasSuffix(text, out.Stdout) || !strings.HasPrefix(out.Stdout, "0123") {
		t.Error("what is kept is not whole lines from the end")
	}
	if out.Stderr != "at the end\n" {
		t.Errorf("the short output is %q", out.Stderr)
	}
	if all.String() != text {
		t.Errorf("%d bytes are on the shelf, want all of %d", all.Len(), len(text))
	}
	want := []string{"stdout was 1024 KiB long: the result holds only its end, up to the setting output_memory; the whole output is in /shelf"}
	if !slices.Equal(out.Warnings, want) {
		t.Errorf("warnings: %q", out.Warnings)
	}
	d := out.Describe(value.NewDict())
	if got := value.Repr(d); got != "{'stdout_truncated': True, 'stdout_bytes': 1048576, 'stdout_file': '/shelf'}" {
		t.Error(got)
	}
	if lines < shownLines || lines > shownLines+100 {
		t.Errorf("passed on %d lines", lines)
	}
}

// The error output may be the long one, and then it makes room.
func TestOutputsShareTheMemory(t *testing.T) {
	o := bounded(64<<10, nil)
	for range 100 {
		fill(t, &o.stdout, strings.Repeat("x", 5000)+"\n", 5001)
		fill(t, &o.stderr, strings.Repeat("y", 9000)+"\n", 9001)
		if held := o.stdout.kept + o.stderr.kept; held > 64<<10 {
			t.Fatalf("%d bytes are held", held)
		}
	}
	var out outcome
	out.hold(o)
	if n := len(out.Stdout) + len(out.Stderr); n > 64<<10 || len(out.Stdout) < 12<<10 || len(out.Stderr) < 12<<10 {
		t.Errorf("%d and %d bytes are kept", len(out.Stdout), len(out.Stderr))
	}
	for _, w := range out.Warnings {
		if !strings.Contains(w, "the rest was not kept: storage unavailable") {
			t.Error(w)
		}
	}
}

func TestOutputThatCannotBeStored(t *testing.T) {
	o := bounded(16<<10, func(string) module.Overflow { return &shelf{lost: syscall.ENOSPC} })
	fill(t, &o.stdout, strings.Repeat("x\n", 50<<10), 4096)
	var out outcome
	out.hold(o)
	if len(out.Warnings) != 1 || !strings.HasSuffix(out.Warnings[0],
		"; only the first 100 KiB are in /shelf: no space left on device") {
		t.Errorf("%q", out.Warnings)
	}
}

func TestShortOutputIsWhole(t *testing.T) {
	o := bounded(0, nil)
	for _, s := range []string{"abc\n", "", "defghijklmnop"} {
		fill(t, &o.stdout, s, 5)
	}
	var out outcome
	out.hold(o)
	if out.Stdout != "abc\ndefghijklmnop" || out.Warnings != nil || out.Describe(value.NewDict()).Len() > 0 {
		t.Errorf("got %q, %q", out.Stdout, out.Warnings)
	}
}

// A line without an end is shown once, and no half of a secret with it, nor in the result.
func TestEndlessLine(t *testing.T) {
	var secrets redact.Set
	const secret = "correct-horse-battery-staple"
	secrets.Add(secret)
	for offset := range len(secret) {
		o := bounded(256<<10, nil)
		o.bound.Secrets = &secrets
		var shown []string
		o.output = func(l string, _ bool) { shown = append(shown, l) }
		fill(t, &o.stdout, strings.Repeat("-", offset)+strings.Repeat(secret+strings.Repeat("=", 1000), 1000), 32<<10)
		fill(t, &o.stdout, "\nlast\n", 100)
		var out outcome
		out.hold(o)
		if len(shown) != 2 || shown[1] != "last" || len(shown[0]) > 2*shownLine {
			t.Fatalf("passed on %d lines", len(shown))
		}
		if strings.HasPrefix(out.Stdout, "-") || len(out.Stdout) < 128<<10 || len(out.Stdout) > 256<<10 {
			t.Errorf("kept %d bytes", len(out.Stdout))
		}
		for _, text := range []string{shown[0], out.Stdout} {
			if rest := strings.NewReplacer("*", "", "=", "", "-", "").Replace(secrets.Text(text)); strings.Contains(rest,
				"horse") || strings.Contains(rest, "staple") {
				t.Errorf("from %d: a part of the secret is there", offset)
			}
		}
	}
}

func TestDelta(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                         "0:00:00.000000",
		-time.Second:              "0:00:00.000000",
		4613 * time.Microsecond:   "0:00:00.004613",
		90*time.Minute + 1:        "1:30:00.000000",
		25 * time.Hour:            "1 day, 1:00:00.000000",
		49*time.Hour + 61*1000000: "2 days, 1:00:00.061000",
	} {
		if got := delta(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
