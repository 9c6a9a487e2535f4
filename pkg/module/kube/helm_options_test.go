package kube

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
)

// release is a release in the namespace h of the chart in a folder.
func (c *helmCluster) release(name, dir string, pairs ...any) *value.Dict {
	return c.args(append([]any{"name", name, "namespace", "h", "create_namespace", true, "chart", dir}, pairs...)...)
}

// repository serves a repository that has the chart shop.
func (c *helmCluster) repository(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	for _, args := range [][]string{{"package", chart(t, version), "-d", dir},
		{"repo", "index", dir, "--url", server.URL}} {
		if out, err := exec.Command(c.helm, args...).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
	}
	return server.URL
}

func testSetValues(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	dir := chart(t, "1.0.0")
	if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "color.txt"), []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := moduletest.Options{Diff: true, Dir: filepath.Dir(dir)}
	for _, test := range []struct{ kind, value, want string }{
		{"raw", "color=it's $x", "it's $x"},
		{"string", "color=0123,password=x", "0123"},
		{"json", `color={"a":1}`, "map[a:1]"},
		{"file", "color=color.txt", "of a file"},
	} {
		one := value.NewDict("value", test.value, "value_type", test.kind)
		moduletest.RunTwice(t, helm, c.release("set", dir, "values", value.NewDict("color", "green"), "set_values",
			[]any{one}), o)
		if got := c.color(t, "set"); got != test.want {
			t.Errorf("%s: color is %q, want %q", test.kind, got, test.want)
		}
	}
	missing := value.NewDict("value", "color=none.txt", "value_type", "file")
	moduletest.Fails(t, `set_values "color=none.txt"`, helm, c.release("set", dir, "set_values", []any{missing}), o)
}

func testReuseValues(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	dir := chart(t, "1.0.0")
	var o moduletest.Options
	moduletest.RunTwice(t, helm, c.release("reuse", dir, "values", value.NewDict("color", "green")), o)
	for _, how := range []string{"reuse_values", "reset_then_reuse_values"} {
		moduletest.RunTwice(t, helm, c.release("reuse", dir, "values", value.NewDict("password", how), "reset_values", false,
			how, true), o)
		if got := c.color(t, "reuse"); got != "green" {
			t.Errorf("%s: color is %q", how, got)
		}
	}
	moduletest.RunTwice(t, helm, c.release("reuse", dir, "values", value.NewDict("password", "x"), "reuse_values", true),
		o)
	if got := c.color(t, "reuse"); got != "red" {
		t.Errorf("reset_values comes first: color is %q", got)
	}
}

func testDependencies(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	t.Setenv("HELM_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "parent")
	about := "apiVersion: v2\nname: parent\nversion: 1.0.0\n"
	write := func(text string) {
		_ = os.MkdirAll(dir, 0o700)
		if err := os.WriteFile(filepath.Join(dir, "Chart.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(about)
	r := moduletest.Run(t, helm, c.release("deps", dir, "dependency_update", true), moduletest.Options{})
	if len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0], "names no dependencies") {
		t.Errorf("%+v", r)
	}
	write(about + "dependencies: [{name: shop, version: 3.0.0, repository: \"" + c.repository(t, "3.0.0") + "\"}]\n")
	moduletest.Fails(t, "shop", helm, c.release("deps", dir), moduletest.Options{})
	moduletest.RunTwice(t, helm, c.release("deps", dir, "dependency_update", true, "values",
		value.NewDict("shop", value.NewDict("color", "blue"))), moduletest.Options{})
	if got := c.color(t, "deps"); got != "blue" {
		t.Errorf("color is %q", got)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("the folder of the control node changed: %v", left)
	}
	moduletest.Fails(t, "dependency_update needs a chart folder", helm, c.release("deps", "oci://x/y", "dep_up", true),
		moduletest.Options{})
	// The host's helm knows no repository: there is no index to read.
	moduletest.Fails(t, "no repositories found", helm, c.release("deps", dir, "update_repo_cache", true),
		moduletest.Options{})
}

func testPostRenderer(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	program := filepath.Join(t.TempDir(), "paint")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nsed 's/color: \"red\"/color: painted/'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	moduletest.RunTwice(t, helm, c.release("painted", chart(t, "1.0.0"), "post_renderer", program), moduletest.Options{})
	if got := c.color(t, "painted"); got != "painted" {
		t.Errorf("color is %q", got)
	}
}

func testReplace(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	dir := chart(t, "1.0.0")
	history := func() string {
		out, _ := exec.Command(c.helm, "--kubeconfig", c.Kubeconfig, "history", "kept", "-n", "h").CombinedOutput()
		return string(out)
	}
	var o moduletest.Options
	moduletest.RunTwice(t, helm, c.release("kept", dir, "replace", true), o)
	moduletest.RunTwice(t, helm, c.release("kept", dir, "state", "absent", "purge", false), o)
	if got := history(); !strings.Contains(got, "uninstalled") {
		t.Errorf("history: %s", got)
	}
	moduletest.RunTwice(t, helm, c.release("kept", dir, "replace", true), o)
	if got := history(); !strings.Contains(got, "deployed") {
		t.Errorf("history: %s", got)
	}
	moduletest.Fails(t, "cannot re-use a name that is still in use", helm,
		c.release("kept", dir, "replace", true, "values", value.NewDict("color", "blue")), o)
	moduletest.RunTwice(t, helm, c.release("kept", dir, "state", "absent"), o)
	if got := history(); !strings.Contains(got, "not found") {
		t.Errorf("history: %s", got)
	}
	moduletest.Fails(t, "replace cannot be used when state is absent", helm,
		c.release("kept", dir, "state", "absent", "replace", true), o)
	moduletest.Fails(t, "mutually exclusive: replace|history_max", helm,
		c.release("kept", dir, "history_max", 3, "replace", true), o)
}
