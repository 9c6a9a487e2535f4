// Package simulated runs kk's playbooks on hosts that are not there.
//
// Command line, config, catalog, linker, engine and templates are the real
// ones, and every module's arguments are decoded and checked as ever. Modules
// that would touch a host, the network or the files that kk makes are not
// called: what they are asked for is recorded, and they answer from a table,
// from recorded facts and from what earlier tasks left on the host.
package simulated

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"kubekey/builtin"
	"kubekey/pkg/cli"
	"kubekey/pkg/connector"
	"kubekey/pkg/engine"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Call is one call of a module, with the arguments as they were templated.
type Call struct {
	Host   string // that the task ran for
	Target string // that it worked on: the host, or the one it was delegated to
	Module string
	Task   string // its name as written, with its role
	At     source.Pos
	Args   *value.Dict
}

// File is a text that a task made on a host.
type File struct {
	Host, Path string
	Content    string
	Mode       string // as the task gave it; "" when it gave none
	Template   string // that it was rendered from; "" for a copy
	Task       string
}

// Fleet is hosts that are not there. Its zero value records nothing. It serves one run at a time.
type Fleet struct {
	// Record keeps Calls and Files.
	Record bool
	// Nodes are the names that the cluster has nodes of.
	Nodes []string

	mu    sync.Mutex
	hosts map[string]*host
	calls []Call
	files []File
	stray []string
}

// Run runs kk with arguments as on the command line, and returns its exit code.
func (f *Fleet) Run(ctx context.Context, out io.Writer, args ...string) int {
	p := cli.Program{Builtin: builtin.FS(), Hosts: f}
	return p.Main(ctx, args, cli.Streams{In: noInput{}, Out: out, Err: out})
}

type noInput struct{}

func (noInput) Read([]byte) (int, error) { return 0, io.EOF }

// Calls are the calls of modules so far, in no order across hosts.
func (f *Fleet) Calls() []Call { return slices.Clone(f.calls) }

// Files are the texts that tasks made so far.
func (f *Fleet) Files() []File { return slices.Clone(f.files) }

// Stray are commands that reached for a host: a module was called that should
// have been answered for.
func (f *Fleet) Stray() []string { return slices.Clone(f.stray) }

// Connect implements cli.Hosts.
func (f *Fleet) Connect(_ context.Context, t engine.Target) (connector.Connector, error) {
	return &nowhere{fleet: f, host: t.Host}, nil
}

// nowhere is the connection to a host that is not there.
type nowhere struct {
	fleet *Fleet
	host  string
}

// Run implements connector.Connector.
func (n *nowhere) Run(_ context.Context, c connector.Command) (connector.Exit, error) {
	n.fleet.mu.Lock()
	defer n.fleet.mu.Unlock()
	n.fleet.stray = append(n.fleet.stray, n.host+": "+c.Line)
	return connector.Exit{}, fmt.Errorf("%s is simulated and runs no commands", n.host)
}

// Close implements connector.Connector.
func (n *nowhere) Close() error { return nil }

// real are the modules that touch no host and no network.
var real = map[string]bool{
	"assert": true, "debug": true, "fail": true, "set_fact": true, "include_vars": true, "add_host": true,
	"group_by": true,
	"result":   true, "set_stats": true, "add_hostvars": true, "pause": true, "gen_secret": true,
	"validate_argument_spec": true, "artifact_check": true,
}

// Perform implements cli.Hosts.
func (f *Fleet) Perform(ctx context.Context, t *project.Task, r module.Runner, c *module.Call) (module.Result, error) {
	name := t.Spec.Name
	f.record(t, c)
	if real[name] {
		return r.Run(ctx, c)
	}
	answer := answers[name]
	if answer == nil {
		return module.Result{}, fmt.Errorf("%s: the simulation has no answer for the module %s", t.At, name)
	}
	return answer(ctx, &asked{Fleet: f, task: t, runner: r, call: c, host: f.host(c.Target)})
}

func (f *Fleet) record(t *project.Task, c *module.Call) {
	if !f.Record {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, Call{Host: c.Host, Target: c.Target, Module: t.Spec.Name, Task: engine.TaskName(t), At: t.At,
		Args: c.Args})
}

func (f *Fleet) host(name string) *host {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[name]
	if h == nil {
		if f.hosts == nil {
			f.hosts = map[string]*host{}
		}
		h = newHost()
		f.hosts[name] = h
	}
	return h
}

// asked is one call that is answered.
type asked struct {
	*Fleet
	task   *project.Task
	runner module.Runner
	call   *module.Call
	host   *host
}

// arg is an argument as text, "" when it is not given. Names after the first are its aliases.
func (a *asked) arg(names ...string) string {
	for _, name := range names {
		if v, ok := a.call.Args.Get(name); ok && v != nil {
			return value.Str(v)
		}
	}
	return ""
}

// list is an argument that takes several.
func (a *asked) list(names ...string) []string {
	for _, name := range names {
		switch v, _ := a.call.Args.Get(name); v := v.(type) {
		case nil:
		case []any:
			var out []string
			for _, e := range v {
				out = append(out, value.Str(e))
			}
			return out
		default:
			return []string{value.Str(v)}
		}
	}
	return nil
}

// put puts a text on the host.
func (a *asked) put(path, content, mode, template string) (changed bool) {
	changed = a.host.put(path, content, mode, a.Record)
	if a.Record {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.files = append(a.files, File{Host: a.call.Target, Path: path, Content: content, Mode: mode, Template: template,
			Task: engine.TaskName(a.task)})
	}
	return changed
}

// Texts are the values of a key in each dictionary of an argument that is a list.
func (c Call) Texts(arg, key string) []string {
	v, _ := c.Args.Get(arg)
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		if d, ok := e.(*value.Dict); ok {
			out = append(out, d.String(key))
		}
	}
	return out
}
