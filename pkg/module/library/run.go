package library

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

//go:embed run.sh
var runScript string

// own is one call of a program.
type own struct {
	name, file string
	how        style
	Args       *value.Dict `kk:",rest" doc:"arguments of the module"`
}

// Run implements module.Runner.
func (m *own) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	text, err := c.Share.Do("library:"+m.file, func() (any, error) { return c.Files.ReadFile(m.file) })
	if err != nil {
		return module.Result{}, fmt.Errorf("read module %s: %w", m.name, err)
	}
	program := text.([]byte)
	args, err := m.arguments(c)
	if err != nil {
		return module.Result{}, fmt.Errorf("arguments of module %s: %w", m.name, err)
	}
	file := args
	switch m.how {
	case embedded:
		program = bytes.ReplaceAll(program, []byte(argsMark), []byte(args))
	case words:
		file = keyWords(m.Args, c)
	}
	out, err := connector.Collect(ctx, c.Conn, connector.Command{
		Line:  shell.Script(runScript),
		Stdin: io.MultiReader(strings.NewReader(args+"\n"+oneLine(file)+"\n"), bytes.NewReader(program)),
		Probe: c.Check, // the program declares that it changes nothing then
	}, connector.MaxAnswer)
	if err != nil {
		return module.Result{}, err
	}
	return result(out.Code, string(out.Stdout), out.Stderr), nil
}

// arguments are those of the module, and those about the call.
func (m *own) arguments(c *module.Call) (string, error) {
	all := m.Args.Copy()
	for k, v := range circumstances(m.name, c).All() {
		all.Set(k, v)
	}
	return value.JSON(all, value.JSONOptions{ASCII: true})
}

func circumstances(name string, c *module.Call) *value.Dict {
	return value.NewDict("_ansible_check_mode", c.Check, "_ansible_diff", c.Diff, "_ansible_module_name", name,
		"_ansible_verbosity", 0)
}

// keyWords are arguments as old-style modules read them: words of a shell.
func keyWords(args *value.Dict, c *module.Call) string {
	var out []string
	for k, v := range args.All() {
		out = append(out, value.Str(k)+"="+shell.Quote(value.Str(v)))
	}
	for k, v := range circumstances("", c).All() {
		if b, ok := v.(bool); ok {
			out = append(out, value.Str(k)+"="+value.Str(b))
		}
	}
	return strings.Join(out, " ")
}

// oneLine is a text as printf '%b' makes it whole again.
func oneLine(text string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(text)
}

// result reads what a program printed: one JSON object, which may have other
// lines before and after it.
func result(code int, stdout, stderr string) module.Result {
	d := object(stdout)
	if d == nil {
		r := module.Result{Failed: true, Msg: "MODULE FAILURE\nSee stdout/stderr for the exact error", Data: value.NewDict(
			"module_stdout", stdout, "module_stderr", stderr, "rc", code)}
		if code == 0 {
			r.Msg = "the module printed no JSON object; it is to print its result as one"
		}
		return r
	}
	take := func(key string) any {
		v, _ := d.Get(key)
		d.Delete(key)
		return v
	}
	var r module.Result
	failed, said := d.Get("failed")
	d.Delete("failed")
	rc, hasRC := d.Get("rc")
	r.Failed = value.Truth(failed) || !said && hasRC && rc != 0
	if code != 0 && !said {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the module exited with status %d, and did not report whether it "+
			"failed", code))
	}
	r.Changed, r.Skipped = value.Truth(take("changed")), value.Truth(take("skipped"))
	if msg, ok := d.Get("msg"); ok {
		if text, isText := msg.(string); isText {
			r.Msg = text
			d.Delete("msg")
		}
	}
	if list, ok := take("warnings").([]any); ok {
		for _, w := range list {
			r.Warnings = append(r.Warnings, value.Str(w))
		}
	}
	if facts, ok := take("ansible_facts").(*value.Dict); ok {
		r.Facts = facts
	}
	if diff, ok := d.Get("diff"); ok {
		r.Diff = diffs(diff)
	}
	d.Delete("invocation")
	r.Data = d
	return r
}

// maxBegins is how many lines that may begin an object are tried: each costs as much as what
// follows is long.
const maxBegins = 64

// object is the JSON object in an output: from the first line that begins one
// to the last that ends one.
func object(out string) *value.Dict {
	rest := out[:strings.LastIndexByte(out, '}')+1]
	for begins := 0; rest != "" && begins < maxBegins; {
		line, after, _ := strings.Cut(rest, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "{") {
			begins++
			v, err := value.FromJSON([]byte(strings.TrimSpace(rest)))
			if d, ok := v.(*value.Dict); ok && err == nil {
				return d
			}
		}
		rest = after
	}
	return nil
}

// diffs are the key diff of a result: one, or a list of them.
func diffs(v any) []event.Diff {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []event.Diff
	for _, e := range list {
		d, ok := e.(*value.Dict)
		if !ok {
			continue
		}
		text := func(key string) string {
			t, _ := d.Get(key)
			s, _ := t.(string)
			return s
		}
		before, _ := d.Get("before")
		after, _ := d.Get("after")
		out = append(out, event.Diff{
			BeforeHeader: text("before_header"), AfterHeader: text("after_header"),
			Before: before, After: after, Prepared: text("prepared"),
		})
	}
	return out
}
