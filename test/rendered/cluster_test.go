package rendered

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kubekey/builtin"
	"kubekey/test/simulated"
)

// dimension is something in which clusters differ.
type dimension struct {
	name   string
	values []string
	beside bool // not a part of the whole product: its values take turns there
}

// minors are the releases of Kubernetes in the catalog.
func minors(t testing.TB) []string {
	t.Helper()
	text, err := builtin.FS().Open("catalog/versions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	var file struct{ Versions map[string]any }
	if err := yaml.NewDecoder(text).Decode(&file); err != nil {
		t.Fatal(err)
	}
	var out []string
	for name := range file.Versions {
		if strings.HasPrefix(name, "1.") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// plugins are the network plugins that the config may name.
func plugins(t testing.TB) []string {
	t.Helper()
	var schema struct {
		Properties struct {
			CNI struct {
				Properties struct {
					Type struct{ Enum []string }
				}
			}
		}
	}
	readYAML(t, "config/schema.yaml", &schema)
	all := slices.DeleteFunc(schema.Properties.CNI.Properties.Type.Enum, func(s string) bool { return s == "none" })
	if len(all) == 0 {
		t.Fatal("config/schema.yaml names no network plugin")
	}
	return all
}

func dimensions(t testing.TB) []dimension {
	return []dimension{
		{name: "minor", values: minors(t)},
		{name: "cni", values: plugins(t)},
		{name: "runtime", values: []string{"containerd", "docker"}},
		{name: "endpoint", values: []string{"local", "kube_vip", "haproxy"}},
		{name: "family", values: []string{"v4", "v6", "dual"}},
		{name: "etcd", values: []string{"internal", "external"}, beside: true},
		{name: "registry", values: []string{"none", "registry", "harbor"}, beside: true},
		{name: "proxy", values: []string{"iptables", "ipvs", "nftables", "off"}, beside: true},
		{name: "more", values: []string{"no", "yes"}, beside: true},
	}
}

// cluster is one choice of a value for each dimension, by its name.
type cluster map[string]string

func (c cluster) name(ds []dimension) string {
	var words []string
	for _, d := range ds {
		words = append(words, c[d.name])
	}
	return strings.Join(words, "-")
}

// all is every combination, with the values of the dimensions beside taking turns.
func all(ds []dimension) []cluster {
	out := []cluster{{}}
	for _, d := range ds {
		if d.beside {
			continue
		}
		var more []cluster
		for _, c := range out {
			for _, v := range d.values {
				more = append(more, c.with(d.name, v))
			}
		}
		out = more
	}
	for i, c := range out {
		for _, d := range ds {
			if d.beside {
				c[d.name] = d.values[i%len(d.values)]
				i /= len(d.values)
			}
		}
	}
	return out
}

func (c cluster) with(name, v string) cluster {
	out := cluster{name: v}
	for k, v := range c {
		out[k] = v
	}
	return out
}

// pair is two values that meet in a cluster.
type pair [4]string

// pairs are the pairs that a value makes with what is chosen already.
func (c cluster) pairs(name, v string) []pair {
	var out []pair
	for other, w := range c {
		if other == name {
			continue
		}
		if other < name {
			out = append(out, pair{other, w, name, v})
		} else {
			out = append(out, pair{name, v, other, w})
		}
	}
	return out
}

// pairwise are clusters in which every two values of two dimensions meet.
func pairwise(ds []dimension) []cluster {
	missing := map[pair]bool{}
	var order []pair
	for i, a := range ds {
		for _, b := range ds[:i] {
			for _, v := range a.values {
				for _, w := range b.values {
					p := (cluster{b.name: w}).pairs(a.name, v)[0]
					missing[p] = true
					order = append(order, p)
				}
			}
		}
	}
	var out []cluster
	for _, p := range order {
		if !missing[p] {
			continue
		}
		c := cluster{p[0]: p[1], p[2]: p[3]}
		for _, d := range ds {
			if c[d.name] == "" {
				c[d.name] = c.best(d, missing)
			}
		}
		for name, v := range c {
			for _, met := range c.pairs(name, v) {
				delete(missing, met)
			}
		}
		out = append(out, c)
	}
	return out
}

// best is the value that makes the most pairs that are missing.
func (c cluster) best(d dimension, missing map[pair]bool) string {
	most, best := -1, ""
	for _, v := range d.values {
		n := 0
		for _, p := range c.pairs(d.name, v) {
			if missing[p] {
				n++
			}
		}
		if n > most {
			most, best = n, v
		}
	}
	return best
}

func (c cluster) layout() simulated.Layout {
	l := simulated.Layout{Family: c["family"], ControlPlanes: 3, Workers: 2, NFS: c["more"] == "yes", Isolated: c["more"] == "yes"}
	if c["registry"] != "none" {
		l.Registries = 1
		if c["more"] == "yes" {
			l.Registries = 2
		}
	}
	if c["etcd"] == "external" {
		l.Etcd = 3
	}
	return l
}

// Secrets of the config, each in a place of its own.
var planted = map[string]string{
	"of the registry": "pl4nted-registry-password", "of a login": "pl4nted-login-password",
	"of a BGP peer": "pl4nted-bgp-password",
	"of the proxy":  "pl4nted-proxy-password", "key of a host": simulated.PlantedKey,
	"token of kubeadm": simulated.PlantedToken, "of the audit webhook": "pl4nted-webhook-token",
}

var ranges = map[string]string{
	"v4":   "{pod_cidr: 10.233.64.0/18, service_cidr: 10.233.0.0/18}",
	"v6":   "{pod_cidr: 'fd85:1::/56', service_cidr: 'fd85::/108'}",
	"dual": "{pod_cidr: '10.233.64.0/18,fd85:1::/56', service_cidr: '10.233.0.0/18,fd85::/108'}",
}

// config is the cluster's config as a file has it.
func (c cluster) config(dir string) string {
	vip, dns := "10.0.9.9", "169.254.25.10"
	if c["family"] == "v6" {
		vip, dns = "fd00::9:9", "fd00:a::10"
	}
	shared := vip // of two families the cluster's own address is of the first, that of the registry of the second
	if c["family"] == "dual" {
		shared = "fd00::9:8"
	}
	proxy := "{mode: " + c["proxy"] + "}"
	if c["proxy"] == "nftables" && c["minor"] < "1.31" { // which a rule rejects
		proxy = "{mode: iptables}"
	}
	if c["proxy"] == "off" {
		proxy = "{enabled: false}"
	}
	bgp := ""
	if c["more"] == "yes" {
		bgp = ", mode: bgp, bgp: {router_id: 10.0.0.1, local_as: 65000, peers: [{address: 10.0.0.253, as: 65001, password: pl4nted-bgp-password}]}"
	}
	tuned := ""
	if c["more"] == "yes" {
		tuned = ", performance: true, traffic_priority: true"
	}
	registry := c["registry"]
	if registry == "none" {
		registry = "registry"
	}
	text := fmt.Sprintf(`
kubernetes:
  kube_version: v%s.%d
  networking: %s
  kube_proxy: %s
  control_plane_endpoint: {type: %s, kube_vip: {address: '%s'%s}}
cri:
  container_manager: %s
  registries: {auth: {private.example: {username: me, password: pl4nted-login-password}}, mirrors: {docker.io: {endpoints: ['https://mirror.example']}}}
cni: {type: %s, multus: {enabled: %t}}
etcd: {deployment_type: %s%s}
dns: {nodelocaldns: {address: '%s'}}
image_registry: {type: %s, password: pl4nted-registry-password, vip: {address: '%s'}}
download: {proxy: 'http://me:pl4nted-proxy-password@127.0.0.1:1'}
`, c["minor"], patch(c["minor"]), ranges[c["family"]], proxy, c["endpoint"], vip, bgp, c["runtime"], c["cni"],
		c["more"] == "yes", c["etcd"], tuned, dns, registry, shared)
	if c["cni"] == "kubeovn" { // which a precheck rejects for old releases; what is made of it is looked at all the same
		text += "cluster_require: {network_plugin_kube_versions: {kubeovn: v1.25.0}}\n"
	}
	if c["more"] == "yes" {
		text += fmt.Sprintf(more, dir, dir)
	}
	return text
}

// patch is a release of a minor: 1.34.4 is the one that is built from source.
func patch(minor string) int {
	if minor == "1.34" {
		return 4
	}
	return 0
}

// more is what a config may have beside.
const more = `
metrics_server: {enabled: true}
security:
  harden: true
  tls_min_version: VersionTLS12
  tls_cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]
  profiling: false
  admission_plugins: [AlwaysPullImages]
  protect_kubelet: true
storage: {local: {provider: openebs}, nfs: {enabled: true}}
nfs: {exports: [{path: /srv/nfs}]}
system: {timezone: Europe/Berlin, ntp_servers: [ntp.example], packages: [vim], firewall: open}
addons:
  - {name: one, namespace: shop, manifests: [%s/manifest.yaml]}
  - {name: two, chart: {name: two, repo: 'https://charts.example', version: 1.0.0, values: {a: 1}}, wait: [{kind: Deployment, name: two}]}
  - {name: three, kustomize: %s/kustomize}
`

const moreOfKubernetes = `
  audit: {enabled: true, webhook: {url: 'https://audit.example:8443/events', token: pl4nted-webhook-token}}
  encryption_at_rest: {enabled: true}
  certificates: {signing_duration: 17520h}
  patches:
  - {target: kube-apiserver, patch: {metadata: {annotations: {owner: me}}}}
  - {target: kubeletconfiguration, type: merge, patch: {maxPods: 42}}`

// write writes the files that a run starts from.
func (c cluster) write(t *testing.T, dir string) {
	t.Helper()
	text := c.config(dir)
	if c["more"] == "yes" {
		text = strings.Replace(text, "\n  networking:",
			moreOfKubernetes+"\n  networking:", 1)
	}
	for name, text := range map[string]string{
		"inventory.yaml": c.layout().Inventory(), "config.yaml": text,
		"manifest.yaml":                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n",
		"kustomize/kustomization.yaml": "resources: [a.yaml]\n",
		"work/hooks/pre_install.sh":    "#!/bin/sh\ntrue\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
