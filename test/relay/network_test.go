package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// network is hosts as network namespaces on a bridge, which is in a namespace too: nothing of it is seen outside. The
// links have a rate, both ways, by token buckets.
type network struct {
	id    string
	count int
}

// newNetwork makes a network whose links carry rate bytes per second. It is removed when the test ends.
func newNetwork(tb testing.TB, count int, rate int64) *network {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("network namespaces need root")
	}
	for _, name := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(name); err != nil {
			tb.Skipf("%s is missing: install iproute2", name)
		}
	}
	n := &network{id: fmt.Sprintf("kkr%d", os.Getpid()), count: count}
	tb.Cleanup(func() { n.remove(tb) })
	n.ip(tb, "", "netns add "+n.bridge())
	n.ip(tb, n.bridge(), "link add br0 type bridge", "link set br0 up", "link set lo up")
	// The kernel learns 1024 neighbors at most, in all namespaces together; what it is given does not count.
	var names, links, limits, neighbors []string
	limit := fmt.Sprintf("root tbf rate %dbps burst 16kb limit 256kb", rate)
	for i := range count {
		names = append(names, "netns add "+n.name(i))
		links = append(links, fmt.Sprintf("link add v%d type veth peer name eth0 address %s netns %s", i, hardware(i), n.name(i)),
			fmt.Sprintf("link set v%d master br0 up", i))
		neighbors = append(neighbors, fmt.Sprintf("neigh replace %s lladdr %s dev eth0 nud permanent", n.address(i), hardware(i)))
		limits = append(limits, fmt.Sprintf("qdisc add dev v%d %s", i, limit))
	}
	n.ip(tb, "", names...)
	n.ip(tb, n.bridge(), links...)
	n.batch(tb, "tc", n.bridge(), limits)
	for i := range count {
		n.ip(tb, n.name(i), "link set lo up", "addr add "+n.address(i)+"/16 dev eth0", "link set eth0 up")
		n.ip(tb, n.name(i), neighbors...)
		n.batch(tb, "tc", n.name(i), []string{"qdisc add dev eth0 " + limit})
	}
	return n
}

func (n *network) bridge() string       { return n.id + "b" }
func (n *network) name(i int) string    { return fmt.Sprintf("%sn%d", n.id, i) }
func (n *network) address(i int) string { return fmt.Sprintf("10.77.%d.%d", i/200, i%200+1) }

func hardware(i int) string { return fmt.Sprintf("02:00:00:00:%02x:%02x", i/256, i%256) }

func (n *network) ip(tb testing.TB, namespace string, lines ...string) {
	tb.Helper()
	n.batch(tb, "ip", namespace, lines)
}

// batch runs lines of ip or tc in a namespace, in one process.
func (n *network) batch(tb testing.TB, program, namespace string, lines []string) {
	tb.Helper()
	args := []string{"-batch", "-"}
	if namespace != "" {
		args = append([]string{"-n", namespace}, args...)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

// command runs a program on a host.
func (n *network) command(ctx context.Context, i int, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", n.name(i)}, args...)...)
}

// isolate makes a host neither answer others nor reach them, as a firewall that drops everything would.
func (n *network) isolate(tb testing.TB, i int) {
	n.ip(tb, n.name(i), "route del 10.77.0.0/16 dev eth0", "route add blackhole 10.77.0.0/16")
}

// listening returns the lines of listening TCP sockets on a host.
func (n *network) listening(tb testing.TB, i int) []string {
	tb.Helper()
	out, err := n.command(context.Background(), i, "cat", "/proc/net/tcp", "/proc/net/tcp6").Output()
	if err != nil {
		tb.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(out)) {
		const listen = "0A"
		if f := strings.Fields(line); len(f) > 3 && f[3] == listen {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// processes returns the IDs of the processes on a host.
func (n *network) processes(tb testing.TB, i int) string {
	tb.Helper()
	out, err := exec.Command("ip", "netns", "pids", n.name(i)).Output()
	if err != nil {
		tb.Fatal(err)
	}
	return string(bytes.TrimSpace(out))
}

// remove kills what runs on the hosts, and removes them.
func (n *network) remove(tb testing.TB) {
	for i := range n.count + 1 {
		name := n.bridge()
		if i < n.count {
			name = n.name(i)
		}
		if _, err := os.Stat("/run/netns/" + name); err != nil {
			continue
		}
		pids, _ := exec.Command("ip", "netns", "pids", name).Output() // it is removed below
		for _, pid := range strings.Fields(string(pids)) {
			_ = exec.Command("kill", "-KILL", pid).Run() // it may have ended
		}
		if out, err := exec.Command("ip", "netns", "delete", name).CombinedOutput(); err != nil {
			tb.Errorf("delete %s: %v\n%s", name, err, out)
		}
	}
}
