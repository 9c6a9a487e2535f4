package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"kubekey/pkg/artifact"
	"kubekey/pkg/relay/program"
)

// TestDistribute brings a file of an offline file to all hosts, which pass it on to each other.
func TestDistribute(t *testing.T) {
	if _, ok := program.For(runtime.GOARCH); !ok {
		t.Skip("kk is built without the program that hosts run: make relay")
	}
	c := newController(t)
	dir := t.TempDir()
	data := make([]byte, 2<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data)
	path := filepath.Join(dir, "program")
	if err := os.WriteFile(path, append(data, make([]byte, 1<<20)...), 0o600); err != nil {
		t.Fatal(err)
	}
	b := artifact.NewBuilder(dir, artifact.Covers{}, nil)
	if err := b.AddFile(t.Context(), artifact.Item{Kind: artifact.KindFile, Name: "program", File: "program"}, path); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file.tar")
	if _, err := b.Write(t.Context(), file, artifact.Options{}); err != nil {
		t.Fatal(err)
	}
	manifest, err := b.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, h := range c.lab.Hosts {
		hosts = append(hosts, fmt.Sprintf("{name: %s, address: %s, arch: %s, files: [program]}", h.Name, h.Address, runtime.GOARCH))
	}
	playbook := fmt.Sprintf(`
- hosts: all
  gather_facts: false
  become: true
  tasks:
    - name: Distribute
      artifact_distribute: {artifact: [%s], mode: relay, rate: "{{ rate | default(0) }}", hosts: [%s]}
      register: done
    - debug: {msg: "arrived {{ done.arrived }} sent {{ done.sent }} warnings {{ done.warnings | default([]) }}"}
`, file, strings.Join(hosts, ", "))
	t.Cleanup(func() {
		for i := range c.lab.Hosts {
			_, _ = c.lab.Exec(context.Background(), i, "rm -rf /var/lib/kubekey/blobs") // the lab is removed with it
		}
	})
	first := c.play(t, playbook)
	first.exits(t, 0)
	size := manifest.Blobs[0].Size
	if want := fmt.Sprintf("arrived %d ", 3*size); !strings.Contains(first.stdout, want) ||
		strings.Contains(first.stdout, fmt.Sprintf("sent %d ", 3*size)) || !strings.Contains(first.stdout, "warnings []") {
		t.Errorf("want %q, not all of it sent by the control node, and no warnings:\n%s", want, first.stdout)
	}
	sum := manifest.Items[0].SHA256
	for i, h := range c.lab.Hosts {
		out, err := c.lab.Exec(t.Context(), i, "cd /var/lib/kubekey/blobs && ls -A && stat -c '%a %U' . && sha256sum *; "+
			"pgrep -f kk-relay || true")
		want := fmt.Sprintf("%s\n700 root\n%s  %s\n", sum, sum, sum)
		if out != want {
			t.Errorf("%s: %q, %v, want %q", h.Name, out, err, want)
		}
	}
	second := c.play(t, playbook)
	second.exits(t, 0)
	second.recap(t, c.lab.Hosts[0].Name, "changed=0")
	if !strings.Contains(second.stdout, "arrived 0 sent 0") {
		t.Errorf("again:\n%s", second.stdout)
	}

	// kk is killed while hosts receive: the program on them ends too, and leaves nothing but whole files.
	for i := range c.lab.Hosts {
		if _, err := c.lab.Exec(t.Context(), i, "rm -rf /var/lib/kubekey/blobs"); err != nil {
			t.Fatal(err)
		}
	}
	run := c.command(t, "run", filepath.Join(c.work, "site.yaml"), "-i", c.lab.Inventory(), "-e", "rate=50000")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	script := func(host int, text string) func() bool {
		return func() bool {
			_, err := c.lab.Exec(t.Context(), host, text)
			return err == nil
		}
	}
	eventually(t, "a part of a file", script(0, "pgrep -f kk-relay >/dev/null && ls -A /var/lib/kubekey/blobs | grep -q part"))
	_ = run.Process.Kill()
	_ = run.Wait() // killed
	for i := range c.lab.Hosts {
		eventually(t, "end of the program on the host", script(i, "! pgrep -f kk-relay >/dev/null && "+
			"! ls -A /var/lib/kubekey/blobs | grep -q ."))
	}
}
