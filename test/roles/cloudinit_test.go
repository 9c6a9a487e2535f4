package roles

import (
	"context"
	"strings"
	"testing"
)

// cloudInit is as images of clouds have it: /etc/hosts is written at each boot.
const cloudInit = `export DEBIAN_FRONTEND=noninteractive
cp -a /etc/hosts /root/hosts.before
{ apt-get update -q && apt-get install -q -y --no-install-recommends cloud-init; } >/tmp/apt.log 2>&1 || cat /tmp/apt.log
printf 'datasource_list: [None]\nmanage_etc_hosts: true\ncloud_init_modules: []\n' >/etc/cloud/cloud.cfg.d/50-lab.cfg
cloud-init init >/dev/null 2>&1`

// cloudInitBoots does what cloud-init does at boot about names.
const cloudInitBoots = `for m in set_hostname update_hostname update_etc_hosts; do
	cloud-init single --name "$m" --frequency always >/dev/null 2>&1 || echo "$m failed"
done
`

func TestCloudInitKeepsTheNames(t *testing.T) {
	p := newProject(t)
	on(t, 0, osPackages)
	on(t, 0, cloudInit)
	t.Cleanup(func() {
		undo := `DEBIAN_FRONTEND=noninteractive apt-get purge -q -y cloud-init >/dev/null
rm -rf /etc/cloud /var/lib/cloud; hostname node1; echo node1 >/etc/hostname; cp -a /root/hosts.before /etc/hosts`
		if _, err := hosts.Exec(context.WithoutCancel(t.Context()), 0, undo); err != nil {
			t.Error(err)
		}
	})
	on(t, 0, "echo 10.9.9.9 mine >>/etc/hosts")
	if got := on(t, 0, cloudInitBoots+"grep mine /etc/hosts || true"); got != "" {
		t.Fatalf("cloud-init on this host does not write /etc/hosts: %s", got)
	}
	before := on(t, 0, listing)

	p.role(t, "os", "main", "k8s_cluster", allNodes, "", "--limit", "node1").ok()
	want := on(t, 0, "cat /etc/hosts; hostname")
	if !strings.Contains(want, "lb.kk.local") {
		t.Errorf("/etc/hosts is\n%s", want)
	}
	if got := on(t, 0, cloudInitBoots+"cat /etc/hosts; hostname"); got != want {
		t.Errorf("cloud-init changed\n%s", difference(want, got))
	}
	p.role(t, "os", "main", "k8s_cluster", allNodes, "", "--limit", "node1").changedNothing()
	p.role(t, "os", "delete", "k8s_cluster", allNodes, "", "--limit", "node1").ok()
	if after := on(t, 0, "rmdir /etc/kubekey; "+listing); after != before {
		t.Errorf("the host differs from before:\n%s", difference(before, after))
	}
}
