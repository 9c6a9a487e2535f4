// Package relay_test runs the program that hosts have for distribution on hosts whose links are slow, under the
// scheduler that kk uses, and makes some of them fail.
package relay_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kubekey/pkg/relay"
)

// defaultRate is the rate of every link, in bytes per second, that of the control node too.
const defaultRate = 512 << 10

// number reads a variable of the environment that sets another number than usual.
func number(tb testing.TB, name string, usual, least int) int {
	tb.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		tb.Fatalf("%s=%s is not a number of at least %d", name, text, least)
	}
	return n
}

// blobs returns blobs of different sizes, 3 MiB in all, and their bytes.
func blobs() ([]relay.Blob, map[string][]byte) {
	var all []relay.Blob
	data := map[string][]byte{}
	for i, kilobytes := range []int{550, 450, 400, 350, 300, 250, 200, 150, 150, 100, 75, 50, 30, 15, 2, 1} {
		text := make([]byte, kilobytes<<10)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(text)
		sum := sha256.Sum256(text)
		b := relay.Blob{Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(text))}
		all = append(all, b)
		data[b.Digest] = text
	}
	return all, data
}

func total(blobs []relay.Blob) (sum int64) {
	for _, b := range blobs {
		sum += b.Size
	}
	return sum
}

// build builds the program as kk carries it.
func build(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "kk-relay")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "kubekey/cmd/kk-relay")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// cluster is hosts with the program on them.
type cluster struct {
	net   *network
	rate  int64
	dir   string
	blobs []relay.Blob
	data  map[string][]byte
	hosts []*host
}

type host struct {
	*relay.Session
	cmd *exec.Cmd
}

func (c *cluster) folder(i int) string { return filepath.Join(c.dir, strconv.Itoa(i), "blobs") }

// start starts the program on every host. Its standard input and output are those that an SSH channel would be.
func (c *cluster) start(ctx context.Context, program string) error {
	ca, err := relay.NewCA(time.Now())
	if err != nil {
		return err
	}
	open := func(b relay.Blob) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.data[b.Digest])), nil }
	link := relay.NewLimiter(c.rate)
	c.hosts = make([]*host, c.net.count)
	problems := make([]error, c.net.count)
	slots := make(chan struct{}, 8)
	var wait sync.WaitGroup
	for i := range c.hosts {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			c.hosts[i], problems[i] = c.startHost(ctx, program, i, ca, open, link)
		})
	}
	wait.Wait()
	return errors.Join(problems...)
}

func (c *cluster) startHost(ctx context.Context, program string, i int, ca *relay.CA,
	open func(relay.Blob) (io.ReadCloser, error), link *relay.Limiter) (*host, error) {
	if err := os.MkdirAll(filepath.Dir(c.folder(i)), 0o755); err != nil {
		return nil, err
	}
	h := &host{cmd: c.net.command(context.Background(), i, program, c.folder(i))}
	h.cmd.Stderr = os.Stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := h.cmd.Start(); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("n%d.relay", i)
	h.Session = relay.NewSession(name, in, out, open, link)
	cert, key, err := ca.Issue(name)
	if err != nil {
		return h, err
	}
	return h, h.Start(ctx, name, relay.Start{Address: c.net.address(i), Now: time.Now(), CA: ca.PEM(), Cert: cert, Key: key})
}

// stop ends all programs.
func (c *cluster) stop() {
	for _, h := range c.hosts {
		if h != nil && h.Session != nil {
			_ = h.Close()
		}
	}
	for _, h := range c.hosts {
		if h != nil {
			_ = h.cmd.Wait() // its code does not matter
		}
	}
}

func (c *cluster) run(ctx context.Context, notify func(relay.Event)) (relay.Report, error) {
	members, nodes := make([]relay.Member, len(c.hosts)), make([]relay.Node, len(c.hosts))
	for i, h := range c.hosts {
		members[i], nodes[i] = relay.Member{Name: fmt.Sprintf("node%d", i), Blobs: c.blobs}, h
	}
	return relay.Run(ctx, members, nodes, relay.Options{Notify: notify})
}

// check fails unless the folder of a host has exactly the blobs, or only some of them.
func (c *cluster) check(tb testing.TB, i int, all bool) {
	tb.Helper()
	entries, err := os.ReadDir(c.folder(i))
	if err != nil {
		tb.Fatal(err)
	}
	if all && len(entries) != len(c.blobs) {
		tb.Errorf("node%d has %d files instead of %d", i, len(entries), len(c.blobs))
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(c.folder(i), e.Name()))
		if want, ok := c.data["sha256:"+e.Name()]; err != nil || !ok || !bytes.Equal(text, want) {
			tb.Errorf("node%d: %s with %d bytes is none of the blobs, %v", i, e.Name(), len(text), err)
		}
	}
}

// gone fails if something runs or listens on a host.
func (c *cluster) gone(tb testing.TB, i int) {
	tb.Helper()
	if pids := c.net.processes(tb, i); pids != "" {
		tb.Errorf("node%d: processes %s are left", i, pids)
	}
	if open := c.net.listening(tb, i); len(open) > 0 {
		tb.Errorf("node%d: still listening: %q", i, open)
	}
}

func newCluster(tb testing.TB, count int) *cluster {
	tb.Helper()
	all, data := blobs()
	rate := int64(number(tb, "KK_RELAY_RATE", defaultRate>>10, 1)) << 10
	return &cluster{net: newNetwork(tb, count, rate), rate: rate, dir: tb.TempDir(), blobs: all, data: data}
}

// waitFor waits until a host has a whole blob, and returns its path.
func (c *cluster) waitFor(ctx context.Context, i int) string {
	for ctx.Err() == nil {
		entries, _ := os.ReadDir(c.folder(i))
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				return filepath.Join(c.folder(i), e.Name())
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ""
}

// TestFailingHosts distributes to 24 hosts, of which one is killed, one sends wrong bytes and one reaches nobody.
// KK_RELAY_HOSTS sets another number, and KK_RELAY_RATE another rate of the links, in KiB/s.
func TestFailingHosts(t *testing.T) {
	count := number(t, "KK_RELAY_HOSTS", 24, 8)
	c := newCluster(t, count)
	killed, corrupt, isolated := 2, 3, 5
	c.net.isolate(t, isolated)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	t.Cleanup(c.stop)
	if err := c.start(ctx, build(t)); err != nil {
		t.Fatal(err)
	}
	var failing sync.WaitGroup
	failing.Go(func() {
		c.waitFor(ctx, killed)
		_ = c.hosts[killed].cmd.Process.Kill() // the run shows whether it was killed
	})
	failing.Go(func() {
		path := c.waitFor(ctx, corrupt)
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		_, err = f.WriteAt([]byte("corrupt"), 100)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Error(err)
		}
	})
	events := map[string]int{}
	begin := time.Now()
	report, err := c.run(ctx, func(e relay.Event) {
		events[string(e.Kind)+" "+e.Host]++
		t.Logf("%5.1f s: %s", time.Since(begin).Seconds(), e)
	})
	took := time.Since(begin)
	failing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	measure(t, c, took, report)
	for _, want := range []string{"given up node2", "no source node3", "served directly node5", "no source node5"} {
		if events[want] != 1 {
			t.Errorf("%d times %q was reported", events[want], want)
		}
	}
	if len(report.Failed) != 1 {
		t.Errorf("failed: %v", report.Err())
	}
	c.stop()
	for i := range count {
		if i != killed {
			c.check(t, i, true)
		}
		c.gone(t, i)
	}
}

// measure logs the figures of a run.
func measure(tb testing.TB, c *cluster, took time.Duration, report relay.Report) (floors, sent float64) {
	size := float64(total(c.blobs))
	floors, sent = took.Seconds()/(size/float64(c.rate)), float64(report.Sent)/size
	tb.Logf("%d hosts, %.1f MiB each at %d KiB/s: %.1f s, which is %.2f times the floor; the control node sent %.2f times "+
		"one host's bytes", len(c.hosts), size/(1<<20), c.rate>>10, took.Seconds(), floors, sent)
	return floors, sent
}

// controller makes the test binary the control node of TestKilledControlNode.
const controller = "KK_RELAY_CONTROLLER"

func TestMain(m *testing.M) {
	if text := os.Getenv(controller); text != "" {
		if err := control(strings.Fields(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// control distributes until it is killed.
func control(args []string) error {
	if len(args) != 4 {
		return errors.New("expected network, number of hosts, folder, program")
	}
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	all, data := blobs()
	c := &cluster{net: &network{id: args[0], count: count}, rate: defaultRate, dir: args[2], blobs: all, data: data}
	if err := c.start(context.Background(), args[3]); err != nil {
		return err
	}
	_, err = c.run(context.Background(), nil)
	return err
}

func TestKilledControlNode(t *testing.T) {
	const count = 8
	c := newCluster(t, count)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %s %s", controller, c.net.id, count, c.dir, build(t)))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range count / 2 {
		if c.waitFor(ctx, i) == "" {
			t.Errorf("node%d has nothing", i)
		}
	}
	for i := range count {
		if len(c.net.listening(t, i)) != 1 {
			t.Errorf("node%d does not listen", i)
		}
	}
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); err == nil {
		t.Error("the control node had finished before it was killed")
	}
	for i := range count {
		for range 500 {
			if c.net.processes(t, i) == "" {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		c.gone(t, i)
		c.check(t, i, false)
	}
}

// BenchmarkDistribution measures against the time that one host's link takes for its bytes: at most 3 times as long for
// 10 hosts, and 4 times for 100, of which the control node sends at most 4 times one host's bytes. KK_RELAY_RATE sets
// another rate of the links, in KiB/s. Figures are medians of three runs.
func BenchmarkDistribution(b *testing.B) {
	for _, s := range []struct {
		count int
		goal  float64
	}{{10, 3}, {100, 4}} {
		b.Run(strconv.Itoa(s.count), func(b *testing.B) {
			program := build(b)
			for b.Loop() {
				var times, floors, sent []float64
				for range 3 {
					took, ratio, share := distribute(b, s.count, program)
					times, floors, sent = append(times, took), append(floors, ratio), append(sent, share)
				}
				b.ReportMetric(median(times)/median(floors), "floor-s")
				b.ReportMetric(median(times), "kk-s")
				b.ReportMetric(median(floors), "ratio")
				b.ReportMetric(s.goal, "goal")
				b.ReportMetric(median(sent), "sent/S")
				b.ReportMetric(4, "goal-sent/S")
				b.ReportMetric(0, "ns/op") // contains the start of the hosts
			}
		})
	}
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// distribute distributes to hosts, and returns how many seconds that took, and what measure returns.
func distribute(b *testing.B, count int, program string) (seconds, floors, sent float64) {
	b.Helper()
	c := newCluster(b, count)
	b.Cleanup(c.stop)
	if err := c.start(b.Context(), program); err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	report, err := c.run(b.Context(), func(e relay.Event) { b.Logf("%5.1f s: %s", time.Since(begin).Seconds(), e) })
	took := time.Since(begin)
	if err = errors.Join(err, report.Err()); err != nil {
		b.Fatal(err)
	}
	floors, sent = measure(b, c, took, report)
	c.stop()
	c.net.remove(b)
	return took.Seconds(), floors, sent
}
