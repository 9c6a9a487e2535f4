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

// Options configure a Linker.
type Options struct {
	Tree      source.Tree
	Engine    *template.Engine
	Modules   *module.Registry
	Selection Selection
	// Extra contains the variables of the command line. Names of roles, imported files and tags can use them.
	Extra []*vars.Layer
	// Secrets hides secret arguments and the values whose names mark them as secret; may be nil.
	Secrets *redact.Set
	// RolePaths are directories that are searched for roles after those of the project.
	RolePaths []string
	// CollectionPaths are directories that are searched for collections after the directory collections of the
	// project. Roles and playbooks in collections have full names.
	CollectionPaths []string
	// MissingHandlerWarns makes a notification that reaches no handler a warning instead of an error.
	MissingHandlerWarns bool
	// Gather has the default arguments of fact gathering. They do not apply to the playbooks that kk bundles.
	Gather Gathering
	// Seen is called for each task that is linked, once for each place that leads to it; may be nil.
	Seen func(*Task)
}

// Gathering contains arguments of fact gathering. For zero values the defaults of the module apply.
type Gathering struct {
	Subset   []string
	Timeout  int // seconds
	FactPath string
}

// Linker links playbooks before a run, and the targets of dynamic includes during it. It is safe for concurrent use.
type Linker struct {
	Options
	parser *playbook.Parser

	mu    sync.Mutex
	files map[string]*source.File
	tasks map[string]parsedTasks
	args  map[*module.Spec]argTable
	// programs are the files in library/ directories, by directory and module; owned are their modules, by file.
	programs map[string]map[string]string
	owned    map[string]ownModule
}

type parsedTasks struct {
	steps []playbook.Step
	ds    source.Diagnostics
}

// argTable describes the arguments of a module.
type argTable struct {
	names map[string]bool
	raw   map[string]bool
	args  []schema.Arg
}

// New creates a linker.
func New(o Options) *Linker {
	l := &Linker{Options: o, files: map[string]*source.File{}, tasks: map[string]parsedTasks{},
		args:     map[*module.Spec]argTable{},
		programs: map[string]map[string]string{}, owned: map[string]ownModule{}}
	if l.Secrets == nil {
		l.Secrets = &redact.Set{}
	}
	l.parser = playbook.NewParser(func(name string) bool { return o.Modules.Find(name) != nil })
	return l
}

// read returns a file. Each file is read only once.
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

// unreadable returns the diagnostic for a file that cannot be read.
func unreadable(path string, err error, at source.Pos) *source.Diagnostic {
	var d *source.Diagnostic
	if errors.As(err, &d) {
		c := *d
		return &c
	}
	return source.Errorf(at, "read %s: %s", source.Shown(path), err)
}

// diagnostic converts an error to a diagnostic, at the error's own position or else at at.
func diagnostic(err error, at source.Pos) *source.Diagnostic {
	var d *source.Diagnostic
	if errors.As(err, &d) {
		return d
	}
	return source.Errorf(at, "%s", err)
}

// data compiles a value; nil if it is not set.
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

// layer creates a layer of variables as written.
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

// tags evaluates tags. Tags select tasks before a host is known, so templates in them can use only the variables of
// the command line and of the play.
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

// scope returns the variables that are known without a host: those of the command line, of the play and of roles, and
// those that describe the place.
func (l *Linker) scope(where place) *vars.View {
	s := &vars.Scope{Extra: l.Extra, Engine: l.Engine, Magic: where}
	return s.New(where.ctx(), "", nil, nil, where.static, nil)
}

// text evaluates a template whose value must be known without a host.
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

// table returns the description of a module's arguments.
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
			panic(fmt.Sprintf("module %s: %v", spec.Name, err)) // a defect of the module, which any test finds
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
