package convert

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kubekey/builtin"
	"kubekey/pkg/config"
	"kubekey/pkg/source"
)

var update = flag.Bool("update", false, "write what the conversions print into testdata")

func converter(t testing.TB) (*Converter, *config.Schema) {
	t.Helper()
	tree := source.Tree{Embedded: builtin.FS()}
	schema, ds := config.Load(tree, source.Builtin+"/config/schema.yaml")
	if ds.Err() != nil {
		t.Fatal(ds)
	}
	c, err := New(tree, source.Builtin+"/convert", schema)
	if err != nil {
		t.Fatal(err)
	}
	return c, schema
}

// TestConversions compares the result of each file in testdata, or its errors, with the file beside it.
func TestConversions(t *testing.T) {
	c, _ := converter(t)
	for kind, run := range map[string]func(*source.File) (string, source.Diagnostics){
		ToConfig: c.Config, ToInventory: c.Inventory,
	} {
		files, err := filepath.Glob("testdata/" + kind + "/*.yaml")
		if err != nil || len(files) == 0 {
			t.Fatal("no files: ", err)
		}
		for _, name := range files {
			t.Run(kind+"/"+filepath.Base(name), func(t *testing.T) {
				in, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				got, ds := run(source.NewFile(filepath.Base(name), in))
				for _, d := range ds {
					got += d.Render() + "\n"
				}
				golden := strings.TrimSuffix(name, ".yaml") + ".golden"
				if *update {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
				if ds.Err() != nil && strings.Contains(got, "hidden") {
					t.Error("a password is shown")
				}
			})
		}
	}
}

// TestTables checks that every key of kk in the tables exists, and that every row says one thing.
func TestTables(t *testing.T) {
	c, schema := converter(t)
	if len(c.tables) != 2 {
		t.Fatalf("%d tables", len(c.tables))
	}
	for _, table := range c.tables {
		for path, rs := range table.Config {
			for _, r := range rs {
				if problem := r.wrong(); problem != "" {
					t.Errorf("%s: %s: %s", table.From, path, problem)
				}
				if r.To != "" && !schema.Describes(strings.Split(r.To, ".")...) {
					t.Errorf("%s: %s: kk has no key %s", table.From, path, r.To)
				}
			}
		}
		for path, rs := range table.Inventory.Keys {
			for _, r := range rs {
				if problem := r.wrong(); problem != "" {
					t.Errorf("%s: %s: %s", table.From, path, problem)
				}
			}
		}
	}
	for path, want := range map[string]bool{
		"cni.type": true, "kubernetes.kubelet.config.maxPods": true, "etcd.extra_env.A": true, "cni.nosuch": false,
		"kubernetes.max_pods.x": false, "nosuch": false,
	} {
		if got := schema.Describes(strings.Split(path, ".")...); got != want {
			t.Errorf("Describes(%s) is %v", path, got)
		}
	}
}

// wrong returns what is contradictory in a row.
func (r row) wrong() string {
	ways := 0
	for _, set := range []bool{r.To != "", r.None != "", r.Ignored != ""} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		return "needs one of to, none and ignored"
	case r.None != "" && r.Do == "":
		return "none needs do"
	case r.To == "" && (len(r.Values) > 0 || !r.Value.IsZero() || !r.Default.IsZero()):
		return "a value, but no key"
	case len(r.Values) > 0 && !r.Value.IsZero():
		return "both value and values"
	}
	return ""
}

// TestEveryRow converts a config with every key of a table, with a wrong value. Nothing may panic, and every key that
// has no equivalent is reported.
func TestEveryRow(t *testing.T) {
	c, _ := converter(t)
	for _, table := range c.tables {
		doc := table.Documents[ToConfig]
		for path, rs := range table.Config {
			for _, v := range []string{"text", "[1, text, {a: b}]", "{a: {b: c}}"} {
				keys := strings.Split(path, ".")
				spec := strings.Join(keys, ": {") + ": " + v + strings.Repeat("}", len(keys)-1)
				text := "apiVersion: " + doc.Versions[0] + "\nkind: " + doc.Kind + "\nspec:\n  " + spec + "\n"
				out, ds := c.Config(source.NewFile("c.yaml", []byte(text)))
				if (out == "") == (ds.Err() == nil) {
					t.Errorf("%s: %s: a result and errors, or neither: %v", path, v, ds)
				}
				if rs[0].None != "" && v == "text" && ds.Err() == nil {
					t.Errorf("%s has no equivalent and is accepted", path)
				}
				for _, d := range ds {
					if d.Pos.File == nil || d.Pos.File.Name != "c.yaml" || d.Pos.Line < 4 {
						t.Errorf("%s: %s: no position: %v", path, v, d)
					}
				}
			}
		}
	}
}

func TestForeign(t *testing.T) {
	c, _ := converter(t)
	head := "apiVersion: kubekey.kubesphere.io/v1\nkind: Config\nspec:\n"
	for text, want := range map[string]string{
		head + "  kubernetes: {kube_version: v1.34.4, helm_version: v3}\n":   "kubernetes.helm_version is a key of KubeKey v4",
		head + "  kubernetes: {helm_version: v3, sandbox_image: {tag: a}}\n": "kubernetes.helm_version is a key of KubeKey v4",
		head + "  storage_class: {local: {enabled: true}}\n":                 "storage_class is a key of KubeKey v4",
		head + "  kubernetes: {kube_version: v1.34.4}\n":                     "",
		head + "  kubernetes: {kube_vresion: v1.34.4}\n":                     "", // a typo
		head + "  kubernetes: [helm_version]\n":                              "",
		head:                                                                 "",
		"kubernetes: {helm_version: v3}\n":                                   "", // not a document of KubeKey
		"apiVersion: v1\nkind: Config\nspec: {}\n":                           "",
		"": "",
	} {
		d, whole := c.Foreign(source.NewFile("c.yaml", []byte(text)))
		if two := strings.Contains(text, "helm_version: v3, sandbox_image"); whole != two {
			t.Errorf("%s\na config of another tool: %t", text, whole)
		}
		if (d == nil) != (want == "") || d != nil && !strings.Contains(d.Error(), want) {
			t.Errorf("%s\ngot %v, want %q", text, d, want)
		}
	}
}

func TestUnused(t *testing.T) {
	c, _ := converter(t)
	text := `apiVersion: kubekey.kubesphere.io/v1
kind: Inventory
spec:
  hosts:
    n1: {connector: {host: 10.0.0.1}, internal_ipv4: 10.0.0.1, arch: amd64, labels: {a: b}, storage: [], rack: a}
    n2: {labels: {a: b}, kubernetes: {storage_disks: [], multipath: {enabled: true}}}
    n3:
  vars: {site: berlin, zone: cn}
`
	var got []string
	for _, d := range c.Unused(source.NewFile("i.yaml", []byte(text))) {
		got = append(got, d.Summary)
	}
	want := "labels of KubeKey v4 is not used: kk has node_labels\n" +
		"storage of KubeKey v4 is not used: kk has storage_disks\n" +
		"kubernetes.storage_disks of KubeKey v4 is not used: kk has storage_disks\n" +
		"kubernetes.multipath of KubeKey v4 is not used: kk does not configure multipath\n" +
		"zone of KubeKey v4 is not used: kk has no such key"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	for _, text := range []string{"", "all: {hosts: {n1: {labels: {}}}}", "apiVersion: v1\nkind: Inventory\n", "[]"} {
		if ds := c.Unused(source.NewFile("i.yaml", []byte(text))); len(ds) > 0 {
			t.Errorf("%q: %v", text, ds)
		}
	}
}

// FuzzConvert converts hostile files. Without errors there is a result.
func FuzzConvert(f *testing.F) {
	for _, kind := range []string{ToConfig, ToInventory} {
		files, err := filepath.Glob("testdata/" + kind + "/*.yaml")
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	head := "apiVersion: kubekey.kubesphere.io/v1\nkind: Config\nspec: "
	for _, text := range []string{
		"[]", "&a {a: *a}", "{<<: 1}", "{<<: [1, {etcd: 2}]}", "{? [a] : b}", "{1: 2}", "!!binary x",
	} {
		f.Add([]byte(head + text))
	}
	c, _ := converter(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		file := source.NewFile("f.yaml", text)
		for _, run := range []func(*source.File) (string, source.Diagnostics){c.Config, c.Inventory} {
			out, ds := run(file)
			if (out == "") == (ds.Err() == nil) {
				t.Errorf("a result and errors, or neither: %q %v", out, ds)
			}
		}
		c.Foreign(file)
		c.Unused(file)
	})
}
