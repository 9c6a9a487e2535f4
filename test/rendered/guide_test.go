package rendered

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"kubekey/builtin"
	"kubekey/pkg/cli"
	"kubekey/pkg/value"
	"kubekey/test/simulated"
)

// guideBlock is a block of YAML in a guide.
var guideBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The plugin that the guide adds is installed: what its blocks say, put where the guide says, is enough.
func TestGuideAddsANetworkPlugin(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/cni.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for _, m := range guideBlock.FindAllStringSubmatch(string(guide), -1) {
		blocks = append(blocks, m[1])
	}
	with := func(begin string) string {
		t.Helper()
		i := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(b, begin) })
		if i < 0 {
			t.Fatalf("no block of the guide begins with %q", begin)
		}
		return blocks[i]
	}
	project := fstest.MapFS{
		"roles/cni/vars/main/mynet.yaml": {Data: []byte(with("cni_mynet_defaults:") + with("cni_mynet_leftovers:"))},
		"roles/cni/tasks/mynet.yaml":     {Data: []byte(with("- name: Deploy Mynet chart"))},
	}
	carry(t, project)
	kind, key, _ := strings.Cut(with("type: "), "\n")
	schema := string(project["config/schema.yaml"].Data)
	for from, to := range map[string]string{
		regexp.MustCompile(`type: \{description: Network plugin\..*`).FindString(schema): kind,
		"      hybridnet: *chart\n": "      hybridnet: *chart\n      " + key,
	} {
		if from == "" || !strings.Contains(schema, from) {
			t.Fatalf("config/schema.yaml has no %q", from)
		}
		schema = strings.Replace(schema, from, to, 1)
	}
	project["config/schema.yaml"] = &fstest.MapFile{Data: []byte(schema)}

	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	layout := simulated.Layout{Family: "dual", ControlPlanes: 1, Workers: 1, Registries: 1}
	write(t, in("inventory.yaml"), layout.Inventory())
	write(t, in("overlay.yaml"), with("charts:")+with("versions:")+with("images:"))
	write(t, in("config.yaml"), `
cni: {type: mynet, mtu: 1400, mynet: {values: {extra: true}}}
catalog: {overlays: [overlay.yaml]}
cluster_require: {network_plugins: [mynet]}
kubernetes: {networking: {pod_cidr: "10.233.64.0/18,fd85:1::/64", service_cidr: "10.233.0.0/18,fd85::/108"}}
`)
	fleet := &simulated.Fleet{Record: true, Nodes: layout.Hosts()}
	run := func(args ...string) {
		t.Helper()
		var out bytes.Buffer
		args = append(args, "-i", in("inventory.yaml"), "-c", in("config.yaml"), "-e", "kk_yes=true", "--workdir", in("work"))
		p := cli.Program{Builtin: project, Hosts: fleet}
		if code := p.Main(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &out}); code != 0 {
			t.Fatalf("exit code %d\n%s", code, out.String())
		}
	}
	run("run", "playbooks/create_cluster.yaml")
	checkPlugin(t, fleet, in("work/cache/charts/mynet-1.2.3.tgz"))
	run("run", "playbooks/delete_cluster.yaml")
	if !slices.ContainsFunc(fleet.Calls(), func(c simulated.Call) bool {
		path, _ := c.Args.Get("path")
		return c.Module == "file" && path == "/etc/cni/net.d/10-mynet.conflist"
	}) {
		t.Error("what the plugin left is not removed")
	}
}

// carry adds the files that kk carries to those of a project, which go before.
func carry(t *testing.T, project fstest.MapFS) {
	t.Helper()
	err := fs.WalkDir(builtin.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || project[name] != nil {
			return err
		}
		text, err := fs.ReadFile(builtin.FS(), name)
		project[name] = &fstest.MapFile{Data: text, Mode: 0o644}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkPlugin checks the one call that installs the plugin, that its chart was downloaded and its images pushed.
func checkPlugin(t *testing.T, fleet *simulated.Fleet, chart string) {
	t.Helper()
	var installed, fetched, pushed []string
	for _, c := range fleet.Calls() {
		switch c.Module {
		case "helm":
			text, err := value.JSON(c.Args, value.JSONOptions{})
			if err != nil {
				t.Fatal(err)
			}
			installed = append(installed, text)
		case "download":
			fetched = append(fetched, c.Texts("items", "url")...)
		case "image":
			pushed = append(pushed, pushedBy(c)...)
		}
	}
	if len(installed) != 1 {
		t.Fatalf("%d charts are installed, not one: %q", len(installed), installed)
	}
	if url := "https://charts.example.org/mynet-1.2.3.tgz"; !slices.Contains(fetched, url) {
		t.Errorf("%s was not downloaded: %q", url, fetched)
	}
	for _, part := range []string{
		`"kubeconfig": "/etc/kubernetes/admin.conf"`, `"binary": "/usr/local/bin/helm"`, `"chart": "` + chart + `"`,
		`"podCIDR": "10.233.64.0/18"`, `"podCIDRv6": "fd85:1::/64"`, `"mtu": 1400`, `"extra": true`,
		`"registry": "registry.kk.local"`, `"repository": "example/mynet"`, `"tag": "v1.2.3"`,
		`"image": "registry.kk.local/example/mynet-agent:v4.5.6"`,
	} {
		if !strings.Contains(installed[0], part) {
			t.Errorf("%s is not in what helm gets: %s", part, installed[0])
		}
	}
	for _, image := range []string{"example/mynet:v1.2.3", "example/mynet-agent:v4.5.6"} {
		if !slices.Contains(pushed, image) {
			t.Errorf("%s was not pushed to the registry: %q", image, pushed)
		}
	}
}
