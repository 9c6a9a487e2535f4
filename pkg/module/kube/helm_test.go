package kube

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
	"kubekey/test/apiserver"
)

// chart writes a chart into a folder and returns the folder.
func chart(t *testing.T, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shop")
	for name, text := range map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: shop\nversion: " + version + "\nappVersion: \"9\"\n",
		"values.yaml": "color: red\npassword: \"\"\n",
		"templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-cm}\n" +
			"data: {color: {{ .Values.color | quote }}}\n",
		"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-secret}\nstringData: {password: {{ .Values.password | quote }}}\n",
	} {
		path := filepath.Join(dir, name)
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// helmCluster is a cluster with the arguments that helm reaches it by.
type helmCluster struct {
	*cluster
	helm string
}

func (c *helmCluster) args(pairs ...any) *value.Dict {
	d := value.NewDict(pairs...)
	d.Set("binary", c.helm)
	d.Set("kubeconfig", c.Kubeconfig)
	return d
}

func (c *helmCluster) color(t *testing.T, release string) string {
	t.Helper()
	return c.Must(t, "get", "cm", release+"-cm", "-n", "h", "-o", "jsonpath={.data.color}")
}

func TestHelmOnCluster(t *testing.T) {
	helm := apiserver.Program(t, "helm")
	c := &helmCluster{&cluster{apiserver.Start(t)}, helm}
	for _, test := range []struct {
		name string
		do   func(*testing.T, *helmCluster)
	}{
		{"install, upgrade, remove", testRelease},
		{"charts and values of files", testChartFiles},
		{"what was interrupted", testInterrupted},
		{"failures", testHelmFailures},
		{"without a kubeconfig", testHelmAccess},
		{"single values", testSetValues},
		{"values of before", testReuseValues},
		{"dependencies of a repository", testDependencies},
		{"a program that changes manifests", testPostRenderer},
		{"a history that is kept", testReplace},
	} {
		t.Run(test.name, func(t *testing.T) { test.do(t, c) })
	}
}

func testRelease(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "kubernetes.core.helm")
	dir := chart(t, "1.0.0")
	args := c.args("name", "web", "namespace", "h", "create_namespace", true, "chart", dir, "values",
		value.NewDict("password", "hunter2hunter2"))
	count := moduletest.Count(nil)
	o := moduletest.Options{Diff: true, Conn: count}
	first, second := moduletest.RunTwice(t, helm, args, o)
	status, _ := first.Data.Get("status")
	if d := status.(*value.Dict); d.String("status") != "deployed" || d.String("chart") != "shop-1.0.0" {
		t.Errorf("status %v", value.Repr(status))
	}
	args.Set("values", value.NewDict("color", "blue", "password", "hunter3hunter3"))
	third, _ := moduletest.RunTwice(t, helm, args, o)
	for _, text := range []string{everything(first), everything(second), everything(third),
		strings.Join(count.Lines(), "\n")} {
		if strings.Contains(text, "hunter") {
			t.Errorf("the secret is shown: %s", text)
		}
	}
	if text := everything(third); !strings.Contains(text, `color: \"blue\"`) && !strings.Contains(text, `color: "blue"`) {
		t.Errorf("the difference is not shown: %s", text)
	}
	if got := c.color(t, "web"); got != "blue" {
		t.Errorf("color is %q", got)
	}
	args.Set("values", value.NewDict())
	moduletest.RunTwice(t, helm, args, o)
	if got := c.color(t, "web"); got != "red" {
		t.Errorf("values of before stay: color is %q", got)
	}
	args.Set("chart", chart(t, "1.0.1"))
	moduletest.RunTwice(t, helm, args, o)
	moduletest.RunTwice(t, helm, c.args("name", "web", "namespace", "h", "state", "absent", "wait", true), o)
	if got := c.Must(t, "get", "cm,secret", "-n", "h", "-o", "name"); strings.Contains(got, "web") {
		t.Errorf("left: %s", got)
	}
}

func testChartFiles(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	dir := t.TempDir()
	if out, err := exec.Command(c.helm, "package", chart(t, "2.0.0"), "-d", dir).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	for name, text := range map[string]string{"a.yaml": "color: from-a\n", "b.yaml": "color: from-b\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := c.args("release_name", "files", "release_namespace", "h", "create_namespace", true, "chart_ref",
		"shop-2.0.0.tgz", "values_files", []any{"a.yaml", "b.yaml"}, "timeout", 60)
	moduletest.RunTwice(t, helm, args, moduletest.Options{Dir: dir})
	if got := c.color(t, "files"); got != "from-b" {
		t.Errorf("color is %q", got)
	}
	args.Set("release_values", value.NewDict("color", "from-task"))
	moduletest.RunTwice(t, helm, args, moduletest.Options{Dir: dir})
	if got := c.color(t, "files"); got != "from-task" {
		t.Errorf("color is %q", got)
	}
}

// interrupt makes the last revision of a release look as an interrupted helm leaves it.
func (c *helmCluster) interrupt(t *testing.T, release, revision, status string) {
	t.Helper()
	name := "sh.helm.release.v1." + release + ".v" + revision
	script := `
set -e
k="$KUBECTL --kubeconfig $KUBECFG -n h"
$k get secret "$NAME" -o jsonpath='{.data.release}' | base64 -d | base64 -d | gzip -d |
	sed 's/"status":"deployed"/"status":"'"$STATUS"'"/' | gzip | base64 -w0 | base64 -w0 >"$DIR/release"
printf '{"data":{"release":"%s"},"metadata":{"labels":{"status":"%s"}}}' "$(cat "$DIR/release")" "$STATUS" >"$DIR/patch"
$k patch secret "$NAME" --type=merge --patch-file "$DIR/patch"`
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), "KUBECTL="+c.Kubectl, "KUBECFG="+c.Kubeconfig, "NAME="+name, "STATUS="+status, "DIR="+
		t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func testInterrupted(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	args := c.args("name", "cut", "namespace", "h", "create_namespace", true, "chart", chart(t, "1.0.0"))
	moduletest.Run(t, helm, args, moduletest.Options{})
	c.interrupt(t, "cut", "1", "pending-install")
	first, _ := moduletest.RunTwice(t, helm, args, moduletest.Options{})
	if !first.Data.Has("recovered") {
		t.Error("it does not tell what it recovered from")
	}
	args.Set("values", value.NewDict("color", "green"))
	moduletest.Run(t, helm, args, moduletest.Options{})
	c.interrupt(t, "cut", "2", "pending-upgrade")
	moduletest.RunTwice(t, helm, args, moduletest.Options{})
	if got := c.color(t, "cut"); got != "green" {
		t.Errorf("color is %q", got)
	}
	history, _ := exec.Command(c.helm, "--kubeconfig", c.Kubeconfig, "history", "cut", "-n", "h").CombinedOutput()
	if !strings.Contains(string(history), "Rollback to 1") {
		t.Errorf("history:\n%s", history)
	}
}

func testHelmFailures(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	broken := chart(t, "1.0.0")
	bad := filepath.Join(broken, "templates", "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_Valid}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	args := c.args("name", "broken", "namespace", "h", "create_namespace", true, "chart", broken)
	r := moduletest.Run(t, helm, args, moduletest.Options{})
	if !r.Failed || !strings.Contains(r.Msg, "release h/broken: ") || !strings.Contains(r.Msg, "Not_Valid") {
		t.Errorf("got %+v", r)
	}
	if err := os.Remove(bad); err != nil {
		t.Fatal(err)
	}
	moduletest.RunTwice(t, helm, args, moduletest.Options{}) // from the failed release
	for key, want := range map[string]string{"/no/such.tgz": "find the chart", "": "missing: chart",
		"-x": "begin with a dash"} {
		args := c.args("name", "x", "chart", key)
		if _, err := moduletest.Try(t, helm, args, moduletest.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("chart %q: got %v", key, err)
		}
	}
	args = c.args("name", "x", "chart", broken)
	args.Set("binary", "/nowhere/helm")
	if r := moduletest.Run(t, helm, args, moduletest.Options{Check: true}); !r.Changed || len(r.Warnings) != 1 {
		t.Errorf("without helm: %+v", r)
	}
}

// The address and the token come as arguments. The chart has a hook that would never end.
func testHelmAccess(t *testing.T, c *helmCluster) {
	helm := moduletest.Find(t, Modules(), "helm")
	dir := chart(t, "1.0.0")
	const hook = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: hook\n  annotations: {helm.sh/hook: pre-install}\n" +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"
	if err := os.WriteFile(filepath.Join(dir, "templates/hook.yaml"), []byte(hook), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", t.TempDir())
	args := func(pairs ...any) *value.Dict {
		return value.NewDict(append([]any{"binary", c.helm, "host", c.Address, "name", "far", "namespace", "h",
			"create_namespace", true, "chart", dir, "disable_hook", true, "history_max", 1, "force", true}, pairs...)...)
	}
	count := moduletest.Count(nil)
	o := moduletest.Options{Conn: count}
	moduletest.Fails(t, "certificate", helm, args("api_key", apiserver.Token), o)
	moduletest.Fails(t, "credentials", helm, args("api_key", "wrong-token", "validate_certs", false), o)
	moduletest.RunTwice(t, helm, args("api_key", apiserver.Token, "validate_certs", false), o)
	moduletest.RunTwice(t, helm, args("api_key", apiserver.Token, "ca_cert", c.CA, "values",
		value.NewDict("color", "blue")), o)
	moduletest.Run(t, helm, args("api_key", apiserver.Token, "validate_certs", false, "values",
		value.NewDict("color", "green")), o)
	// helm keeps the revision before, too.
	if got := c.Must(t, "get", "secret", "-n", "h", "-l", "owner=helm,name=far", "-o", "name"); strings.Contains(got,
		"v1.far.v1") || !strings.Contains(got, "v1.far.v3") {
		t.Errorf("the revisions are %q", got)
	}
	moduletest.RunTwice(t, helm, args("api_key", apiserver.Token, "validate_certs", false, "state", "absent"), o)
	for _, line := range count.Lines() {
		if strings.Contains(line, "-token") {
			t.Errorf("the token is on a command line: %s", line)
		}
	}
}
