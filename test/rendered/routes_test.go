package rendered

import (
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"kubekey/builtin"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// scope is variables by name.
type scope map[string]any

func (s scope) Lookup(name string) (any, bool, error) {
	v, ok := s[name]
	return v, ok, nil
}

func render(t *testing.T, text string, s scope) string {
	t.Helper()
	parsed, err := template.New(expr.New(expr.Options{}, library.Standard()), source.Tree{}).String(text, source.Pos{})
	if err == nil {
		text, err = parsed.Text(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestInterfaceOfTheAddress finds the interface of a host without a default route, in both families.
func TestInterfaceOfTheAddress(t *testing.T) {
	var vars map[string]any
	readYAML(t, "roles/cluster/vars/main.yaml", &vars)
	address := func(text string) any { return value.NewDict("address", text) }
	facts := value.NewDict("hostname", "h1", "interfaces", []any{"lo", "eth0", "eth1_5"},
		"lo", value.NewDict("device", "lo", "ipv4", address("127.0.0.1"), "ipv6", []any{address("::1")}),
		"eth0", value.NewDict("device", "eth0"),
		"eth1_5", value.NewDict("device", "eth1.5", "ipv4", address("10.0.0.9"), "ipv4_secondaries", []any{address("10.0.0.1")},
			"ipv6", []any{address("fe80::1"), address("fd00::1")}))
	for address, want := range map[string]string{"10.0.0.9": "eth1.5", "10.0.0.1": "eth1.5", "fd00::1": "eth1.5",
		"127.0.0.1": "lo", "10.0.0.2": "", "": ""} {
		got := render(t, vars["cluster_interface"].(string), scope{"ansible_facts": facts, "cluster_address": address})
		if got != want {
			t.Errorf("%q is on %q instead of %q", address, got, want)
		}
	}
}

// TestRoutesToServices starts the kubelet of a host without a default route, whose addresses are on its loopback
// interface too, and deletes the node.
func TestRoutesToServices(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	need(t, "ip")
	cidrs := []any{"10.96.0.0/16", "fd10::/112"}
	unit, err := fs.ReadFile(builtin.FS(), "roles/kubernetes/templates/20-routes.conf.j2")
	if err != nil {
		t.Fatal(err)
	}
	var tasks []struct{ Command any }
	readYAML(t, "roles/kubernetes/tasks/delete.yaml", &tasks)
	script := []string{"ip link set lo up", "ip link add eth0 type veth peer name eth1", "ip link set eth0 up",
		"ip link set eth1 up", "ip addr add 10.0.0.1/32 dev lo", "ip addr add fd00::1/128 dev lo",
		"ip addr add 10.0.0.1/24 dev eth0", "ip addr add fd00::1/64 dev eth0 nodad"}
	starts := 0
	for line := range strings.Lines(render(t, string(unit), scope{"kubernetes_service_routes": cidrs, "cluster_ipv4": "10.0.0.1",
		"cluster_ipv6": "fd00:0:0::1"})) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStartPre="); ok {
			script = append(script, command)
			starts++
		}
	}
	for _, task := range tasks {
		if show, ok := task.Command.(string); ok && strings.Contains(show, "route show") {
			for _, cidr := range cidrs {
				script = append(script, render(t, show, scope{"item": cidr}))
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", "sh", "-euc", strings.Join(script, "\n"))
	out, err := cmd.CombinedOutput()
	if want := "10.96.0.0/16 dev eth0 scope link \nfd10::/112 dev eth0 metric 1024 pref medium\n"; starts != 2 || err != nil ||
		string(out) != want {
		t.Errorf("%d starts; shown are %q instead of %q: %v", starts, out, want, err)
	}
}
