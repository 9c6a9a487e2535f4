package apps_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"gopkg.in/yaml.v3"

	"kubekey/builtin"
	"kubekey/pkg/cli"
)

// families are the ranges of a cluster by the addresses it has.
var families = map[string]string{
	"v4":   "{pod_cidr: 10.233.64.0/18, service_cidr: 10.233.0.0/18}",
	"v6":   "{pod_cidr: 'fd85:1::/64', service_cidr: 'fd85::/108'}",
	"dual": "{pod_cidr: '10.233.64.0/18,fd85:1::/64', service_cidr: '10.233.0.0/18,fd85::/108'}",
}

// plugins are the network plugins that the config may name.
func plugins(t *testing.T) []string {
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
	text, err := fs.ReadFile(builtin.FS(), "config/schema.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &schema)
	}
	all := slices.DeleteFunc(schema.Properties.CNI.Properties.Type.Enum, func(s string) bool { return s == "none" })
	if err != nil || len(all) == 0 {
		t.Fatalf("config/schema.yaml names no network plugin: %v", err)
	}
	return all
}

const inventory = `
all:
  hosts:
    one: {ansible_connection: local, internal_ipv4: 10.0.0.1, internal_ipv6: "fd00::1"}
    two: {ansible_connection: local, internal_ipv4: 10.0.0.2, internal_ipv6: "fd00::2"}
  children:
    kube_control_plane: {hosts: {one: {}}}
    kube_worker: {hosts: {two: {}}}
    k8s_cluster: {children: {kube_control_plane: {}, kube_worker: {}}}
    nfs: {hosts: {one: {}}}
`

// project is the builtin one, with the playbook that renders added to it.
func project(t *testing.T) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	for _, tree := range []fs.FS{builtin.FS(), os.DirFS("testdata/project")} {
		err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(tree, path)
			all[path] = &fstest.MapFile{Data: text, Mode: 0o644}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// rendered is what one config gives.
type rendered struct {
	dir    string
	images []string // refs of the catalog
}

// render writes what the roles make of a config.
func render(t *testing.T, config string) rendered {
	t.Helper()
	return renderOn(t, inventory, config)
}

func renderOn(t *testing.T, inventory, config string) rendered {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "inventory.yaml", inventory)
	write(t, dir, "config.yaml", config)
	in := func(name string) string { return filepath.Join(dir, name) }
	args := []string{"run", "playbooks/render.yaml", "--workdir", in("work"), "-i", in("inventory.yaml"), "-c",
		in("config.yaml"), "-e", "out=" + dir}
	var out bytes.Buffer
	if code := cli.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out},
		project(t)); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	r := rendered{dir: dir}
	for _, image := range r.json(t, "images.json") {
		r.images = append(r.images, image.(map[string]any)["ref"].(string))
	}
	return r
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r rendered) text(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (r rendered) json(t *testing.T, name string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(r.text(t, name)), &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// objects are the documents of a manifest.
func objects(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o map[string]any
		err := d.Decode(&o)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if o != nil {
			all = append(all, o)
		}
	}
}

var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: *"?([^"\s]*)"?$`)

// checkImages wants each image of a manifest to be one of the catalog, with its tag.
func (r rendered) checkImages(t *testing.T, name, manifest string) {
	t.Helper()
	found := imageLine.FindAllStringSubmatch(manifest, -1)
	if len(found) == 0 {
		t.Errorf("%s has no image", name)
	}
	for _, m := range found {
		r.checkImage(t, name, m[1])
	}
}

func (r rendered) checkImage(t *testing.T, name, ref string) {
	t.Helper()
	if !slices.Contains(r.images, ref) {
		t.Errorf("%s: image %q is not of the catalog", name, ref)
	}
}

var manifests = []string{"coredns", "nodelocaldns", "local_path", "metrics_server", "multus"}

func TestManifests(t *testing.T) {
	for family, ranges := range families {
		for _, proxy := range []string{"{mode: iptables}", "{mode: ipvs}", "{mode: nftables}", "{enabled: false}"} {
			t.Run(family+proxy, func(t *testing.T) {
				r := render(t, fmt.Sprintf("kubernetes: {networking: %s, kube_proxy: %s}", ranges, proxy))
				for _, name := range manifests {
					r.checkManifest(t, name)
				}
			})
		}
	}
}

func (r rendered) checkManifest(t *testing.T, name string) {
	t.Helper()
	text := r.text(t, name+".yaml")
	r.checkImages(t, name, text)
	for _, o := range objects(t, text) {
		meta, _ := o["metadata"].(map[string]any)
		if o["apiVersion"] == nil || o["kind"] == nil || meta["name"] == nil {
			t.Errorf("%s: %v has no version, kind or name", name, o)
		}
	}
}

// composed are the images that a chart makes of values, as its templates put them together.
var composed = map[string]func(v values) []string{
	"calico": func(v values) []string {
		return []string{
			v.str("tigeraOperator.registry") + "/" + v.str("tigeraOperator.image") + ":" + v.str("tigeraOperator.version"),
			v.str("calicoctl.image") + ":" + v.str("calicoctl.tag"),
		}
	},
	"cilium": func(v values) []string {
		return []string{v.str("image.override"), v.str("operator.image.override"), v.str("envoy.image.override"),
			v.str("hubble.relay.image.override"),
			v.str("hubble.ui.backend.image.override"), v.str("hubble.ui.frontend.image.override")}
	},
	"flannel": func(v values) []string {
		return []string{v.str("flannel.image.repository") + ":" + v.str("flannel.image.tag"),
			v.str("flannel.flannel_cni.image.repository") + ":" + v.str("flannel.flannel_cni.image.tag")}
	},
	"kubeovn": func(v values) []string {
		at := v.str("global.registry.address") + "/"
		return []string{at + v.str("global.images.kubeovn.repository") + ":" + v.str("global.images.kubeovn.tag"),
			at + v.str("global.images.natgateway.repository") + ":" + v.str("global.images.natgateway.tag")}
	},
	"hybridnet": func(v values) []string {
		return []string{v.str("images.registryURL") + "/" + v.str("images.hybridnet.image") + ":" +
			v.str("images.hybridnet.tag")}
	},
	"openebs": func(v values) []string {
		return []string{v.str("localpv.image.registry") + v.str("localpv.image.repository") + ":" +
			v.str("localpv.image.tag"),
			v.str("helperPod.image.registry") + v.str("helperPod.image.repository") + ":" + v.str("helperPod.image.tag")}
	},
	"nfs": func(v values) []string {
		return []string{v.str("image.repository") + ":" + v.str("image.tag")}
	},
}

// values are those of a chart.
type values map[string]any

// at is the value of a path of keys with dots between.
func (v values) at(path string) any {
	var at any = map[string]any(v)
	for key := range strings.SplitSeq(path, ".") {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	return at
}

func (v values) str(path string) string {
	s, _ := v.at(path).(string)
	return s
}

// registries are ways to rewrite images: read and download paths are the same for each.
var registries = map[string]string{
	"upstream": "{}",
	"private":  "{registries: {docker.io: 'registry.example:5000/a/b', quay.io: 'registry.example:5000', registry.k8s.io: r.example, ghcr.io: r.example/g}}",
}

func TestValuesTakeTheCatalogsImages(t *testing.T) {
	for registry, catalog := range registries {
		for _, plugin := range plugins(t) {
			t.Run(registry+"/"+plugin, func(t *testing.T) {
				r := render(t, fmt.Sprintf("cni: {type: %s}\ncatalog: %s", plugin, catalog))
				for _, name := range []string{plugin, "openebs", "nfs"} {
					compose := composed[name]
					if compose == nil {
						t.Fatalf("composed does not say how the chart of %s puts its images together", name)
					}
					for _, ref := range compose(r.json(t, name+".values.json")) {
						r.checkImage(t, name, ref)
					}
				}
			})
		}
	}
}

// The operator writes REGISTRY PATH/node and so on itself.
func TestCalicoTakesAllImagesFromThePathOfItsNode(t *testing.T) {
	for registry, catalog := range registries {
		t.Run(registry, func(t *testing.T) {
			r := render(t, "cni: {type: calico}\ncatalog: "+catalog)
			v := values(r.json(t, "calico.values.json"))
			at := v.str("installation.registry") + v.str("installation.imagePath") + "/node:"
			if !slices.ContainsFunc(r.images, func(ref string) bool { return strings.HasPrefix(ref, at) }) {
				t.Errorf("no image of the catalog begins with %q", at)
			}
		})
	}
}

func TestValues(t *testing.T) {
	tests := []struct {
		config string
		want   map[string]any // by file and path
	}{
		{"cni: {type: flannel}", map[string]any{"flannel podCidr": "10.233.64.0/18", "flannel podCidrv6": "",
			"flannel flannel.backend": "vxlan", "flannel flannel.mtu": nil}},
		{"cni: {type: flannel, mtu: 1400, flannel: {backend: host-gw, values: {flannel: {enableNFTables: true}}}}",
			map[string]any{
				"flannel flannel.mtu": 1400., "flannel flannel.backend": "host-gw", "flannel flannel.enableNFTables": true,
				"flannel flannel.image.tag": "v0.28.4"}},
		{"cni: {type: flannel}\nkubernetes: {networking: " + families["dual"] + "}",
			map[string]any{"flannel podCidr": "10.233.64.0/18", "flannel podCidrv6": "fd85:1::/64"}},
		{"cni: {type: flannel}\nkubernetes: {networking: " + families["v6"] + "}",
			map[string]any{"flannel podCidr": "", "flannel podCidrv6": "fd85:1::/64"}},
		{"cni: {type: cilium}", map[string]any{"cilium kubeProxyReplacement": "false", "cilium k8sServiceHost": nil,
			"cilium ipv4.enabled": true, "cilium ipv6.enabled": false,
			"cilium operator.replicas": 2., "cilium cni.exclusive": true}},
		{"cni: {type: cilium, multus: {enabled: true}}\nkubernetes: {kube_proxy: {enabled: false}}", map[string]any{
			"cilium kubeProxyReplacement": "true", "cilium k8sServiceHost": "lb.kk.local", "cilium k8sServicePort": "6443",
			"cilium cni.exclusive": false}},
		{"cni: {type: kubeovn}\nkubernetes: {networking: " + families["dual"] + "}",
			map[string]any{"kubeovn networking.NET_STACK": "dual_stack",
				"kubeovn dual_stack.POD_GATEWAY": "10.233.64.1,fd85:1::1", "kubeovn dual_stack.SVC_CIDR": "10.233.0.0/18,fd85::/108",
				"kubeovn MASTER_NODES": "10.0.0.1"}},
		{"cni: {type: hybridnet}\nkubernetes: {networking: " + families["v6"] + "}",
			map[string]any{"hybridnet init.cidr": "fd85:1::/64", "hybridnet init.ipVersion": "6",
				"hybridnet defaultIPFamily": "IPv6", "hybridnet manager.replicas": 1.}},
		{"storage: {nfs: {enabled: true}}\nnfs: {exports: [{path: /srv/nfs}]}",
			map[string]any{"nfs nfs.server": "10.0.0.1", "nfs nfs.path": "/srv/nfs",
				"nfs storageClass.defaultClass": false, "openebs hostpathClass.isDefaultClass": true}},
		{"storage: {nfs: {enabled: true, server: 10.9.9.9, path: /x, default: true}}",
			map[string]any{"nfs nfs.server": "10.9.9.9", "nfs nfs.path": "/x",
				"nfs storageClass.defaultClass": true, "openebs hostpathClass.isDefaultClass": false}},
	}
	for i, test := range tests {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := render(t, test.config)
			for at, want := range test.want {
				file, path, _ := strings.Cut(at, " ")
				if got := values(r.json(t, file+".values.json")).at(path); got != want {
					t.Errorf("%s: %s is %v, not %v", test.config, at, got, want)
				}
			}
		})
	}
}

// The default route of two is by another interface than the cluster's.
func TestFlannelLooksForTheNodesAddress(t *testing.T) {
	facts := func(address string) string {
		return strings.ReplaceAll(inventory, `internal_ipv6: "fd00::2"`,
			`internal_ipv6: "fd00::2", ansible_default_ipv4: {address: `+address+`}`)
	}
	for address, want := range map[string]string{
		"10.0.0.2":  `["--ip-masq", "--kube-subnet-mgr"]`,
		"192.0.2.1": `["--ip-masq", "--kube-subnet-mgr", "--iface-regex=^(10\\.0\\.0\\.1|10\\.0\\.0\\.2)$"]`,
	} {
		r := renderOn(t, facts(address), "cni: {type: flannel}")
		if got := r.text(t, "flannel.values.json"); !strings.Contains(got, want) {
			t.Errorf("%s: no %s in %s", address, want, got)
		}
	}
}

func TestCalicoPools(t *testing.T) {
	tests := []struct{ family, encapsulation, want, bgp string }{
		{"v4", "VXLAN", "10.233.64.0/18 VXLAN", "Disabled"},
		{"v6", "IPIP", "fd85:1::/64 VXLAN", "Enabled"},
		{"dual", "IPIPCrossSubnet", "10.233.64.0/18 IPIPCrossSubnet fd85:1::/64 VXLANCrossSubnet", "Enabled"},
		{"dual", "None", "10.233.64.0/18 None fd85:1::/64 None", "Enabled"},
	}
	for _, test := range tests {
		t.Run(test.family+test.encapsulation, func(t *testing.T) {
			r := render(t, fmt.Sprintf("kubernetes: {networking: %s}\ncni: {type: calico, calico: {encapsulation: %s}}",
				families[test.family], test.encapsulation))
			v := values(r.json(t, "calico.values.json"))
			var got []string
			for _, p := range v.at("installation.calicoNetwork.ipPools").([]any) {
				pool := p.(map[string]any)
				got = append(got, pool["cidr"].(string), pool["encapsulation"].(string))
			}
			if s := strings.Join(got, " "); s != test.want {
				t.Errorf("pools are %s, not %s", s, test.want)
			}
			if bgp := v.str("installation.calicoNetwork.bgp"); bgp != test.bgp {
				t.Errorf("bgp is %s", bgp)
			}
		})
	}
}

func TestNames(t *testing.T) {
	r := render(t, `
dns:
  coredns:
    upstream: [192.0.2.53]
    zones: [{zones: [corp.example, lab.example], servers: [10.0.0.53, 10.0.0.54], cache: 5}]
    hosts: |
      10.0.0.9 old.example
      10.0.0.8 older.example
`)
	want := map[string][]string{
		"coredns": {"corp.example lab.example {", "cache 5", "forward . 10.0.0.53 10.0.0.54", "forward . 192.0.2.53 {",
			"10.0.0.8 older.example", "kubernetes cluster.local in-addr"},
		"nodelocaldns": {"corp.example lab.example {", "forward . 192.0.2.53", "10.0.0.9 old.example",
			"bind 169.254.25.10 10.233.0.10", "forward . __PILLAR__CLUSTER__DNS__ {"},
	}
	for name, parts := range want {
		text := r.corefile(t, name)
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q:\n%s", name, part, text)
			}
		}
		if strings.Count(text, "{") != strings.Count(text, "}") {
			t.Errorf("%s has a brace without its other:\n%s", name, text)
		}
	}
}

// What rewrites names, or needs plugins, is CoreDNS: the cache asks it, instead of the servers of the zone.
func TestNamesAreRewrittenByCoreDNS(t *testing.T) {
	r := render(t, `
dns:
  coredns:
    rewrite: [name exact old.example new.example, stop name suffix .a.example .b.example answer auto]
    plugins: [log]
    zones:
    - {zones: [corp.example], servers: [10.0.0.53], rewrite: [name exact a.corp.example b.corp.example]}
    - {zones: [plain.example], servers: [10.0.0.54]}
    - zones: [made.example]
      plugins:
      - |
        template IN A made.example {
          answer "{% raw %}{{ .Name }}{% endraw %} 60 IN A 192.0.2.7"
        }
`)
	for name, parts := range map[string][]string{
		"coredns": {
			"corp.example {\n    errors\n    cache 30\n    rewrite name exact a.corp.example b.corp.example\n" +
				"    forward . 10.0.0.53\n}",
			"made.example {\n    errors\n    cache 30\n    template IN A made.example {\n" +
				"      answer \"{{ .Name }} 60 IN A 192.0.2.7\"\n    }\n}",
			"    ready\n    rewrite name exact old.example new.example\n" +
				"    rewrite stop name suffix .a.example .b.example answer auto\n" +
				"    log\n    kubernetes",
		},
		"nodelocaldns": {
			"corp.example {\n    errors\n    cache 30\n    bind 169.254.25.10 10.233.0.10\n" +
				"    forward . __PILLAR__CLUSTER__DNS__ {",
			"plain.example {\n    errors\n    cache 30\n    bind 169.254.25.10 10.233.0.10\n    forward . 10.0.0.54\n",
			"\n. {\n    errors\n    cache 30\n    bind 169.254.25.10 10.233.0.10\n    forward . __PILLAR__CLUSTER__DNS__ {",
		},
	} {
		text := r.corefile(t, name)
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q:\n%s", name, part, text)
			}
		}
		if name == "nodelocaldns" && strings.Contains(text, "rewrite") {
			t.Errorf("the cache rewrites:\n%s", text)
		}
	}
}

func (r rendered) corefile(t *testing.T, name string) string {
	t.Helper()
	for _, o := range objects(t, r.text(t, name+".yaml")) {
		if o["kind"] == "ConfigMap" {
			return o["data"].(map[string]any)["Corefile"].(string)
		}
	}
	t.Fatalf("%s has no ConfigMap", name)
	return ""
}

// In ipvs the service's address is an interface's own; a cache that bound it would take it over.
func TestCacheLeavesTheServicesAddressToIPVS(t *testing.T) {
	text := render(t, "kubernetes: {kube_proxy: {mode: ipvs}}").corefile(t, "nodelocaldns")
	if strings.Contains(text, "bind 169.254.25.10 ") || !strings.Contains(text, "forward . 10.233.0.10 {") {
		t.Error(text)
	}
}

func TestPodsStartAnewWhenTheCorefileChanges(t *testing.T) {
	annotations := map[string]bool{}
	for _, upstream := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.2"} {
		r := render(t, "dns: {coredns: {upstream: ["+upstream+"]}}")
		for _, name := range []string{"coredns", "nodelocaldns"} {
			sum := regexp.MustCompile(`kubekey.io/corefile: (\w+)`).FindString(r.text(t, name+".yaml"))
			annotations[name+sum] = true
		}
	}
	if len(annotations) != 4 {
		t.Errorf("two Corefiles each give %v", slices.Collect(maps.Keys(annotations)))
	}
}

func TestMetricsServerVerifiesKubeletsWhenTheyAreSigned(t *testing.T) {
	for config, want := range map[string]bool{"": true,
		"kubernetes: {kubelet: {config: {serverTLSBootstrap: true}}}": false} {
		if got := strings.Contains(render(t, config).text(t, "metrics_server.yaml"), "--kubelet-insecure-tls"); got != want {
			t.Errorf("%q: insecure is %t", config, got)
		}
	}
}
