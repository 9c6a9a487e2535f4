package simulated

import (
	"fmt"
	"slices"
	"strings"
)

// Layout says how many hosts there are and what they do.
type Layout struct {
	Family        string // v4, v6 or dual
	ControlPlanes int
	Workers       int
	Etcd          int // hosts of the group etcd, from the first control plane on; 0 leaves the group out
	Registries    int
	NFS           bool
	Isolated      bool // the last node has no default route
}

// Hosts are the names of the hosts, control planes first.
func (l Layout) Hosts() []string {
	var out []string
	for i := range l.ControlPlanes + l.Workers {
		out = append(out, fmt.Sprintf("n%d", i+1))
	}
	return out
}

// Inventory is the inventory as a file has it.
func (l Layout) Inventory() string {
	var b strings.Builder
	b.WriteString("all:\n  hosts:\n")
	hosts := l.Hosts()
	all := slices.Clone(hosts)
	var registries []string
	for i := range l.Registries {
		registries = append(registries, fmt.Sprintf("registry%d", i+1))
	}
	all = append(all, registries...)
	if l.NFS {
		all = append(all, "nfs1")
	}
	for i, h := range all {
		isolated := ""
		if l.Isolated && i == len(hosts)-1 {
			isolated = ", simulated_isolated: true"
		}
		fmt.Fprintf(&b, "    %s: {%s%s}\n", h, l.addresses(i+1), isolated)
	}
	b.WriteString("  children:\n    k8s_cluster: {children: {kube_control_plane: {}, kube_worker: {}}}\n")
	for _, g := range []struct {
		name  string
		hosts []string
	}{
		{"kube_control_plane", hosts[:l.ControlPlanes]}, {"kube_worker", hosts[l.ControlPlanes:]}, {"etcd", hosts[:l.Etcd]},
		{"image_registry", registries},
		{"nfs", slices.DeleteFunc(slices.Clone(all), func(h string) bool { return h != "nfs1" })},
	} {
		if len(g.hosts) > 0 {
			fmt.Fprintf(&b, "    %s: {hosts: {%s: {}}}\n", g.name, strings.Join(g.hosts, ": {}, "))
		}
	}
	return b.String()
}

func (l Layout) addresses(i int) string {
	v4 := fmt.Sprintf("internal_ipv4: 10.0.%d.%d", i/250, i%250)
	v6 := fmt.Sprintf("internal_ipv6: 'fd00::%x'", i)
	switch l.Family {
	case "v6":
		return v6
	case "dual":
		return v4 + ", " + v6
	}
	return v4
}
