package roles

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const oneNode = `
    kube_control_plane: {hosts: {node1: }}
    kube_worker: {hosts: {node1: }}
    k8s_cluster: {children: {kube_control_plane: , kube_worker: }}
`

// runtimeConfig names the archives that runtimeFiles makes. The hosts of the
// lab may not lower the score by which the kernel ends processes.
func runtimeConfig(version, more string) string {
	return fmt.Sprintf(`
cri:
  cgroup_driver: cgroupfs
  containerd: {config: {plugins: {io.containerd.cri.v1.runtime: {restrict_oom_score_adj: true}}}}
  registries:
    mirrors: {docker.io: {endpoints: ["https://mirror.example:5000"], skip_verify: true}}
    auth: {"mirror.example:5000": {username: me, password: geheim}}
catalog:
  components:
    containerd: {version: %s, arch: {amd64: {file: containerd.tar.gz}}}
    runc: {version: v1.1.5, arch: {amd64: {file: runc}}}
    cni_plugins: {version: v1.9.1, arch: {amd64: {file: cni.tgz}}}
  images: {pause: {ref: "registry.example/pause:3.10.1"}}
%s`, version, more)
}

// runtimeFiles puts programs of containerd, as they lie in bin below dir, and
// Debian's runc and plugins of CNI into the cache.
func (p *project) runtimeFiles(t *testing.T, dir string) {
	t.Helper()
	p.archive(t, "containerd.tar.gz", dir, "bin")
	p.debian(t, "runc")
	p.command(t, "cp", "debian/usr/sbin/runc", "work/cache/runc")
	p.debian(t, "containernetworking-plugins")
	p.archive(t, "cni.tgz", p.path("debian/usr/lib/cni"), "./")
}

// debian unpacks a package of Debian into the folder debian.
func (p *project) debian(t *testing.T, name string) {
	t.Helper()
	p.command(t, "sh", "-c", `d=$(mktemp -d) && cd "$d" && apt-get download -q "$1" && dpkg-deb -x ./*.deb "$2/debian"`,
		"sh", name, p.dir)
}

func TestContainerd2(t *testing.T) {
	p := newProject(t)
	dir, version := upstream(t, "containerd")
	p.command(t, "mkdir", "programs")
	p.command(t, "cp", "-r", dir, "programs/bin")
	p.runtimeFiles(t, p.path("programs"))
	config := runtimeConfig(version, "")

	p.role(t, "containerd", "main", "k8s_cluster", oneNode, config, "--check").ok()
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, config).ok()
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, config).changedNothing()
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, config, "--check").changedNothing()

	dump := on(t, 0, "/usr/local/bin/containerd config dump")
	for _, want := range []string{"sandbox = 'registry.example/pause:3.10.1'", "config_path = '/etc/containerd/certs.d'",
		"SystemdCgroup = false", "restrict_oom_score_adj = true"} {
		if !strings.Contains(dump, want) {
			t.Errorf("the settings lack %s\n%s", want, dump)
		}
	}
	if got := on(t, 0, "cat /etc/containerd/certs.d/docker.io/hosts.toml; stat -c %a /etc/containerd/certs.d/docker.io/hosts.toml"); got != `server = "https://registry-1.docker.io"

[host."https://mirror.example:5000"]
  capabilities = ["pull", "resolve"]
  skip_verify = true
  [host."https://mirror.example:5000".header]
    authorization = "Basic bWU6Z2VoZWlt"
600` {
		t.Errorf("docker.io is reached by\n%s", got)
	}
	on(t, 0, "/usr/local/bin/ctr version && systemd-analyze verify /etc/systemd/system/containerd.service && /usr/local/bin/runc --version && test -x /opt/cni/bin/bridge")

	t.Run("settings that containerd refuses do not reach it", func(t *testing.T) {
		r := p.role(t, "containerd", "main", "k8s_cluster", oneNode,
			strings.Replace(config, "restrict_oom_score_adj: true", "restrict_oom_score_adj: maybe", 1))
		if r.code != 2 {
			t.Errorf("exit code %d\n%s", r.code, r.output)
		}
		if got := on(t, 0, "/usr/local/bin/containerd config dump"); got != dump {
			t.Errorf("the settings are now\n%s", got)
		}
	})

	t.Run("new settings start it again, also those of an interrupted run", func(t *testing.T) {
		before := on(t, 0, "systemctl show -P ActiveEnterTimestampMonotonic containerd")
		on(t, 0, "sleep 1; echo >>/etc/containerd/config.toml")
		p.role(t, "containerd", "main", "k8s_cluster", oneNode, config).ok()
		if on(t, 0, "systemctl show -P ActiveEnterTimestampMonotonic containerd") == before {
			t.Error("containerd did not read its new settings")
		}
		p.role(t, "containerd", "main", "k8s_cluster", oneNode, config).changedNothing()
	})

	t.Run("it is removed, and what was not ours stays", func(t *testing.T) {
		on(t, 0, "touch /opt/cni/bin/other")
		p.role(t, "containerd", "delete", "k8s_cluster", oneNode, config).ok()
		got := on(t, 0, "ls -d /opt/containerd /etc/containerd /run/containerd /etc/crictl.yaml /etc/systemd/system/containerd.service /usr/local/bin/* 2>/dev/null; ls /opt/cni/bin /var/lib/containerd; pgrep -a containerd || true")
		if got != "/opt/cni/bin:\nother\n\n/var/lib/containerd:" {
			t.Errorf("left are\n%s", got)
		}
		p.role(t, "containerd", "delete", "k8s_cluster", oneNode, config).changedNothing()
	})
}

// Debian's containerd is of the series 1, whose settings are of version 2.
func TestContainerd1(t *testing.T) {
	p := newProject(t)
	if _, err := os.Stat("/usr/bin/dpkg-deb"); err != nil {
		t.Skip("needs dpkg-deb to take Debian's containerd: " + err.Error())
	}
	p.debian(t, "containerd")
	p.runtimeFiles(t, p.path("debian/usr"))
	more := "image_registry: {password: geheim2}\n"
	config := strings.Replace(runtimeConfig("v1.7.28", more), "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri",
		1)
	group := oneNode + "    image_registry: {hosts: {node3: }}\n"
	p.certificate(t, nil, "registry/ca", caTemplate())

	p.role(t, "containerd", "main", "k8s_cluster", group, config).ok()
	p.role(t, "containerd", "main", "k8s_cluster", group, config).changedNothing()
	dump := on(t, 0, "/usr/local/bin/containerd --config /etc/containerd/config.toml config dump")
	for _, want := range []string{`version = 2`, `sandbox_image = "registry.example/pause:3.10.1"`,
		"SystemdCgroup = false", "restrict_oom_score_adj = true"} {
		if !strings.Contains(dump, want) {
			t.Errorf("the settings lack %s\n%s", want, dump)
		}
	}
	own := on(t, 0, "cat /etc/containerd/certs.d/registry.kk.local/hosts.toml; ls /etc/containerd/certs.d/registry.kk.local")
	for _, want := range []string{`ca = "/etc/containerd/certs.d/registry.kk.local/ca.crt"`, `authorization = "Basic `,
		"ca.crt\n"} {
		if !strings.Contains(own, want) {
			t.Errorf("our registry is reached without %s\n%s", want, own)
		}
	}
	p.role(t, "containerd", "delete", "k8s_cluster", group, config).ok()
}

func TestContainerdConfigIsTheWholeWithOverride(t *testing.T) {
	p := newProject(t)
	p.debian(t, "containerd")
	p.runtimeFiles(t, p.path("debian/usr"))
	config := runtimeConfig("v1.7.28", "")
	config = strings.Replace(config, "{config: {plugins: {io.containerd.cri.v1.runtime: {restrict_oom_score_adj: true}}}}",
		"{config_policy: override, config: {version: 2, oom_score: 7}}", 1)
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, config).ok()
	if got := on(t, 0, "cat /etc/containerd/config.toml"); got != "oom_score = 7\nversion = 2" {
		t.Errorf("the settings are\n%s", got)
	}
	p.role(t, "containerd", "delete", "k8s_cluster", oneNode, config).ok()
}
