package inventory

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

var update = flag.Bool("update", false, "rewrite the expected output of the cases")

// TestLoad runs the cases of testdata/load. A case holds files, its comment
// the sources, and the file "want" what the inventory then is.
func TestLoad(t *testing.T) {
	eachCase(t, "testdata/load", loadCase)
}

// eachCase runs the cases of a folder.
func eachCase(t *testing.T, dir string, run func(t *testing.T, path string, archive *txtar.Archive)) {
	cases, err := filepath.Glob(dir + "/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			run(t, path, archive)
		})
	}
}

func loadCase(t *testing.T, path string, archive *txtar.Archive) {
	dir := t.TempDir()
	want := -1
	for i, f := range archive.Files {
		if f.Name == "want" {
			want = i
			continue
		}
		write(t, filepath.Join(dir, f.Name), string(f.Data))
	}
	if want < 0 {
		archive.Files = append(archive.Files, txtar.File{Name: "want"})
		want = len(archive.Files) - 1
	}
	inv, ds := Load(context.Background(), strings.Fields(string(archive.Comment)), Options{Dir: dir})
	ds = append(ds, inv.LoadVars("play")...)
	got := strings.ReplaceAll(dump(inv, ds), dir, "$DIR")
	if *update {
		archive.Files[want].Data = []byte(got)
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(archive.Files[want].Data), got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// dump shows hosts with merged variables and the origin of each, the groups,
// and the diagnostics.
func dump(inv *Inventory, ds source.Diagnostics) string {
	var b strings.Builder
	for _, d := range ds {
		b.WriteString(d.Render())
	}
	if ds.Err() != nil {
		return b.String()
	}
	for _, g := range inv.Groups() {
		if hosts := inv.HostsIn(g); len(hosts) > 0 || g != Ungrouped {
			fmt.Fprintf(&b, "%s: %s\n", g, strings.Join(hosts, " "))
		}
	}
	for _, h := range inv.Hosts() {
		fmt.Fprintf(&b, "%s in %s\n", h, strings.Join(inv.GroupsOf(h), " "))
		for k, v := range merged(inv, h, "play").All() {
			fmt.Fprintf(&b, "  %s = %s\n", value.Str(k), v)
		}
	}
	return b.String()
}

func merged(inv *Inventory, host, playbookDir string) *value.Dict {
	vars := value.NewDict()
	for _, s := range inv.VarLayers(host, playbookDir) {
		for k, v := range s.Values.All() {
			text, _ := value.JSON(v, value.JSONOptions{})
			at := s.At(value.Str(k)).String()
			if at == "" {
				at = s.Name
			}
			if s.Unsafe(value.Str(k)) {
				at += ", unsafe"
			}
			vars.Set(k, text+" ("+at+")")
		}
	}
	return vars
}

func TestDefault(t *testing.T) {
	inv, ds := Default(context.Background(), Options{})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	for _, g := range []string{"all", "k8s_cluster", "kube_control_plane", "kube_worker", "etcd"} {
		if diff := cmp.Diff([]string{"localhost"}, inv.HostsIn(g)); diff != "" {
			t.Errorf("%s: %s", g, diff)
		}
	}
	for _, g := range []string{"image_registry", "nfs"} {
		if _, ok := inv.Group(g); !ok || len(inv.HostsIn(g)) > 0 {
			t.Errorf("group %s should be there, and empty", g)
		}
	}
	if v, _ := merged(inv, "localhost", "").Get("ansible_connection"); !strings.HasPrefix(fmt.Sprint(v), `"local"`) {
		t.Errorf("ansible_connection = %v", v)
	}
}

func TestSecretsAreTold(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hosts"), "n1 ansible_password=hunter22 ansible_ssh_private_key_file=/key/file\n")
	write(t, filepath.Join(dir, "group_vars/all.yml"),
		"ansible_become_pass: swordfish\nconnector: {password: opensesame}\n")
	var set redact.Set
	if _, ds := Load(context.Background(), []string{"hosts"}, Options{Dir: dir, Secrets: &set}); len(ds) > 0 {
		t.Fatal(ds)
	}
	if got := set.Text("hunter22 swordfish opensesame /key/file"); strings.Count(got, redact.Mask) != 3 ||
		!strings.Contains(got, "/key/file") {
		t.Error(got)
	}
}

func TestBrokenFiles(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"bytes.yml", "all:\n  hosts:\n    \xff\xfe: {}\n", "bytes.yml:3:5: byte 0xff is not valid UTF-8"},
		{"nul.ini", "[a]\nn1\x00\n", "nul.ini:2:1: this line contains a NUL byte"},
		{"long", "[a]\n" + strings.Repeat("x", maxLine+1), "long:2:1: this line has 1048577 bytes"},
		{"huge", strings.Repeat("n1\n", source.MaxFile/3+1),
			"huge: read inventory: it has more than 32 MiB, the most that is read"},
		{"deep.yml", strings.Repeat("[", 20000), ": Syntax Error while loading YAML"},
		{"groups.yml", "all:\n" + nested(150), "nested too deep (more than 200 levels)"},
		{"loop.yml", "all: &a\n  children:\n    web: *a\n", "alias *a is inside the anchor &a"},
		{"bomb.yml", bomb(40), "aliases expand to more than 500000 values"},
		{"vault", "$ANSIBLE_VAULT;1.1;AES256\n6162\n", "vault:1:1: this is encrypted with a vault"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, c.name), c.text)
			_, ds := Load(context.Background(), []string{c.name}, Options{Dir: dir})
			if err := ds.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300v, want %q", err, c.want)
			}
		})
	}
}

func nested(depth int) string {
	var b strings.Builder
	for i := range depth {
		indent := strings.Repeat(" ", 2*i+1)
		fmt.Fprintf(&b, "%schildren:\n%s g%d:\n", indent, indent, i)
	}
	return b.String()
}

// bomb doubles the groups with each line, by aliases.
func bomb(lines int) string {
	var b strings.Builder
	b.WriteString("g0: &g0 {hosts: n1}\n")
	for i := range lines {
		fmt.Fprintf(&b, "g%d: &g%d {children: {a%d: *g%d, b%d: *g%d}}\n", i+1, i+1, i, i, i, i)
	}
	return b.String()
}

func TestNothingToRead(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty"), "")
	write(t, filepath.Join(dir, "comments.yml"), "# nothing\n---\n")
	for _, s := range []string{"empty", "comments.yml", os.DevNull} {
		inv, ds := Load(context.Background(), []string{s}, Options{Dir: dir})
		if len(ds) > 0 || len(inv.Hosts()) > 0 {
			t.Errorf("%s: %v, hosts %v", s, ds, inv.Hosts())
		}
	}
	if _, ds := Load(context.Background(), []string{"missing"}, Options{Dir: dir}); !strings.Contains(ds.Error(),
		"inventory missing does not exist") {
		t.Error(ds)
	}
}

// bigInventory is n hosts in 100 groups, with a variable each.
func bigInventory(n int) string {
	var b strings.Builder
	for g := range 100 {
		fmt.Fprintf(&b, "[g%02d]\n", g)
		for i := g; i < n; i += 100 {
			fmt.Fprintf(&b, "n%05d ansible_host=10.0.%d.%d rack=%d\n", i, i/250, i%250, i%40)
		}
	}
	return b.String()
}

func TestTenThousandHosts(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hosts"), bigInventory(10_000))
	write(t, filepath.Join(dir, "group_vars/all.yml"), "a: 1\n")
	inv, ds := Load(context.Background(), []string{"hosts"}, Options{Dir: dir})
	if len(ds) > 0 || len(inv.Hosts()) != 10_000 {
		t.Fatalf("%d hosts, %v", len(inv.Hosts()), ds)
	}
	first, second := inv.VarLayers("n00007", ""), inv.VarLayers("n00107", "")
	if first[0] != second[0] || first[0].Name != "group_vars/all.yml" {
		t.Errorf("hosts do not share the variables of their groups: %v %v", first[0], second[0])
	}
}

func BenchmarkLoad10k(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte(bigInventory(10_000)), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		inv, _ := Load(context.Background(), []string{"hosts"}, Options{Dir: dir})
		for _, h := range inv.Hosts() {
			inv.VarLayers(h, "")
		}
	}
}

// bigKubeKey is the same hosts in the KubeKey kind.
func bigKubeKey(n int) string {
	var hosts, groups strings.Builder
	for i := range n {
		fmt.Fprintf(&hosts, "    n%05d: {connector: {host: 10.0.%d.%d, user: root}, rack: %d}\n", i, i/250, i%250, i%40)
	}
	for g := range 100 {
		fmt.Fprintf(&groups, "    g%02d: {hosts: [", g)
		for i := g; i < n; i += 100 {
			fmt.Fprintf(&groups, "n%05d,", i)
		}
		groups.WriteString("]}\n")
	}
	return "apiVersion: kubekey.kubesphere.io/v1\nkind: Inventory\nspec:\n  hosts:\n" + hosts.String() + "  groups:\n" +
		groups.String()
}

func BenchmarkLoadKubeKey10k(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hosts.yml"), []byte(bigKubeKey(10_000)), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if inv, ds := Load(context.Background(), []string{"hosts.yml"}, Options{Dir: dir}); len(inv.Hosts()) != 10_000 {
			b.Fatal(ds)
		}
	}
}

func BenchmarkMatch10k(b *testing.B) {
	inv := fromINI(b, bigInventory(10_000))
	for b.Loop() {
		if _, err := inv.Match([]string{"all:!g0[1-9]:&n*7"}, MatchOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestINIValuesAreLiterals(t *testing.T) {
	for text, want := range map[string]string{
		"1": "1", "0644": "'0644'", "true": "'true'", "True": "True", "1, 2": "[1, 2]", `'\101'`: "'A'", `r'\d'`: `'\\d'`,
		"0o17":   "15",
		"{1, 1}": "[1]", "[1] # c": "[1]", "a b": "'a b'", "1.2.3": "'1.2.3'", "[x]": "'[x]'", "1 if": "'1 if'",
	} {
		if got := value.Repr(typed(text)); got != want {
			t.Errorf("%s is %s, not %s", text, got, want)
		}
	}
}

func FuzzINI(f *testing.F) {
	f.Add("[web]\nn[01:10:2]:22 a=1 b='x y' # c\n[web:vars]\nk=[1, 'a', {'b': None}]\n[all:children]\nweb\n")
	f.Add("n1 a=\"\\\n[a:children]\na\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := newLoader(context.Background(), Options{Dir: "/"})
		l.ini(source.NewFile("hosts", []byte(text)), "/hosts")
		l.finish()
		dump(l.inv, l.ds)
	})
}

func FuzzYAML(f *testing.F) {
	f.Add("all:\n  hosts: {n1: {a: !unsafe x}}\n  children: {web: {hosts: {n2: }}}\n")
	f.Add("kind: Inventory\nspec: {hosts: {n1: {connector: {host: a}}}, groups: {a: {hosts: [n1], groups: [b]}, b: }}\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := newLoader(context.Background(), Options{Dir: "/"})
		l.text(source.NewFile("hosts.yml", []byte(text)), "/hosts.yml")
		l.finish()
		dump(l.inv, l.ds)
	})
}
