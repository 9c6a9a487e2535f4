package roles

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

const exportBinaries = `
- name: Export binaries
  hosts: localhost
  gather_facts: false
  roles: [cluster]
  tasks:
    - name: Write offline file
      artifact_export:
        dest: "{{ playbook_dir }}/../binaries.tar"
        cache: "{{ cluster_cache }}"
        files: "{{ exported }}"
`

const installBinaries = `
- name: Install binaries
  hosts: k8s_cluster
  become: true
  roles: [binaries]
  tasks:
    - name: Push binaries
      include_role: {name: binaries, tasks_from: distribute}

    - name: Install binaries
      include_role: {name: binaries, tasks_from: install}
      vars: {binaries: "{{ binaries_host }}"}

    - name: Remove pushed binaries
      include_role: {name: binaries, tasks_from: clean}
`

const threeNodes = `
    kube_control_plane: {hosts: {node1: }}
    kube_worker: {hosts: {node1: , node2: , node3: }}
    k8s_cluster: {children: {kube_control_plane: , kube_worker: }}
`

// received is how many bytes came to all hosts so far.
func received(t *testing.T) (sum int64) {
	t.Helper()
	for i := range hosts.Hosts {
		n, err := strconv.ParseInt(on(t, i, "awk '/eth0:/ {print $2}' /proc/net/dev"), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// Programs of an offline file travel compressed and come to their places with the right bytes, from the control node
// and from host to host. What does not arrive that way is copied.
func TestBinariesFromAnOfflineFile(t *testing.T) {
	p := newProject(t)
	kk, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(kk) // the programs of Kubernetes are Go programs too
	if err != nil {
		t.Fatal(err)
	}
	program = program[:min(len(program), 24<<20)]
	sums := map[string]string{}
	var catalog, exported strings.Builder
	add := func(component, file string) {
		data, err := os.ReadFile(p.path("work/cache/" + file))
		if err != nil {
			t.Fatal(err)
		}
		sums[component] = fmt.Sprintf("%x", sha256.Sum256(data))
		fmt.Fprintf(&catalog, "    %s: {version: v1, arch: {amd64: {file: %s, sha256: %s}}}\n", component, file,
			sums[component])
		fmt.Fprintf(&exported, "  - {name: %s, version: v1, arch: amd64, file: %s, sha256: %s}\n", component, file,
			sums[component])
	}
	for _, name := range []string{"kubeadm", "kubectl", "kubelet"} {
		p.write(t, "work/cache/"+name, string(program)+name)
		add(name, name)
	}
	p.write(t, "programs/bin/containerd", string(program[:4<<20]))
	p.archive(t, "containerd.tar.gz", p.path("programs"), "bin")
	add("containerd", "containerd.tar.gz")
	config := "catalog:\n  components:\n" + catalog.String()
	p.write(t, "playbooks/export.yaml", exportBinaries)
	p.write(t, "playbooks/install.yaml", installBinaries)
	p.write(t, "exported.yaml", "exported:\n"+exported.String())
	p.kk(t, "export", threeNodes, config, "-e", "@"+p.path("exported.yaml")).ok()
	config += "artifact: {files: [" + p.path("binaries.tar") + "]}\n"

	const everything = "rm -rf /usr/local/bin/kube* /usr/local/bin/containerd /usr/local/bin/.kubekey-blobs /opt/cni"
	for i := range hosts.Hosts {
		on(t, i, everything)
		t.Cleanup(func() { _, _ = hosts.Exec(context.Background(), i, everything) })
	}
	installed := func() {
		t.Helper()
		for i := range hosts.Hosts {
			got := on(t, i, "cd /usr/local/bin; sha256sum kubeadm kubectl kubelet | cut -d' ' -f1; stat -c %a:%U:%G:%h kube*;"+
				" cmp -n 4194304 containerd kubelet && stat -c %s containerd; ls -A | grep -c kubekey || true")
			want := fmt.Sprintf("%s\n%s\n%s\n755:root:root:1\n755:root:root:1\n755:root:root:1\n4194304\n0",
				sums["kubeadm"], sums["kubectl"], sums["kubelet"])
			if got != want {
				t.Errorf("node%d has\n%s\nwant\n%s", i+1, got, want)
			}
		}
	}
	install := func(mode string) run {
		t.Helper()
		return p.kk(t, "install", threeNodes, config+"distribution: {mode: "+mode+"}\n")
	}

	before, raw := received(t), float64(len(hosts.Hosts)*(3*len(program)+4<<20))
	r := install("direct").ok()
	compressed := float64(received(t)-before) / raw
	t.Logf("%.2f of the bytes went to the hosts", compressed)
	if compressed > 0.6 {
		t.Errorf("%.2f of the bytes went to the hosts", compressed)
	}
	_, task, found := strings.Cut(r.output, "TASK [binaries : Install distributed programs]")
	if task, _, _ = strings.Cut(task, "TASK ["); !found || strings.Count(task, "changed:") != 3*len(hosts.Hosts) {
		t.Errorf("programs were copied\n%s", r.output)
	}
	installed()
	install("direct").changedNothing()

	// From host to host. One host has everything, one lacks a program and the archive, one has a wrong mode.
	on(t, 1, "rm -r /usr/local/bin/kubelet /usr/local/bin/containerd")
	on(t, 2, "chmod 4711 /usr/local/bin/kubectl; echo >>/usr/local/bin/kubeadm; rm -r /usr/local/bin/containerd")
	r = install("relay").ok()
	if strings.Contains(r.output, "served by the control node") {
		t.Errorf("a host did not take part:\n%s", r.output)
	}
	installed()
	install("relay").changedNothing()

	// A host that refuses the directory gets its programs all the same, and others are not held up.
	for i := range hosts.Hosts {
		on(t, i, everything)
	}
	on(t, 1, "mkdir -p /root/elsewhere; touch /root/elsewhere/file; ln -s /root/elsewhere /usr/local/bin/.kubekey-blobs")
	r = install("relay").ok()
	if want := "node2: exit code 1: /usr/local/bin/.kubekey-blobs is a symbolic link"; !strings.Contains(r.output, want) {
		t.Errorf("no %q\n%s", want, r.output)
	}
	installed()
	if got := on(t, 1, "ls -A /root/elsewhere; rm -r /root/elsewhere"); got != "file" {
		t.Errorf("the directory that a link leads to has %s", got)
	}
	install("relay").changedNothing()
}
