// Package moduletest runs modules in tests the way the engine does: arguments
// decoded by schema, the real shell of this machine, check mode behind a
// read-only connector.
package moduletest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/expr"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// Options are the surroundings of a call. The zero value runs on this machine
// with no variables and no files.
type Options struct {
	Check, Diff bool
	Conn        connector.Connector // default: Shell()
	Vars        expr.Names
	Raw         *value.Dict // default: the arguments
	// Dir holds the files of the control node: Find looks in Dir/KIND and in Dir.
	Dir     string
	WorkDir string // default: a temporary folder
	Context context.Context
	Host    string // default: "h1"
	Now     func() time.Time
	Output  func(line string, stderr bool)
	Reset   func(ctx context.Context) error
	Ask     func(ctx context.Context, prompt string, echo bool) (string, bool, error)
	Share   *module.Share // default: none
	Connect func(ctx context.Context, host string) (connector.Connector, error)
}

// Find returns the module of a name among specs.
func Find(t testing.TB, specs []module.Spec, name string) module.Spec {
	t.Helper()
	r, err := module.NewRegistry(specs)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Find(name)
	if s == nil {
		t.Fatalf("unknown module %q", name)
	}
	return *s
}

// Run runs a module and fails the test if it returns an error. A result that
// says Failed is returned, and so is one for arguments that break a rule, as
// the engine makes it.
func Run(t testing.TB, spec module.Spec, args *value.Dict, o Options) module.Result {
	t.Helper()
	r, err := Try(t, spec, args, o)
	var refused schema.Errors
	if errors.As(err, &refused) {
		return module.Result{Failed: true, Msg: refused.Error()}
	}
	if err != nil {
		t.Fatalf("%s %s: %v", spec.Name, value.Repr(args), err)
	}
	return r
}

// Try runs a module and returns its error too.
func Try(t testing.TB, spec module.Spec, args *value.Dict, o Options) (module.Result, error) {
	t.Helper()
	if o.Check && spec.Check == module.Skips {
		return module.Result{Skipped: true, Msg: spec.CheckSkipMsg}, nil
	}
	args = written(spec, args)
	runner := spec.New()
	if err := schema.Decode(runner, args, &redact.Set{}); err != nil {
		return module.Result{}, err
	}
	return runner.Run(o.context(), Call(t, args, o))
}

// written are the arguments as they come from a playbook.
func written(spec module.Spec, args *value.Dict) *value.Dict {
	args = args.Copy()
	for _, name := range spec.RawArgs {
		if v, ok := args.Get(name); ok {
			args.Set(name, module.AsWritten(v))
		}
	}
	return args
}

// RunTwice runs a module that must change something the first time, nothing
// in check mode before and after, and nothing the second time. It returns the
// first and the second result.
func RunTwice(t testing.TB, spec module.Spec, args *value.Dict, o Options) (first, second module.Result) {
	t.Helper()
	dry := o
	dry.Check = true
	if r := Run(t, spec, args, dry); r.Failed || (!r.Changed && !r.Skipped) {
		t.Errorf("%s in check mode does not predict a change: %+v", spec.Name, r)
	}
	if first = Run(t, spec, args, o); first.Failed || !first.Changed {
		t.Errorf("%s did not change anything: %+v", spec.Name, first)
	}
	if second = Run(t, spec, args, o); second.Failed || second.Changed {
		t.Errorf("%s is not idempotent: %+v", spec.Name, second)
	}
	if r := Run(t, spec, args, dry); r.Failed || r.Changed {
		t.Errorf("%s in check mode predicts a change of the desired state: %+v", spec.Name, r)
	}
	return first, second
}

// Call makes the call that Run makes.
func Call(t testing.TB, args *value.Dict, o Options) *module.Call {
	t.Helper()
	conn := o.Conn
	if conn == nil {
		conn = Shell()
	}
	if o.Check {
		conn = connector.ReadOnly(conn)
	}
	tree := source.Tree{}
	return &module.Call{
		Host: or(o.Host, "h1"), Conn: conn, Check: o.Check, Diff: o.Diff,
		Args: args, Raw: orArgs(o.Raw, args), Now: o.now(),
		Scope: o.scope(), Templates: template.New(environment(tree), tree), Files: tree,
		Find: finder(tree, o.Dir), WorkDir: o.workDir(t),
		Output: o.Output, Reset: o.Reset, Ask: o.Ask, Share: o.Share, Connect: o.Connect,
	}
}

func (o Options) context() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
}

func (o Options) now() func() time.Time {
	if o.Now == nil {
		return time.Now
	}
	return o.Now
}

func (o Options) scope() expr.Scope {
	if o.Vars == nil {
		return expr.Names{}
	}
	return o.Vars
}

func (o Options) workDir(t testing.TB) string {
	if o.WorkDir == "" {
		return t.TempDir()
	}
	return o.WorkDir
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func orArgs(d, fallback *value.Dict) *value.Dict {
	if d == nil {
		return fallback
	}
	return d
}

func finder(tree source.Tree, dir string) func(kind, name string) (string, error) {
	return func(kind, name string) (string, error) {
		places := []string{source.Join(filepath.Join(dir, kind), name), source.Join(dir, name)}
		for _, p := range places {
			if _, err := tree.Stat(p); err == nil && (dir != "" || source.IsAbs(name)) {
				return p, nil
			}
		}
		//nolint:staticcheck // the text users know
		return "", fmt.Errorf("Could not find or access '%s'\nSearched in:\n\t%s\n\t%s", name, places[0], places[1])
	}
}

// Counter is a connector that keeps the commands that went through it.
type Counter struct {
	connector.Connector
	mu       sync.Mutex
	commands []connector.Command
}

// Count wraps a connector; nil stands for Shell().
func Count(c connector.Connector) *Counter {
	if c == nil {
		c = Shell()
	}
	return &Counter{Connector: c}
}

// Run keeps the command and runs it.
func (c *Counter) Run(ctx context.Context, cmd connector.Command) (connector.Exit, error) {
	c.mu.Lock()
	c.commands = append(c.commands, cmd)
	c.mu.Unlock()
	return c.Connector.Run(ctx, cmd)
}

// Commands returns what was run so far.
func (c *Counter) Commands() []connector.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]connector.Command(nil), c.commands...)
}

// Lines returns the command lines run so far.
func (c *Counter) Lines() []string {
	var lines []string
	for _, cmd := range c.Commands() {
		lines = append(lines, cmd.Line)
	}
	return lines
}

// Unreachable is a connector to a host that cannot be reached.
type Unreachable struct{}

// Run returns a *connector.UnreachableError.
func (Unreachable) Run(context.Context, connector.Command) (connector.Exit, error) {
	return connector.Exit{}, &connector.UnreachableError{Host: "192.0.2.1", Reason: "connection refused",
		Err: errors.New("refused")}
}

// Close does nothing.
func (Unreachable) Close() error { return nil }
