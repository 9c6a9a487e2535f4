package rendered

import (
	"strings"
	"testing"
)

const secure = `
security:
  tls_min_version: VersionTLS12
  tls_cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]
  profiling: false
  admission_plugins: [AlwaysPullImages, PodNodeSelector]
  protect_kubelet: true
`

// Each switch of security is a flag of every component that has it, and a line of KubeletConfiguration.
func TestSecurityIsSetEverywhere(t *testing.T) {
	t.Parallel()
	const suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"
	text, _ := content(created(t, plain("1.34"), withConfig(t, secure)...), "n1", "/etc/kubernetes/kubeadm.yaml")
	for what, want := range map[string]int{
		`{"name": "tls-min-version", "value": "VersionTLS12"}`:                                              3,
		`{"name": "tls-cipher-suites", "value": "` + suites + `"}`:                                          3,
		`{"name": "profiling", "value": "false"}`:                                                           3,
		`{"name": "enable-admission-plugins", "value": "NodeRestriction,AlwaysPullImages,PodNodeSelector"}`: 1,
		`{"name": "tls-min-version", "value": "TLS1.2"}`:                                                    1, // etcd
		`{"name": "cipher-suites", "value": "` + suites + `"}`:                                              1,
		"\nprotectKernelDefaults: true\n":                                                                   1,
		"\nreadOnlyPort: 0\n":                                                                               1,
		"\nstreamingConnectionIdleTimeout: 5m0s\n":                                                          1,
		"\nenableProfilingHandler: false\n":                                                                 1,
		"\ntlsMinVersion: VersionTLS12\n":                                                                   1,
		"\n- TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n":                                                       1,
		"\nmaxPods: 110\n":                                                                                  1,
	} {
		if got := strings.Count(text, what); got != want {
			t.Errorf("%d times %q, want %d:\n%s", got, what, want, text)
		}
	}
}

// An etcd on its own hosts has the same.
func TestSecurityOfExternalEtcd(t *testing.T) {
	t.Parallel()
	c := plain("1.30")
	c["etcd"] = "external"
	env := ""
	for _, f := range created(t, c, withConfig(t, secure)...).Files() {
		if strings.HasSuffix(f.Path, "/etcd.env") {
			env = f.Content
		}
	}
	for _, want := range []string{"\nETCD_TLS_MIN_VERSION=TLS1.2\n",
		"\nETCD_CIPHER_SUITES=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("no %q in\n%s", want, env)
		}
	}
}

// Without the switches, nothing of it is set.
func TestSecurityIsOffByDefault(t *testing.T) {
	t.Parallel()
	text, _ := content(created(t, plain("1.34")), "n1", "/etc/kubernetes/kubeadm.yaml")
	for _, never := range []string{"tls-", "tlsMin", "profiling", "Profiling", "admission", "protectKernel", "cipher"} {
		if strings.Contains(text, never) {
			t.Errorf("%s in\n%s", never, text)
		}
	}
}
