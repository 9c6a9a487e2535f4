package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// cutRules count and drop what leaves the lab, the machine's own address on its bridge included. Packets
// to multicast groups are those of the kernel.
func cutRules(s state) [][]string {
	mark := []string{"-m", "comment", "--comment", s.label() + "-cut", "-j", "DROP"}
	return [][]string{
		append([]string{"mangle", "PREROUTING", "-i", s.label(), "-d", s.gateway()}, mark...),
		append([]string{"mangle", "PREROUTING", "-i", s.label(), "!", "-d", s.subnet(), "-m", "addrtype", "!", "--dst-type",
			"MULTICAST"}, mark...),
	}
}

// outpost is the network namespace from which a cut lab is reached.
func (s state) outpost() string { return s.label() + "-kk" }

// Cut cuts the lab off: its hosts lose their default route, and packets that leave the lab, or go to the
// machine, are dropped and counted. [Lab.Command] runs programs that reach the hosts then.
func (l *Lab) Cut(ctx context.Context) error {
	ns, veth := l.state.outpost(), l.state.label()+"kk"
	steps := []string{
		"netns add " + ns,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", veth, ns),
		fmt.Sprintf("-n %s link set lo up", ns),
		fmt.Sprintf("-n %s address add 10.77.%d.254/24 dev eth0", ns, l.state.Number),
		fmt.Sprintf("-n %s link set eth0 up", ns),
		// What tries to go elsewhere is counted at the bridge.
		fmt.Sprintf("-n %s route add default via %s", ns, l.state.gateway()),
		fmt.Sprintf("link set %s master %s up", veth, l.state.label()),
	}
	for _, h := range l.Hosts {
		steps = append(steps, "-n "+h.namespace()+" route flush default")
	}
	for _, step := range steps {
		if err := run(ctx, "ip", strings.Fields(step)...); err != nil {
			return err
		}
	}
	for _, rule := range cutRules(l.state) {
		if err := iptables(ctx, "-I", rule); err != nil {
			return err
		}
	}
	return nil
}

// Outpost is the network namespace from which a cut lab is reached.
func (l *Lab) Outpost() string { return l.state.outpost() }

// Command is exec.CommandContext for a program in a network that reaches the hosts of a cut lab alone.
func (l *Lab) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", l.state.outpost(), name}, args...)...)
}

// Escaped is how many packets have tried to leave a cut lab.
func (l *Lab) Escaped(ctx context.Context) (int, error) {
	out, err := output(ctx, nil, "iptables", "-w", "-t", "mangle", "-L", "PREROUTING", "-v", "-x", "-n")
	if err != nil {
		return 0, err
	}
	count, rules := 0, 0
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); strings.Contains(line, "/* "+l.state.label()+"-cut */") {
			n, err := strconv.Atoi(fields[0])
			if err != nil {
				return 0, err
			}
			count += n
			rules++
		}
	}
	if rules != len(cutRules(l.state)) {
		return 0, fmt.Errorf("the lab is not cut: %d rules count\n%s", rules, out)
	}
	return count, nil
}

// Connect undoes Cut.
func (l *Lab) Connect(ctx context.Context) error {
	errs := []error{removeCut(ctx, l.state)}
	for _, h := range l.Hosts {
		errs = append(errs, run(ctx, "ip", "-n", h.namespace(), "route", "replace", "default", "via", l.state.gateway()))
	}
	return errors.Join(errs...)
}

func removeCut(ctx context.Context, s state) error {
	var errs []error
	for _, rule := range cutRules(s) {
		for iptables(ctx, "-C", rule) == nil {
			if err := iptables(ctx, "-D", rule); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	if linkExists(s.label() + "kk") {
		errs = append(errs, run(ctx, "ip", "link", "delete", s.label()+"kk"))
	}
	if _, err := os.Stat("/run/netns/" + s.outpost()); err == nil {
		errs = append(errs, run(ctx, "ip", "netns", "delete", s.outpost()))
	}
	return errors.Join(errs...)
}
