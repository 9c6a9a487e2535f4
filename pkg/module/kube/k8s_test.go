package kube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/pkg/module"
	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
	"kubekey/test/apiserver"
)

// cluster is an API server with the arguments that kubectl reaches it by.
type cluster struct{ *apiserver.Server }

// args are a module's arguments with those that reach the cluster.
func (c *cluster) args(pairs ...any) *value.Dict {
	d := value.NewDict(pairs...)
	d.Set("kubectl", c.Kubectl)
	d.Set("kubeconfig", c.Kubeconfig)
	return d
}

const app = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: v1
kind: Secret
metadata: {name: pass, namespace: shop}
stringData: {password: hunter2hunter2}
---
apiVersion: example.org/v1
kind: Widget
metadata: {name: w, namespace: shop}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`

func everything(r module.Result) string {
	text := r.Msg + value.Repr(r.Data)
	for _, d := range r.Diff {
		text += value.Repr(value.Of(d.Before)) + value.Repr(value.Of(d.After)) + d.Prepared + d.Note
	}
	return text
}

func TestOnCluster(t *testing.T) {
	c := &cluster{apiserver.Start(t)}
	for _, test := range []struct {
		name string
		do   func(*testing.T, *cluster)
	}{
		{"a whole application, in any order", testApplication},
		{"one object", testOneObject},
		{"check mode", testCheckMode},
		{"a field of another manager", testConflict},
		{"objects that are refused", testRefused},
		{"waiting", testWaiting},
		{"info", testInfo},
		{"sources", testSources},
		{"absent", testAbsent},
		{"without a kubeconfig", testAccess},
		{"what is there is patched", testPatched},
		{"replaced as a whole", testForce},
		{"patches of a kind", testMergeType},
		{"labels", testLabels},
		{"names with a hash", testAppendHash},
		{"names that the cluster makes up", testGenerateName},
		{"on after errors", testContinue},
		{"fields that are not shown", testHiddenFields},
		{"through a proxy", testProxy},
	} {
		t.Run(test.name, func(t *testing.T) { test.do(t, c) })
	}
}

var k8sOpts = moduletest.Options{Diff: true}

func testApplication(t *testing.T, c *cluster) {
	own, err := os.MkdirTemp("", "k8s") // others run the module on this machine, too
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(own) })
	t.Setenv("TMPDIR", own)
	k8s := moduletest.Find(t, Modules(), "kubernetes.core.k8s")
	first, second := moduletest.RunTwice(t, k8s, c.args("definition", app), k8sOpts)
	for _, r := range []module.Result{first, second} {
		if strings.Contains(everything(r), "hunter2") || strings.Contains(everything(r), "aHVudGVy") {
			t.Errorf("the secret is shown: %s", everything(r))
		}
	}
	if len(first.Diff) != 5 || len(second.Diff) != 0 {
		t.Errorf("%d and %d differences, want 5 and none", len(first.Diff), len(second.Diff))
	}
	if got := c.Must(t, "get", "widget", "w", "-n", "shop", "-o", "jsonpath={.spec.size}"); got != "3" {
		t.Errorf("the widget has size %q", got)
	}
	count := moduletest.Count(nil)
	r := moduletest.Run(t, k8s, c.args("definition", strings.ReplaceAll(app, "replicas: 2", "replicas: 3")),
		moduletest.Options{Diff: true, Conn: count})
	if !r.Changed || len(r.Diff) != 1 || r.Diff[0].AfterHeader != "Deployment shop/web" {
		t.Errorf("changed %v, differences %+v", r.Changed, r.Diff)
	}
	if text := value.Repr(r.Diff[0].Before); !strings.Contains(text, "'replicas': 2") ||
		strings.Contains(text, "resourceVersion") {
		t.Errorf("before is shown as %s", text)
	}
	for _, line := range count.Lines() {
		if strings.Contains(line, "hunter2") {
			t.Error("the secret is on a command line")
		}
	}
	left, _ := filepath.Glob(os.TempDir() + "/tmp.*/all.json")
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func testOneObject(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	args := c.args("kind", "Namespace", "name", "single")
	first, second := moduletest.RunTwice(t, k8s, args, moduletest.Options{})
	args.Set("apply", true)
	third := moduletest.Run(t, k8s, args, moduletest.Options{})
	for i, r := range []module.Result{first, second, third} {
		if want := []string{"create", "update", "apply"}[i]; r.Data.String("method") != want {
			t.Errorf("method %q, want %q", r.Data.String("method"), want)
		}
	}
	labelled := value.NewDict("apiVersion", "v1", "kind", "ConfigMap", "metadata", value.NewDict("name", "cm"), "data",
		value.NewDict("a", "'\"$x\n"))
	args = c.args("definition", labelled, "namespace", "single")
	moduletest.RunTwice(t, k8s, args, moduletest.Options{})
	if got := c.Must(t, "get", "cm", "cm", "-n", "single", "-o", "jsonpath={.data.a}"); got != "'\"$x\n" {
		t.Errorf("data is %q", got)
	}
	count := moduletest.Count(nil)
	moduletest.Run(t, k8s, args, moduletest.Options{Conn: count})
	if n := len(count.Lines()); n != 1 {
		t.Errorf("%d round trips, want 1", n)
	}
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reads}\nrules: []\n"
	moduletest.RunTwice(t, k8s, c.args("definition", role, "namespace", "single"), moduletest.Options{})
}

func testCheckMode(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	moduletest.Run(t, k8s, c.args("definition", strings.ReplaceAll(app, "size: 3", "size: 4")),
		moduletest.Options{Check: true})
	if got := c.Must(t, "get", "widget", "w", "-n", "shop", "-o", "jsonpath={.spec.size}"); got != "3" {
		t.Errorf("check mode changed the size to %q", got)
	}
	unknown := "apiVersion: example.org/v9\nkind: Gadget\nmetadata: {name: g}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: to-come}\n"
	if r := moduletest.Run(t, k8s, c.args("definition", unknown), moduletest.Options{Check: true}); !r.Changed ||
		r.Failed {
		t.Errorf("objects whose kind and namespace are to come: %+v", r)
	}
	args := c.args("kind", "Namespace", "name", "x")
	args.Set("kubectl", "/nowhere/kubectl")
	if r := moduletest.Run(t, k8s, args, moduletest.Options{Check: true}); !r.Changed || len(r.Warnings) != 1 {
		t.Errorf("without kubectl: %+v", r)
	}
	if _, err := moduletest.Try(t, k8s, args, moduletest.Options{}); err == nil &&
		!strings.Contains(moduletest.Run(t, k8s, args, moduletest.Options{}).Msg, "has no /nowhere/kubectl") {
		t.Errorf("without kubectl: %v", err)
	}
}

func testConflict(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	c.Must(t, "create", "configmap", "shared", "--from-literal=a=theirs", "-n", "shop")
	def := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared, namespace: shop}\ndata: {a: ours}\n"
	r, err := moduletest.Try(t, k8s, c.args("definition", def), moduletest.Options{})
	if err != nil || !r.Failed || !strings.Contains(r.Msg, "ConfigMap shop/shared: ") ||
		!strings.Contains(r.Msg, "set force_conflicts") {
		t.Errorf("got %+v, %v", r, err)
	}
	moduletest.RunTwice(t, k8s, c.args("definition", def, "force_conflicts", true), moduletest.Options{})
}

func testRefused(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	def := `
apiVersion: v1
kind: ConfigMap
metadata: {name: good, namespace: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: Bad_Name, namespace: shop}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: nowhere}
stringData: {k: verysecretvalue}
`
	r := moduletest.Run(t, k8s, c.args("definition", def), moduletest.Options{})
	if !r.Failed || !r.Changed || !strings.Contains(r.Msg, "ConfigMap shop/Bad_Name: ") ||
		!strings.Contains(r.Msg, `Secret nowhere/s: `) || strings.Contains(r.Msg, "verysecret") {
		t.Errorf("got %+v", r)
	}
	c.Must(t, "get", "cm", "good", "-n", "shop")
	for def, want := range map[string]string{
		"a: X":    "needs apiVersion and kind",
		"kind: X": "X needs metadata.name",
		"[1]":     "an object is a dictionary, not int",
		"":        "the task has no object",
		"a: [":    "not YAML",
	} {
		if _, err := moduletest.Try(t, k8s, c.args("definition", def), moduletest.Options{}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", def, err, want)
		}
	}
}

func testWaiting(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	web, _, _ := strings.Cut(app, "---")
	args := c.args("definition", web, "wait", true, "wait_timeout", 1)
	r := moduletest.Run(t, k8s, args, moduletest.Options{})
	if !r.Failed || !strings.Contains(r.Msg,
		"wait for Deployment shop/web: its controller has not seen the change yet: 1s are over") {
		t.Errorf("got %+v", r.Msg)
	}
	status := `{"status":{"observedGeneration":99,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,` +
		`"conditions":[{"type":"Available","status":"True","reason":"Fine"}]}}`
	c.Must(t, "patch", "deployment", "web", "-n", "shop", "--subresource=status", "--type=merge", "-p", status)
	if r := moduletest.Run(t, k8s, args, moduletest.Options{}); r.Failed {
		t.Errorf("it is rolled out, and still: %s", r.Msg)
	}
	args.Set("wait_condition", value.NewDict("type", "Available", "reason", "Other"))
	if r := moduletest.Run(t, k8s, args, moduletest.Options{}); !r.Failed ||
		!strings.Contains(r.Msg, "condition Available is True: Fine") {
		t.Errorf("got %+v", r.Msg)
	}
	args.Set("wait_condition", value.NewDict("type", "Available", "reason", "Fine"))
	if r := moduletest.Run(t, k8s, args, moduletest.Options{}); r.Failed {
		t.Errorf("the condition is met, and still: %s", r.Msg)
	}
}

func testInfo(t *testing.T, c *cluster) {
	info := moduletest.Find(t, Modules(), "kubernetes.core.k8s_info")
	resources := func(pairs ...any) []any {
		t.Helper()
		r := moduletest.Run(t, info, c.args(pairs...), moduletest.Options{Check: true})
		v, _ := r.Data.Get("resources")
		return v.([]any)
	}
	for _, test := range []struct {
		want int
		args []any
	}{
		{1, []any{"kind", "Deployment", "api_version", "apps/v1", "name", "web", "namespace", "shop"}},
		{1, []any{"kind", "Secret", "namespace", "shop"}},
		{1, []any{"kind", "Namespace", "field_selectors", []any{"metadata.name=shop"}}},
		{1, []any{"kind", "Namespace", "label_selectors", []any{"kubernetes.io/metadata.name=shop"}}},
		{0, []any{"kind", "Namespace", "label_selectors", []any{"a=b", "c=d"}}},
		{1, []any{"kind", "Widget", "api_version", "example.org/v1"}},
		{0, []any{"kind", "Gadget", "api_version", "example.org/v1"}},
		{0, []any{"kind", "Pod", "name", "none"}},
	} {
		if got := resources(test.args...); len(got) != test.want {
			t.Errorf("%v: %d objects, want %d", test.args, len(got), test.want)
		}
	}
	secret := resources("kind", "Secret", "namespace", "shop")
	if text := value.Repr(secret); !strings.Contains(text, hidden) || strings.Contains(text, "aHVudGVy") {
		t.Errorf("the secret is shown: %s", text)
	}
	open := resources("kind", "Secret", "namespace", "shop", "reveal_secrets", true)
	if text := value.Repr(open); !strings.Contains(text, "aHVudGVy") {
		t.Errorf("the secret is not shown: %s", text)
	}
	r := moduletest.Run(t, info, c.args("kind", "Pod", "name", "none", "wait", true, "wait_timeout", 1),
		moduletest.Options{})
	if !r.Failed || !strings.Contains(r.Msg, "Pod none: ") {
		t.Errorf("got %+v", r)
	}
}

func testSources(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"files/cm.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: shop}\ndata: {a: \"{{ x }}\"}\n",
		"files/all/1.yml":      "apiVersion: v1\nkind: Namespace\nmetadata: {name: folder}\n",
		"files/all/2.json":     `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "folder"}}`,
		"files/all/README.md":  "# Not a manifest\n",
		"templates/marks.j2":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [[ names[0] ]]-marks}\ndata: {a: \"{{ x }}\"}\n",
		"templates/cm.yaml.j2": "{% for n in names %}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ n }}}\n{% endfor %}\n",
	} {
		path := filepath.Join(dir, name)
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := moduletest.Options{Dir: dir, Vars: map[string]any{"names": []any{"one", "two"}}}
	moduletest.RunTwice(t, k8s, c.args("src", "cm.yaml"), o)
	moduletest.RunTwice(t, k8s, c.args("src", "all"), o)
	c.Must(t, "get", "cm", "c", "-n", "folder")
	moduletest.RunTwice(t, k8s, c.args("template", "cm.yaml.j2", "namespace", "shop"), o)
	marks := value.NewDict("path", "marks.j2", "variable_start_string", "[[", "variable_end_string", "]]")
	moduletest.RunTwice(t, k8s, c.args("template", marks, "namespace", "shop"), o)
	moduletest.RunTwice(t, k8s, c.args("template", []any{"cm.yaml.j2", marks}, "namespace", "folder"), o)
	c.Must(t, "get", "cm", "one", "two", "one-marks", "-n", "folder")
	for want, given := range map[string]any{"no option \"paht\"": value.NewDict("paht", "x"),
		"needs a path": value.NewDict("trim_blocks", true), "not 3": 3} {
		moduletest.Fails(t, want, k8s, c.args("template", given), o)
	}
	if got := c.Must(t, "get", "cm", "plain", "one", "two", "-n", "shop", "-o",
		"jsonpath={.items[*].data.a}"); got != "{{ x }}" {
		t.Errorf("got %q", got)
	}
}

func testAbsent(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	_, rest, _ := strings.Cut(app, "---")
	rest, _, _ = strings.Cut(rest, "---\napiVersion: v1\nkind: Namespace")
	moduletest.RunTwice(t, k8s, c.args("definition", rest, "state", "absent", "wait", true), k8sOpts)
	two := "{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root, namespace: shop}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: never}}\n"
	moduletest.Run(t, k8s, c.args("definition", strings.Split(two, "---")[0]), k8sOpts)
	r := moduletest.Run(t, k8s, c.args("definition", two, "state", "absent"), k8sOpts)
	const gone = "{'changed': True, 'method': 'delete', 'result': {'apiVersion': 'v1', 'kind': 'ConfigMap', "
	if text := value.Repr(r.Data); !r.Changed || !strings.Contains(text, gone) ||
		!strings.Contains(text, "{'changed': False, 'method': 'delete', 'result': {}}") {
		t.Errorf("one is gone, one was never there: %s", text)
	}
	r = moduletest.Run(t, k8s, c.args("definition", "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\n",
		"state", "absent"), k8sOpts)
	if r.Changed || r.Failed {
		t.Errorf("a kind that is gone: %+v", r)
	}
}

// The address and the secrets of the cluster come as arguments.
func testAccess(t *testing.T, c *cluster) {
	t.Setenv("HOME", t.TempDir())
	args := func(pairs ...any) *value.Dict {
		return value.NewDict(append([]any{"kubectl", c.Kubectl, "host", c.Address, "kind", "Namespace", "name", "reached"},
			pairs...)...)
	}
	k8s, info := moduletest.Find(t, Modules(), "k8s"), moduletest.Find(t, Modules(), "k8s_info")
	count := moduletest.Count(nil)
	o := moduletest.Options{Conn: count}
	moduletest.Fails(t, "certificate", k8s, args("api_key", apiserver.Token), o)
	moduletest.Fails(t, "Namespace reached: the server has asked for the client to provide credentials", k8s,
		args("api_key", "wrong-token", "validate_certs", false), o)
	moduletest.RunTwice(t, k8s, args("api_key", apiserver.Token, "validate_certs", false), o)
	moduletest.Run(t, k8s, args("api_key", apiserver.Token, "ca_cert", c.CA), o)
	r := moduletest.Run(t, info, args("api_key", apiserver.Token, "verify_ssl", false), o)
	if found, _ := r.Data.Get("resources"); len(found.([]any)) != 1 {
		t.Errorf("found %s", value.Repr(r.Data))
	}
	// The token of the task comes before that of the kubeconfig.
	moduletest.Fails(t, "provide credentials", k8s,
		c.args("api_key", "wrong-token", "kind", "Namespace", "name", "reached"), o)
	moduletest.Fails(t, "system:serviceaccount", k8s,
		args("api_key", apiserver.Token, "validate_certs", false, "name", "other",
			"impersonate_user", "system:serviceaccount:default:nobody", "impersonate_groups",
			[]any{"two words", "system:authenticated"}), o)
	moduletest.Run(t, k8s, args("api_key", apiserver.Token, "validate_certs", false, "name", "other", "impersonate_user",
		"root", "impersonate_groups", []any{"system:masters"}), o)
	for _, line := range count.Lines() {
		if strings.Contains(line, "-token") {
			t.Errorf("the token is on a command line: %s", line)
		}
	}
}

func testPatched(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: patched, namespace: default}\ndata: {a: %q}\n"
	r := moduletest.Run(t, k8s, c.args("definition", fmt.Sprintf(text, "1"), "state", "patched"), k8sOpts)
	if r.Changed || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "does not exist") {
		t.Errorf("%+v", r)
	}
	moduletest.Run(t, k8s, c.args("definition", fmt.Sprintf(text, "1"), "apply", true, "server_side_apply",
		value.NewDict("field_manager", "other")), k8sOpts)
	moduletest.Fails(t, "other", k8s, c.args("definition", fmt.Sprintf(text, "2"), "state", "patched"), k8sOpts)
	moduletest.RunTwice(t, k8s, c.args("definition", fmt.Sprintf(text, "2"), "state", "patched", "server_side_apply",
		value.NewDict("field_manager", "kk", "force_conflicts", true)), k8sOpts)
	// A field that the cluster does not know.
	odd := strings.Replace(text, "\ndata:", "\ndota: {}\ndata:", 1)
	moduletest.Fails(t, "dota", k8s, c.args("definition", fmt.Sprintf(odd, "2"), "validate",
		value.NewDict("fail_on_error", true)), k8sOpts)
	gone := value.NewDict("propagationPolicy", "Background", "gracePeriodSeconds", 1)
	moduletest.RunTwice(t, k8s, c.args("definition", fmt.Sprintf(text, "2"), "state", "absent", "delete_options", gone),
		k8sOpts)
}
