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

// chart finds the folder of a plugin's chart; without it the test is skipped.
func chart(t *testing.T, plugin string) string {
	t.Helper()
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	module, _, _ := strings.Cut(charts[plugin], "/chart")
	dir := filepath.Join(strings.TrimSpace(string(cache)), charts[plugin])
	if _, err := os.Stat(dir); err != nil {
		module, _, _ = strings.Cut(module, "/install")
		t.Skipf("the chart of %s is not at hand: go mod download %s", plugin, module)
	}
	return dir
}

// template is what helm makes of a chart and the rendered values.
func (r rendered) template(t *testing.T, plugin, namespace string) string {
	t.Helper()
	out, err := exec.Command(apiserver.Program(t, "helm"), "template", plugin, chart(t, plugin), "--namespace", namespace,
		"--kube-version", "v1.34.4",
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
