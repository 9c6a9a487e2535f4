package journal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/redact"
)

func opened(t *testing.T, dir, id string, secrets *redact.Set) *Writer {
	t.Helper()
	w, err := Open(dir, id, secrets)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func fill(t *testing.T, o *Output, text string, step int) {
	t.Helper()
	for i := 0; i < len(text); i += step {
		if n, err := o.Write([]byte(text[i:min(len(text), i+step)])); err != nil || n == 0 {
			t.Fatal(n, err)
		}
	}
}

func TestOutputIsKeptWithoutSecrets(t *testing.T) {
	dir := t.TempDir()
	var secrets redact.Set
	const secret = "correct-horse-battery-staple"
	secrets.Add(secret)
	w := opened(t, dir, "r1", &secrets)
	text := strings.Repeat("login "+secret+"\n", 20000)
	for _, name := range []string{"3-Log_in_as.h_1.stdout", "3-Log_in_as.h_1.2.stdout"} {
		o := w.Output(3, "Log in as "+secret, "../../h 1", "stdout")
		fill(t, o, text, 999)
		file, kept, lost := o.End()
		if file != filepath.Join(dir, "runs/r1/outputs", name) || lost != nil {
			t.Fatal(file, lost)
		}
		got, err := os.ReadFile(file)
		if want := secrets.Text(text); err != nil || string(got) != want || kept != int64(len(want)) {
			t.Errorf("%d bytes, said %d, want %d: %v", len(got), kept, len(want), err)
		}
		for path, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): os.ModeDir | 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode() != mode {
				t.Errorf("%s: %v %v", path, info.Mode(), err)
			}
		}
	}
}

func TestOutputsOfARunAreBounded(t *testing.T) {
	w := opened(t, t.TempDir(), "r1", nil)
	w.BoundOutputs(1 << 20)
	var total int64
	for i := range 3 {
		o := w.Output(i, "t", "h", "stderr")
		fill(t, o, strings.Repeat("x", 700<<10), 32<<10)
		_, kept, lost := o.End()
		total += kept
		if (i > 0) != (lost != nil) {
			t.Errorf("output %d: %v", i, lost)
		}
	}
	if total > 1<<20 || total < 900<<10 {
		t.Errorf("%d bytes were kept", total)
	}
}

// A disk that has little room is not filled; the run goes on, and it is said.
func TestOutputOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := exec.Command("mount", "-t", "tmpfs", "-o", "size=4m", "none", dir).Run(); err != nil {
		t.Skipf("a small disk cannot be had: %v", err)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	o := opened(t, dir, "r1", nil).Output(1, "t", "h", "stdout")
	fill(t, o, strings.Repeat("x", 8<<20), 32<<10)
	if file, kept, lost := o.End(); file == "" || kept != 0 || lost == nil || !strings.Contains(lost.Error(),
		"512 MiB are free on the journal's disk") {
		t.Error(file, kept, lost)
	}
}

func TestOutputThatHasNoPlace(t *testing.T) {
	dir := t.TempDir()
	w := opened(t, dir, "r1", nil)
	if err := os.WriteFile(filepath.Join(dir, "runs/r1/outputs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := w.Output(1, "t", "h", "stdout")
	fill(t, o, strings.Repeat("x", 1<<20), 32<<10)
	if file, _, lost := o.End(); file != "" || lost == nil {
		t.Errorf("%q, %v", file, lost)
	}
}

func TestOutputsOfOldRunsGo(t *testing.T) {
	dir := t.TempDir()
	for i := range keepOutputs + 3 {
		w := opened(t, dir, fmt.Sprintf("r%02d", i), nil)
		w.run.Started = w.run.Started.AddDate(0, 0, i)
		w.save()
		o := w.Output(1, "t", "h", "stdout")
		fill(t, o, "text", 4)
		if _, _, lost := o.End(); lost != nil {
			t.Fatal(lost)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(dir, Keep); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "runs/*/outputs/*"))
	if err != nil || len(left) != keepOutputs || !strings.Contains(left[0], "r03") {
		t.Errorf("%d are left: %v, %v", len(left), left, err)
	}
	if err := prune(dir, 0); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "runs/*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
