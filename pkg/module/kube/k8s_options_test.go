package kube

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"kubekey/pkg/module/moduletest"
	"kubekey/pkg/value"
	"kubekey/test/apiserver"
)

// configMap is a definition of one in the namespace default.
func configMap(name string, data, labels *value.Dict) *value.Dict {
	meta := value.NewDict("name", name, "namespace", "default")
	if labels != nil {
		meta.Set("labels", labels)
	}
	return value.NewDict("apiVersion", "v1", "kind", "ConfigMap", "metadata", meta, "data", data)
}

func (c *cluster) data(t *testing.T, name string) string {
	t.Helper()
	return c.Must(t, "get", "cm", name, "-n", "default", "-o", "jsonpath={.data}")
}

func testForce(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	first, _ := moduletest.RunTwice(t, k8s, c.args("definition", configMap("forced", value.NewDict("a", "1"), nil),
		"force", true), k8sOpts)
	if first.Data.String("method") != "create" {
		t.Errorf("method %q", first.Data.String("method"))
	}
	c.Must(t, "patch", "cm", "forced", "-n", "default", "--type=merge", "-p", `{"data":{"theirs":"1"}}`)
	// Applied, the field of another manager stays; it goes when the object is replaced.
	moduletest.Run(t, k8s, c.args("definition", configMap("forced", value.NewDict("a", "1"), nil)), k8sOpts)
	if got := c.data(t, "forced"); got != `{"a":"1","theirs":"1"}` {
		t.Errorf("data %s", got)
	}
	first, _ = moduletest.RunTwice(t, k8s, c.args("definition", configMap("forced", value.NewDict("b", "2"), nil), "force",
		true), k8sOpts)
	if got := c.data(t, "forced"); got != `{"b":"2"}` || first.Data.String("method") != "replace" || len(first.Diff) != 1 {
		t.Errorf("data %s, method %q", got, first.Data.String("method"))
	}
}

func testMergeType(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	args := func(data *value.Dict, types ...any) *value.Dict {
		return c.args("definition", configMap("merged", data, nil), "merge_type", types)
	}
	moduletest.RunTwice(t, k8s, args(value.NewDict("a", "1"), "merge"), k8sOpts)
	first, _ := moduletest.RunTwice(t, k8s, args(value.NewDict("b", "2"), "merge"), k8sOpts)
	if got := c.data(t, "merged"); got != `{"a":"1","b":"2"}` || first.Data.String("method") != "update" {
		t.Errorf("data %s, method %q", got, first.Data.String("method"))
	}
	moduletest.RunTwice(t, k8s, args(value.NewDict("a", nil), "strategic-merge"), k8sOpts)
	if got := c.data(t, "merged"); got != `{"b":"2"}` {
		t.Errorf("data %s", got)
	}
	// No object is a JSON patch, so the next kind has its turn.
	moduletest.Fails(t, "ConfigMap default/merged: ", k8s, args(value.NewDict("b", "3"), "json"), k8sOpts)
	moduletest.RunTwice(t, k8s, args(value.NewDict("b", "3"), "json", "merge"), k8sOpts)
	moduletest.Fails(t, "mutually exclusive: apply|merge_type", k8s,
		c.args("definition", "x", "apply", true, "merge_type", []any{"merge"}), k8sOpts)
	// A strategic merge knows containers by their names; a merge replaces the list.
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: merged, namespace: default}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: %s, image: x}]}}}\n"
	containers := func(name, kind string) string {
		moduletest.RunTwice(t, k8s, c.args("definition", fmt.Sprintf(deployment, name), "merge_type", []any{kind}), k8sOpts)
		return c.Must(t, "get", "deployment", "merged", "-n", "default", "-o",
			"jsonpath={.spec.template.spec.containers[*].name}")
	}
	containers("one", "merge")
	if got := containers("two", "strategic-merge"); got != "two one" {
		t.Errorf("containers %q", got)
	}
	if got := containers("two", "merge"); got != "two" {
		t.Errorf("containers %q", got)
	}
}

func testLabels(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	web, db, bare := value.NewDict("app", "web"), value.NewDict("app", "db", "tier", "back"), (*value.Dict)(nil)
	list := func(v string) []any {
		data := value.NewDict("v", v)
		return []any{configMap("l-web", data, web), configMap("l-db", data, db), configMap("l-bare", data, bare)}
	}
	versions := func() string {
		return c.Must(t, "get", "cm", "-n", "default", "-o",
			`jsonpath={range .items[?(@.data.v)]}{.metadata.name}={.data.v} {end}`)
	}
	for i, test := range []struct{ selectors, want string }{
		{"app=web", "l-web=0 "},
		{"app in (web, db), tier", "l-db=1 l-web=0 "},
		{"app!=web", "l-db=2 l-web=0 "},
		{"app notin (db)", "l-db=2 l-web=3 "},
		{"!tier", "l-db=2 l-web=4 "},
	} {
		moduletest.RunTwice(t, k8s, c.args("definition", list(fmt.Sprint(i)), "label_selectors", []any{test.selectors}),
			k8sOpts)
		if got := versions(); got != test.want {
			t.Errorf("%s: %q, want %q", test.selectors, got, test.want)
		}
	}
	r := moduletest.Run(t, k8s, c.args("definition", list("9")[2], "label_selectors", []any{"app"}), k8sOpts)
	if r.Changed || !strings.Contains(r.Msg, "ConfigMap default/l-bare is skipped") {
		t.Errorf("%+v", r)
	}
	moduletest.Fails(t, `"app=(" is not one`, k8s, c.args("definition", list("9")[0], "label_selectors", []any{"app=("}),
		k8sOpts)
	gone := c.args("kind", "ConfigMap", "namespace", "default", "state", "absent", "label_selectors",
		[]any{"app in (web,db)"}, "wait", true)
	first, second := moduletest.RunTwice(t, k8s, gone, k8sOpts)
	both, _ := first.Data.Get("result")
	if l, ok := both.([]any); !ok || len(l) != 2 || versions() != "" ||
		value.Repr(moduletest.Field(second, "result")) != "{}" {
		t.Errorf("gone: %s; left: %q", value.Repr(both), versions())
	}
	// What is named is only deleted if it has the labels.
	moduletest.Run(t, k8s, c.args("definition", list("9")[0]), k8sOpts)
	one := c.args("definition", list("9")[0], "state", "absent", "label_selectors", []any{"app=db"})
	if r := moduletest.Run(t, k8s, one, k8sOpts); r.Changed || versions() != "l-web=9 " {
		t.Errorf("changed %v, %q", r.Changed, versions())
	}
}

func testAppendHash(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	for _, test := range []struct {
		definition string
		create     []string // what kubectl makes of the same
	}{
		{"kind: ConfigMap\nmetadata: {name: hashed, namespace: default}\ndata: {b: '2', a: \"1\\n\"}\n",
			[]string{"configmap", "hashed", "--from-literal=b=2", "--from-literal=a=1\n"}},
		{"kind: Secret\nmetadata: {name: hashed, namespace: default}\ndata: {a: MQ==}\n",
			[]string{"secret", "generic", "hashed", "--from-literal=a=1"}},
	} {
		first, _ := moduletest.RunTwice(t, k8s, c.args("definition", test.definition, "append_hash", true), k8sOpts)
		want := c.Must(t, append([]string{"create", "--append-hash", "--dry-run=client", "-o", "jsonpath={.metadata.name}"},
			test.create...)...)
		made := object{moduletest.Field(first, "result").(*value.Dict)}
		if made.name() != want {
			t.Errorf("the name is %q, want %q", made.name(), want)
		}
		c.Must(t, "get", strings.ToLower(made.kind()), want, "-n", "default")
		moduletest.RunTwice(t, k8s, c.args("definition", test.definition, "append_hash", true, "state", "absent"), k8sOpts)
	}
	r := moduletest.Run(t, k8s, c.args("kind", "Namespace", "name", "hashed", "append_hash", true), k8sOpts)
	if got := (object{moduletest.Field(r, "result").(*value.Dict)}).name(); got != "hashed" {
		t.Errorf("a namespace is called %q", got)
	}
}

func testGenerateName(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	args := c.args("definition", value.NewDict("data", value.NewDict("made", "up")), "kind", "ConfigMap", "namespace",
		"default", "generate_name", "made-up-")
	count := func() int {
		return strings.Count(c.Must(t, "get", "cm", "-n", "default", "-o", "name"), "configmap/made-up-")
	}
	if r := moduletest.Run(t, k8s, args, moduletest.Options{Check: true}); !r.Changed || count() != 0 {
		t.Errorf("check mode: %+v, %d objects", r, count())
	}
	for i := range 2 {
		r := moduletest.Run(t, k8s, args, k8sOpts)
		if !r.Changed || r.Data.String("method") != "create" || count() != i+1 {
			t.Errorf("%+v, %d objects", r, count())
		}
	}
	both := []any{configMap("made-up", value.NewDict("a", "1"), nil), args.Copy()}
	both[1] = value.NewDict("kind", "ConfigMap", "metadata", value.NewDict("generateName", "made-up-"))
	if r := moduletest.Run(t, k8s, c.args("definition", both, "namespace", "default"), k8sOpts); !r.Changed ||
		count() != 3 {
		t.Errorf("%+v, %d objects", r, count())
	}
	moduletest.Fails(t, "mutually exclusive: name|generate_name", k8s,
		c.args("kind", "ConfigMap", "name", "a", "generate_name", "a"), k8sOpts)
	if r := moduletest.Run(t, k8s, c.args("kind", "ConfigMap", "generate_name", "made-up-", "state", "absent"),
		k8sOpts); r.Changed || count() != 3 {
		t.Errorf("absent: %+v, %d objects", r, count())
	}
}

func testContinue(t *testing.T, c *cluster) {
	k8s := moduletest.Find(t, Modules(), "k8s")
	list := []any{
		configMap("Not_Valid", value.NewDict(), nil),
		configMap("goes-on", value.NewDict("a", "1"), nil),
		value.NewDict("kind", "Pod", "metadata", value.NewDict("name", "never"), "spec",
			value.NewDict("containers", []any{value.NewDict("name", "a", "image", "a")})),
	}
	args := c.args("definition", list, "namespace", "default", "continue_on_error", true, "wait", true, "wait_timeout", 1)
	r := moduletest.Run(t, k8s, args, k8sOpts)
	text := value.Repr(r.Data)
	for _, want := range []string{"{'changed': False, 'result': {}, 'error': {'msg': 'ConfigMap default/Not_Valid: ",
		"'name': 'goes-on'", "'error': {'msg': 'wait for Pod default/never: "} {
		if r.Failed || !r.Changed || !strings.Contains(text, want) {
			t.Errorf("no %q in %s (failed %v, changed %v)", want, text, r.Failed, r.Changed)
		}
	}
	r = moduletest.Run(t, k8s, c.args("definition", list[0], "continue_on_error", true), k8sOpts)
	if r.Failed || r.Changed || !strings.Contains(value.Repr(r.Data), "'error': {'msg': 'ConfigMap default/Not_Valid: ") {
		t.Errorf("%+v", r)
	}
	// One that cannot be deleted: its finalizer is nobody's.
	c.Must(t, "patch", "cm", "goes-on", "-n", "default", "--type=merge", "-p",
		`{"metadata":{"finalizers":["example.org/never"]}}`)
	r = moduletest.Run(t, k8s, c.args("definition", list[1:], "namespace", "default", "state", "absent",
		"continue_on_error", true, "wait", true, "wait_timeout", 2,
		"delete_options", value.NewDict("gracePeriodSeconds", 0)), k8sOpts)
	if text := value.Repr(r.Data); r.Failed || !r.Changed ||
		!strings.Contains(text, "delete ConfigMap default/goes-on: ") || !strings.Contains(text, "'name': 'never'") {
		t.Errorf("failed %v, changed %v: %s", r.Failed, r.Changed, text)
	}
	c.Must(t, "patch", "cm", "goes-on", "-n", "default", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
}

func testHiddenFields(t *testing.T, c *cluster) {
	k8s, info := moduletest.Find(t, Modules(), "k8s"), moduletest.Find(t, Modules(), "k8s_info")
	def := configMap("private", value.NewDict("shown", "yes", "secret.txt", "hunter2"), nil)
	def.Set("metadata", value.NewDict("name", "private", "namespace", "default", "annotations",
		value.NewDict("example.org/note", "hunter2")))
	fields := []any{"data[secret.txt]", "metadata.annotations[example.org/note]", "no.such[0].field",
		"metadata.managedFields"}
	r, _ := moduletest.RunTwice(t, k8s, c.args("definition", def, "hidden_fields", fields), k8sOpts)
	found := moduletest.Run(t, info, c.args("kind", "ConfigMap", "name", "private", "namespace", "default",
		"hidden_fields", fields), k8sOpts)
	for _, text := range []string{everything(r), everything(found)} {
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "'shown': 'yes'") {
			t.Errorf("shown: %s", text)
		}
	}
	list := []any{value.NewDict("a", 1, "b", 2), value.NewDict("a", 3)}
	d := Hiding{[]string{"l[0].b", "l[1]", "l[7]"}}.less(value.NewDict("l", list))
	if got := value.Repr(d); got != "{'l': [{'a': 1}]}" {
		t.Errorf("got %s", got)
	}
}

// testProxy reaches the API server by a name that only the proxy knows.
func testProxy(t *testing.T, c *cluster) {
	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, err := net.Dial("tcp", strings.TrimPrefix(c.Address, "https://"))
		if err != nil || r.Method != http.MethodConnect {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		tunnels.Add(1)
		w.WriteHeader(http.StatusOK)
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(there, here); _ = there.Close() }()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	t.Cleanup(proxy.Close)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(c.Address, "https://"))
	args := func(pairs ...any) *value.Dict {
		return value.NewDict(append([]any{"kubectl", c.Kubectl, "host", "https://cluster.invalid:" + port, "api_key",
			apiserver.Token, "validate_certs", false, "kind", "Namespace", "name", "proxied"}, pairs...)...)
	}
	k8s := moduletest.Find(t, Modules(), "k8s")
	moduletest.Fails(t, "cluster.invalid", k8s, args(), moduletest.Options{})
	moduletest.RunTwice(t, k8s, args("proxy", proxy.URL), moduletest.Options{})
	if tunnels.Load() == 0 {
		t.Error("nothing went through the proxy")
	}
	moduletest.Fails(t, "cluster.invalid", k8s, args("proxy", proxy.URL, "no_proxy", "cluster.invalid"),
		moduletest.Options{})
}
