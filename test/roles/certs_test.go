package roles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// certificatesGroups is an external etcd of two, one of them a control plane, and a registry.
const certificatesGroups = `
    kube_control_plane: {hosts: {node1: }}
    etcd: {hosts: {node1: , node2: }}
    image_registry: {hosts: {node3: }}
`

// clock is a client on the control node whose clock is turned by some days.
type clock struct {
	*project
	t    *testing.T
	days int
}

// dial connects to a port of a host as a client with the CA, and with the certificate NAME.
func (c clock) dial(host int, port, ca, name string) error {
	c.t.Helper()
	pki := c.path("work/clusters/kk/pki") + "/"
	text, err := os.ReadFile(pki + ca)
	if err != nil {
		c.t.Fatal(err)
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), Time: c.now}
	config.RootCAs.AppendCertsFromPEM(text)
	if name != "" {
		pair, err := tls.LoadX509KeyPair(pki+name+".crt", pki+name+".key")
		if err != nil {
			c.t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	conn, err := tls.Dial("tcp", net.JoinHostPort(hosts.Hosts[host].Address, port), config)
	if err != nil {
		return err
	}
	// A server that rejects the client's certificate says so after the handshake. A peer of etcd only hangs up: the
	// client does not have node2's address.
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := conn.Read(make([]byte, 1)); err != nil && !os.IsTimeout(err) && !errors.Is(err, io.EOF) {
		return err
	}
	return conn.Close()
}

func (c clock) now() time.Time { return time.Now().Add(time.Duration(c.days) * 24 * time.Hour) }

// served is what a client finds at each place that serves a certificate of the control node.
func (p *project) served(t *testing.T, days int) map[string]error {
	t.Helper()
	c := clock{p, t, days}
	return map[string]error{
		"etcd on node1": c.dial(0, "2379", "etcd/ca.crt", "etcd/client"),
		"etcd on node2": c.dial(1, "2379", "etcd/ca.crt", "etcd/client"),
		"peer on node1": c.dial(0, "2380", "etcd/ca.crt", "etcd/peer-node2"),
		"registry":      c.dial(2, "443", "registry/ca.crt", ""),
		"the client":    c.accepts("/etc/kubernetes/pki/apiserver-etcd-client.crt"),
	}
}

// accepts verifies the certificate of a client on the first host, as a server whose clock is turned does.
func (c clock) accepts(path string) error {
	c.t.Helper()
	c.write(c.t, "client.crt", on(c.t, 0, "cat "+path))
	out, err := exec.CommandContext(c.t.Context(), "openssl", "verify", "-purpose", "sslclient", "-attime",
		strconv.FormatInt(c.now().Unix(), 10), "-CAfile", c.path("work/clusters/kk/pki/etcd/ca.crt"),
		c.path("client.crt")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Nobody renews what the control node signs while it rests: it lasts as long as its CA.
func TestCertificatesOfTheControlNode(t *testing.T) {
	p := newProject(t)
	registry, version := upstream(t, "registry")
	p.archive(t, "registry.tar.gz", registry, "registry")
	config := "etcd: {deployment_type: external}\nimage_registry: {password: geheim}\n" + catalogOf(p.etcdComponent(t),
		fmt.Sprintf("registry: {version: %s, arch: {amd64: {file: registry.tar.gz}}}", version))
	playbook, err := os.ReadFile("../../builtin/playbooks/certs_check.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kernel := ownKernels(t, 1)
	p.write(t, "playbooks/certs_check.yaml", string(playbook))
	defer func() {
		on(t, 0, "rm -rf /etc/kubernetes")
		p.role(t, "image_registry", "delete", "image_registry", certificatesGroups, config, "-e", "delete_with_data=true").ok()
		p.role(t, "etcd", "delete", "etcd", certificatesGroups, config, "-e", "delete_with_data=true").ok()
	}()
	on(t, 0, "mkdir -p /etc/kubernetes/pki")
	apply := func(config string, args ...string) (all []run) {
		t.Helper()
		for _, r := range [][3]string{{"init", "certs", "localhost"}, {"etcd", "main", "etcd"},
			{"image_registry", "main", "image_registry"}, {"certs", "etcd_client", "kube_control_plane"}} {
			all = append(all, p.role(t, r[0], r[1], r[2], certificatesGroups, config, args...).ok())
		}
		return all
	}
	unchanged := func(config string, args ...string) {
		t.Helper()
		for _, r := range apply(config, args...) {
			r.changedNothing()
		}
	}
	check := func(before string) run {
		t.Helper()
		return p.kk(t, "certs_check", certificatesGroups, config, "--set", "kubernetes.certificates.renew.before_days="+before)
	}
	short := config + "kubernetes: {certificates: {days: 200}}\n"

	t.Run("made for less than a year, they expire", func(t *testing.T) {
		apply(short)
		unchanged(short)
		for what, err := range p.served(t, 0) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, err := range p.served(t, 400) {
			if err == nil || !strings.Contains(err.Error(), "expired") {
				t.Errorf("%s: %v, want that it expired", what, err)
			}
		}
	})

	t.Run("etcd stops with them", func(t *testing.T) {
		if got := p.etcdAfter(t, kernel, 400); got != "certificate has expired" {
			t.Errorf("after 400 days etcd is %q", got)
		}
	})

	t.Run("the check finds all of them on all hosts", func(t *testing.T) {
		r := check("300")
		for _, path := range []string{"/etc/ssl/etcd/server.crt", "/etc/ssl/etcd/peer.crt", "/etc/ssl/etcd/client.crt",
			"/etc/kubernetes/pki/apiserver-etcd-client.crt", "/etc/kk-registry/certs/server.crt", "/pki/etcd/client.crt"} {
			want := 1
			if strings.Contains(path, "/ssl/") {
				want = 2
			}
			if got := len(regexp.MustCompile(`(?m)! +199 days .*`+path+`\b`).FindAllString(r.output, -1)); got != want {
				t.Errorf("%s is reported %d times, want %d", path, got, want)
			}
		}
		if r.code != 2 || !strings.Contains(r.output, "certificates expire within 300 days") {
			t.Errorf("exit code %d\n%s", r.code, r.output)
		}
	})

	t.Run("the next run makes long ones, which are in use", func(t *testing.T) {
		before := started(t, 0)
		p.role(t, "init", "certs", "localhost", certificatesGroups, config, "--check").ok()
		apply(config)
		if after := started(t, 0); after != before {
			t.Error("etcd was started again")
		}
		for _, days := range []int{0, 400, 3600} {
			for what, err := range p.served(t, days) {
				if err != nil {
					t.Errorf("%s after %d days: %v", what, days, err)
				}
			}
		}
		unchanged(config)
		unchanged(config, "--check")
		r := check("300").ok()
		if strings.Contains(r.output, "! ") || !strings.Contains(r.output, "/etc/kk-registry/certs/server.crt") {
			t.Error(r.output)
		}
	})

	t.Run("etcd runs with them when they are old", func(t *testing.T) {
		for _, days := range []int{400, 3600} {
			if got := p.etcdAfter(t, kernel, days); got != "healthy" {
				t.Errorf("after %d days etcd is %q", days, got)
			}
		}
	})

	t.Run("they are renewed on demand, and never outlive their CA", func(t *testing.T) {
		const print = "openssl x509 -noout -fingerprint -in /etc/ssl/etcd/server.crt"
		before := on(t, 1, print)
		apply(config, "-e", "init_policy=always")
		if on(t, 1, print) == before {
			t.Error("the certificate of etcd is the old one")
		}
		for what, err := range p.served(t, 3600) {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		on(t, 0, "openssl x509 -checkend $((3649 * 86400)) -noout -in /etc/ssl/etcd/server.crt")
		on(t, 0, "! openssl x509 -checkend $((3651 * 86400)) -noout -in /etc/ssl/etcd/server.crt")
	})
}
