package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/test/lab"
)

// faultyLab is three hosts, the first with a name that DNS does not take and
// with too little memory for a control plane.
func faultyLab(t *testing.T) *controller {
	t.Helper()
	c := newController(t)
	name := c.lab.Name + "-precheck"
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), name); err != nil {
			t.Error(err)
		}
	})
	l, err := lab.Up(t.Context(), lab.Options{Name: name, N: 3, Hosts: map[int]lab.HostOptions{
		0: {Hostname: "node_1", MemoryMB: 512},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.lab = l
	return c
}

// cluster writes an inventory of the lab's hosts in their groups; node1 is the control plane.
func (c *controller) cluster(t *testing.T, name, etcd string) string {
	t.Helper()
	var hosts strings.Builder
	for _, h := range c.lab.Hosts {
		fmt.Fprintf(&hosts, "    %s: {internal_ipv4: %s}\n", h.Name, h.Address)
	}
	return c.write(t, name, `all:
  hosts:
`+hosts.String()+`  children:
    kube_control_plane: {hosts: {node1: }}
    kube_worker: {hosts: {node2: , node3: }}
    k8s_cluster: {children: {kube_control_plane: , kube_worker: }}
    etcd: {hosts: {`+etcd+`}}
`)
}

const faultyConfig = `apiVersion: kubekey.kubesphere.io/v1
kind: Config
spec:
  kubernetes:
    kube_version: v1.34.4
    networking: {pod_cidr: 10.233.0.0/16, service_cidr: 10.233.0.0/18}
  etcd: {deployment_type: external}
`

// files lists what is on the hosts where precheck could have left something.
func (c *controller) files(t *testing.T) string {
	t.Helper()
	var all string
	for i := range c.lab.Hosts {
		out, err := c.lab.Exec(t.Context(), i, `find /etc /opt /root /usr/local /var/lib /home -newer /etc/machine-id -type f ! -path '/var/lib/systemd/*' | sort
ls -A /tmp /var/tmp | grep -v systemd-private`)
		if err != nil {
			t.Fatal(err)
		}
		all += out
	}
	return all
}

func TestPrecheckListsAllFindings(t *testing.T) {
	c := faultyLab(t)
	inventory, config := c.cluster(t, "cluster.yaml", "node1: , node2: "), c.write(t, "config.yaml", faultyConfig)
	before := c.files(t)
	for _, more := range [][]string{nil, {"--check"}, nil} {
		args := append([]string{"precheck", "-i", c.lab.Inventory(), "-i", inventory, "-c", config}, more...)
		o := c.kk(t, args...)
		o.exits(t, 2)
		o.recap(t, "node1", "failed=1", "changed=0")
		o.recap(t, "node2", "failed=0", "changed=0")
		o.recap(t, "node3", "failed=0", "changed=0")
		o.reports(t,
			"4 findings on node1",
			"- os: host name", "found: node_1 (in the inventory: node1)", "needed: at most 63 lower-case letters, digits",
			"fix: hostnamectl set-hostname",
			"- os: memory", "found: 512 MB", "needed: 1700 MB, as a host of kube_control_plane",
			"fix: give the host more memory",
			"- etcd: members", "found: 2 in the group etcd (node1, node2)", "needed: an odd number",
			"fix: add a host to the group etcd",
			"- network: overlap", "found: Pods 10.233.0.0/16 and services 10.233.0.0/18", "needed: ranges that share no address",
			"fix: move kubernetes.networking.pod_cidr",
		)
	}
	if after := c.files(t); after != before {
		t.Errorf("precheck left something on the hosts; before:\n%s\nafter:\n%s", before, after)
	}

	o := c.kk(t, "precheck", "network", "-i", c.lab.Inventory(), "-i", inventory, "-c", config)
	o.exits(t, 2)
	o.reports(t, "1 finding on node1", "- network: overlap")

	t.Run("fixed", func(t *testing.T) {
		if _, err := c.lab.Exec(t.Context(), 0, "hostname node1"); err != nil {
			t.Fatal(err)
		}
		o := c.kk(t, "precheck", "-i", c.lab.Inventory(), "-i", c.cluster(t, "fixed.yaml", "node1: "),
			"-e", `{"cluster_require": {"min_memory_mb": {"kube_control_plane": 500}}}`)
		o.exits(t, 0)
		o.recap(t, "node1", "failed=0", "changed=0", "ignored=0")
	})
	t.Run("unreachable", c.hostIsSilent)
	t.Run("sudo", c.sudoIsChecked)
	t.Run("fio", c.diskIsMeasured)
	t.Run("leftovers", c.leftoversAreFound)
}

// hostIsSilent cuts the way from node2 to node3, and back.
func (c *controller) hostIsSilent(t *testing.T) {
	if _, err := c.lab.Exec(t.Context(), 1, "ip route add unreachable "+c.lab.Hosts[2].Address); err != nil {
		t.Fatal(err)
	}
	o := c.kk(t, "precheck", "cluster", "-i", c.lab.Inventory(), "-i", c.cluster(t, "silent.yaml", "node1: "))
	o.exits(t, 2)
	o.recap(t, "node1", "failed=0")
	o.recap(t, "node2", "failed=1")
	o.reports(t, "1 finding on node2", "- cluster: reaching others", "found: no answer from node3")
	if _, err := c.lab.Exec(t.Context(), 1, "ip route del unreachable "+c.lab.Hosts[2].Address); err != nil {
		t.Fatal(err)
	}
}

// sudoIsChecked logs in as one who becomes root, and as one who does not without a password.
func (c *controller) sudoIsChecked(t *testing.T) {
	inventory := c.cluster(t, "sudo.yaml", "node1: ")
	c.kk(t, "precheck", "os", "-l", "node2", "-i", c.lab.Inventory(), "-i", inventory, "-e", "ansible_user=ops").exits(t,
		0)
	o := c.kk(t, "precheck", "os", "-l", "node2", "-i", c.lab.Inventory(), "-i", inventory, "-e", "ansible_user=dev")
	o.exits(t, 2)
	o.reports(t, "- os: becoming root", "found: dev cannot become root", "fix: add the user to /etc/sudoers")
}

// diskIsMeasured runs the real fio, once with a limit that no disk keeps.
func (c *controller) diskIsMeasured(t *testing.T) {
	install := "{ apt-get update -q && apt-get install -q -y --no-install-recommends fio; } >/tmp/apt.log 2>&1 || { cat /tmp/apt.log >&2; exit 1; }"
	if _, err := c.lab.Exec(t.Context(), 1, install); err != nil {
		t.Fatal(err)
	}
	inventory := c.cluster(t, "fio.yaml", "node2: ")
	args := []string{"precheck", "etcd", "-i", c.lab.Inventory(), "-i", inventory, "-e",
		"{etcd: {deployment_type: external}}"}
	o := c.kk(t, append(args, "--set", "cluster_require.etcd_disk_wal_fsync_duration_ns=60000000000")...)
	o.exits(t, 0)
	o = c.kk(t, append(args, "--set", "cluster_require.etcd_disk_wal_fsync_duration_ns=1")...)
	o.exits(t, 2)
	o.reports(t, "1 finding on node2", "- etcd: disk latency", " ms\n", "on a faster disk")
	if out, err := c.lab.Exec(t.Context(), 1, "ls -A /var/lib | grep fio || true"); err != nil || out != "" {
		t.Errorf("left behind: %q, %v", out, err)
	}
}

// leftoversAreFound plants what an earlier installation leaves: data of etcd, a listener.
func (c *controller) leftoversAreFound(t *testing.T) {
	plant := `mkdir -p /var/lib/etcd/member
systemd-socket-activate -l 6443 cat >/dev/null 2>&1 & sleep 0.5`
	if _, err := c.lab.Exec(t.Context(), 0, plant); err != nil {
		t.Fatal(err)
	}
	o := c.kk(t, "precheck", "etcd", "cluster", "-i", c.lab.Inventory(), "-i", c.cluster(t, "leftovers.yaml", "node1: "))
	o.exits(t, 2)
	o.reports(t, "2 findings on node1", "- etcd: earlier data", "- cluster: free ports",
		"found: something listens on 6443")
}

// reports fails the test unless the output has all texts.
func (o outcome) reports(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(o.stdout, text) {
			t.Errorf("the output lacks %q:\n%s", text, o.stdout)
		}
	}
}

func TestHooksRunInOrder(t *testing.T) {
	c := newController(t)
	scripts := filepath.Join(c.work, "workdir/scripts")
	if err := os.MkdirAll(scripts, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pre_install.sh", "pre_install_web.sh", "pre_install_node1.sh", "pre_install_node2.sh",
		"post_install.sh"} {
		text := "#!/bin/sh\necho " + name + " >>/tmp/hooks\n"
		if name == "pre_install_node2.sh" {
			text += "echo the disk is missing >&2\nexit 3\n"
		}
		c.write(t, "workdir/scripts/"+name, text)
	}
	groups := c.write(t, "groups.yaml", "web: {hosts: {node1: }}\n")
	args := []string{"run", "playbooks/pre_hook.yaml", "-i", c.lab.Inventory(), "-i", groups, "--workdir",
		filepath.Join(c.work, "workdir")}

	c.kk(t, append(args, "--check")...).exits(t, 0)
	for i := range c.lab.Hosts {
		if out, err := c.lab.Exec(t.Context(), i, "ls -d /etc/kubekey /tmp/hooks 2>/dev/null || true"); err != nil ||
			out != "" {
			t.Errorf("check mode made %q, %v", out, err)
		}
	}

	o := c.kk(t, args...)
	o.exits(t, 2)
	o.recap(t, "node1", "failed=0")
	o.recap(t, "node2", "failed=1")
	o.reports(t, "the disk is missing")
	for i, want := range []string{"pre_install.sh\npre_install_web.sh\npre_install_node1.sh\n",
		"pre_install.sh\npre_install_node2.sh\n", "pre_install.sh\n"} {
		out, err := c.lab.Exec(t.Context(), i, "cat /tmp/hooks")
		if err != nil || out != want {
			t.Errorf("%s ran %q, %v, want %q", c.lab.Hosts[i].Name, out, err, want)
		}
	}
	out, err := c.lab.Exec(t.Context(), 0, "stat -c '%n %a %U' /etc/kubekey/scripts /etc/kubekey/scripts/pre_install_node1.sh")
	if want := "/etc/kubekey/scripts 755 root\n/etc/kubekey/scripts/pre_install_node1.sh 755 root\n"; err != nil ||
		out != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}
