package cluster

import (
	"strings"
	"testing"
)

// Check mode says where it ends on hosts that have nothing, and touches nothing.
func TestCheckModeOnBareHosts(t *testing.T) {
	c := newController(t, groups{"kube_control_plane": {1}, "kube_worker": {1}, "etcd": {1}, "image_registry": {2}},
		"etcd: {deployment_type: external}")
	before := c.listings(t)
	if r := c.run(t, "create", "cluster", "--yes", "--check"); !strings.Contains(r.out, "not set up yet") {
		t.Errorf("check mode does not say what it leaves out\n%s", tail(r.out, 30))
	}
	c.asBefore(t, before)
}

// renews gives the cluster new certificates; it goes on with them. Check mode
// has nothing to foresee before.
func (c *controller) renews(t *testing.T) {
	t.Helper()
	c.run(t, "create", "cluster", "--yes", "--check").unchanged(t)
	const fingerprints = "cd /etc/kubernetes; sha256sum pki/apiserver.crt pki/etcd/server.crt admin.conf"
	before := strings.Fields(c.exec(t, c.first(), fingerprints))
	c.run(t, "certs", "check")
	c.run(t, "certs", "renew")
	c.run(t, "certs", "check")
	after := strings.Fields(c.exec(t, c.first(), fingerprints))
	for i := 0; i < len(before); i += 2 {
		if before[i] == after[i] {
			t.Errorf("%s was not renewed", before[i+1])
		}
	}
	c.exec(t, c.first(), "systemctl start kk-certs-renew.service")
	c.exec(t, c.first(), "systemctl start kk-etcd-backup.service && ls /var/backups/kube_etcd/snapshot-*.db")
	c.nodesReady(t)
}

// hasNewCertificates renews the certificates of all hosts: those of kubeadm, and those
// that kk made for an external etcd and the registry.
func (c *controller) hasNewCertificates(t *testing.T, files map[string][]int) {
	t.Helper()
	fingerprints := func() map[string]string {
		found := map[string]string{}
		for file, hosts := range files {
			for _, n := range hosts {
				found[c.name(n)+":"+file] = c.exec(t, n, "sha256sum <"+file)
			}
		}
		return found
	}
	before := fingerprints()
	checked := c.run(t, "certs", "check").out
	c.run(t, "certs", "renew")
	for file, print := range fingerprints() {
		if print == before[file] {
			t.Errorf("%s was not renewed", file)
		}
		if _, path, _ := strings.Cut(file, ":"); !strings.Contains(checked, path) {
			t.Errorf("certs check does not show %s", path)
		}
	}
	c.run(t, "create", "cluster", "--yes").unchanged(t)
}
