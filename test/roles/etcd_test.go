package roles

import (
	"fmt"
	"strings"
	"testing"
)

// etcdctl runs etcdctl on a host with the settings that the role leaves for root.
func etcdctl(t *testing.T, host int, command string) string {
	t.Helper()
	return on(t, host, "set -a; . /etc/kubekey/etcd/etcdctl.env; set +a; /usr/local/bin/etcdctl "+command)
}

// etcdComponent puts etcd into the cache and returns its entry of the catalog.
func (p *project) etcdComponent(t *testing.T) string {
	t.Helper()
	dir, version := upstream(t, "etcd")
	name := "etcd-" + version + "-linux-amd64"
	p.command(t, "cp", "-r", dir, p.path(name))
	p.archive(t, "etcd.tar.gz", p.dir, name)
	return fmt.Sprintf("etcd: {version: %s, arch: {amd64: {file: etcd.tar.gz}}}", version)
}

// catalogOf is a config with a catalog of components.
func catalogOf(components ...string) string {
	return "catalog: {components: {" + strings.Join(components, ", ") + "}}\n"
}

func etcdGroup(names ...string) string {
	return "    etcd: {hosts: {" + strings.Join(names, ": , ") + ": }}\n"
}

// started is when systemd started etcd last.
func started(t *testing.T, host int) string {
	t.Helper()
	return on(t, host, "systemctl show -P ActiveEnterTimestampMonotonic etcd")
}

func members(t *testing.T, host int) int {
	t.Helper()
	return strings.Count(etcdctl(t, host, "member list"), "started")
}

// etcd in a control plane is what kubeadm runs; here a service of the test stands for its Pod.
func TestBackupOfEtcdInControlPlane(t *testing.T) {
	p := newProject(t)
	p.etcdPKI(t)
	config := catalogOf(p.etcdComponent(t)) + "etcd: {backup: {keep: 2}}\n"
	groups := "    kube_control_plane: {hosts: {node1: }}\n"
	before := on(t, 0, leftOfBackup)
	p.write(t, "playbooks/kubeadm.yaml", `
- name: Run etcd as kubeadm would
  hosts: node1
  tasks:
    - copy: {src: "{{ program }}", dest: /root/etcd, mode: "0755"}
    - file: {path: /etc/kubernetes/pki/etcd, state: directory}
    - copy: {src: "{{ kk_work_dir }}/clusters/kk/pki/etcd/{{ item.key }}", dest: "/etc/kubernetes/pki/etcd/{{ item.value }}"}
      loop: "{{ files | dict2items }}"
`)
	dir, _ := upstream(t, "etcd")
	p.kk(t, "kubeadm", groups, config, "-e", "program="+dir+"/etcd", "-e", `{"files": {"ca.crt": "ca.crt",
		"server-node1.crt": "server.crt", "server-node1.key": "server.key", "client.crt": "healthcheck-client.crt",
		"client.key": "healthcheck-client.key"}}`).ok()
	const pki = "/etc/kubernetes/pki/etcd/"
	on(t, 0, "systemd-run --unit test-etcd /root/etcd --data-dir /run/test-etcd --listen-client-urls https://127.0.0.1:2379 "+
		"--advertise-client-urls https://127.0.0.1:2379 --cert-file "+pki+"server.crt --key-file "+pki+"server.key "+
		"--trusted-ca-file "+pki+"ca.crt --client-cert-auth")
	defer on(t, 0, "systemctl stop test-etcd; rm -rf /root/etcd /run/test-etcd /etc/kubernetes")

	p.role(t, "etcd", "stacked", "kube_control_plane", groups, config, "--check").ok()
	p.role(t, "etcd", "stacked", "kube_control_plane", groups, config).ok()
	p.role(t, "etcd", "stacked", "kube_control_plane", groups, config).changedNothing()
	p.role(t, "etcd", "stacked", "kube_control_plane", groups, config, "--check").changedNothing()
	etcdctl(t, 0, "put greeting hello")
	on(t, 0, "for n in 1 2 3; do systemctl start kk-etcd-backup.service && sleep 1.1 || exit; done")
	if got := on(t, 0, "systemctl is-active kk-etcd-backup.timer; ls -A /var/backups/kube_etcd | wc -l; ls /usr/local/bin/etcd"+
		" 2>/dev/null; systemd-analyze verify /etc/systemd/system/kk-etcd-backup.* 2>&1"); got != "active\n2" {
		t.Errorf("the timer, the number of snapshots and the rest are %q", got)
	}
	if got := on(t, 0, "cd /var/backups/kube_etcd; /usr/local/bin/etcdutl snapshot restore $(ls | tail -1) --data-dir /run/restored >/dev/null"+
		" 2>&1; grep -a -c greeting /run/restored/member/snap/db; rm -r /run/restored"); got == "0" {
		t.Error("the snapshot does not have what was written")
	}

	p.role(t, "etcd", "stacked", "kube_control_plane", groups, config, "--set", "etcd.backup.enabled=false").ok()
	if got := on(t, 0, leftOfBackup+"; ls /var/backups/kube_etcd | wc -l"); got != before+"\n2" {
		t.Errorf("without backups, left are %q", got)
	}
	p.role(t, "etcd", "stacked", "kube_control_plane", groups, config, "--set", "etcd.backup.enabled=false").changedNothing()
	p.role(t, "etcd", "stacked", "kube_control_plane", groups, config).ok()
	p.role(t, "etcd", "delete_stacked", "kube_control_plane", groups, config, "-e", "delete_with_data=true").ok()
	if got := on(t, 0, leftOfBackup); got != before {
		t.Errorf("left are %q", got)
	}
}

const leftOfBackup = "ls -d /etc/systemd/system/*etcd* /etc/systemd/system/timers.target.wants/*etcd* /usr/local/bin/*etcd* " +
	"/etc/kubekey/etcd /var/backups/kube_etcd/none 2>/dev/null; systemctl list-timers --all | grep -c etcd || true"

// One cluster lives through it all: it is formed, grows, is tuned, saved,
// restored, loses a member, and is removed.
func TestEtcd(t *testing.T) {
	p := newProject(t)
	p.etcdPKI(t)
	config := "etcd: {deployment_type: external, backup: {keep: 2}}\n" +
		catalogOf(p.etcdComponent(t))
	one, two, three := etcdGroup("node1"), etcdGroup("node1", "node2"), etcdGroup("node1", "node2", "node3")

	p.role(t, "etcd", "main", "etcd", one, config, "--check").ok()
	p.role(t, "etcd", "main", "etcd", one, config).ok()
	etcdctl(t, 0, "put greeting hello")

	t.Run("grows by one and two members and keeps its data", func(t *testing.T) {
		before := started(t, 0)
		p.role(t, "etcd", "main", "etcd", two, config).ok()
		p.role(t, "etcd", "main", "etcd", three, config).ok()
		for i := range hosts.Hosts {
			if got := etcdctl(t, i, "get greeting --print-value-only --command-timeout=5s"); got != "hello" ||
				members(t, i) != 3 {
				t.Errorf("node%d has %q and %d members", i+1, got, members(t, i))
			}
		}
		if after := started(t, 0); after != before {
			t.Error("the first member was started again")
		}
		p.role(t, "etcd", "main", "etcd", three, config).changedNothing()
		p.role(t, "etcd", "main", "etcd", three, config, "--check").changedNothing()
	})

	t.Run("is started again for new settings, also those of an interrupted run", func(t *testing.T) {
		config = strings.Replace(config, "backup:", "snapshot_count: 5000, backup:", 1)
		before := started(t, 2)
		p.role(t, "etcd", "install", "etcd", three, config).ok()
		p.role(t, "etcd", "main", "etcd", three, config).ok()
		if got := on(t, 2, "tr '\\0' '\\n' </proc/$(systemctl show -P MainPID etcd)/environ | grep SNAPSHOT_COUNT"); got != "ETCD_SNAPSHOT_COUNT=5000" || started(t, 2) == before {
			t.Errorf("etcd runs with %s", got)
		}
		p.role(t, "etcd", "main", "etcd", three, config).changedNothing()
	})

	t.Run("refuses strangers and hides its keys", func(t *testing.T) {
		on(t, 0, "! curl -sk --max-time 5 https://127.0.0.1:2379/version")
		if got := on(t, 0, "stat -c %a /etc/ssl/etcd/server.key /etc/ssl/etcd/client.key /etc/kubekey/etcd/etcdctl.env /var/lib/etcd /var/backups/kube_etcd"); got != "600\n600\n600\n700\n700" {
			t.Errorf("modes %q", got)
		}
	})

	t.Run("is saved by its unit, and comes back from a snapshot", func(t *testing.T) {
		units := "/etc/systemd/system/etcd.service /etc/systemd/system/kk-etcd-backup.service /etc/systemd/system/kk-etcd-backup.timer"
		if got := on(t, 0, "systemd-analyze verify "+units+
			" 2>&1; sh -n /usr/local/bin/kk-etcd-backup; systemctl is-active kk-etcd-backup.timer"); got != "active" {
			t.Error(got)
		}
		on(t, 0, "for n in 1 2 3; do systemctl start kk-etcd-backup.service && sleep 1.1 || exit; done")
		snapshots := strings.Fields(on(t, 0, "ls -A /var/backups/kube_etcd"))
		if len(snapshots) != 2 || !strings.HasPrefix(snapshots[0], "snapshot-") {
			t.Fatalf("kept %q, want two snapshots", snapshots)
		}
		p.write(t, "snapshot.db", on(t, 0, "base64 /var/backups/kube_etcd/"+snapshots[1]))
		p.write(t, "snapshot.db", p.command(t, "base64", "-d", "snapshot.db"))

		etcdctl(t, 0, "put greeting lost")
		p.role(t, "etcd", "restore", "etcd", three, config, "-e", "etcd_snapshot="+p.path("snapshot.db")).ok()
		for i := range hosts.Hosts {
			if got := etcdctl(t, i, "get greeting --print-value-only"); got != "hello" || members(t, i) != 3 {
				t.Errorf("node%d has %q and %d members", i+1, got, members(t, i))
			}
		}
		p.role(t, "etcd", "main", "etcd", three, config).changedNothing()
	})

	t.Run("refuses to lose its majority", func(t *testing.T) {
		on(t, 1, "systemctl stop etcd")
		r := p.role(t, "etcd", "remove_member", "node1", three, config, "-e", `{"etcd_remove": ["node3"]}`)
		if r.code != 2 || !strings.Contains(r.output, "would lose its majority") {
			t.Errorf("exit code %d\n%s", r.code, r.output)
		}
		on(t, 1, "systemctl start etcd")
	})

	t.Run("loses a member and is removed, its data last", func(t *testing.T) {
		p.role(t, "etcd", "remove_member", "node1", three, config, "-e", `{"etcd_remove": ["node3"]}`).ok()
		p.role(t, "etcd", "remove_member", "node1", three, config, "-e", `{"etcd_remove": ["node3"]}`).changedNothing()
		if n := members(t, 0); n != 2 {
			t.Errorf("%d members are left", n)
		}
		p.role(t, "etcd", "delete", "etcd", three, config).ok()
		gone := "ls -d /etc/systemd/system/*etcd* /usr/local/bin/*etcd* /etc/ssl/etcd /etc/kubekey/etcd 2>/dev/null; pgrep -x etcd; ls -d /var/lib/etcd/member"
		if got := on(t, 0, gone); got != "/var/lib/etcd/member" {
			t.Errorf("left are %q, want the data", got)
		}
	})
}
