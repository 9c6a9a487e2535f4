package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const patience = 2 * time.Minute

// kubectl runs kubectl on the first control plane.
func (c *controller) kubectl(t *testing.T, args string) string {
	t.Helper()
	return strings.TrimSpace(c.exec(t, c.first(), kubectl+args))
}

const kubectl = "export KUBECONFIG=/etc/kubernetes/admin.conf KUBECACHEDIR=/dev/shm/kubectl PATH=/usr/local/bin:$PATH; kubectl "

func (c *controller) first() int { return c.groups["kube_control_plane"][0] }

// healthy looks at a cluster as its users do.
func (c *controller) healthy(t *testing.T) {
	t.Helper()
	c.nodesReady(t)
	c.serve(t)
	c.servicesAnswer(t)
	c.namesResolve(t)
	c.logsAndExec(t)
	c.volumeStays(t)
	c.exec(t, c.first(), kubectl+"delete deployment,service web --wait=true --ignore-not-found")
}

func (c *controller) nodesReady(t *testing.T) {
	t.Helper()
	out := c.kubectl(t, `get nodes -o jsonpath='{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}'`)
	var want []string
	for _, n := range c.nodes() {
		want = append(want, c.name(n)+"=True")
	}
	if got := strings.Fields(out); !slices.Equal(got, want) {
		t.Errorf("nodes are %q, want %q", got, want)
	}
}

// web is a Pod on every node that says its node's name over HTTP.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: %[1]d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations: [{operator: Exists}]
      terminationGracePeriodSeconds: 0
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
      containers:
        - name: web
          image: %[2]s
          command: [sh, -c, "mkdir /tmp/www; echo $NODE >/tmp/www/index.html; echo serving on $NODE; exec httpd -f -p 8080 -h /tmp/www"]
          env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
          readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
`

func (c *controller) apply(t *testing.T, manifest string) {
	t.Helper()
	c.exec(t, c.first(), kubectl+"apply -f - <<'MANIFEST'\n"+manifest+"\nMANIFEST\n")
}

// busybox is the image of the tests, as the cluster's nodes name it.
func (c *controller) busybox(t *testing.T) string {
	t.Helper()
	image := c.kubectl(t, `-n local-path-storage get configmap local-path-config -o jsonpath='{.data.helperPod\.yaml}' | sed -n 's/.*image: *//p' | tr -d '"'`)
	if image == "" {
		t.Fatal("the local path provisioner names no helper image")
	}
	return image
}

func (c *controller) serve(t *testing.T) {
	t.Helper()
	c.apply(t, fmt.Sprintf(web, len(c.nodes()), c.busybox(t)))
	c.kubectl(t, fmt.Sprintf("rollout status deployment/web --timeout=%s", patience))
}

// servicesAnswer asks until the Pod of every node has answered: over the
// Service and over each node's port, from each node.
func (c *controller) servicesAnswer(t *testing.T) {
	t.Helper()
	ip := c.kubectl(t, "get service web -o jsonpath='{.spec.clusterIP}'")
	for _, from := range c.nodes() {
		targets := []string{ip + ":80"}
		for _, to := range c.nodes() {
			targets = append(targets, c.lab.Hosts[to-1].Address+":30080")
		}
		for _, target := range targets {
			c.allAnswer(t, from, target)
		}
	}
}

// allAnswer asks until every node's Pod has answered: a new Service takes a
// moment to reach all nodes.
func (c *controller) allAnswer(t *testing.T, from int, target string) {
	t.Helper()
	var names []string
	for _, n := range c.nodes() {
		names = append(names, c.name(n))
	}
	want := strings.Join(names, " ")
	c.eventually(t, from, 30*time.Second, fmt.Sprintf(`said=$(for i in $(seq %d); do curl -sS -m 5 http://%s/ || exit 1; done) || exit 1
said=$(echo "$said" | sort -u | xargs)
[ "$said" = "%s" ] || { echo "http://%s is answered by $said, not by %s" >&2; exit 1; }`, 12*len(names), target, want, target, want))
}

// pods are the test's Pods, by the number of their node.
func (c *controller) pods(t *testing.T) map[int]string {
	t.Helper()
	byNode := map[int]string{}
	out := c.kubectl(t, `get pods -l app=web -o jsonpath='{range .items[*]}{.spec.nodeName} {.metadata.name}{"\n"}{end}'`)
	for line := range strings.Lines(out) {
		node, pod, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, n := range c.nodes() {
			if c.name(n) == node {
				byNode[n] = pod
			}
		}
	}
	return byNode
}

// namesResolve looks a Service up from a Pod on every node.
func (c *controller) namesResolve(t *testing.T) {
	t.Helper()
	ip := c.kubectl(t, "get service web -o jsonpath='{.spec.clusterIP}'")
	for n, pod := range c.pods(t) {
		out := c.eventually(t, c.first(), 30*time.Second, kubectl+"exec "+pod+" -- nslookup web.default.svc.cluster.local")
		if !strings.Contains(out, ip) {
			t.Errorf("on %s the name of the Service leads to %q, want %s", c.name(n), out, ip)
		}
	}
}

func (c *controller) logsAndExec(t *testing.T) {
	t.Helper()
	for n, pod := range c.pods(t) {
		if out := c.kubectl(t, "logs "+pod); out != "serving on "+c.name(n) {
			t.Errorf("logs of the Pod on %s: %q", c.name(n), out)
		}
		if out := c.kubectl(t, "exec "+pod+" -- cat /tmp/www/index.html"); out != c.name(n) {
			t.Errorf("exec in the Pod on %s: %q", c.name(n), out)
		}
	}
}

// keeper counts its own starts on a local volume.
const keeper = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 16Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: keeper}
spec:
  tolerations: [{operator: Exists}]
  terminationGracePeriodSeconds: 0
  containers:
    - name: keeper
      image: %s
      command: [sh, -c, "echo start >>/data/starts; cat /data/starts; exec sleep 100000"]
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: kept}}]
`

func (c *controller) volumeStays(t *testing.T) {
	t.Helper()
	manifest := fmt.Sprintf(keeper, c.busybox(t))
	for range 2 {
		c.exec(t, c.first(), kubectl+"delete pod keeper --ignore-not-found --wait=true")
		c.apply(t, manifest)
		c.kubectl(t, fmt.Sprintf("wait pod/keeper --for=condition=Ready --timeout=%s", patience))
	}
	if out := c.kubectl(t, "logs keeper"); out != "start\nstart" {
		t.Errorf("after a restart the volume has %q, want two starts", out)
	}
	c.exec(t, c.first(), kubectl+"delete pod/keeper pvc/kept --wait=true")
}

// hooks puts scripts for all hosts, a group and a host into the work dir.
func (c *controller) hooks(t *testing.T) {
	t.Helper()
	for _, h := range []string{"pre_install", "pre_install_kube_control_plane", "post_install", "post_install_" +
		c.name(c.first())} {
		c.script(t, h+".sh", "echo "+h+" >>/root/hooks")
	}
	// What kk installed is found by its name.
	c.script(t, "post_install_kube_worker.sh", "kubelet --version >/dev/null")
}

// hooksRan fails the test unless each host ran its scripts, and only those.
func (c *controller) hooksRan(t *testing.T) {
	t.Helper()
	for _, n := range c.numbers() {
		want := "pre_install\n"
		if slices.Contains(c.groups["kube_control_plane"], n) {
			want += "pre_install_kube_control_plane\n"
		}
		want += "post_install\n"
		if n == c.first() {
			want += "post_install_" + c.name(n) + "\n"
		}
		if got := c.exec(t, n, "cat /root/hooks; rm -f /root/hooks"); got != want {
			t.Errorf("%s ran the scripts %q, want %q", c.name(n), got, want)
		}
	}
}

// etcdMembers are the names of an external etcd's members, each of which is healthy.
func (c *controller) etcdMembers(t *testing.T) []string {
	t.Helper()
	host := c.groups["etcd"][0]
	etcdctl := fmt.Sprintf("ETCDCTL_API=3 /usr/local/bin/etcdctl --endpoints=https://%s:2379 --cacert=/etc/ssl/etcd/ca.crt --cert=/etc/ssl/etcd/client.crt --key=/etc/ssl/etcd/client.key ",
		c.lab.Hosts[host-1].Address)
	c.eventually(t, host, 30*time.Second, etcdctl+"endpoint health --cluster")
	var names []string
	for line := range strings.Lines(c.exec(t, host, etcdctl+"member list")) {
		if fields := strings.Split(line, ", "); len(fields) > 2 {
			names = append(names, fields[2])
		}
	}
	slices.Sort(names)
	return names
}
