package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// create builds the cluster, looks at it, and builds it again: nothing may
// change then.
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
	t.Logf("the second run took %.0f %% of the first's time", 100*second.took.Seconds()/first.Seconds())
}

// destroy takes the cluster off its hosts, and everything that came with it.
func (c *controller) destroy(t *testing.T, before map[int]listing) {
	t.Helper()
	c.run(t, "delete", "cluster", "--yes", "--all", "--with-data")
	c.asBefore(t, before)
}

// The first create is killed at some moment; what follows must not notice.
func TestAllInOne(t *testing.T) {
	inTime(t, 14*time.Minute)
	c := newController(t, groups{"kube_control_plane": {1}, "kube_worker": {1}}, "")
	start := time.Now()
	before := c.listings(t)
	c.exec(t, 1, "mkdir -m 700 /root/.kube && echo mine >/root/.kube/config")
	c.exec(t, 1, "mkdir -p /var/lib/etcd/lost+found") // as on a disk of its own
	c.kill(t, chaos(t).moment())
	c.create(t)
	c.staysWithoutAYes(t)
	asFarAsTimeGoes(t, start, 100*time.Second, 20*time.Second,
		step{"new certificates", 90 * time.Second, func() { c.renews(t) }},
		step{"other settings", 195 * time.Second, func() { c.turnsOn(t) }},
		step{"what is there is run", 30 * time.Second, func() { c.runsWhatIsThere(t) }})
	c.run(t, "delete", "cluster", "--yes", "--all", "--with-data")
	c.ownKubeconfigIsBack(t)
	c.asBefore(t, before)
}

// staysWithoutAYes deletes the cluster where nobody can say yes.
func (c *controller) staysWithoutAYes(t *testing.T) {
	t.Helper()
	r := c.try(t.Context(), t, "delete", "cluster", "--all", "--with-data")
	if r.code != 2 || !strings.Contains(r.out, "Nothing was changed") {
		t.Errorf("delete without a yes: exit code %d\n%s", r.code, tail(r.out, 30))
	}
	r.unchanged(t)
	c.nodesReady(t)
}

// Three control planes with an external etcd, and a registry that is no node at
// first: all images come from there. kk logs in as a user whose sudo has RHEL's path, and
// the hosts have the glibc of RHEL 8.
func TestControlPlanesWithExternalEtcd(t *testing.T) {
	inTime(t, 20*time.Minute)
	first := groups{"kube_control_plane": {1, 2, 3}, "kube_worker": {1, 2, 3}, "etcd": {1, 2, 3}, "image_registry": {4}}
	grown := groups{"kube_control_plane": {1, 2, 3}, "kube_worker": {1, 2, 3, 4}, "etcd": {1, 2, 3}, "image_registry": {4}}
	c := newController(t, grown, `
kubernetes: {control_plane_endpoint: {type: haproxy}}
etcd: {deployment_type: external}
`)
	c.user, c.vars = "ops", `{"ansible_glibc_version": "2.28"}`
	start := time.Now()
	before := c.listings(t)
	c.regroup(t, first)
	c.create(t)
	c.hasStaticContainerd(t)
	if got := c.etcdMembers(t); !slices.Equal(got, []string{"node1", "node2", "node3"}) {
		t.Errorf("etcd members are %q", got)
	}
	c.imagesAreFrom(t, "registry.kk.local/")
	c.registryAsksWho(t)
	asFarAsTimeGoes(t, start, 150*time.Second, 40*time.Second,
		step{"new certificates", 220 * time.Second, func() {
			c.hasNewCertificates(t, map[string][]int{
				"/etc/kubernetes/pki/apiserver.crt": {1, 2, 3}, "/etc/kubernetes/pki/apiserver-etcd-client.crt": {1, 2, 3},
				"/etc/ssl/etcd/server.crt": {1, 2, 3}, "/etc/ssl/etcd/peer.crt": {1, 2, 3}, "/etc/ssl/etcd/client.crt": {1, 2, 3},
				"/etc/kk-registry/certs/server.crt": {4}})
			c.registryAsksWho(t)
		}},
		step{"a fourth node", 60 * time.Second, func() {
			c.regroup(t, grown)
			c.run(t, "add", "nodes", "node4", "--yes")
			c.healthy(t)
			c.imagesAreFrom(t, "registry.kk.local/")
		}},
		step{"a control plane that is off, and comes back", 230 * time.Second, func() { c.losesAndGrows(t, grown) }})
	c.destroy(t, before)
}

// Three control planes with etcd in their Pods, of which kk is killed while the second joins. Then the first one loses
// power: nodes are added all the same, it is deleted, and joins again as a new host.
func TestStackedControlPlanes(t *testing.T) {
	inTime(t, 15*time.Minute)
	three := groups{"kube_control_plane": {1, 2, 3}, "kube_worker": {1, 2, 3}}
	grown := groups{"kube_control_plane": {1, 2, 3}, "kube_worker": {1, 2, 3, 4}}
	c := newController(t, grown, "")
	vip := c.freeAddress()
	c.configure(t, "kubernetes: {control_plane_endpoint: {type: kube_vip, kube_vip: {address: "+vip+"}}}\n")
	before := c.listings(t)
	c.regroup(t, three)
	c.killsWhileJoining(t, 2)
	c.create(t)
	if got := c.stackedMembers(t, 1); !slices.Equal(got, []string{"node1", "node2", "node3"}) {
		t.Errorf("etcd members are %q", got)
	}

	c.holds(t, vip, 1)
	gap := watchAPI(t.Context(), vip)
	if err := c.lab.PowerOff(0); err != nil {
		t.Fatal(err)
	}
	c.regroup(t, grown)
	r := c.try(t.Context(), t, "add", "nodes", "node4", "--yes")
	if longest, answers := gap(); answers < 100 || longest > time.Minute {
		t.Errorf("%s answered %d times, and not for %s when its holder was powered off", vip, answers, longest)
	} else {
		t.Logf("the longest gap of the API at %s was %s when its holder was powered off", vip, longest)
	}
	const readiness = `get node node4 -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}'`
	if ready := c.exec(t, 2, kubectl+readiness); r.code != 4 || ready != "True" {
		t.Errorf("adding a node without the first control plane: exit code %d, node4 is ready: %s\n%s", r.code, ready,
			tail(r.out, 60))
	}
	c.run(t, "delete", "nodes", "node1", "--yes", "--with-data")
	if got := c.stackedMembers(t, 2); !slices.Equal(got, []string{"node2", "node3"}) {
		t.Errorf("etcd members are %q after node1 was deleted", got)
	}
	if err := c.lab.Start(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.exec(t, 1, "systemctl is-system-running --wait; rm -rf /tmp/namespace-dev-*")
	c.run(t, "delete", "nodes", "node1", "--yes", "--with-data")
	c.regroup(t, grown) // with node1, which left the inventory
	c.run(t, "add", "nodes", "node1", "--yes")
	if got := c.stackedMembers(t, 1); !slices.Equal(got, []string{"node1", "node2", "node3"}) {
		t.Errorf("etcd members are %q after node1 joined again", got)
	}
	c.healthy(t)
	c.run(t, "create", "cluster", "--yes") // the kubeconfig of the control node is node1's again
	c.run(t, "create", "cluster", "--yes").unchanged(t)
	c.destroy(t, before)
}

// killsWhileJoining kills a creation while kubeadm runs on a host that joins.
func (c *controller) killsWhileJoining(t *testing.T, number int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan bool)
	go func() {
		defer close(seen)
		for ctx.Err() == nil {
			if out, _ := c.lab.Exec(ctx, number-1, "ls /etc/kubernetes/kubeadm-join.yaml && sleep 3"); out != "" {
				cancel()
				seen <- true
				return
			}
			time.Sleep(time.Second)
		}
	}()
	r := c.try(ctx, t, "create", "cluster", "--yes")
	cancel()
	if !<-seen {
		t.Fatalf("the creation was over before it could be killed: exit code %d\n%s", r.code, tail(r.out, 40))
	}
}

// stackedMembers are the names of the etcd members, as a control plane lists them.
func (c *controller) stackedMembers(t *testing.T, number int) []string {
	t.Helper()
	out := c.exec(t, number, kubectl+"-n kube-system exec etcd-"+c.name(number)+
		" -- etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt"+
		" --cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key member list")
	var names []string
	for line := range strings.Lines(out) {
		if fields := strings.Split(line, ", "); len(fields) > 2 {
			names = append(names, fields[2])
		}
	}
	slices.Sort(names)
	return names
}

// losesAndGrows takes node3 out of a cluster while it is off, and in again.
func (c *controller) losesAndGrows(t *testing.T, grown groups) {
	t.Helper()
	c.refusesToBreakEtcd(t)
	c.deletesWhatIsOff(t)
	c.regroup(t, groups{"kube_control_plane": {1, 2}, "kube_worker": {1, 2, 4}, "etcd": {1, 2}, "image_registry": {4}})
	c.healthy(t)
	if got := c.etcdMembers(t); !slices.Equal(got, []string{"node1", "node2"}) {
		t.Errorf("etcd members are %q after node3 was deleted", got)
	}
	c.refusesToLoseControlPlanes(t)
	c.regroup(t, grown)
	c.run(t, "add", "nodes", "node3", "--yes")
	c.healthy(t)
}

// refusesToBreakEtcd tries to delete node3 while node2's etcd member is down: then
// node3 stays as it is.
func (c *controller) refusesToBreakEtcd(t *testing.T) {
	t.Helper()
	c.exec(t, 2, "systemctl stop etcd")
	if r := c.try(t.Context(), t, "delete", "nodes", "node3", "--yes"); r.code == 0 ||
		!strings.Contains(r.out, "would lose its majority") {
		t.Errorf("deleting a member that is needed: exit code %d\n%s", r.code, tail(r.out, 30))
	}
	c.exec(t, 2, "systemctl start etcd")
	c.nodesReady(t)
	if out := c.kubectl(t, `get nodes -o jsonpath='{.items[*].spec.unschedulable}'`); out != "" {
		t.Errorf("nodes were cordoned, though the deletion was refused: %s", out)
	}
	if got := c.etcdMembers(t); !slices.Equal(got, []string{"node1", "node2", "node3"}) {
		t.Errorf("etcd members are %q", got)
	}
}

// deletesWhatIsOff deletes node3 without power, and again when it is back, to clean it.
func (c *controller) deletesWhatIsOff(t *testing.T) {
	t.Helper()
	if err := c.lab.PowerOff(2); err != nil {
		t.Fatal(err)
	}
	if r := c.run(t, "delete", "nodes", "node3", "--yes", "--with-data"); !strings.Contains(r.out,
		"node3 does not answer") {
		t.Errorf("nothing is said of a host that is off:\n%s", tail(r.out, 40))
	}
	if out := c.kubectl(t, "get nodes -o name"); strings.Contains(out, "node3") {
		t.Errorf("the cluster has %q after node3 was deleted", out)
	}
	if err := c.lab.Start(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	// The folders that systemd has while it starts a unit stay where that was cut off: they are no
	// leftover of a cluster. They are removed once all units have started.
	c.exec(t, 3, "systemctl is-system-running --wait; rm -rf /tmp/namespace-dev-*")
	c.run(t, "delete", "nodes", "node3", "--yes", "--with-data")
}

// refusesToLoseControlPlanes tries to delete all that are left.
func (c *controller) refusesToLoseControlPlanes(t *testing.T) {
	t.Helper()
	if r := c.try(t.Context(), t, "delete", "nodes", "node1", "node2", "--yes"); r.code == 0 ||
		!strings.Contains(r.out, "--force") {
		t.Errorf("deleting all control planes: exit code %d\n%s", r.code, tail(r.out, 30))
	}
	c.nodesReady(t)
}

// imagesAreFrom fails the test unless the runtime of each node and all Pods have
// images of one registry only.
func (c *controller) imagesAreFrom(t *testing.T, registry string) {
	t.Helper()
	used := strings.Fields(c.kubectl(t, `get pods -A -o jsonpath='{.items[*].spec.containers[*].image} {.items[*].spec.initContainers[*].image}'`))
	for _, n := range c.nodes() {
		images := strings.Fields(c.exec(t, n, "/usr/local/bin/ctr -n k8s.io images ls -q"))
		if len(images) == 0 {
			t.Errorf("%s has no images", c.name(n))
		}
		used = append(used, images...)
	}
	for _, image := range used {
		if !strings.HasPrefix(image, registry) && !strings.HasPrefix(image, "sha256:") {
			t.Errorf("%s is not from %s", image, registry)
		}
	}
}

// registryAsksWho fails the test unless the registry answers those who log in, and nobody else.
func (c *controller) registryAsksWho(t *testing.T) {
	t.Helper()
	password, err := os.ReadFile(filepath.Join(c.dir, "clusters", "kk", "registry-password"))
	if err != nil {
		t.Fatal(err)
	}
	registry := c.lab.Hosts[c.groups["image_registry"][0]-1].Address
	word, _, _ := strings.Cut(strings.TrimSpace(string(password)), " ")
	for _, who := range []struct{ login, want string }{{"", "401"}, {"user = admin:wrong", "401"},
		{"user = admin:" + word, "200"}} {
		for _, path := range []string{"/v2/", "/v2/_catalog"} {
			out := c.exec(t, c.first(), fmt.Sprintf("echo '%s' | curl -K - -sk -o /dev/null -w '%%{http_code}' https://%s%s",
				who.login, registry, path))
			if out != who.want {
				t.Errorf("the registry answers %s to %q with %s, want %s", path, who.login, out, who.want)
			}
		}
	}
}

// hasStaticContainerd fails the test unless all nodes got the static archive of containerd, and no other.
func (c *controller) hasStaticContainerd(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(c.dir, "cache", "containerd")); err == nil {
		t.Error("the archive of containerd that needs a newer glibc was downloaded")
	}
	found, _ := filepath.Glob(filepath.Join(c.dir, "cache", "containerd_static", "*", "*", "*.tar.gz"))
	if len(found) != 1 {
		t.Errorf("static archives of containerd in the cache: %q", found)
	}
}
