package cluster

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Everything comes out of one file while the network is cut: a cluster of two nodes, the same again, and
// a node more.
func TestOffline(t *testing.T) {
	inTime(t, 10*time.Minute)
	first := groups{"kube_control_plane": {1}, "kube_worker": {1, 2}}
	grown := groups{"kube_control_plane": {1}, "kube_worker": {1, 2, 3}}
	c := newController(t, grown, "")
	before := c.listings(t)
	file := filepath.Join(t.TempDir(), "kubernetes.tar")
	c.run(t, "artifact", "export", "-o", file, "--os", "debian-12")
	c.regroup(t, first)
	c.cutOff(t, file)

	made := c.run(t, "create", "cluster", "--yes")
	c.healthy(t)
	c.again(t, made.took)
	c.imagesAreKept(t)
	c.regroup(t, grown)
	c.run(t, "add", "nodes", "node3", "--yes")
	c.healthy(t)
	c.imagesAreKept(t)
	c.nothingEscaped(t)
	c.destroy(t, before)
}

// cutOff cuts the lab's network until the test ends. kk then works in another directory, with nothing but
// the file, and reaches the hosts alone.
func (c *controller) cutOff(t *testing.T, file string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(c.dir, "cache")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.file = ""
		if err := c.lab.Connect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := c.lab.Cut(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.file = file
}

func (c *controller) nothingEscaped(t *testing.T) {
	t.Helper()
	n, err := c.lab.Escaped(t.Context())
	if err != nil || n != 0 {
		t.Errorf("%d packets tried to leave the hosts: %v", n, err)
	}
}

// imagesAreKept removes all images that no container uses, as the kubelet does when the disk is full.
func (c *controller) imagesAreKept(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes() {
		before := c.exec(t, n, "/usr/local/bin/crictl images -q | sort -u")
		if strings.TrimSpace(before) == "" {
			t.Errorf("%s has no images", c.name(n))
		}
		c.exec(t, n, "/usr/local/bin/crictl rmi --prune")
		if after := c.exec(t, n, "/usr/local/bin/crictl images -q | sort -u"); after != before {
			t.Errorf("%s lost images that cannot be pulled again:\nbefore %q\nafter %q", c.name(n), before, after)
		}
	}
}
