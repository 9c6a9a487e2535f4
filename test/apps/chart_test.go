package apps_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/test/apiserver"
)

// charts are those that come with a Go module, below the module cache.
var charts = map[string]string{
	"flannel": "github.com/flannel-io/flannel@v0.28.4/chart/kube-flannel",
	"cilium":  "github.com/cilium/cilium@v1.20.2/install/kubernetes/cilium",
}

// olderCilium are the charts of the releases of Kubernetes before 1.28.
var olderCilium = map[string]string{
	"v1.25.16": "github.com/cilium/cilium@v1.14.19/install/kubernetes/cilium",
	"v1.26.15": "github.com/cilium/cilium@v1.15.19/install/kubernetes/cilium",
	"v1.27.16": "github.com/cilium/cilium@v1.16.19/install/kubernetes/cilium",
}

// chart finds the folder of a chart in a Go module; without it the test is skipped.
func chart(t *testing.T, plugin, of string) string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	module, _, _ := strings.Cut(of, "/chart")
	dir := filepath.Join(strings.TrimSpace(string(cache)), of)
	if _, err := os.Stat(dir); err != nil {
		module, _, _ = strings.Cut(module, "/install")
		t.Skipf("the chart of %s is not at hand: go mod download %s", plugin, module)
	}
	return dir
}

// template is what helm makes of a chart and the rendered values.
func (r rendered) template(t *testing.T, plugin, namespace string) string {
	t.Helper()
	return r.templateOf(t, plugin, charts[plugin], namespace, "v1.34.4")
}

// templateOf is template with another chart, for a version of Kubernetes.
func (r rendered) templateOf(t *testing.T, plugin, of, namespace, kubernetes string) string {
	t.Helper()
	out, err := exec.Command(apiserver.Program(t, "helm"), "template", plugin, chart(t, plugin, of),
		"--namespace", namespace,
		"--kube-version", kubernetes,
		"-f", filepath.Join(r.dir, plugin+".values.json")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

var chartConfigs = []string{
	"kubernetes: {networking: %s}\ncni: {type: %s}",
	"kubernetes: {networking: %s, kube_proxy: {mode: nftables}}\ncni: {type: %s, mtu: 1400, multus: {enabled: true}}",
	"kubernetes: {networking: %s, kube_proxy: {enabled: false}}\ncni: {type: %s}\ncatalog: " + registries["private"],
}

func TestChartsTakeValues(t *testing.T) {
	for plugin, namespace := range map[string]string{"flannel": "kube-flannel", "cilium": "kube-system"} {
		for family, ranges := range families {
			for i, config := range chartConfigs {
				t.Run(fmt.Sprintf("%s/%s/%d", plugin, family, i), func(t *testing.T) {
					r := render(t, fmt.Sprintf(config, ranges, plugin))
					text := r.template(t, plugin, namespace)
					r.checkImages(t, plugin, text)
					objects(t, text)
				})
			}
		}
	}
}

func TestOlderCiliumChartsTakeValues(t *testing.T) {
	for kubernetes, of := range olderCilium {
		for _, family := range []string{"v4", "dual"} {
			for i, config := range []string{chartConfigs[0], chartConfigs[2]} {
				t.Run(fmt.Sprintf("%s/%s/%d", kubernetes, family, i), func(t *testing.T) {
					r := render(t, strings.Replace(fmt.Sprintf(config, families[family], "cilium"), "kubernetes: {",
						"kubernetes: {kube_version: "+kubernetes+", ", 1))
					text := r.templateOf(t, "cilium", of, "kube-system", kubernetes)
					r.checkImages(t, "cilium", text)
					objects(t, text)
					if version := strings.Split(of, "@")[1]; i == 0 && !strings.Contains(text, ":"+strings.Split(version, "/")[0]) {
						t.Errorf("the catalog has another release of Cilium for %s than %s", kubernetes, version)
					}
				})
			}
		}
	}
}

func TestFlannelKnowsTheRanges(t *testing.T) {
	want := map[string][]string{
		"v4":   {`"Network": "10.233.64.0/18"`},
		"v6":   {`"EnableIPv4": false`, `"IPv6Network": "fd85:1::/64"`},
		"dual": {`"Network": "10.233.64.0/18"`, `"IPv6Network": "fd85:1::/64"`, `"EnableIPv6": true`},
	}
	for family, parts := range want {
		t.Run(family, func(t *testing.T) {
			text := render(t, fmt.Sprintf(chartConfigs[0], families[family], "flannel")).template(t, "flannel", "kube-flannel")
			for _, part := range parts {
				if !strings.Contains(text, part) {
					t.Errorf("no %s in\n%s", part, text)
				}
			}
		})
	}
}

func TestServerTakesCharts(t *testing.T) {
	c := startCluster(t)
	for plugin, namespace := range map[string]string{"flannel": "kube-flannel", "cilium": "kube-system"} {
		t.Run(plugin, func(t *testing.T) {
			text := render(t, fmt.Sprintf(chartConfigs[0], families["dual"], plugin)).template(t, plugin, namespace)
			c.apply(t, "namespace", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
			c.apply(t, plugin, text)
		})
	}
}
