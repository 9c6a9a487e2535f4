package catalog_test

import (
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"

	"kubekey/builtin"
	"kubekey/pkg/catalog"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// load reads the builtin catalog with overlays of these texts, which have the
// names a.yaml, b.yaml and so on.
func load(t testing.TB, overlays ...string) (*catalog.Catalog, error) {
	t.Helper()
	files := fstest.MapFS{}
	var names []string
	for i, text := range overlays {
		name := string(rune('a'+i)) + ".yaml"
		files[name] = &fstest.MapFile{Data: []byte(text)}
		names = append(names, name)
	}
	return catalog.Load(files.ReadFile, builtin.FS(), names)
}

func mustLoad(t testing.TB, overlays ...string) *catalog.Catalog {
	t.Helper()
	c, err := load(t, overlays...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func resolve(t testing.TB, c *catalog.Catalog, q catalog.Request) *value.Dict {
	t.Helper()
	got, problems := c.Resolve(q)
	for _, p := range problems {
		t.Errorf("%s: %s (%s)", strings.Join(p.Path, "."), p.Msg, p.Help)
	}
	if got == nil {
		t.FailNow()
	}
	return got
}

// at looks a text up by its path: components.etcd.version.
func at(t testing.TB, d *value.Dict, path string) string {
	t.Helper()
	var v any = d
	for key := range strings.SplitSeq(path, ".") {
		in, ok := v.(*value.Dict)
		if !ok || !in.Has(key) {
			t.Fatalf("the result has no %s", path)
		}
		v, _ = in.Get(key)
	}
	return v.(string)
}

func TestEveryVersion(t *testing.T) {
	c := mustLoad(t)
	var minors []string
	for _, m := range c.Minors() {
		minors = append(minors, m.Name)
	}
	want := strings.Fields("1.25 1.26 1.27 1.28 1.29 1.30 1.31 1.32 1.33 1.34 1.35 1.36")
	if diff := cmp.Diff(want, minors); diff != "" {
		t.Errorf("minor releases: %s", diff)
	}
	for _, v := range c.Versions() {
		t.Run(v, func(t *testing.T) { whole(t, resolve(t, c, catalog.Request{KubeVersion: v})) })
	}
}

// Older ones than v3.5.26 can give members back to the cluster that were removed, when v3.6 comes after them.
func TestEtcdCanBeUpgraded(t *testing.T) {
	c := mustLoad(t)
	before := ""
	for _, m := range c.Minors() {
		etcd := at(t, resolve(t, c, catalog.Request{KubeVersion: "v" + m.Name + ".0"}), "components.etcd.version")
		if strings.HasPrefix(etcd, "v3.6.") && strings.HasPrefix(before, "v3.5.") &&
			semver.MustParse(before).LessThan(semver.MustParse("v3.5.26")) {
			t.Errorf("Kubernetes %s has etcd %s, and the minor before it %s", m.Name, etcd, before)
		}
		before = etcd
	}
}

var (
	httpsURL = regexp.MustCompile(`^https://[a-z0-9.]+/[A-Za-z0-9._/-]+$`)
	imageRef = regexp.MustCompile(`^[a-z0-9.]+/[a-z0-9._/-]+:v?[0-9][A-Za-z0-9._-]*$`)
)

// whole checks that all is there that a cluster needs, on both architectures.
func whole(t *testing.T, d *value.Dict) {
	verified := strings.Fields("kubeadm kubelet kubectl etcd crictl containerd runc cni_plugins helm cri_dockerd nerdctl calicoctl cilium_cli docker docker_compose")
	for _, arch := range []string{"amd64", "arm64"} {
		for _, name := range verified {
			if sum := at(t, d, "components."+name+".arch."+arch+".sha256"); len(sum) != 64 {
				t.Errorf("sha256 of %s for %s: %q", name, arch, sum)
			}
		}
		for _, name := range append(verified, "registry") {
			if url := at(t, d, "components."+name+".arch."+arch+".url"); !httpsURL.MatchString(url) {
				t.Errorf("URL of %s for %s: %q", name, arch, url)
			}
		}
	}
	charts, _ := d.Lookup("charts")
	for name := range charts.(*value.Dict).All() {
		if url := at(t, d, "charts."+name.(string)+".url"); !httpsURL.MatchString(url) {
			t.Errorf("URL of the chart %s: %q", name, url)
		}
	}
	repositories := map[string]any{}
	images, _ := d.Lookup("images")
	for name := range images.(*value.Dict).All() {
		image := "images." + name.(string)
		ref := at(t, d, image+".ref")
		if !imageRef.MatchString(ref) {
			t.Errorf("image %s: %q", name, ref)
		}
		if of := at(t, d, image+".name") + ":" + at(t, d, image+".tag"); of != ref {
			t.Errorf("image %s is %q, and its parts are %q", name, ref, of)
		}
		repository := at(t, d, image+".repository")
		if other, taken := repositories[repository]; taken {
			t.Errorf("in a private registry %s and %s would both be %s", name, other, repository)
		}
		repositories[repository] = name
	}
}

func TestResolve(t *testing.T) {
	d := resolve(t, mustLoad(t), catalog.Request{KubeVersion: "v1.34.4"})
	for path, want := range map[string]string{
		"kube_version": "v1.34.4", "minor": "1.34", "kubeadm_api": "v1beta4",
		"components.kubeadm.version":           "v1.34.4",
		"components.kubeadm.arch.arm64.url":    "https://dl.k8s.io/release/v1.34.4/bin/linux/arm64/kubeadm",
		"components.kubeadm.arch.amd64.file":   "kubeadm/v1.34.4/amd64/kubeadm",
		"components.containerd.version":        "v2.2.7",
		"components.containerd.arch.amd64.url": "https://github.com/containerd/containerd/releases/download/v2.2.7/containerd-2.2.7-linux-amd64.tar.gz",
		"components.docker.arch.arm64.url":     "https://download.docker.com/linux/static/stable/aarch64/docker-28.5.2.tgz",
		"components.harbor.arch.arm64.url":     "",
		"components.calicoctl.version":         at(t, d, "charts.calico.version"),
		"charts.flannel.file":                  "charts/flannel-v0.28.4.tgz",
		"images.etcd.ref":                      "registry.k8s.io/etcd:3.6.5-0",
		"images.coredns.repository":            "coredns/coredns",
		"images.kube_proxy.tag":                "v1.34.4",
		"images.pause.ref":                     "registry.k8s.io/pause:3.10.1",
	} {
		if got := at(t, d, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestSameAnswerTwice(t *testing.T) {
	c := mustLoad(t)
	q := catalog.Request{KubeVersion: "v1.33.1", Zone: "cn"}
	text := func() string {
		s, err := value.JSON(resolve(t, c, q), value.JSONOptions{Indent: 1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := text()
	for range 20 {
		if diff := cmp.Diff(first, text()); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestProblems(t *testing.T) {
	c := mustLoad(t)
	for _, tt := range []struct {
		name string
		q    catalog.Request
		want []string
	}{
		{"patch too new", catalog.Request{KubeVersion: "v1.34.99"},
			[]string{`kubernetes.kube_version: Kubernetes "v1.34.99" is not in the catalog: the nearest are v1.34.11 and v1.35.0; the newest is v1.36.4`}},
		{"too old", catalog.Request{KubeVersion: "v1.24.17"},
			[]string{`kubernetes.kube_version: Kubernetes "v1.24.17" is not in the catalog: ` +
				`the nearest are v1.25.0; the newest is v1.36.4`}},
		{"too new", catalog.Request{KubeVersion: "v2.0.0"},
			[]string{`kubernetes.kube_version: Kubernetes "v2.0.0" is not in the catalog: the nearest is v1.36.4`}},
		{"no patch", catalog.Request{KubeVersion: "v1.34"},
			[]string{`kubernetes.kube_version: "v1.34" is not a patch release of Kubernetes: write v1.34.11, the newest of 1.34`}},
		{"number", catalog.Request{KubeVersion: "1.34"},
			[]string{`kubernetes.kube_version: "1.34" is not a patch release of Kubernetes: write v1.34.11, the newest of 1.34`}},
		{"no v", catalog.Request{KubeVersion: "1.34.4"},
			[]string{`kubernetes.kube_version: Kubernetes "1.34.4" is not in the catalog: did you mean "v1.34.4"?`}},
		{"word", catalog.Request{KubeVersion: "latest"},
			[]string{`kubernetes.kube_version: Kubernetes "latest" is not in the catalog: the newest is v1.36.4`}},
		{"etcd", catalog.Request{KubeVersion: "v1.34.4", Versions: map[string]string{"etcd": "v3.5.99"}},
			[]string{`etcd.version: etcd v3.5.99 is not in the catalog: the nearest are v3.5.33 and v3.6.0; the newest is v3.6.14; for another version, set its digest in catalog.components.etcd.sha256`}},
		{"series", catalog.Request{KubeVersion: "v1.34.4", Versions: map[string]string{"containerd": "4.1.x"}},
			[]string{`cri.containerd_version: the catalog has no containerd of the series 4.1.x: the nearest is v2.3.4`}},
		{"component", catalog.Request{KubeVersion: "v1.34.4",
			Components: map[string]catalog.Override{"etdc": {Version: "v3.6.5"}}},
			[]string{`catalog.components.etdc: the catalog has no component "etdc": did you mean "etcd"?`}},
		{"kubelet", catalog.Request{KubeVersion: "v1.34.4",
			Components: map[string]catalog.Override{"kubelet": {Version: "v1.33.1"}}},
			[]string{`catalog.components.kubelet.version: kubelet has the version of kubernetes, v1.34.4: set kubernetes.kube_version`}},
		{"calico without its operator", catalog.Request{KubeVersion: "v1.34.4",
			Components: map[string]catalog.Override{"calico": {Version: "v3.31.7"}}},
			[]string{`catalog.components.calico.version: the catalog has no tigera_operator for calico v3.31.7: the nearest is v3.31.3; for another version, set catalog.components.tigera_operator.version`}},
		{"digest", catalog.Request{KubeVersion: "v1.34.4",
			Components: map[string]catalog.Override{"runc": {SHA256: map[string]string{"amd64": "sha256:12"}}}},
			[]string{`catalog.components.runc.sha256: "12" is not a sha256 digest: write sha256: and 64 hexadecimal digits`}},
		{"placeholder", catalog.Request{KubeVersion: "v1.34.4",
			Components: map[string]catalog.Override{"flannel": {URL: "http://m/{ver}.tgz"}}},
			[]string{`catalog.components.flannel.url: unknown {ver} in a URL: use version, arch, machine`}},
		{"zone", catalog.Request{KubeVersion: "v1.34.4", Zone: "nc"},
			[]string{`catalog.zone: unknown zone "nc": did you mean "cn"?`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := c.Resolve(tt.q)
			var got []string
			for _, p := range problems {
				got = append(got, strings.Join(p.Path, ".")+": "+p.Msg+": "+p.Help)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

const digest = "1234567890123456789012345678901234567890123456789012345678901234"

func TestAskedFor(t *testing.T) {
	c := mustLoad(t)
	d := resolve(t, c, catalog.Request{
		KubeVersion: "v1.34.4",
		Versions:    map[string]string{"etcd": "v3.5.21", "containerd": "1.7.x", "docker": ""},
		Components: map[string]catalog.Override{
			"runc":            {URL: "http://10.0.0.1/runc-{version}.{machine}"},
			"crictl":          {Version: "v9.9.9", SHA256: map[string]string{"amd64": "sha256:" + digest}},
			"helm":            {Path: "/srv/helm.tar.gz"},
			"flannel":         {Version: "v0.29.0", SHA256: map[string]string{"any": digest}},
			"calico":          {Version: "v3.31.7"},
			"tigera_operator": {Version: "v1.40.9"},
			// What flannel v0.29.0 brings is not in the catalog either.
			"flannel_cni_plugin": {Version: "v1.9.0-flannel1"},
		},
	})
	for path, want := range map[string]string{
		"components.etcd.version":             "v3.5.21",
		"images.etcd.tag":                     "3.5.21-0",
		"components.containerd.version":       "v1.7.34",
		"components.docker.version":           "28.5.2",
		"components.runc.arch.arm64.url":      "http://10.0.0.1/runc-v1.3.6.aarch64",
		"components.crictl.version":           "v9.9.9",
		"components.crictl.arch.amd64.sha256": digest,
		"components.crictl.arch.arm64.url":    "", // its digest is not known
		"components.helm.arch.amd64.path":     "/srv/helm.tar.gz",
		"components.calicoctl.version":        "v3.31.7",
		"charts.flannel.sha256":               digest,
		"images.calico_operator.tag":          "v1.40.9",
		"images.flannel_cni_plugin.tag":       "v1.9.0-flannel1",
	} {
		if got := at(t, d, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

func TestMirrorsAndRegistries(t *testing.T) {
	c := mustLoad(t, "registries: {quay.io: overlay.example/quay}\nmirrors: {'https://': 'http://all.example/'}")
	zone := resolve(t, c, catalog.Request{
		KubeVersion: "v1.34.4", Zone: "cn",
		Mirrors:    map[string]string{"https://github.com/etcd-io": "http://10.0.0.1/etcd/"},
		Registries: map[string]string{"docker.io": "10.0.0.1:5000/hub"},
	})
	for path, want := range map[string]string{
		"components.kubeadm.arch.amd64.url":  "https://files.m.daocloud.io/dl.k8s.io/release/v1.34.4/bin/linux/amd64/kubeadm",
		"components.kubeadm.arch.amd64.file": "kubeadm/v1.34.4/amd64/kubeadm",
		"components.etcd.arch.amd64.url":     "http://10.0.0.1/etcd/etcd/releases/download/v3.6.5/etcd-v3.6.5-linux-amd64.tar.gz",
		"charts.cilium.url":                  "http://all.example/helm.cilium.io/cilium-1.19.3.tgz",
		"images.pause.ref":                   "k8s.m.daocloud.io/pause:3.10.1",
		"images.pause.upstream":              "registry.k8s.io/pause:3.10.1",
		"images.calico_node.registry":        "overlay.example",
		"images.calico_node.repository":      "quay/calico/node",
		"images.haproxy.ref":                 "10.0.0.1:5000/hub/library/haproxy:3.2.19-alpine",
		"images.haproxy.registry":            "10.0.0.1:5000",
	} {
		if got := at(t, zone, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	private := resolve(t, c, catalog.Request{
		KubeVersion: "v1.34.4", PrivateRegistry: "registry.kk.local:5000", Project: "mirror",
		Registries: map[string]string{"docker.io": "10.0.0.1:5000", "registry.k8s.i": "wrong.example"},
	})
	for path, want := range map[string]string{
		"images.haproxy.ref":        "registry.kk.local:5000/mirror/library/haproxy:3.2.19-alpine",
		"images.haproxy.source":     "10.0.0.1:5000/library/haproxy:3.2.19-alpine",
		"images.haproxy.name":       "registry.kk.local:5000/mirror/library/haproxy",
		"images.haproxy.tag":        "3.2.19-alpine",
		"images.haproxy.registry":   "registry.kk.local:5000",
		"images.haproxy.repository": "mirror/library/haproxy",
		"images.pause.source":       "registry.k8s.io/pause:3.10.1",
	} {
		if got := at(t, private, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}

// Harbor rejects a repository that is in no project.
func TestRepositoriesAreInProjects(t *testing.T) {
	c := mustLoad(t)
	for project, want := range map[string][2]string{
		"":       {"h.example/library/pause:3.10.1", "h.example/coredns/coredns"},
		"mirror": {"h.example/mirror/pause:3.10.1", "h.example/mirror/coredns/coredns"},
		"a/b":    {"h.example/a/b/pause:3.10.1", "h.example/a/b/coredns/coredns"},
	} {
		found := resolve(t, c, catalog.Request{KubeVersion: "v1.34.4", PrivateRegistry: "h.example", Project: project,
			Alone: "library"})
		if got := [2]string{at(t, found, "images.pause.ref"), at(t, found, "images.coredns.name")}; got != want {
			t.Errorf("project %q: %q, want %q", project, got, want)
		}
	}
}

func TestOverlay(t *testing.T) {
	c := mustLoad(t, `
versions:
  all: {containerd: v2.2.3, metrics_server: v0.9.0, docker: 30.0.1}
  "1.34": {etcd: v3.6.8, pause: 3.10}
  "1.37": {kubeadm_api: v1beta4, etcd: v3.6.8, pause: 3.11, coredns: v1.15.0, crictl: v1.36.0, calico: v3.31.3, cilium: 1.20.1}
checksums:
  kubeadm:
    v1.34.4: {amd64: "sha256:`+digest+`"}
    v1.37.0: {amd64: `+digest+`, arm64: `+digest+`}
  kubelet: {v1.37.0: {amd64: `+digest+`}}
  kubectl: {v1.37.0: {amd64: `+digest+`}}
  docker: {30.0.1: {amd64: `+digest+`}}
components:
  runc: {url: "http://10.0.0.1/{version}/runc-{arch}", version: v1.3.4}
  helm: {path: /srv/helm.tar.gz}
  harbor: {url: {arm64: "http://10.0.0.1/harbor-{version}.tgz"}}
charts:
  flannel: {version: v0.28.4, sha256: "sha256:`+digest+`", path: /srv/flannel.tgz}
images:
  flannel: "ghcr.io/flannel-io/flannel:{flannel}"
  ours: {ref: "10.0.0.1:5000/ours:{kubernetes.bare}", group: ours}
mirrors: {"https://dl.k8s.io/": "http://10.0.0.1/dl.k8s.io"}
`, `
mirrors: {"https://dl.k8s.io": "http://10.0.0.2/dl.k8s.io"}
`)
	d := resolve(t, c, catalog.Request{KubeVersion: "v1.34.4"})
	for path, want := range map[string]string{
		"components.kubeadm.arch.amd64.sha256": digest,
		"components.kubeadm.arch.amd64.url":    "http://10.0.0.2/dl.k8s.io/release/v1.34.4/bin/linux/amd64/kubeadm",
		"components.etcd.version":              "v3.6.8",
		"images.etcd.tag":                      "3.6.8-0",
		"images.pause.tag":                     "3.10",
		"components.containerd.version":        "v2.2.3", // all of an overlay comes before one of ours
		"components.runc.arch.arm64.url":       "http://10.0.0.1/v1.3.4/runc-arm64",
		"components.helm.arch.arm64.path":      "/srv/helm.tar.gz",
		"components.harbor.arch.arm64.url":     "http://10.0.0.1/harbor-v2.10.2.tgz",
		"components.docker.arch.amd64.sha256":  digest,
		"components.docker.arch.arm64.url":     "",
		"charts.flannel.sha256":                digest,
		"charts.flannel.path":                  "/srv/flannel.tgz",
		"images.flannel.ref":                   "ghcr.io/flannel-io/flannel:v0.28.4",
		"images.flannel.group":                 "flannel",
		"images.ours.ref":                      "10.0.0.1:5000/ours:1.34.4",
		"images.metrics_server.tag":            "v0.9.0",
	} {
		if got := at(t, d, path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
	if arm := at(t, d, "components.kubeadm.arch.arm64.sha256"); arm == digest || len(arm) != 64 {
		t.Errorf("the digest for arm64 is %q, want ours", arm)
	}
	newer := resolve(t, c, catalog.Request{KubeVersion: "v1.37.0"})
	if got := at(t, newer, "images.kube_proxy.ref"); got != "registry.k8s.io/kube-proxy:v1.37.0" {
		t.Errorf("an overlay's Kubernetes has %q", got)
	}
}

func TestOverlayMistakes(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"key", "version: {}", `a.yaml:1:1: a catalog has no key "version"` + "|" + `did you mean "versions"?`},
		{"minor", `versions: {v1.34: {etcd: v3.6.5}}`,
			`a.yaml:1:12: "v1.34" is not a minor release of Kubernetes|write "1.34", or all`},
		{"kubernetes", `versions: {all: {kubernetes: v1.34.4}}`,
			`a.yaml:1:30: kubernetes shares the version of another component|remove it`},
		{"version", "versions:\n  all:\n    etcd: v3.6.99",
			`a.yaml:3:11: etcd v3.6.99 is not in the catalog|the nearest is v3.6.14`},
		{"series", `versions: {all: {pause: 3.10.x}}`, `a.yaml:1:25: the catalog has no pause of the series 3.10.x|`},
		{"component", `checksums: {kubeadn: {v1.34.4: {amd64: ` + digest + `}}}`,
			`a.yaml:1:13: "kubeadn" is not a component of the catalog|did you mean "kubeadm"?`},
		{"architecture", `checksums: {kubeadm: {v1.34.4: {amd46: ` + digest + `}}}`,
			`a.yaml:1:33: "amd46" is not an architecture of the catalog|did you mean "amd64"?`},
		{"digest", `checksums: {kubeadm: {v1.34.4: {amd64: "sha256:12"}}}`,
			`a.yaml:1:40: "sha256:12" is not a sha256 digest|write sha256: and 64 hexadecimal digits`},
		{"new component without URL", `components: {etdc: {path: /x}}`,
			`a.yaml:1:14: component "etdc" has no url|did you mean "etcd"?`},
		{"digest of a component", `components: {etcd: {sha256: ` + digest + `}}`,
			`a.yaml:1:29: digests of components belong in checksums|checksums: {etcd: {VERSION: {ARCHITECTURE: sha256:DIGEST}}}`},
		{"placeholder", `components: {etcd: {url: "http://m/{verison}"}}`,
			`a.yaml:1:26: unknown version {verison}|did you mean "version"?`},
		{"image", `images: {pause: "pause:3.10"}`,
			`a.yaml:1:17: "pause:3.10" is not REGISTRY/REPOSITORY:TAG|docker.io/library/NAME:TAG for images of Docker itself`},
		{"image without tag", `images: {pause: registry.k8s.io/pause}`,
			`a.yaml:1:17: "registry.k8s.io/pause" is not REGISTRY/REPOSITORY:TAG|docker.io/library/NAME:TAG for images of Docker itself`},
		{"version of an image", `images: {pause: "registry.k8s.io/pause:{puase}"}`,
			`a.yaml:1:17: unknown version {puase}|did you mean "pause"?`},
		{"list", `mirrors: [a]`, `a.yaml:1:10: mirrors must be a mapping|`},
		{"empty", `mirrors: {a: }`, `a.yaml:1:14: mirrors: a must be a text|`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := load(t, tt.text)
			var ds source.Diagnostics
			if !errors.As(err, &ds) || len(ds) != 1 {
				t.Fatalf("got %v, want one diagnostic", err)
			}
			if got := ds[0].Pos.String() + ": " + ds[0].Summary + "|" + ds[0].Help; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// A Kubernetes of which an overlay forgot a file cannot be checked.
func TestHalfAKubernetes(t *testing.T) {
	c := mustLoad(t, "checksums: {kubeadm: {v1.34.99: {amd64: "+digest+"}}, kubelet: {v1.34.99: {amd64: "+digest+"}}}")
	d, problems := c.Resolve(catalog.Request{KubeVersion: "v1.34.99"})
	if len(problems) != 1 || problems[0].Msg != "the catalog has no digest of kubectl v1.34.99" {
		t.Errorf("got %v", problems)
	}
	if url := at(t, d, "components.kubectl.arch.amd64.url"); url != "" {
		t.Errorf("kubectl would be taken from %s unchecked", url)
	}
}

func TestNoOverlay(t *testing.T) {
	_, err := catalog.Load(os.ReadFile, builtin.FS(), []string{"/nonexistent/overlay.yaml"})
	if err == nil || !strings.Contains(err.Error(), "/nonexistent/overlay.yaml") {
		t.Errorf("got %v", err)
	}
}

// Everything that has digests is also something to download.
func TestNothingLeftOver(t *testing.T) {
	c := mustLoad(t)
	text, err := fs.ReadFile(builtin.FS(), "catalog/checksums.txt")
	if err != nil {
		t.Fatal(err)
	}
	d := resolve(t, c, catalog.Request{KubeVersion: "v1.34.4"})
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, " "); name != "#" {
			at(t, d, "components."+name+".version")
		}
	}
	for _, name := range c.Names() {
		if name == "" {
			t.Error("something has no name")
		}
	}
}

// Roles name nothing that the catalog does not have.
func TestNamesInRoles(t *testing.T) {
	d := resolve(t, mustLoad(t), catalog.Request{KubeVersion: "v1.34.4"})
	named := regexp.MustCompile(`\bcatalog\.((?:components|charts|images)\.[a-z0-9_]+)(\(?)`)
	err := fs.WalkDir(builtin.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(builtin.FS(), name)
		for _, found := range named.FindAllSubmatch(text, -1) {
			if len(found[2]) > 0 {
				continue // a method, as in catalog.images.values()
			}
			kind, what, _ := strings.Cut(string(found[1]), ".")
			in, _ := d.Lookup(kind)
			if !in.(*value.Dict).Has(what) && !strings.HasPrefix(name, "config/") {
				t.Errorf("%s names %s, which the catalog does not have", name, found[0])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func FuzzOverlay(f *testing.F) {
	f.Add("versions: {all: {etcd: v3.6.8}}")
	f.Add("images: {pause: 'registry.k8s.io/pause:{pause.bare}'}\nzones: {x: {mirrors: {a: b}}}")
	f.Add("components: {x: {url: {amd64: '{version', any: ''}}}\nreleases: {calico: {v1: {a: b}}}")
	small := fstest.MapFS{
		"catalog/checksums.txt": {Data: []byte("kubeadm v1.34.4 amd64 " + digest + "\netcd v3.6.5 amd64 " + digest)},
		"catalog/small.yaml": {Data: []byte(`
versions: {"1.34": {etcd: 3.6.x, pause: 3.10.1, calico: v3.31.3}}
architectures: {amd64: x86_64}
components: {kubeadm: {version_of: kubernetes, url: "http://m/{version.bare}/{arch}"}, etcd: {url: "http://m/{version}"}}
charts: {calico: {url: "http://m/{version}"}}
images: {pause: "registry.k8s.io/pause:{pause}"}
`)},
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := func(string) ([]byte, error) { return []byte(text), nil }
		c, err := catalog.Load(read, small, []string{"overlay.yaml"})
		if err != nil {
			return
		}
		c.Resolve(catalog.Request{KubeVersion: "v1.34.4", PrivateRegistry: "r.example"})
	})
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		mustLoad(b)
	}
}

func BenchmarkResolve(b *testing.B) {
	c := mustLoad(b)
	for b.Loop() {
		resolve(b, c, catalog.Request{KubeVersion: "v1.34.4"})
	}
}
