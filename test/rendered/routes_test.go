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
)

// scope is variables by name.
type scope map[string]any

func (s scope) Lookup(name string) (any, bool, error) {
	v, ok := s[name]
	return v, ok, nil
}

// TestRoutesToServices starts the kubelet of a host without a default route, whose addresses are on its loopback
// interface too, and deletes the node.
func TestRoutesToServices(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	need(t, "ip")
	cidrs := []any{"10.96.0.0/16", "fd10::/112"}
	render := func(text string, s scope) string {
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
	for line := range strings.Lines(render(string(unit), scope{"kubernetes_service_routes": cidrs, "cluster_ipv4": "10.0.0.1",
		"cluster_ipv6": "fd00:0:0::1"})) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStartPre="); ok {
			script = append(script, command)
			starts++
		}
	}
	for _, task := range tasks {
		if show, ok := task.Command.(string); ok && strings.Contains(show, "route show") {
			for _, cidr := range cidrs {
				script = append(script, render(show, scope{"item": cidr}))
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
