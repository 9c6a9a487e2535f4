package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kubekey/pkg/collections/crypto"
	"kubekey/pkg/collections/general"
	"kubekey/pkg/collections/posix"
	"kubekey/pkg/collections/sql"
	"kubekey/pkg/event"
	"kubekey/pkg/expr"
	"kubekey/pkg/expr/library"
	"kubekey/pkg/inventory"
	"kubekey/pkg/module"
	"kubekey/pkg/module/account"
	"kubekey/pkg/module/exec"
	"kubekey/pkg/module/file"
	"kubekey/pkg/module/flow"
	"kubekey/pkg/module/image"
	"kubekey/pkg/module/kube"
	"kubekey/pkg/module/net"
	"kubekey/pkg/module/packages"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/module/service"
	"kubekey/pkg/module/system"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// TestRulesOfEveryModule breaks each rule of each module. Literal arguments cause an error when the playbook is
// linked. Templated arguments fail the task, also in check mode. No connection is made.
func TestRulesOfEveryModule(t *testing.T) {
	reg, err := module.NewRegistry(account.Modules(), exec.Modules(), file.Modules(), flow.Modules(), image.Modules(),
		kube.Modules(), net.Modules(), packages.Modules(), pki.Modules(), service.Modules(), system.Modules(),
		crypto.Modules(), general.Modules(), posix.Modules(), sql.Modules())
	if err != nil {
		t.Fatal(err)
	}
	var all []offence
	for _, s := range reg.Specs() {
		if s.New == nil {
			continue
		}
		for _, r := range schema.RulesOf(s.New()) {
			all = append(all, offend(t, s, r))
		}
	}
	t.Logf("%d rules", len(all))
	if len(all) < 250 {
		t.Errorf("only %d rules: where are the others?", len(all))
	}
	t.Run("load", func(t *testing.T) { refusedByLinker(t, reg, all) })
	for _, check := range []bool{false, true} {
		t.Run(fmt.Sprintf("run, check mode %v", check), func(t *testing.T) { refusedByEngine(t, reg, all, check) })
	}
}

// offence is a task that breaks a rule.
type offence struct {
	module *module.Spec
	rule   schema.Rule
	args   *value.Dict
	msg    string
}

func (o offence) String() string {
	return fmt.Sprintf("%s, rule %q, arguments %s", o.module.Name, o.rule, value.Repr(o.args))
}

// refusedByLinker has a task on each line of a playbook, and expects its error there.
func refusedByLinker(t *testing.T, reg *module.Registry, all []offence) {
	lines := []string{"- hosts: all", "  tasks:"}
	for _, o := range all {
		lines = append(lines, fmt.Sprintf("  - {%s: %s}", o.module.FullName(o.module.Name), asJSON(t, o.args)))
	}
	_, ds := linked(t, reg, strings.Join(lines, "\n"))
	said := map[int][]string{}
	for _, d := range ds {
		if d.Pos.Col < 5 {
			t.Errorf("%s: it is not at an argument or a module", d.Pos)
		}
		said[d.Pos.Line] = append(said[d.Pos.Line], d.Summary)
	}
	for i, o := range all {
		if !slices.ContainsFunc(said[i+3], func(s string) bool { return strings.Contains(s, o.msg) }) {
			t.Errorf("%s\nlinking says %q\nand not %q", o, said[i+3], o.msg)
		}
	}
}

// refusedByEngine runs the tasks with arguments that are known only during the run.
func refusedByEngine(t *testing.T, reg *module.Registry, all []offence, check bool) {
	lines := []string{"- hosts: all", "  gather_facts: false", "  ignore_errors: true", "  vars:"}
	tasks := []string{"  tasks:"}
	for i, o := range all {
		lines = append(lines, fmt.Sprintf("    args%d: %s", i, asJSON(t, o.args)))
		tasks = append(tasks, fmt.Sprintf("  - {name: task %d, %s: , args: \"{{ args%d }}\"}", i,
			o.module.FullName(o.module.Name), i))
	}
	l, ds := linked(t, reg, strings.Join(append(lines, tasks...), "\n"))
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: t.TempDir()}
	b.events = &event.Recorder{}
	secrets := &redact.Set{}
	inv, ds := inventory.Load(context.Background(), []string{"h1,"}, inventory.Options{Secrets: secrets})
	if err := ds.Err(); err != nil {
		t.Fatal(err)
	}
	e := New(Options{
		Project: Project{Inventory: inv, Linker: l.linker, Templates: l.templates},
		Mode:    Mode{Check: check},
		Reach:   Reach{Connect: b.connect},
		Record:  Record{Sink: b.events, RunID: "test", Redact: secrets, WorkDir: b.dir},
	})
	e.Run(context.Background(), []*project.Playbook{l.playbook})
	if len(b.targets) > 0 {
		t.Errorf("there were %d connections", len(b.targets))
	}
	said := map[string]string{}
	for _, ev := range b.events.Events {
		if r, ok := ev.(event.HostResult); ok && r.Status == event.Failed {
			said[r.Task.Name] = r.Result.String("msg")
		}
	}
	for i, o := range all {
		if got := said[fmt.Sprintf("task %d", i)]; !strings.Contains(got, o.msg) {
			t.Errorf("%s\nthe task says %q\nand not %q", o, got, o.msg)
		}
	}
}

type linkedBook struct {
	linker    *project.Linker
	templates *template.Engine
	playbook  *project.Playbook
}

func linked(t *testing.T, reg *module.Registry, text string) (linkedBook, source.Diagnostics) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "site.yml")
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := template.New(expr.New(expr.Options{}, library.Standard()), source.Tree{})
	l := project.New(project.Options{Engine: e, Modules: reg})
	pb, ds := l.Playbook(path)
	return linkedBook{l, e, pb}, ds
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := value.JSON(v, value.JSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// offend returns arguments that break a rule.
func offend(t *testing.T, s *module.Spec, r schema.Rule) offence {
	t.Helper()
	described, err := schema.Describe(s.New())
	if err != nil {
		t.Fatal(err)
	}
	d := draft{args: value.NewDict(), of: map[string]schema.Arg{}}
	for _, a := range described {
		if d.of[a.Name] = a; a.Required {
			d.give(a.Name)
		}
	}
	for _, c := range r.When {
		d.meet(c)
	}
	d.breach(t, r)
	b, broken := r.Broken(d)
	if !broken {
		t.Fatalf("%s: the rule %q is not broken by %s", s.Name, r, value.Repr(d.args))
	}
	msg := b.Msg
	if d.of[r.Args[0]].Type == "secret" {
		msg, _, _ = strings.Cut(msg, ", got ") // secret values are not shown
	}
	return offence{s, r, d.args, msg}
}

// draft is a set of arguments under construction, with the specification of each.
type draft struct {
	args *value.Dict
	of   map[string]schema.Arg
}

func (d draft) Given(name string) schema.Answer {
	if v, ok := d.args.Get(name); ok && (v != "" || d.of[name].Type == "secret") {
		return schema.Yes
	}
	return schema.No
}

func (d draft) Value(name string) (any, bool) {
	a := d.of[name]
	v, ok := d.args.Get(name)
	switch {
	case !ok && a.Default == "":
		return nil, true
	case !ok && a.Type == "bool":
		return a.Default == "yes", true
	case !ok:
		return a.Default, true
	}
	return v, true
}

// give sets an argument to a value that is not its default.
func (d draft) give(name string) { d.args.Set(name, sample(d.of[name])) }

func sample(a schema.Arg) any {
	for _, c := range a.Choices {
		if c != a.Default {
			return inList(a, c)
		}
	}
	switch a.Type {
	case "bool":
		return a.Default != "yes"
	case "int", "float", "seconds":
		return 7
	case "mode":
		return "0640"
	case "dict", "list of dict":
		one := value.NewDict()
		for _, o := range a.Options {
			if o.Required {
				one.Set(o.Name, sample(o))
			}
		}
		return inList(a, one)
	}
	return inList(a, "x")
}

func inList(a schema.Arg, v any) any {
	if a.Type == "dict of str" {
		return value.NewDict("x", v)
	}
	if strings.HasPrefix(a.Type, "list") {
		return []any{v}
	}
	return v
}

// meet makes a condition true.
func (d draft) meet(c schema.Cond) {
	name := c.Args[0]
	v, _ := d.Value(name)
	has := slices.ContainsFunc(c.Values, func(e any) bool { return value.Equal(e, v) })
	switch {
	case len(c.Values) == 0 && c.Not:
		for _, n := range c.Args {
			d.args.Delete(n)
		}
	case len(c.Values) == 0:
		d.give(name)
	case c.Not && has:
		for _, choice := range d.of[name].Choices {
			if !slices.Contains(c.Values, any(choice)) {
				d.args.Set(name, choice)
			}
		}
	case !c.Not && !has:
		d.args.Set(name, c.Values[0])
	}
}

func (d draft) breach(t *testing.T, r schema.Rule) {
	t.Helper()
	name := r.Args[0]
	arg := d.of[name]
	switch r.Kind {
	case schema.Exclusive:
		d.give(name)
		d.give(r.Args[1])
	case schema.Together:
		d.give(name)
		d.args.Delete(r.Args[1])
	case schema.OneOf, schema.Required:
		for _, n := range r.Args {
			if d.args.Delete(n); d.of[n].Required {
				d.args.Set(n, "")
			}
		}
	case schema.Refused:
		if !d.args.Has(name) {
			d.give(name)
		}
	case schema.Range:
		d.args.Set(name, r.Min-1)
	case schema.Length:
		d.args.Set(name, []any{})
		if r.Min == r.Max {
			one, _ := sample(arg).([]any)
			d.args.Set(name, append(one, one...))
		}
	case schema.Choice:
		d.args.Set(name, other(arg, r.Values))
	case schema.Form:
		d.args.Set(name, inList(arg, misfit(t, r)))
	}
}

// other returns a value of the argument that is not in a list.
func other(a schema.Arg, values []any) any {
	for _, c := range a.Choices {
		if !slices.Contains(values, any(c)) {
			return c
		}
	}
	if a.Type == "bool" {
		return values[0] == false
	}
	return sample(a)
}

// misfit returns a text that does not have the required form.
func misfit(t *testing.T, r schema.Rule) string {
	t.Helper()
	for _, text := range []string{
		"-x", "a\nb", "x", "/", "x/", "[", "..", "a:b", "a b", "%", "*", "99%VG", "0xDEADBEEF", "ALL_IN_SCHEMA", "preserve",
		"https://u:p@host/x", "https://:0/x", "cap_chown", strings.Repeat("x", 200),
	} {
		if r.Fits(text) != nil {
			return text
		}
	}
	t.Fatalf("no text breaks the rule %q", r)
	return ""
}
