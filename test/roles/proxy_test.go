package roles

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// proxy is a proxy that connects nobody: it notes who asks for what.
type proxy struct {
	address string
	mu      sync.Mutex
	asked   []string
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(hosts.Gateway(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String()}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		login, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.Header.Get("Proxy-Authorization"), "Basic "))
		p.mu.Lock()
		p.asked = append(p.asked, r.Method+" "+r.Host+" "+string(login))
		p.mu.Unlock()
		http.Error(w, "no", http.StatusForbidden)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Shutdown(context.WithoutCancel(t.Context())) })
	return p
}

// saw are the requests so far.
func (p *proxy) saw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, "\n")
}

func TestContainerdPullsThroughAProxy(t *testing.T) {
	p := newProject(t)
	dir, version := upstream(t, "containerd")
	crictl, crictlVersion := upstream(t, "crictl")
	p.command(t, "mkdir", "programs")
	p.command(t, "cp", "-r", dir, "programs/bin")
	p.runtimeFiles(t, p.path("programs"))
	p.archive(t, "crictl.tgz", crictl, "crictl")
	plain := strings.Replace(runtimeConfig(version, ""), "components:\n", "components:\n    crictl: {version: "+
		crictlVersion+", arch: {amd64: {file: crictl.tgz}}}\n", 1)
	relay := newProxy(t)
	config := strings.Replace(plain, "cri:\n", "cri:\n  proxy: {http_proxy: \"http://me:geh%40im@"+relay.address+
		"\", no_proxy: [.corp.example]}\n", 1)

	r := p.role(t, "containerd", "main", "k8s_cluster", oneNode, config, "-v", "--diff").ok()
	if strings.Contains(r.output, "geh%40im") {
		t.Errorf("the password is shown\n%s", r.output)
	}
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, config).changedNothing()
	p.role(t, "containerd", "main", "k8s_cluster", oneNode, config, "--check").changedNothing()
	pull := func(image string) {
		t.Helper()
		on(t, 0, "PATH=$PATH:/usr/local/bin crictl pull "+image+" >/tmp/pull.log 2>&1 || true")
	}
	pull("registry.example.org/app:1")
	pull("registry.corp.example/app:1")
	pull(hosts.Hosts[0].Address + ":5000/app:1")
	if got := relay.saw(); !strings.HasPrefix(got, "CONNECT registry.example.org:443 me:geh@im") ||
		strings.Contains(got, "corp.example") || strings.Contains(got, ":5000") {
		t.Errorf("the proxy was asked for\n%s\n%s", got, on(t, 0, "cat /tmp/pull.log; cat /etc/kubekey/runtime-proxy.env"))
	}
	if got := on(t, 0, "stat -c '%a %U' /etc/kubekey/runtime-proxy.env; systemctl show containerd | grep geh || true"); got != "600 root" {
		t.Errorf("who can read the password: %s", got)
	}

	t.Run("another proxy starts containerd again, none too", func(t *testing.T) {
		environ := "tr '\\0' '\\n' </proc/$(systemctl show -P MainPID containerd)/environ | grep _PROXY= || true"
		other := strings.Replace(config, "me:geh%40im@"+relay.address, "other.example:3128", 1)
		p.role(t, "containerd", "main", "k8s_cluster", oneNode, other).ok()
		if got := on(t, 0, environ); !strings.Contains(got, "HTTPS_PROXY=http://other.example:3128") ||
			!strings.Contains(got, "10.233.0.0/18") {
			t.Errorf("containerd runs with\n%s", got)
		}
		p.role(t, "containerd", "main", "k8s_cluster", oneNode, plain).ok()
		if got := on(t, 0, environ+"; ls /etc/kubekey"); strings.Contains(got, "proxy") || strings.Contains(got, "PROXY") {
			t.Errorf("containerd runs with\n%s", got)
		}
		p.role(t, "containerd", "main", "k8s_cluster", oneNode, plain).changedNothing()
		p.role(t, "containerd", "main", "k8s_cluster", oneNode, config).ok()
	})
	p.role(t, "containerd", "delete", "k8s_cluster", oneNode, config).ok()
	on(t, 0, "test ! -e /etc/kubekey/runtime-proxy.env")
}
