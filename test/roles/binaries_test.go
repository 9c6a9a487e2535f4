package roles

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
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

// exportBinaries exports files of the cache, which are components of the catalog. It returns the config with the catalog
// and the offline file, and the digests of the components.
func (p *project) exportBinaries(t testing.TB, files ...string) (config string, sums map[string]string) {
	t.Helper()
	sums = map[string]string{}
	var catalog, exported strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(p.path("work/cache/" + file))
		if err != nil {
			t.Fatal(err)
		}
		component := strings.TrimSuffix(file, ".tar.gz")
		sums[component] = fmt.Sprintf("%x", sha256.Sum256(data))
		fmt.Fprintf(&catalog, "    %s: {version: v1, arch: {amd64: {file: %s, sha256: %s}}}\n", component, file,
			sums[component])
		fmt.Fprintf(&exported, "  - {name: %s, version: v1, arch: amd64, file: %s, sha256: %s}\n", component, file,
			sums[component])
	}
	config = "catalog:\n  components:\n" + catalog.String()
	p.write(t, "playbooks/export.yaml", exportBinaries)
	p.write(t, "playbooks/install.yaml", installBinaries)
	p.write(t, "exported.yaml", "exported:\n"+exported.String())
	p.kk(t, "export", threeNodes, config, "-e", "@"+p.path("exported.yaml")).ok()
	return config + "artifact: {files: [" + p.path("binaries.tar") + "]}\n", sums
}

const noBinaries = "rm -rf /usr/local/bin/kube* /usr/local/bin/containerd /usr/local/bin/.kubekey-blobs /opt/cni"

// received is how many bytes came to all hosts so far.
func received(t testing.TB) (sum int64) {
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
	for _, name := range []string{"kubeadm", "kubectl", "kubelet"} {
		p.write(t, "work/cache/"+name, string(program)+name)
	}
	p.write(t, "programs/bin/containerd", string(program[:4<<20]))
	p.archive(t, "containerd.tar.gz", p.path("programs"), "bin")
	config, sums := p.exportBinaries(t, "kubeadm", "kubectl", "kubelet", "containerd.tar.gz")

	for i := range hosts.Hosts {
		on(t, i, noBinaries)
		t.Cleanup(func() { _, _ = hosts.Exec(context.Background(), i, noBinaries) })
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
		on(t, i, noBinaries)
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

// BenchmarkOfflineBinaries holds bringing kubelet, kubeadm and kubectl of an offline file to three hosts against sending
// them raw, with ssh to all of them at the same time: at most 0.4 times the bytes, in at most the time. The time is that
// of the whole run of kk. Both begin without the files on the hosts, and are measured in turns: medians of three.
func BenchmarkOfflineBinaries(b *testing.B) {
	p := newProject(b)
	dir, _ := upstream(b, "kubernetes")
	names := []string{"kubeadm", "kubectl", "kubelet"}
	var size int64
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		p.write(b, "work/cache/"+name, string(data))
		size += int64(len(data))
	}
	config, _ := p.exportBinaries(b, names...)
	var send strings.Builder
	for i, h := range hosts.Hosts {
		b.Cleanup(func() { _, _ = hosts.Exec(context.Background(), i, noBinaries) })
		fmt.Fprintf(&send, "for f in %s; do ssh -i %s -o UserKnownHostsFile=%s -o BatchMode=yes root@%s "+
			"\"cat >/usr/local/bin/$f\" <$f; done & ", strings.Join(names, " "), h.Key, hosts.KnownHosts(), h.Address)
	}
	p.write(b, "work/cache/send.sh", send.String()+"wait")
	measure := func(run func()) (seconds, bytes float64) {
		for i := range hosts.Hosts {
			on(b, i, noBinaries+"; sync")
		}
		before, began := received(b), time.Now()
		run()
		return time.Since(began).Seconds(), float64(received(b) - before)
	}
	var raw, own, rawBytes, ownBytes []float64
	for range 3 * b.N {
		s, n := measure(func() { p.command(b, "sh", "-euc", "cd work/cache; . ./send.sh") })
		raw, rawBytes = append(raw, s), append(rawBytes, n)
		s, n = measure(func() { p.kk(b, "install", threeNodes, config+"distribution: {mode: direct}\n").ok() })
		own, ownBytes = append(own, s), append(ownBytes, n)
	}
	for _, all := range [][]float64{raw, own, rawBytes, ownBytes} {
		slices.Sort(all)
	}
	m := len(raw) / 2
	b.Logf("%.0f MB to each of %d hosts: raw %.2f s, kk %.2f s; %.0f and %.0f MB were received", float64(size)/1e6,
		len(hosts.Hosts), raw[m], own[m], rawBytes[m]/1e6, ownBytes[m]/1e6)
	b.ReportMetric(own[m]/raw[m], "×time")
	b.ReportMetric(ownBytes[m]/rawBytes[m], "×bytes")
	b.ReportMetric(0, "ns/op")
}
