package apps_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kubekey/pkg/cli"
	"kubekey/test/apiserver"
)

// installation is a folder with all that kk needs to install on a cluster.
type installation struct {
	dir        string
	bin        string // folder of kubectl and helm
	kubeconfig string
}

func (c cluster) installation(t *testing.T) installation {
	t.Helper()
	i := installation{t.TempDir(), filepath.Dir(c.Kubectl), c.Kubeconfig}
	write(t, i.dir, "inventory.yaml", inventory)
	return i
}

// run installs by a config, and says how many tasks changed something.
func (i installation) run(t *testing.T, config string, more ...string) int {
	t.Helper()
	return i.playbook(t, "install", config, more...)
}

func (i installation) playbook(t *testing.T, name, config string, more ...string) int {
	t.Helper()
	write(t, i.dir, "config.yaml", config)
	in := func(name string) string { return filepath.Join(i.dir, name) }
	args := []string{"run", "playbooks/" + name + ".yaml", "-o", "json", "--workdir", in("work"), "-i",
		in("inventory.yaml"), "-c", in("config.yaml"),
		"-e", "cluster_admin_conf=" + i.kubeconfig, "-e", "cluster_bin=" + i.bin, "-e", "cluster_etc=" + in("etc")}
	var out, errs bytes.Buffer
	code := cli.Main(t.Context(), append(args, more...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs},
		project(t))
	if code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	changed := 0
	for line := range strings.Lines(out.String()) {
		var e struct {
			Stats map[string]struct{ Changed int }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		for _, s := range e.Stats {
			changed += s.Changed
		}
	}
	return changed
}

const installed = `
cni: {type: none}
metrics_server: {enabled: true}
addons:
  - {name: plain, namespace: plain, manifests: [DIR/plain.yaml]}
  - {name: custom, kustomize: DIR/custom}
`

func (i installation) addons(t *testing.T) string {
	t.Helper()
	if err := os.Mkdir(filepath.Join(i.dir, "custom"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, i.dir, "plain.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}, data: {a: b}}")
	write(t, i.dir, "custom/kustomization.yaml", "namePrefix: my-\nresources: [map.yaml]\n")
	write(t, i.dir, "custom/map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: custom}, data: {a: b}}")
	return strings.ReplaceAll(installed, "DIR", i.dir)
}

func TestRolesInstallOnce(t *testing.T) {
	c := startCluster(t)
	i := c.installation(t)
	config := i.addons(t)
	if n := i.run(t, config); n == 0 {
		t.Fatal("nothing changed")
	}
	for _, what := range []string{"-n kube-system deployment/coredns daemonset/nodelocaldns deployment/metrics-server",
		"-n local-path-storage deployment/local-path-provisioner",
		"storageclass/local", "-n plain configmap/plain", "-n default configmap/my-custom"} {
		if out, err := c.Run(t, "", append([]string{"get"}, strings.Fields(what)...)...); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if n := i.run(t, config); n != 0 {
		t.Errorf("a second run changes %d", n)
	}
	if n := i.run(t, config, "--check"); n != 0 {
		t.Errorf("a check finds %d changes", n)
	}
}

func TestOnlyOursIsTakenAway(t *testing.T) {
	c := startCluster(t)
	i := c.installation(t)
	i.run(t, "{cni: {type: none}, metrics_server: {enabled: true}}")
	if n := i.run(t, "{cni: {type: none}, dns: {nodelocaldns: {enabled: false}}}"); n == 0 {
		t.Error("nothing changed")
	}
	for _, gone := range []string{"deployment/metrics-server", "daemonset/nodelocaldns"} {
		if out, err := c.Run(t, "", "get", "-n", "kube-system", gone); err == nil {
			t.Errorf("%s is still there\n%s", gone, out)
		}
	}
	const foreign = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: metrics-server, namespace: kube-system, labels: {k8s-app: metrics-server}},
  spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "registry.example/c:1"}]}}}}`
	c.apply(t, "somebody's metrics-server", foreign)
	if n := i.run(t, "{cni: {type: none}, dns: {nodelocaldns: {enabled: false}}}"); n != 0 {
		t.Errorf("a second run changes %d", n)
	}
	if out, err := c.Run(t, "", "get", "-n", "kube-system", "deployment/metrics-server"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// ready makes a node that says that it is ready, though nothing runs on it.
func (c cluster) ready(t *testing.T, name string) {
	t.Helper()
	node := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"` + name + `"}}`
	if out, err := c.Run(t, node, "create", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	status := `{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	if out, err := c.Run(t, "", "patch", "node", name, "--subresource", "status", "--type", "merge", "-p",
		status); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// rollOut says for a DaemonSet, as its controller would, that it asks for no Pod.
func (c cluster) rollOut(t *testing.T, namespace, name string) {
	for t.Context().Err() == nil {
		_, err := c.Run(t, "", "patch", "-n", namespace, "daemonset", name, "--subresource", "status", "--type", "merge",
			"-p", `{"status":{"observedGeneration":1}}`)
		if err == nil {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
}

func TestFlannelIsInstalledOnce(t *testing.T) {
	helm, folder := apiserver.Program(t, "helm"), chart(t, "flannel", charts["flannel"])
	c := startCluster(t)
	i := c.installation(t)
	c.ready(t, "one")
	if out, err := exec.Command(helm, "package", folder, "--destination", i.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	packed, err := filepath.Glob(filepath.Join(i.dir, "flannel-*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("%v: %v", packed, err)
	}
	bin := filepath.Join(i.dir, "bin")
	for name, path := range map[string]string{"helm": helm, "kubectl": c.Kubectl} {
		if err := errors.Join(os.MkdirAll(bin, 0o755), os.Symlink(path, filepath.Join(bin, name))); err != nil {
			t.Fatal(err)
		}
	}
	i.bin = bin
	config := "cni: {type: flannel}\nhealth: {timeout: 20}\n"
	cache := filepath.Join(i.dir, "work", "cache", "charts")
	if err := errors.Join(os.MkdirAll(cache, 0o755),
		os.Rename(packed[0], filepath.Join(cache, "flannel-v0.28.4.tgz"))); err != nil {
		t.Fatal(err)
	}
	go c.rollOut(t, "kube-flannel", "kube-flannel-ds")
	if n := i.playbook(t, "network", config); n == 0 {
		t.Error("nothing changed")
	}
	if out, err := c.Run(t, "", "get", "-n", "kube-flannel", "daemonset/kube-flannel-ds"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if n := i.playbook(t, "network", config); n != 0 {
		t.Errorf("a second run changes %d", n)
	}
}
