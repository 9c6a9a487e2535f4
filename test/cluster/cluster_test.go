package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// create builds the cluster, looks at it, and builds it again: nothing may
// change then, in less than a quarter of the time.
func (c *controller) create(t *testing.T) {
	t.Helper()
	c.hooks(t)
	first := c.run(t, "create", "cluster", "--yes")
	c.hooksRan(t)
	c.healthy(t)
	c.again(t, first.took)
}

func (c *controller) again(t *testing.T, first time.Duration) {
	t.Helper()
	second := c.run(t, "create", "cluster", "--yes")
	second.unchanged(t)
	c.hooksRan(t)
	if second.took > first/4 {
		t.Errorf("the second run took %s, the first %s", second.took, first)
	}
}

// destroy takes the cluster off its hosts, and everything that came with it.
func (c *controller) destroy(t *testing.T, before map[int]listing) {
	t.Helper()
	c.run(t, "delete", "cluster", "--yes", "--all", "--with-data")
	c.asBefore(t, before)
}

func TestAllInOne(t *testing.T) {
	c := newController(t, groups{"kube_control_plane": {1}, "kube_worker": {1}}, "")
	before := c.listings(t)
	c.create(t)
	c.destroy(t, before)
}

func TestControlPlanesWithExternalEtcd(t *testing.T) {
	start := groups{"kube_control_plane": {1, 2, 3}, "kube_worker": {1, 2, 3}, "etcd": {1, 2, 3}}
	grown := groups{"kube_control_plane": {1, 2, 3}, "kube_worker": {1, 2, 3, 4}, "etcd": {1, 2, 3}}
	shrunk := groups{"kube_control_plane": {1, 2}, "kube_worker": {1, 2, 4}, "etcd": {1, 2}}
	c := newController(t, grown, `
kubernetes: {control_plane_endpoint: {type: haproxy}}
etcd: {deployment_type: external}
`)
	before := c.listings(t)
	c.regroup(t, start)
	c.create(t)
	if got := c.etcdMembers(t); !slices.Equal(got, []string{"node1", "node2", "node3"}) {
		t.Errorf("members of etcd are %q", got)
	}

	c.regroup(t, grown)
	c.run(t, "add", "nodes", "node4", "--yes")
	c.healthy(t)

	c.run(t, "delete", "nodes", "node3", "--yes", "--with-data")
	c.regroup(t, shrunk)
	c.healthy(t)
	if got := c.etcdMembers(t); !slices.Equal(got, []string{"node1", "node2"}) {
		t.Errorf("members of etcd are %q after node3 was deleted", got)
	}
	c.refusesToLoseControlPlanes(t)

	c.regroup(t, grown)
	c.run(t, "add", "nodes", "node3", "--yes")
	c.healthy(t)
	c.destroy(t, before)
}

// refusesToLoseControlPlanes tries to delete all that are left.
func (c *controller) refusesToLoseControlPlanes(t *testing.T) {
	t.Helper()
	if r := c.try(t.Context(), t, "delete", "nodes", "node1", "node2", "--yes"); r.code == 0 || !strings.Contains(r.out, "--force") {
		t.Errorf("deleting all control planes: exit code %d\n%s", r.code, tail(r.out, 30))
	}
	c.nodesReady(t)
}

func TestImagesComeFromTheRegistryGroup(t *testing.T) {
	c := newController(t, groups{"kube_control_plane": {1}, "kube_worker": {1, 2}, "image_registry": {3}}, "")
	before := c.listings(t)
	c.create(t)
	for _, n := range c.nodes() {
		for image := range strings.FieldsSeq(c.exec(t, n, "/usr/local/bin/crictl ps -q >/dev/null; /usr/local/bin/ctr -n k8s.io images ls -q")) {
			if !strings.HasPrefix(image, "registry.kk.local/") && !strings.HasPrefix(image, "sha256:") {
				t.Errorf("%s pulled %s, which is not from the cluster's registry", c.name(n), image)
			}
		}
	}
	if out := c.exec(t, c.first(), fmt.Sprintf("curl -sk -o /dev/null -w '%%{http_code}' https://%s/v2/", c.lab.Hosts[2].Address)); out != "401" {
		t.Errorf("the registry answers %s to one who does not log in, want 401", out)
	}
	c.destroy(t, before)
}
