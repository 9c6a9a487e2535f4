package cluster

import (
	"strings"
	"testing"
)

// turnsOn gives a cluster that runs without them what the config may ask for later:
// afterwards there is nothing left to do, also in check mode.
func (c *controller) turnsOn(t *testing.T) {
	t.Helper()
	c.kubectl(t, "create secret generic kept --from-literal=word=plain")
	c.configure(t, `
kubernetes:
  # Nothing listens there: events are sent later, and kept meanwhile.
  audit: {enabled: true, webhook: {url: "http://127.0.0.1:1"}}
  certificates: {signing_duration: 17520h}
  patches:
  - {target: kube-apiserver, patch: {metadata: {annotations: {example.com/owner: lab}}}}
  - {target: kubeletconfiguration, type: merge, patch: {maxPods: 99}}
  encryption_at_rest: {enabled: true}
  apiserver: {extra_args: {event-ttl: 2h0m0s}}
  kubelet: {extra_args: {v: "1"}}
security:
  harden: true
  tls_min_version: VersionTLS12
  tls_cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]
  profiling: false
  admission_plugins: [PodNodeSelector]
dns: {coredns: {rewrite: [name exact rewritten.example kubernetes.default.svc.cluster.local]}}
`)
	c.run(t, "create", "cluster", "--yes")
	c.nodesReady(t)
	flags := c.exec(t, c.first(), "tr '\\0' '\\n' </proc/$(pidof kube-apiserver)/cmdline")
	for _, want := range []string{"--audit-policy-file", "--encryption-provider-config", "--event-ttl=2h0m0s",
		"--audit-webhook-config-file", "--profiling=false", "--tls-min-version=VersionTLS12",
		"--enable-admission-plugins=NodeRestriction,PodNodeSelector"} {
		if !strings.Contains(flags, want) {
			t.Errorf("the API server runs without %s", want)
		}
	}
	c.exec(t, c.first(), "test -s /var/log/kubernetes/audit/audit.log")
	for what, want := range map[string]string{
		"-n kube-system get pod kube-apiserver-" + c.name(c.first()) +
			` -o jsonpath='{.metadata.annotations.example\.com/owner}'`: "lab",
		"get node " + c.name(c.first()) + " -o jsonpath='{.status.capacity.pods}'": "99",
	} {
		if got := strings.TrimSpace(c.kubectl(t, what)); got != want {
			t.Errorf("%s: %q, want the patch's %q", what, got, want)
		}
	}
	if got := c.kubectl(t, "get secret kept -o jsonpath='{.data.word}' | base64 -d"); got != "plain" {
		t.Errorf("a secret from before is %q", got)
	}
	kept := c.kubectl(t, "-n kube-system exec etcd-"+c.name(c.first())+
		" -- etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt "+
		"--cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key get /registry/secrets/default/kept --print-value-only | head -c 20 | tr -d '\\0'")
	if !strings.HasPrefix(kept, "k8s:enc:secretbox:") {
		t.Errorf("a secret from before is in etcd as %q", kept)
	}
	c.kubectl(t, "delete secret kept")
	c.run(t, "create", "cluster", "--yes").unchanged(t)
	c.run(t, "create", "cluster", "--yes", "--check").unchanged(t)
}

// runsWhatIsThere replaces kubelet's program, as a run does that is killed then: the
// next one starts it.
func (c *controller) runsWhatIsThere(t *testing.T) {
	t.Helper()
	const program = "readlink /proc/$(systemctl show -P MainPID kubelet)/exe"
	c.exec(t, c.first(), "cd /usr/local/bin && cp -p kubelet kubelet.new && mv kubelet.new kubelet")
	if out := c.exec(t, c.first(), program); !strings.Contains(out, "deleted") {
		t.Fatalf("kubelet runs %s", out)
	}
	c.run(t, "create", "cluster", "--yes")
	if out := strings.TrimSpace(c.exec(t, c.first(), program)); out != "/usr/local/bin/kubelet" {
		t.Errorf("kubelet runs %s", out)
	}
	c.nodesReady(t)
}

// ownKubeconfigIsBack fails the test unless a user's own kubeconfig is what it was before the cluster.
func (c *controller) ownKubeconfigIsBack(t *testing.T) {
	t.Helper()
	if out := c.exec(t, c.first(), "cat /root/.kube/config; rm -r /root/.kube"); out != "mine\n" {
		t.Errorf("the user's kubeconfig is %q", out)
	}
}
