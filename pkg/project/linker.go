package project

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// Options are what a Linker works with.
type Options struct {
	Tree      source.Tree
	Engine    *template.Engine
	Modules   *module.Registry
	Selection Selection
	// Extra are the variables of the command line: names of roles, imported
	// files and tags may use them.
	Extra []*vars.Layer
	// Secrets hides the values whose names say that they are secret, and secret arguments; may be nil.
	Secrets *redact.Set
	// RolePaths are folders searched for roles after those of the project.
	RolePaths []string
	// CollectionPaths are folders searched for collections, whose roles and
	// playbooks have full names, after the folder collections of the project.
	CollectionPaths []string
	// MissingHandlerWarns makes a warning of a notification that no handler answers to.
	MissingHandlerWarns bool
	// Gather is what plays gather that do not say it; those that kk carries
	// gather what they are written for.
	Gather Gathering
	// Seen is told of each task that is linked, once for each place that leads
	// to it; nil for nobody.
	Seen func(*Task)
}

// Gathering are arguments of gathering facts; what is zero is as the module has it.
type Gathering struct {
	Subset   []string
	Timeout  int // seconds
	FactPath string
}

// Linker links playbooks, before a run, and what dynamic includes reach,
// during it. It may be used by many goroutines at once.
type Linker struct {
	Options
	parser *playbook.Parser

	mu    sync.Mutex
	files map[string]*source.File
	tasks map[string]parsedTasks
	args  map[*module.Spec]argTable
	// programs are those of folders library/, by folder and module; owned are
	// the modules that they are, by file.
	programs map[string]map[string]string
	owned    map[string]ownModule
}

type parsedTasks struct {
	steps []playbook.Step
	ds    source.Diagnostics
}

// argTable is what is known of a module's arguments.
type argTable struct {
	names map[string]bool
	raw   map[string]bool
	args  []schema.Arg
}

// New makes a linker.
func New(o Options) *Linker {
	l := &Linker{Options: o, files: map[string]*source.File{}, tasks: map[string]parsedTasks{}, args: map[*module.Spec]argTable{},
		programs: map[string]map[string]string{}, owned: map[string]ownModule{}}
	if l.Secrets == nil {
		l.Secrets = &redact.Set{}
	}
	l.parser = playbook.NewParser(func(name string) bool { return o.Modules.Find(name) != nil })
	return l
}

// read reads a file once.
func (l *Linker) read(path string) (*source.File, error) {
	l.mu.Lock()
	f := l.files[path]
	l.mu.Unlock()
	if f != nil {
		return f, nil
	}
	if info, err := l.Tree.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fmt.Errorf("%s is a folder, not a file", source.Shown(path))
	}
	f, err := l.Tree.Load(path, source.Shown(path))
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[path] = f
	return f, nil
}

// unreadable is the diagnostic of a file that cannot be read.
func unreadable(path string, err error, at source.Pos) *source.Diagnostic {
	var d *source.Diagnostic
	if errors.As(err, &d) {
		c := *d
		return &c
	}
	return source.Errorf(at, "read %s: %s", source.Shown(path), err)
}

// diagnostic makes a diagnostic of an error, at its own place or else here.
func diagnostic(err error, at source.Pos) *source.Diagnostic {
	var d *source.Diagnostic
	if errors.As(err, &d) {
		return d
	}
	return source.Errorf(at, "%s", err)
}

// data compiles a value; nil when it is not set.
func (l *Linker) data(v playbook.Value, ds *source.Diagnostics) *template.Data {
	if !v.IsSet() {
		return nil
	}
	d, more := l.Engine.Node(v.File, v.Node)
	*ds = append(*ds, more...)
	return d
}

func (l *Linker) dataList(vs []playbook.Value, ds *source.Diagnostics) []*template.Data {
	var out []*template.Data
	for _, v := range vs {
		out = append(out, l.data(v, ds))
	}
	return out
}

// layer makes a layer of written variables.
func (l *Linker) layer(name string, v *playbook.Vars, ds *source.Diagnostics) []*vars.Layer {
	if v.Len() == 0 {
		return nil
	}
	data := make(map[string]*template.Data, v.Len())
	at := make(map[string]source.Pos, v.Len())
	for _, n := range v.Names {
		data[n] = l.data(v.Values[n], ds)
		if data[n] != nil {
			l.Secrets.AddNamed(value.Named(n, data[n].Raw(), redact.Within))
		}
		at[n] = v.Values[n].At()
		if data[n] != nil {
			ds.Add(CheckVariable(n, data[n].Raw(), at[n]))
		}
	}
	return []*vars.Layer{vars.Compiled(name, v.Names, data, at)}
}

// attrs compiles the keywords of one object.
func (l *Linker) attrs(a *playbook.Attrs, where place, ds *source.Diagnostics) Attrs {
	var out Attrs
	for i, v := range []playbook.Value{
		Become: a.Become, BecomeUser: a.BecomeUser, BecomeMethod: a.BecomeMethod,
		BecomeFlags: a.BecomeFlags, BecomeExe: a.BecomeExe, CheckMode: a.CheckMode, Diff: a.Diff,
		Connection: a.Connection, Port: a.Port, RemoteUser: a.RemoteUser, DelegateTo: a.DelegateTo,
		DelegateFacts: a.DelegateFacts, IgnoreErrors: a.IgnoreErrors, IgnoreUnreachable: a.IgnoreUnreachable,
		AnyErrorsFatal: a.AnyErrorsFatal, NoLog: a.NoLog, RunOnce: a.RunOnce, Throttle: a.Throttle, Timeout: a.Timeout,
	} {
		out.Value[i] = l.data(v, ds)
	}
	var more source.Diagnostics
	out.When, more = l.conds(a.When)
	*ds = append(*ds, more...)
	out.Environment = l.dataList(a.Environment, ds)
	out.ModuleDefaults = l.dataList(a.ModuleDefaults, ds)
	l.checkDefaults(a.ModuleDefaults, where, ds)
	out.Notify = l.dataList(a.Notify, ds)
	out.Tags = l.tags(a.Tags, where, ds)
	out.Collections = l.collectionNames(a.Collections, where.play.Dir, ds)
	return out
}

// tags evaluates tags: they select tasks before there is a host, so templates
// in them see the command line's and the play's variables only.
func (l *Linker) tags(values []playbook.Value, where place, ds *source.Diagnostics) []string {
	var out []string
	for _, v := range values {
		d := l.data(v, ds)
		got, err := d.Value(where.ctx(), l.scope(where))
		if err != nil {
			ds.Add(diagnostic(err, v.TextAt()))
			continue
		}
		for _, e := range asList(got) {
			words := []string{value.Str(e)}
			if v.IsTemplate() {
				words = strings.Split(words[0], ",")
			}
			for _, t := range words {
				if t = strings.TrimSpace(t); t != "" {
					out = union(out, []string{t})
				}
			}
		}
	}
	return out
}

func asList(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}

// scope is the variables that are known without a host: those of the command
// line, of the play and of roles, and what the place says of itself.
func (l *Linker) scope(where place) *vars.View {
	s := &vars.Scope{Extra: l.Extra, Engine: l.Engine, Magic: where}
	return s.New(where.ctx(), "", nil, nil, where.static, nil)
}

// text evaluates a template that must be known without a host.
func (l *Linker) text(v playbook.Value, where place, what string) (string, *source.Diagnostic) {
	var ds source.Diagnostics
	d := l.data(v, &ds)
	if len(ds) > 0 {
		return "", ds[0]
	}
	got, err := d.Value(where.ctx(), l.scope(where))
	if err != nil {
		diag := diagnostic(err, v.TextAt())
		if diag.Help == "" {
			diag.Help = what + " is read before there is a host: use variables of the play or of -e, or a dynamic include"
		}
		return "", diag
	}
	s, ok := got.(string)
	if !ok {
		return "", source.Errorf(v.At(), "%s must be a string, not a %s", what, value.TypeName(got))
	}
	return s, nil
}

// table returns what is known of a module's arguments.
func (l *Linker) table(spec *module.Spec) argTable {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, ok := l.args[spec]; ok {
		return t
	}
	t := argTable{names: map[string]bool{}, raw: map[string]bool{}}
	if spec.New != nil {
		args, err := schema.Describe(spec.New())
		if err != nil {
			panic(fmt.Sprintf("module %s: %v", spec.Name, err)) // a defect of the module, found by any test
		}
		t.args = args
		for _, a := range args {
			t.names[a.Name] = true
			for _, alias := range a.Aliases {
				t.names[alias] = true
			}
		}
	}
	for _, n := range spec.RawArgs {
		t.raw[n] = true
	}
	l.args[spec] = t
	return t
}

func sortedKeys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
