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
// a node more; then one of three whose images the control node sends, and whose creation is killed at some moment.
func TestOffline(t *testing.T) {
	inTime(t, 13*time.Minute)
	first := groups{"kube_control_plane": {1}, "kube_worker": {1, 2}}
	grown := groups{"kube_control_plane": {1}, "kube_worker": {1, 2, 3}}
	c := newController(t, grown, "distribution: {mode: relay}")
	before := c.listings(t)
	file := filepath.Join(t.TempDir(), "kubernetes.tar")
	c.run(t, "artifact", "export", "-o", file, "--os", "debian-12")
	c.regroup(t, first)
	c.cutOff(t, file)

	made := c.run(t, "create", "cluster", "--yes")
	c.healthy(t)
	for _, task := range []string{"Push images from node to node", "Push missing binaries", "Install distributed programs"} {
		if !strings.Contains(made.out, task) {
			t.Errorf("no task %q:\n%s", task, made.out)
		}
	}
	if strings.Contains(made.out, "served by the control node") || strings.Contains(made.out, "...ignoring") {
		t.Errorf("not everything went from node to node:\n%s", made.out)
	}
	images := c.images(t)
	second := c.run(t, "create", "cluster", "--yes")
	second.unchanged(t)
	t.Logf("the second run took %.0f %% of the first's time", 100*second.took.Seconds()/made.took.Seconds())
	c.regroup(t, grown)
	c.configure(t, "distribution: {mode: auto}") // relays with eight nodes; less load their images in the background
	added := c.run(t, "add", "nodes", "node3", "--yes")
	if !strings.Contains(added.out, "[containerd : Wait until images are loaded]") {
		t.Errorf("images were not loaded in the background:\n%s", added.out)
	}
	c.healthy(t)
	c.imagesAreKept(t, images)
	c.run(t, "delete", "cluster", "--yes", "--all", "--with-data")
	c.kill(t, chaos(t).moment())
	c.run(t, "create", "cluster", "--yes")
	c.healthy(t)
	c.run(t, "create", "cluster", "--yes").unchanged(t)
	c.nothingEscaped(t)
	c.reconnect(t)
	c.destroy(t, before)
}

// With a registry host, images go there out of the file, and nodes pull them.
func TestOfflineWithRegistry(t *testing.T) {
	inTime(t, 8*time.Minute)
	c := newController(t, groups{"kube_control_plane": {1}, "kube_worker": {1}, "image_registry": {4}}, "")
	before := c.listings(t)
	file := filepath.Join(t.TempDir(), "kubernetes.tar")
	c.run(t, "artifact", "export", "-o", file, "--os", "debian-12", "--split", "300M")
	c.cutOff(t, file)
	c.run(t, "create", "cluster", "--yes")
	c.healthy(t)
	c.imagesAreFrom(t, "registry.kk.local/")
	second := c.run(t, "create", "cluster", "--yes")
	second.unchanged(t)
	c.nothingEscaped(t)
	c.reconnect(t)
	c.destroy(t, before)
}

// cutOff cuts the lab's network until the test ends. kk then works in another directory, with nothing but
// the file, and reaches the hosts alone.
func (c *controller) cutOff(t *testing.T, file string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(c.dir, "cache")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.reconnect(t) })
	if err := c.lab.Cut(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.file = file
}

func (c *controller) reconnect(t *testing.T) {
	t.Helper()
	c.file = ""
	if err := c.lab.Connect(context.Background()); err != nil {
		t.Error(err)
	}
}

func (c *controller) nothingEscaped(t *testing.T) {
	t.Helper()
	n, err := c.lab.Escaped(t.Context())
	if err != nil || n != 0 {
		t.Errorf("%d packets tried to leave the hosts: %v", n, err)
	}
}

// images lists the images of nodes.
func (c *controller) images(t *testing.T) map[int]string {
	t.Helper()
	all := map[int]string{}
	for _, n := range c.nodes() {
		all[n] = c.exec(t, n, "/usr/local/bin/ctr -n k8s.io images ls -q | grep -v ^sha256 | sort")
		if !strings.Contains(all[n], "registry.k8s.io/pause:") || !strings.Contains(all[n], "registry.k8s.io/pause@sha256:") {
			t.Errorf("%s has the images %q", c.name(n), all[n])
		}
	}
	return all
}

// imagesAreKept removes all images that no container uses and that are not pinned, as the kubelet does when the disk
// is full. The lab's kubelets do it never: they do not find the size of a disk that is shared by all hosts.
func (c *controller) imagesAreKept(t *testing.T, before map[int]string) {
	t.Helper()
	const busybox = "docker.io/library/busybox:1.37.0"
	removed := false
	for n := range before {
		c.exec(t, n, "PATH=$PATH:/usr/local/bin; digest=$(ctr -n k8s.io images ls name=="+busybox+" | awk 'END {print $3}'); "+
			"for i in $(ctr -n k8s.io images ls target.digest==$digest -q); do "+
			"ctr -n k8s.io images label $i io.cri-containerd.pinned=; done; sleep 2")
		out := c.exec(t, n, "for i in 1 2 3 4 5; do /usr/local/bin/crictl rmi --prune; sleep 2; done")
		if strings.Count(out, "Deleted:") > 1 {
			t.Errorf("%s: images that were removed, want busybox alone, which lost its pin: %q", c.name(n), out)
		}
		removed = removed || strings.Contains(out, "Deleted:")
	}
	if !removed {
		t.Error("no image was removed, though one had lost its pin")
	}
	// What is gone comes back from the file.
	c.run(t, "create", "cluster", "--yes")
	for n, want := range before {
		if after := c.images(t)[n]; after != want {
			t.Errorf("%s has other images than before:\nbefore %q\nafter %q", c.name(n), want, after)
		}
	}
}
