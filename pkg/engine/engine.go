// Package engine runs linked playbooks on the hosts of an inventory:
// strategies, batches, loops, handlers, blocks, retries, check mode. It emits
// events and never prints.
package engine

import (
	"context"
	"sync"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/engine/resume"
	"kubekey/pkg/event"
	"kubekey/pkg/facts"
	"kubekey/pkg/inventory"
	"kubekey/pkg/module"
	"kubekey/pkg/project"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// Exit codes of a run.
const (
	ExitOK          = event.ExitOK
	ExitError       = event.ExitError
	ExitFailed      = event.ExitFailed
	ExitUnreachable = event.ExitUnreachable
	ExitUsage       = event.ExitUsage
	ExitInterrupted = event.ExitInterrupted
)

// Target is how to reach a host.
type Target struct {
	Host       string // inventory name
	Connection string // ssh or local
	Address    string
	Port       int // 0: the default
	User       string
	Password   redact.Secret
	KeyFile    string
	KeyContent redact.Secret
	Passphrase redact.Secret
	ProxyJump  string
	SSHArgs    string        // arguments of the ssh program: -o Key=Value, -J, ...
	Timeout    time.Duration // 0: the default
	// HostKeyChecking is a bool word: false accepts any host key.
	HostKeyChecking string
}

// Defaults are what the command line and the settings say of connections;
// keywords and variables beat them.
type Defaults struct {
	Connection   string
	User         string
	KeyFile      string
	Password     redact.Secret
	Become       bool
	BecomeMethod string
	BecomeUser   string
	BecomePass   redact.Secret
	BecomeExe    string
	BecomeFlags  string
	Timeout      time.Duration
	Port         int // 0: the default

	SSHArgs, SSHCommonArgs, SSHExtraArgs string // arguments of the ssh program
}

// PlayDefaults hold for plays and tasks whose keywords say nothing else. The
// zero value is what Ansible does by default.
type PlayDefaults struct {
	Gathering      Gathering
	Free           bool // the strategy is free
	AnyErrorsFatal bool
	MergeDicts     bool // dictionaries of the same name are merged, see vars.Scope
}

// Gathering says when plays gather facts.
type Gathering string

// Facts are gathered unless a play says no (also ""), only when it says yes,
// or of hosts whose facts are not known.
const (
	Implicit Gathering = "implicit"
	Explicit Gathering = "explicit"
	Smart    Gathering = "smart"
)

// Answer is what a person says to --step.
type Answer int

// A step is run, left out, or run with all that follow.
const (
	Yes Answer = iota
	No
	Continue
)

// Options are what an engine works with, in parts by who sets them.
type Options struct {
	Project
	Mode
	Reach
	Record
}

// Project is what is run, and on which hosts: what was loaded before the run.
type Project struct {
	Inventory *inventory.Inventory
	Linker    *project.Linker
	Templates *template.Engine
	Tree      source.Tree
	Extra     []*vars.Layer // --config, then -e: the highest layers
	Plays     PlayDefaults
}

// Mode is how a person asked for it to be run.
type Mode struct {
	Forks          int // hosts at a time; default 50
	Check, Diff    bool
	Verbosity      int
	ForceHandlers  bool
	Limit          []string // hosts of --limit; nil is no limit
	LimitText      string
	Tags, SkipTags []string
	FlushFacts     bool           // remove the facts of earlier runs first
	Memory         *resume.Memory // of the run that is resumed; nil for a new one
	StartAt        string         // name or glob of the first task to run
	// Step is asked of "TASK: role : name", Ask what a playbook asks; nil asks nobody.
	Step func(ctx context.Context, task string) Answer
	Ask  func(ctx context.Context, prompt string, echo bool) (string, bool, error)
}

// Reach is how hosts are reached.
type Reach struct {
	Connect  func(ctx context.Context, t Target) (connector.Connector, error)
	Defaults Defaults
	// Perform runs a module whose arguments are decoded; nil lets the module
	// run itself. A simulation answers for hosts that are not there.
	Perform func(ctx context.Context, t *project.Task, r module.Runner, c *module.Call) (module.Result, error)
}

// Record is who runs it, and where what happens is shown and kept.
type Record struct {
	RunID, WorkDir, Version string
	ConfigFile              string // the ansible.cfg that settings come from
	User, Command, Dir      string // who runs it, how and where
	Sink                    event.Sink
	Redact                  *redact.Set
	Facts                   *facts.Cache // where facts are kept for later runs; nil keeps none
	Now                     func() time.Time
	// KeepOutput is how many bytes of what its commands print the result of a task on a host
	// holds; 0 is the default of package module. Overflow makes the place of an output that is longer;
	// without it NoOverflow says why there is none.
	KeepOutput int
	Overflow   func(t *event.Task, host, stream string) module.Overflow
	NoOverflow string
}

// Engine is one run.
type Engine struct {
	Options
	scope *vars.Scope
	omit  string

	hostsMu sync.RWMutex
	hosts   map[string]*vars.Host
	layers  map[string]map[string][]*vars.Layer // playbook folder, host
	sets    map[*inventory.VarSet]*vars.Layer

	connMu sync.Mutex
	conns  map[Target]*pooled

	stats      map[string]*event.Stats
	standing   *standing
	recalled   map[string]bool // hosts whose facts of earlier runs were looked for
	results    *value.Dict     // of the module result; nil without any
	share      *module.Share
	jobs       *module.Jobs
	live       chan message
	taskID     int
	started    bool // a host matched some play
	ended      bool // meta: end_run
	startFound bool
	stepping   bool
	fatal      string
}

// New makes an engine for one run.
func New(o Options) *Engine {
	if o.Forks < 1 {
		o.Forks = 50
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Redact == nil {
		o.Redact = &redact.Set{}
	}
	if o.Perform == nil {
		o.Perform = perform
	}
	e := &Engine{
		Options: o, omit: "__omit_place_holder__" + o.RunID,
		hosts: map[string]*vars.Host{}, layers: map[string]map[string][]*vars.Layer{},
		sets: map[*inventory.VarSet]*vars.Layer{}, conns: map[Target]*pooled{},
		stats: map[string]*event.Stats{}, recalled: map[string]bool{}, standing: newStanding(),
		live: make(chan message, 256), share: &module.Share{}, jobs: &module.Jobs{}, stepping: o.Step != nil,
	}
	e.scope = &vars.Scope{Extra: o.Extra, Magic: magic{e}, Fallback: following{e}, Engine: o.Templates, Secrets: o.Redact, Merge: o.Plays.MergeDicts, Watch: vars.NewWatch(connectionNames()...)}
	return e
}

func perform(ctx context.Context, _ *project.Task, r module.Runner, c *module.Call) (module.Result, error) {
	return r.Run(ctx, c)
}

// Run runs playbooks in order until one does not end well, and returns the exit code.
func (e *Engine) Run(ctx context.Context, playbooks []*project.Playbook) int {
	begin := e.Now()
	paths := make([]string, len(playbooks))
	for i, pb := range playbooks {
		paths[i] = pb.Path
	}
	e.emit(event.RunStarted{ID: e.RunID, Time: begin, Playbooks: paths, Check: e.Check, Diff: e.Diff, Version: e.Version, User: e.User, Command: e.Command, Dir: e.Dir})
	defer e.closeAll()
	e.recallAll()
	code := ExitOK
	for _, pb := range playbooks {
		if code = e.playbook(ctx, pb); code != ExitOK || e.ended {
			break
		}
	}
	e.awaitJobs()
	if code == ExitOK && !e.started {
		e.fatal = "no host matched any play: check the hosts patterns, --limit and the inventory"
		code = ExitError
	}
	if code == ExitOK && e.StartAt != "" && !e.startFound {
		e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{}, "No matching task %q found. Note: --start-at-task can only follow static includes.", e.StartAt)})
	}
	end := e.Now()
	e.emit(event.RunEnded{ID: e.RunID, Time: end, Duration: end.Sub(begin), Stats: e.stats, ExitCode: code, Err: e.fatal, Results: e.results})
	return code
}

func (e *Engine) emit(ev event.Event) { e.Sink.Emit(ev) }

func (e *Engine) playbook(ctx context.Context, pb *project.Playbook) int {
	e.emit(event.PlaybookStarted{Path: pb.Path, Plays: len(pb.Plays)})
	for _, p := range pb.Plays {
		if more := e.Inventory.LoadVars(p.Dir); more.Err() != nil {
			e.fatal = more.Error()
			return ExitUnreachable
		}
		goOn, err := e.play(ctx, p)
		switch {
		case ctx.Err() != nil:
			e.fatal = "interrupted"
			return ExitInterrupted
		case err != nil:
			e.fatal = err.Error()
			return ExitError
		case !goOn:
			return e.standing.code()
		}
	}
	return e.standing.code()
}

// host returns what the run knows of a host.
func (e *Engine) host(name string) *vars.Host {
	e.hostsMu.RLock()
	h := e.hosts[name]
	e.hostsMu.RUnlock()
	if h != nil {
		return h
	}
	e.hostsMu.Lock()
	defer e.hostsMu.Unlock()
	if h = e.hosts[name]; h == nil {
		h = &vars.Host{Watch: e.scope.Watch}
		e.hosts[name] = h
	}
	return h
}

// inventoryLayers are a host's variables from the inventory, for a playbook folder.
func (e *Engine) inventoryLayers(name, dir string) []*vars.Layer {
	e.hostsMu.RLock()
	layers, ok := e.layers[dir][name]
	e.hostsMu.RUnlock()
	if ok {
		return layers
	}
	sets := e.Inventory.VarLayers(name, dir)
	e.hostsMu.Lock()
	defer e.hostsMu.Unlock()
	layers = make([]*vars.Layer, 0, len(sets))
	for _, s := range sets {
		l := e.sets[s]
		if l == nil {
			l = e.inventoryLayer(s)
			e.sets[s] = l
		}
		layers = append(layers, l)
	}
	if e.layers[dir] == nil {
		e.layers[dir] = map[string][]*vars.Layer{}
	}
	e.layers[dir][name] = layers
	return layers
}

func (e *Engine) inventoryLayer(s *inventory.VarSet) *vars.Layer {
	if s.Data {
		return vars.Values(s.Name, s.Values)
	}
	return vars.Templates(s.Name, s.Values, e.Templates, s.At, func(path []string) bool { return s.Unsafe(path[0]) })
}

// forgetLayers drops what inventoryLayers keeps, after the inventory changed.
func (e *Engine) forgetLayers() {
	e.hostsMu.Lock()
	defer e.hostsMu.Unlock()
	clear(e.layers)
}

func (e *Engine) alive(hosts []string) []string { return e.standing.alive(hosts) }

func (e *Engine) stat(host string) *event.Stats {
	s := e.stats[host]
	if s == nil {
		s = &event.Stats{}
		e.stats[host] = s
	}
	return s
}

// TaskView makes the variables of a host as a task sees them before a run:
// those of its play, role and blocks, and its own; no facts and no results.
func (e *Engine) TaskView(ctx context.Context, host string, t *project.Task) *vars.View {
	p := t.Play
	v := e.scope.New(ctx, host, e.host(host), e.inventoryLayers(host, p.Dir), t.Static, t)
	v.Task = &here{e: e, play: &playState{play: p, dir: p.Dir}}
	return v
}

// View makes the variables of a host as a play, or no play, sees them.
func (e *Engine) View(ctx context.Context, host string, p *project.Play, dir string) *vars.View {
	static := vars.Static{}
	var key any
	if p != nil {
		static, key, dir = p.Static, p, p.Dir
	}
	v := e.scope.New(ctx, host, e.host(host), e.inventoryLayers(host, dir), static, key)
	v.Task = &here{e: e, play: &playState{play: p, dir: dir}}
	return v
}
