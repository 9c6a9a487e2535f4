package roles

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"kubekey/pkg/artifact/artifacttest"
)

const twoRegistries = `
    image_registry: {hosts: {node2: , node3: }}
`

// registries is the part of a config, and of the control node, that both kinds of registries have.
func (p *project) registries(t *testing.T, kind string) (config string, renew func()) {
	t.Helper()
	upstream := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(upstream.Close)
	from := strings.TrimPrefix(upstream.URL, "http://")
	ref, err := name.ParseReference(from+"/pause:3.10", name.Insecure)
	if err == nil {
		err = remote.WriteIndex(ref, artifacttest.PlatformIndex(t, "amd64", "arm64"))
	}
	if err != nil {
		t.Fatal(err)
	}
	ca := &authority{}
	ca.cert, ca.key = p.certificate(t, nil, "registry/ca", caTemplate())
	renew = func() {
		for _, h := range hosts.Hosts {
			p.certificate(t, ca, "registry/server-"+h.Name, &x509.Certificate{DNSNames: []string{"registry.kk.local", h.Name},
				IPAddresses: []net.IP{net.ParseIP(h.Address), net.IPv4(127, 0, 0, 1)}})
		}
	}
	renew()
	repository := map[string]string{"registry": "pause", "harbor": "library/pause"}[kind]
	return fmt.Sprintf(`
image_registry: {type: %s, password: right-password}
cri: {registries: {mirrors: {%q: {endpoints: ["http://%s"]}}}}
catalog:
  components:
    registry: {version: v3.1.2, arch: {amd64: {file: registry.tgz}}}
    harbor: {version: v2.14.1, arch: {amd64: {file: harbor.tgz}}}
    docker: {version: v28.0.0, arch: {amd64: {file: docker.tgz}}}
    docker_compose: {version: v2.0.0, arch: {amd64: {file: docker-compose}}}
  images:
    pause: {group: kubernetes, source: "%s/pause:3.10", repository: %s, tag: "3.10"}
`, kind, from, from, from, repository), renew
}

const registryPlay = `
- name: Set up registries
  hosts: image_registry
  become: true
  pre_tasks:
    - name: Install packages, as the role os does
      include_role: {name: packages, tasks_from: install}
      vars: {packages_names: "{{ packages_registry }}"}
  roles: [image_registry]

- name: Push images
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Push
      include_role: {name: image_registry, tasks_from: images}
`

// serial is the number of the certificate that a host's registry has.
func serial(t *testing.T, host int) string {
	t.Helper()
	conn, err := tls.Dial("tcp", hosts.Hosts[host].Address+":443", &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // looks
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // only read
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// has reports whether a host's registry has an image.
func has(t *testing.T, host int, image string) bool {
	t.Helper()
	ref, err := name.ParseReference(hosts.Hosts[host].Address + "/" + image)
	if err != nil {
		t.Fatal(err)
	}
	out, err := hosts.Exec(t.Context(), host, "curl -sfk -u admin:right-password -o /dev/null -w '%{http_code}' "+
		"https://127.0.0.1/v2/"+ref.Context().RepositoryStr()+"/manifests/"+ref.Identifier())
	return err == nil && strings.TrimSpace(out) == "200"
}

func TestRegistriesReadNewCertificates(t *testing.T) {
	p := newProject(t)
	dir, _ := upstream(t, "registry")
	p.archive(t, "registry.tgz", dir, "registry")
	config, renew := p.registries(t, "registry")
	p.write(t, "playbooks/registry.yaml", registryPlay)
	p.kk(t, "registry", twoRegistries, config).ok()
	p.kk(t, "registry", twoRegistries, config).changedNothing()
	for _, host := range []int{1, 2} {
		if !has(t, host, "pause:3.10") {
			t.Errorf("%s lacks the image", hosts.Hosts[host].Name)
		}
	}
	before := serial(t, 1)
	renew()
	p.kk(t, "registry", twoRegistries, config).ok()
	if serial(t, 1) == before {
		t.Error("the registry has its old certificate")
	}
	p.kk(t, "registry", twoRegistries, config).changedNothing()

	t.Run("also where kk was killed between the file and the restart", func(t *testing.T) {
		before := on(t, 1, "systemctl show -P ActiveEnterTimestampMonotonic kk-registry")
		on(t, 1, "sleep 1; touch /etc/kk-registry/certs/server.crt")
		p.kk(t, "registry", twoRegistries, config).ok()
		if on(t, 1, "systemctl show -P ActiveEnterTimestampMonotonic kk-registry") == before {
			t.Error("the registry was not restarted")
		}
	})
	p.role(t, "image_registry", "delete", "image_registry", twoRegistries, config, "-e", "delete_with_data=true").ok()
	if left := on(t, 1, "ls -d /etc/kk-registry /usr/local/bin/registry /run/kk-registry /var/lib/kk-registry 2>/dev/null || true"); left != "" {
		t.Errorf("left is %s", left)
	}
}

// Docker and Harbor are stand-ins here; the role is not.
func TestHarbor(t *testing.T) {
	p := newProject(t)
	p.write(t, "docker/none", "")
	p.write(t, "harbor/install.sh", "#!/bin/sh\nset -e\necho installed >>/var/log/harbor-runs\n./prepare\ndocker compose up -d\n")
	p.write(t, "harbor/prepare", "#!/bin/sh\nset -e\necho prepared >>/var/log/harbor-runs\ndocker run prepare\n")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", p.path("docker/docker"),
		"kubekey/test/harbor/cmd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.command(t, "sh", "-c", "chmod 755 harbor/*; rm docker/none; cp docker/docker docker/dockerd")
	p.archive(t, "docker.tgz", p.dir, "docker")
	p.archive(t, "harbor.tgz", p.dir, "harbor")
	p.write(t, "work/cache/docker-compose", "")
	config, renew := p.registries(t, "harbor")
	p.write(t, "playbooks/registry.yaml", registryPlay)
	on(t, 1, "rm -f /var/log/harbor-runs; dpkg --purge --force-depends iptables >/dev/null 2>&1 || true")

	p.kk(t, "registry", twoRegistries, config).ok()
	r := p.kk(t, "registry", twoRegistries, config)
	r.changedNothing()
	if strings.Contains(r.output, "right-password") {
		t.Error("the password is shown")
	}
	for _, host := range []int{1, 2} {
		if !has(t, host, "library/pause:3.10") {
			t.Errorf("%s lacks the image", hosts.Hosts[host].Name)
		}
	}

	t.Run("what is pushed to one host is on the other", func(t *testing.T) {
		for from, to := range map[int]int{1: 2, 2: 1} {
			image := fmt.Sprintf("library/from%d:1", from)
			push(t, from, image)
			on(t, to, "for i in $(seq 50); do curl -sfk -u admin:right-password -o /dev/null https://127.0.0.1/v2/"+
				strings.Replace(image, ":", "/manifests/", 1)+" && exit; sleep 0.2; done; exit 1")
		}
	})

	t.Run("new certificates are copied and served", func(t *testing.T) {
		before := serial(t, 1)
		renew()
		p.kk(t, "registry", twoRegistries, config).ok()
		if serial(t, 1) == before {
			t.Error("Harbor has its old certificate")
		}
		if got := on(t, 1, "cat /var/log/harbor-runs"); got != "installed\nprepared\nprepared" {
			t.Errorf("Harbor's programs were run as\n%s", got)
		}
	})
	p.role(t, "image_registry", "delete", "image_registry", twoRegistries, config, "-e", "delete_with_data=true").ok()
	if left := on(t, 1, "ls -d /opt/harbor /etc/kk-registry /var/lib/kk-registry /usr/local/bin/docker* 2>/dev/null || true"); left != "" {
		t.Errorf("left is %s", left)
	}
}

// push pushes an image to a host as the cluster's users do.
func push(t *testing.T, host int, image string) {
	t.Helper()
	ref, err := name.ParseReference("registry.kk.local/" + image)
	if err != nil {
		t.Fatal(err)
	}
	err = remote.Write(ref, artifacttest.PlatformImage(t, "amd64"), remote.WithTransport(reach(host)),
		remote.WithAuth(&authn.Basic{Username: "admin", Password: "right-password"}))
	if err != nil {
		t.Fatal(err)
	}
}

// reach connects to a host, whatever the name.
func reach(host int) *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the lab's own
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, hosts.Hosts[host].Address+":443")
		}}
}
