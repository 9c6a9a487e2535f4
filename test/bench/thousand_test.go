package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubekey/builtin"
	"kubekey/pkg/cli"
	"kubekey/pkg/engine"
)

// fleetRound is ten tasks that hosts take differently, by their number.
const fleetRound = `
    - name: What the host says
      command: echo {{ inventory_hostname }} says @
      register: said_@
    - name: A file of its own
      copy: {dest: "{{ dir }}/{{ inventory_hostname }}-@", content: "{{ said_@.stdout }}\nlast\n", mode: "0644"}
    - name: A value of its own
      set_fact: {fact_@: "{{ said_@.stdout_lines[0] | upper }}"}
    - name: A line in the file
      lineinfile: {path: "{{ dir }}/{{ inventory_hostname }}-@", line: "number = {{ number }}", insertbefore: last}
    - name: What is its own is no other's
      assert: {that: "fact_@ == (inventory_hostname ~ ' says @') | upper", quiet: true}
    - name: Every third
      command: "true"
      when: number % 3 == 0
    - name: Every tenth refuses, and goes on
      command: test {{ number % 10 }} -ne 1
      changed_when: false
      ignore_errors: true
    - name: The file as it is now
      slurp: {src: "{{ dir }}/{{ inventory_hostname }}-@"}
      register: file_@
    - name: Has what was written
      debug: {msg: "{{ file_@.content | b64decode | regex_search('number = [0-9]+') }}"}
      failed_when: ('number = ' ~ number ~ '\n') not in file_@.content | b64decode
    - name: Some fail in the end
      fail: {msg: "number {{ number }}"}
      when: number % 50 == 0 and @ == last_round
`

// fleetPlaybook is rounds of ten tasks.
func fleetPlaybook(rounds int) string {
	var p strings.Builder
	fmt.Fprintf(&p, "- hosts: all\n  gather_facts: false\n  vars: {last_round: %d}\n  tasks:", rounds-1)
	for i := range rounds {
		p.WriteString(strings.ReplaceAll(fleetRound, "@", strconv.Itoa(i)))
	}
	return p.String()
}

// counts are the numbers of one line of the recap.
type counts struct{ ok, changed, unreachable, failed, skipped, rescued, ignored int }

// expected is what the recap is to say of a host.
func expected(number, rounds int) counts {
	if number%100 == unreachableAt {
		return counts{unreachable: 1}
	}
	c := counts{ok: 8 * rounds, changed: 3 * rounds, skipped: 2 * rounds}
	if number%3 == 0 {
		c.ok, c.changed, c.skipped = c.ok+rounds, c.changed+rounds, c.skipped-rounds
	}
	if number%10 == 1 {
		c.ignored = rounds
	}
	if number%failAt == 0 {
		c.failed, c.skipped = 1, c.skipped-1
	}
	return c
}

var fullRecapLine = regexp.MustCompile(`(?m)^n(\d+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)\s+skipped=(\d+)\s+rescued=(\d+)\s+ignored=(\d+)`)

// checkRecap checks the line of every host.
func checkRecap(tb testing.TB, out string, hosts, rounds int) {
	tb.Helper()
	_, recap, _ := strings.Cut(out, "PLAY RECAP")
	seen := map[int]bool{}
	for _, m := range fullRecapLine.FindAllStringSubmatch(recap, -1) {
		var n [8]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+1])
		}
		got := counts{n[1], n[2], n[3], n[4], n[5], n[6], n[7]}
		if want := expected(n[0], rounds); got != want || seen[n[0]] {
			tb.Errorf("n%d (seen before: %v): %+v, want %+v", n[0], seen[n[0]], got, want)
		}
		seen[n[0]] = true
	}
	if len(seen) != hosts {
		tb.Errorf("the recap has %d hosts, want %d\n%s", len(seen), hosts, tail(out, 2000))
	}
}

// BenchmarkThousand is 50 tasks on 1000 hosts, each with a connection of its own:
// peak-MB, the most memory that kk had by the kernel's account, is to be below 500.
func BenchmarkThousand(b *testing.B) {
	const hosts, rounds = 1000, 5
	bin := program(b)
	for range b.N {
		f := newFleet(b, hosts)
		cmd := exec.Command(bin, "run", write(b, f.dir, "site.yaml", fleetPlaybook(rounds)), "-i", f.inventory)
		cmd.Env = append(os.Environ(), "KK_WORKDIR="+filepath.Join(f.dir, "work"))
		start := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(start)
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != engine.ExitUnreachable {
			b.Errorf("kk: %v, want that hosts are unreachable\n%s", err, tail(string(out), 4000))
		}
		checkRecap(b, string(out), hosts, rounds)
		usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		b.ReportMetric(took.Seconds(), "s")
		b.ReportMetric(float64(usage.Maxrss)/1024, "peak-MB")
		b.ReportMetric(float64(usage.Utime.Nano()+usage.Stime.Nano())/1e9, "kk-cpu-s")
	}
}

// The recap of many hosts over connections of their own, a tenth of the benchmark's.
func TestRecapOfManyHosts(t *testing.T) {
	const hosts, rounds = 100, 1
	f := newFleet(t, hosts)
	var out bytes.Buffer
	code := cli.Main(t.Context(), []string{"run", write(t, f.dir, "site.yaml", fleetPlaybook(rounds)), "-i", f.inventory,
		"--workdir", filepath.Join(f.dir, "work")},
		cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out}, builtin.FS())
	if code != engine.ExitUnreachable {
		t.Errorf("exit code %d, want %d\n%s", code, engine.ExitUnreachable, tail(out.String(), 4000))
	}
	checkRecap(t, out.String(), hosts, rounds)
}
