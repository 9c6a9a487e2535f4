package rendered

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/test/simulated"
)

// What nodes pull from the private registry was pushed there before; in Harbor everything is in a project.
func TestImagesThatArePulledWerePushed(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		existing   string // config of a registry that exists
		login      string // in hosts.toml
		docker     bool
	}{
		{name: "own registry", kind: "registry", login: "YWRtaW46cGw0bnRlZC1yZWdpc3RyeS1wYXNzd29yZA=="},
		{name: "own Harbor", kind: "harbor", login: "YWRtaW46cGw0bnRlZC1yZWdpc3RyeS1wYXNzd29yZA=="},
		{name: "existing Harbor", kind: "none", login: "a2s6aHVudGVyMi1odW50ZXI=", existing: "{type: harbor, " +
			"name: registry.kk.local, address: 10.1.2.3, auth: {username: kk, password: hunter2-hunter, skip_verify: true}}"},
		{name: "existing Harbor for Docker", kind: "none", login: "a2s6aHVudGVyMi1odW50ZXI=", docker: true, existing: "{type: harbor, " +
			"name: registry.kk.local, address: 10.1.2.3, auth: {username: kk, password: hunter2-hunter, skip_verify: true}}"},
		{name: "existing registry without TLS", kind: "none", existing: "{name: registry.kk.local, port: 5000, project: mirror/k8s, " +
			"auth: {plain_http: true}}"},
	} {
		t.Run(c.name, func(t *testing.T) { pulledWerePushed(t, c.kind, c.existing, c.login, c.docker) })
	}
}

func pulledWerePushed(t *testing.T, kind, existing, login string, docker bool) {
	c := cluster{"minor": "1.34", "cni": "flannel", "runtime": "containerd", "endpoint": "kube_vip", "family": "v4",
		"etcd": "internal", "registry": kind, "proxy": "iptables", "more": "yes"}
	if docker {
		c["runtime"] = "docker"
	}
	dir := t.TempDir()
	c.write(t, dir)
	host := "registry.kk.local"
	if existing != "" {
		write(t, filepath.Join(dir, "existing.yaml"), "image_registry: "+existing+"\n")
		if strings.Contains(existing, "port: 5000") {
			host += ":5000"
		}
	}
	fleet := &simulated.Fleet{Record: true, Nodes: c.layout().Hosts()}
	var out bytes.Buffer
	args := []string{"run", "playbooks/create_cluster.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-c",
		filepath.Join(dir, "config.yaml"), "-e", "kk_yes=true", "--workdir", filepath.Join(dir, "work")}
	if existing != "" {
		args = append(args, "-c", filepath.Join(dir, "existing.yaml"))
	}
	if code := fleet.Run(t.Context(), &out, args...); code != 0 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	var pushed []string
	named, configured := 0, 0
	for _, call := range fleet.Calls() {
		if call.Module == "blockinfile" && strings.Contains(call.Args.String("block"), "10.1.2.3 registry.kk.local") {
			named++
		}
		if call.Module == "image" {
			pushed = append(pushed, pushedBy(call)...)
		}
	}
	pulled, isHarbor := 0, kind == "harbor" || strings.Contains(existing, "harbor")
	for _, f := range fleet.Files() {
		if strings.HasSuffix(f.Path, "/certs.d/"+host+"/hosts.toml") {
			configured++
			for want, is := range map[string]bool{"Basic " + login: login != "", "skip_verify = true": strings.Contains(existing, "skip_verify"), "ca = ": existing == "",
				`[host."http://`: strings.Contains(existing, "plain_http")} {
				if strings.Contains(f.Content, want) != is {
					t.Errorf("%s: whether it has %q is not %t:\n%s", f.Path, want, is, f.Content)
				}
			}
		}
		switch {
		case docker && f.Path == "/etc/docker/daemon.json":
			if !strings.Contains(strings.Join(strings.Fields(f.Content), ""), `"insecure-registries":["registry.kk.local"]`) {
				t.Errorf("Docker verifies the certificate:\n%s", f.Content)
			}
		case docker && f.Path == "/root/.docker/config.json":
			configured++
			if !strings.Contains(f.Content, login) {
				t.Errorf("Docker lacks the login:\n%s", f.Content)
			}
		}
		for _, line := range strings.Split(f.Content, "\n") {
			_, ref, isImage := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- "), "image: ")
			ref = strings.Trim(ref, `"'`)
			rest, own := strings.CutPrefix(ref, host+"/")
			if !isImage || !own {
				continue
			}
			pulled++
			if !slices.Contains(pushed, rest) {
				t.Errorf("%s pulls %s, which was not pushed: %q", f.Path, ref, pushed)
			}
		}
	}
	for _, ref := range pushed {
		if isHarbor && !strings.Contains(ref, "/") {
			t.Errorf("%s is pushed to no project", ref)
		}
	}
	if nodes := len(c.layout().Hosts()); configured == 0 || named == 0 && strings.Contains(existing, "address") {
		t.Errorf("of %d hosts, %d reach the registry and %d know its address", nodes, configured, named)
	}
	if pulled == 0 || len(pushed) == 0 {
		t.Errorf("%d images are pulled, %d were pushed", pulled, len(pushed))
	}
}

// The registry is a service of its host: its data is in a folder there, whose
// owner it is, and which survives it. Harbor mounts its folder.
func TestRegistryKeepsItsDataOnTheHost(t *testing.T) {
	for kind, file := range map[string]string{"registry": "/etc/kk-registry/config.yaml",
		"harbor": "/opt/harbor/harbor.yml"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			inventory := simulated.Layout{Family: "v4", ControlPlanes: 1, Registries: 1}
			write(t, filepath.Join(dir, "inventory.yaml"), inventory.Inventory())
			fleet := &simulated.Fleet{Record: true, Nodes: inventory.Hosts()}
			var out bytes.Buffer
			args := []string{"run", "playbooks/init_registry.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-e",
				"kk_yes=true", "--workdir", filepath.Join(dir, "work"),
				"--set", "image_registry.type=" + kind, "--set", "image_registry.data_dir=/srv/images"}
			if code := fleet.Run(t.Context(), &out, args...); code != 0 {
				t.Fatalf("exit code %d\n%s", code, out.String())
			}
			i := slices.IndexFunc(fleet.Files(), func(f simulated.File) bool { return f.Path == file })
			if i < 0 {
				t.Fatalf("%s was not made", file)
			}
			text := fleet.Files()[i].Content
			if !strings.Contains(text, `rootdirectory: "/srv/images"`) && !strings.Contains(text, `data_volume: "/srv/images"`) {
				t.Errorf("%s does not keep its data in /srv/images:\n%s", file, text)
			}
		})
	}
}

// Harbor's web server reads a copy of its certificate: what copies it runs again when the certificate is renewed.
func TestHarborGetsRenewedCertificates(t *testing.T) {
	dir := t.TempDir()
	inventory := simulated.Layout{Family: "v4", ControlPlanes: 1, Registries: 1}
	write(t, filepath.Join(dir, "inventory.yaml"), inventory.Inventory())
	fleet := &simulated.Fleet{Record: true, Nodes: inventory.Hosts()}
	for _, c := range []struct {
		policy string // of certificates; certs_renew has always
		want   []string
	}{
		{"renew", []string{"./install.sh", "started"}},
		{"renew", []string{"started"}},
		{"always", []string{"./prepare", "restarted"}},
		{"renew", []string{"started"}},
	} {
		before := len(fleet.Calls())
		var out bytes.Buffer
		args := []string{"run", "playbooks/init_registry.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-e",
			"init_policy=" + c.policy, "--workdir", filepath.Join(dir, "work"), "--set", "image_registry.type=harbor"}
		if code := fleet.Run(t.Context(), &out, args...); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", c.policy, code, out.String())
		}
		var did []string
		for _, call := range fleet.Calls()[before:] {
			if cmd := call.Args.String("cmd"); call.Module == "command" && strings.HasPrefix(cmd, "./") {
				did = append(did, cmd)
			}
			if call.Module == "systemd" && call.Args.String("name") == "harbor" {
				did = append(did, call.Args.String("state"))
			}
		}
		if !slices.Equal(did, c.want) {
			t.Errorf("%s: kk did %q, want %q", c.policy, did, c.want)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The report when the cluster does not become healthy: a node is missing.
func TestReportOfHealth(t *testing.T) {
	c := cluster{"minor": "1.34", "cni": "flannel", "runtime": "containerd", "endpoint": "local", "family": "v4",
		"etcd": "internal", "registry": "none", "proxy": "iptables", "more": "no"}
	dir := t.TempDir()
	c.write(t, dir)
	fleet := &simulated.Fleet{Nodes: c.layout().Hosts()[1:]}
	var out bytes.Buffer
	args := []string{"run", "playbooks/create_cluster.yaml", "-i", filepath.Join(dir, "inventory.yaml"), "-c",
		filepath.Join(dir, "config.yaml"), "-e", "kk_yes=true",
		"--set", "health.timeout=1", "-e", "health_pause=1", "--set", "cni.type=none", "--workdir",
		filepath.Join(dir, "work")}
	if code := fleet.Run(t.Context(), &out, args...); code != 2 {
		t.Fatalf("exit code %d\n%s", code, out.String())
	}
	_, report, _ := strings.Cut(out.String(), "TASK [health : Fail with health report]")
	if !strings.Contains(report, "n1") || leftover.MatchString(report) {
		t.Errorf("the report is\n%s", report)
	}
}

// pushedBy are the images of a call without the address of the registry.
func pushedBy(call simulated.Call) []string {
	var out []string
	for _, dest := range call.Texts("images", "dest") {
		_, rest, _ := strings.Cut(dest, "/")
		out = append(out, rest)
	}
	return out
}

// The user's own images are pushed too, without the name of the registry that they are from.
func TestOwnImagesArePushed(t *testing.T) {
	for kind, want := range map[string]map[string]string{
		"registry": {"registry.example:5000/shop/app:v1": "registry.kk.local/k8s/shop/app:v1",
			"docker.io/tool:2": "registry.kk.local/k8s/tool:2"},
		"harbor": {"registry.example:5000/shop/app:v1": "registry.kk.local/k8s/shop/app:v1",
			"docker.io/tool:2": "registry.kk.local/k8s/tool:2"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := plain("1.34")
			c["registry"] = kind
			fleet := created(t, c, withConfig(t, `
artifact: {images: ["registry.example:5000/shop/app:v1", "docker.io/tool:2"]}
image_registry: {project: k8s}
`)...)
			pushed := map[string]string{}
			for _, call := range fleet.Calls() {
				if call.Module == "image" {
					dests := call.Texts("images", "dest")
					for i, src := range call.Texts("images", "src") {
						pushed[src] = dests[i]
					}
				}
			}
			for src, dest := range want {
				if pushed[src] != dest {
					t.Errorf("%s is pushed to %q, want %q", src, pushed[src], dest)
				}
			}
		})
	}
}
