package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// natRules let the hosts reach beyond the machine, each as iptables wants it
// after -A, -C or -D.
func natRules(s state) [][]string {
	return [][]string{
		{"nat", "POSTROUTING", "-s", s.subnet(), "!", "-d", s.subnet(), "-j", "MASQUERADE"},
		{"filter", "FORWARD", "-i", s.label(), "-j", "ACCEPT"},
		{"filter", "FORWARD", "-o", s.label(), "-j", "ACCEPT"},
	}
}

func iptables(ctx context.Context, verb string, rule []string) error {
	return run(ctx, "iptables", append([]string{"-w", "-t", rule[0], verb}, rule[1:]...)...)
}

// ensureNetwork makes the bridge and the NAT rules.
func ensureNetwork(ctx context.Context, s state) error {
	if !linkExists(s.label()) {
		if err := run(ctx, "ip", "link", "add", s.label(), "type", "bridge"); err != nil {
			return err
		}
	}
	if err := run(ctx, "ip", "address", "replace", s.gateway()+"/24", "dev", s.label()); err != nil {
		return err
	}
	if err := run(ctx, "ip", "link", "set", s.label(), "up"); err != nil {
		return err
	}
	for _, rule := range natRules(s) {
		if iptables(ctx, "-C", rule) == nil {
			continue
		}
		if err := iptables(ctx, "-A", rule); err != nil {
			return err
		}
	}
	return nil
}

func removeNetwork(ctx context.Context, s state) error {
	var errs []error
	for _, rule := range natRules(s) {
		for iptables(ctx, "-C", rule) == nil {
			if err := iptables(ctx, "-D", rule); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	errs = append(errs, removeCut(ctx, s))
	if linkExists(s.label()) {
		errs = append(errs, run(ctx, "ip", "link", "delete", s.label()))
	}
	return errors.Join(errs...)
}

func linkExists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

// namespace is the host's network namespace; the lab's number keeps two labs apart.
func (h *Host) namespace() string { return h.lab.state.label() + "-" + h.Name }

// veth is the end of the host's cable at the bridge.
func (h *Host) veth() string { return h.lab.state.label() + "n" + strconv.Itoa(h.number) }

// mac is the address of the host's network card, which it keeps.
func (h *Host) mac() string {
	ip := netip.MustParseAddr(h.Address).As4()
	return fmt.Sprintf("02:00:%02x:%02x:%02x:%02x", ip[0], ip[1], ip[2], ip[3])
}

// ensureNetwork makes the host's namespace and plugs it into the bridge.
func (h *Host) ensureNetwork(ctx context.Context) error {
	if _, err := os.Stat("/sys/class/net/" + h.veth() + "/master"); err == nil {
		return nil // plugging in is the last step, so the others are done
	}
	if err := h.removeNetwork(ctx); err != nil {
		return err
	}
	if h.options().OwnKernel {
		return h.plugTap(ctx)
	}
	ns, bridge := h.namespace(), h.lab.state.label()
	steps := []string{
		"netns add " + ns,
		fmt.Sprintf("link add %s type veth peer name eth0 address %s netns %s", h.veth(), h.mac(), ns),
		fmt.Sprintf("-n %s link set lo up", ns),
		fmt.Sprintf("-n %s address add %s/24 dev eth0", ns, h.Address),
	}
	for _, extra := range h.options().Addresses {
		steps = append(steps, fmt.Sprintf("-n %s address add %s dev eth0", ns, extra))
	}
	steps = append(steps,
		fmt.Sprintf("-n %s link set eth0 up", ns),
		fmt.Sprintf("-n %s route add default via %s", ns, h.lab.state.gateway()),
		fmt.Sprintf("link set %s master %s up", h.veth(), bridge),
	)
	for _, step := range steps {
		if err := run(ctx, "ip", strings.Fields(step)...); err != nil {
			return err
		}
	}
	return nil
}

func (h *Host) removeNetwork(ctx context.Context) error {
	if linkExists(h.veth()) {
		if err := run(ctx, "ip", "link", "delete", h.veth()); err != nil {
			return err
		}
	}
	if _, err := os.Stat("/run/netns/" + h.namespace()); err != nil {
		return nil
	}
	return run(ctx, "ip", "netns", "delete", h.namespace())
}

// removeEmptyNamespaceFolder takes back the mount that "ip netns add" leaves at
// /run/netns, unless someone else's namespaces are there.
func removeEmptyNamespaceFolder() error {
	const folder = "/run/netns"
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		return nil
	}
	for unix.Unmount(folder, 0) == nil {
	}
	return os.Remove(folder)
}
