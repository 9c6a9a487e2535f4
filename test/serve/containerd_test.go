package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/artifact/artifacttest"
	"kubekey/test/upstream"
)

// containerd runs the containerd of the lab's mirror until the test ends, with folders of its own. It returns how to
// run ctr with it.
func containerd(t *testing.T) (ctr func(args ...string) string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containerd needs root")
	}
	cache, err := upstream.CacheDir()
	check(t, err)
	found, err := filepath.Glob(filepath.Join(cache, "containerd-*", runtime.GOARCH, "containerd"))
	check(t, err)
	if len(found) == 0 {
		t.Skip("no containerd is built: make mirror")
	}
	dir := t.TempDir()
	config := fmt.Sprintf("version = 2\nroot = \"%[1]s/root\"\nstate = \"%[1]s/state\"\n"+
		"disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = \"%[1]s/s\"\n[debug]\nlevel = \"warn\"\n", dir)
	check(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte(config), 0o600))
	cmd := exec.CommandContext(t.Context(), found[0], "-c", filepath.Join(dir, "config.toml"))
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait() // the context of the test has ended
		if t.Failed() {
			t.Log(log.String())
		}
	})
	program := filepath.Join(filepath.Dir(found[0]), "ctr")
	ctr = func(args ...string) string {
		t.Helper()
		return output(t, program, append([]string{"-a", dir + "/s"}, args...)...)
	}
	for began := time.Now(); exec.CommandContext(t.Context(), program, "-a", dir+"/s", "version").Run() != nil; {
		if time.Since(began) > time.Minute {
			t.Fatal("containerd does not answer")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return ctr
}

// TestContainerd has containerd pull images, under the names that they have upstream and under those that the overlay
// gives them.
func TestContainerd(t *testing.T) {
	ctr := containerd(t)
	o := artifacttest.Sample(t, nil)
	url := serve(t, o.Path)
	answer, err := http.Get(url + "overlay.yaml") //nolint:noctx // a test's own server
	check(t, err)
	defer func() { _ = answer.Body.Close() }()
	var overlay struct{ Registries map[string]string }
	check(t, yaml.NewDecoder(answer.Body).Decode(&overlay))
	dir := t.TempDir()
	hosts := func(registry, text string) {
		check(t, os.MkdirAll(filepath.Join(dir, registry), 0o755))
		check(t, os.WriteFile(filepath.Join(dir, registry, "hosts.toml"), []byte(text), 0o600))
	}
	for registry, place := range overlay.Registries {
		host, path, _ := strings.Cut(place, "/")
		hosts(registry, "server = \"https://registry.invalid\"\n[host.\"http://"+host+"/v2/"+path+"\"]\n"+
			"capabilities = [\"pull\", \"resolve\"]\noverride_path = true\n")
		// As the role containerd writes it.
		hosts(host, "server = \"https://"+host+"\"\n[host.\"http://"+host+"\"]\ncapabilities = [\"pull\", \"resolve\"]\n")
	}
	image, index := digestOf(t, o.Image), digestOf(t, o.Index)
	for ref, digest := range map[string]string{
		artifacttest.Image + ":1.37":                              image,
		artifacttest.Image + "@" + image:                          image,
		artifacttest.Index + ":3.10.1":                            index,
		artifacttest.Index + "@" + index:                          index,
		overlay.Registries["docker.io"] + "/library/busybox:1.36": image,
		overlay.Registries["registry.k8s.io"] + "/pause@" + index: index,
	} {
		ctr("image", "pull", "--hosts-dir", dir, "--platform", "linux/amd64", ref)
		if list := ctr("image", "ls", "name=="+ref); !strings.Contains(list, digest) {
			t.Errorf("%s: containerd has not %s, but %s", ref, digest, list)
		}
	}
	if incomplete := ctr("image", "check"); strings.Count(incomplete, " complete ") != 6 {
		t.Errorf("not all images are complete:\n%s", incomplete)
	}
}
