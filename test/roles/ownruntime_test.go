package roles

import (
	"context"
	"strings"
	"testing"
)

// ownContainerd is a containerd of the distribution with settings and data of its own, and a login of docker.
const ownContainerd = `export DEBIAN_FRONTEND=noninteractive
mkdir -p /etc/containerd /root/.docker
printf 'version = 2\nroot = "/srv/containerd"\noom_score = 0\n' >/etc/containerd/config.toml
printf 'runtime-endpoint: unix:///run/containerd/containerd.sock\n' >/etc/crictl.yaml
echo '{"auths": {"registry.example": {"auth": "bWU6Z2VoZWlt"}}}' >/root/.docker/config.json
{ apt-get update -q && apt-get install -q -y --no-install-recommends -o Dpkg::Options::=--force-confold containerd; } >/tmp/apt.log 2>&1 || cat /tmp/apt.log
systemctl restart containerd
echo mine >/srv/containerd/mine`

const ownState = `systemctl show -p FragmentPath,ActiveState,UnitFileState containerd
cat /etc/containerd/config.toml /etc/crictl.yaml /root/.docker/config.json /srv/containerd/mine
ls -a /etc/containerd /root/.docker /etc/kubekey 2>/dev/null; ctr version | grep -A1 Server
`

func TestContainerdOfTheHostIsKept(t *testing.T) {
	p := newProject(t)
	dir, version := upstream(t, "containerd")
	p.command(t, "mkdir", "programs")
	p.command(t, "cp", "-r", dir, "programs/bin")
	p.runtimeFiles(t, p.path("programs"))
	config := strings.Replace(runtimeConfig(version, ""), "containerd: {config: ", "containerd: {data_dir: /srv/containerd, config: ", 1)
	replace := strings.Replace(config, "cri:\n", "cri:\n  replace_existing: true\n", 1)
	on(t, 0, ownContainerd)
	t.Cleanup(func() {
		undo := `DEBIAN_FRONTEND=noninteractive apt-get purge -q -y containerd >/dev/null
rm -rf /etc/containerd /etc/crictl.yaml /root/.docker /srv/containerd /etc/kubekey/cri`
		if _, err := hosts.Exec(context.WithoutCancel(t.Context()), 0, undo); err != nil {
			t.Error(err)
		}
	})
	before := on(t, 0, "rmdir /etc/kubekey 2>/dev/null; "+ownState+listing)

	r := p.role(t, "precheck", "cri", "k8s_cluster", oneNode, config)
	if r.code != 2 || !strings.Contains(r.output, "found: containerd of containerd, which kk did not install") ||
		!strings.Contains(r.output, "fix: remove the package containerd; or set cri.replace_existing") {
		t.Errorf("exit code %d\n%s", r.code, r.output)
	}
	p.role(t, "precheck", "cri", "k8s_cluster", oneNode, replace).changedNothing()
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, replace).ok()
	got := on(t, 0, "systemctl show -p FragmentPath --value containerd; ls /srv/containerd.before-kk/mine; cat /etc/containerd.before-kk/config.toml; /usr/local/bin/ctr version | grep -A1 Server")
	for _, want := range []string{"/etc/systemd/system/containerd.service", "/srv/containerd.before-kk/mine", "version = 2",
		version} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, replace).changedNothing()
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, replace, "--check").changedNothing()
	p.role(t, "precheck", "cri", "k8s_cluster", oneNode, config).changedNothing()

	p.role(t, "containerd", "delete", "k8s_cluster", oneNode, replace).ok()
	if after := on(t, 0, "rmdir /etc/kubekey 2>/dev/null; "+ownState+listing); after != before {
		t.Errorf("the host differs from before:\n%s", difference(before, after))
	}
	p.role(t, "containerd", "delete", "k8s_cluster", oneNode, replace).changedNothing()
}
