// Package engine runs linked playbooks on the hosts of an inventory. It implements strategies, batches, loops,
// handlers, blocks, retries and check mode. It emits events and never prints.
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

// The exit codes of a run.
const (
	ExitOK          = event.ExitOK
	ExitError       = event.ExitError
	ExitFailed      = event.ExitFailed
	ExitInput       = event.ExitInput
	ExitUnreachable = event.ExitUnreachable
	ExitUsage       = event.ExitUsage
	ExitInterrupted = event.ExitInterrupted
)

// Target describes how to reach a host.
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
	SSHArgs    string        // arguments of the ssh command: -o Key=Value, -J, ...
	Timeout    time.Duration // 0: the default
	// HostKeyChecking is a boolean in text form: false accepts any host key.
	HostKeyChecking string
}

// Defaults are the connection settings of the command line and of the settings file. Keywords and variables override
// them.
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

	SSHArgs, SSHCommonArgs, SSHExtraArgs string // arguments of the ssh command
}

// PlayDefaults apply to plays and tasks that do not set the corresponding keywords. The zero value is the default
// behavior of Ansible.
type PlayDefaults struct {
	Gathering      Gathering
	Free           bool // use the strategy free
	AnyErrorsFatal bool
	MergeDicts     bool // merge dictionaries of the same name, see vars.Scope
}

// Gathering specifies when plays gather facts.
type Gathering string

// The modes of fact gathering: unless a play disables it (also ""), only when a play enables it, or only for hosts
// whose facts are not known.
const (
	Implicit Gathering = "implicit"
	Explicit Gathering = "explicit"
	Smart    Gathering = "smart"
)

// Answer is the user's answer to a --step prompt.
type Answer int

// The answers: run the task, skip it, or run it and all that follow without asking.
const (
	Yes Answer = iota
	No
	Continue
)

// Options are the inputs of an engine, grouped by who sets them.
type Options struct {
	Project
	Mode
	Reach
	Record
}

// Project is the loaded content of a run: what is run, and on which hosts.
type Project struct {
	Inventory *inventory.Inventory
	Linker    *project.Linker
	Templates *template.Engine
	Tree      source.Tree
	Extra     []*vars.Layer // from --config, then -e: the layers of the highest precedence
	Plays     PlayDefaults
}

// Mode is how the user requested the run.
type Mode struct {
	Forks          int // maximum number of hosts at a time; default 50
	Check, Diff    bool
	Verbosity      int
	ForceHandlers  bool
	Limit          []string // hosts that --limit selects; nil is no limit
	LimitText      string
	Tags, SkipTags []string
	FlushFacts     bool           // remove the facts of previous runs first
	Memory         *resume.Memory // memory of the run that is resumed; nil for a new run
	StartAt        string         // name or glob of the first task to run
	// Step asks whether to run a task, given as "TASK: role : name". Ask asks the questions of a playbook. If nil,
	// nothing is asked.
	Step func(ctx context.Context, task string) Answer
	Ask  func(ctx context.Context, prompt string, echo bool) (string, bool, error)
}

// Reach configures how hosts are reached.
type Reach struct {
	Connect  func(ctx context.Context, t Target) (connector.Connector, error)
	Defaults Defaults
	// Perform runs a module whose arguments are decoded. If it is nil, the module runs itself. A simulation uses it
	// to answer for hosts that do not exist.
	Perform func(ctx context.Context, t *project.Task, r module.Runner, c *module.Call) (module.Result, error)
}

// Record describes who starts the run, and where its events are shown and stored.
type Record struct {
	RunID, WorkDir, Version string
	ConfigFile              string // the ansible.cfg that the settings were read from
	User, Command, Dir      string // who started the run, with which command and in which directory
	Sink                    event.Sink
	Redact                  *redact.Set
	Facts                   *facts.Cache // stores facts for later runs; nil stores none
	Now                     func() time.Time
	// KeepOutput is the maximum number of bytes of command output in the result of a task on a host; 0 is the default
	// of package module. Overflow creates the storage for longer output. If there is none, NoOverflow is the reason.
	KeepOutput int
	Overflow   func(t *event.Task, host, stream string) module.Overflow
	NoOverflow string
}

// Engine executes one run.
type Engine struct {
	Options
	scope *vars.Scope
	omit  string

	hostsMu sync.RWMutex
	hosts   map[string]*vars.Host
	layers  map[string]map[string][]*vars.Layer // by playbook directory, then by host
	sets    map[*inventory.VarSet]*vars.Layer

	connMu sync.Mutex
	conns  map[Target]*pooled

	stats      map[string]*event.Stats
	standing   *standing
	recalled   map[string]bool // hosts whose facts of previous runs were searched for
	results    *value.Dict     // data of the module result; nil if there is none
	share      *module.Share
	jobs       *module.Jobs
	live       chan message
	taskID     int
	started    bool // a host matched at least one play
	ended      bool // meta: end_run
	startFound bool
	stepping   bool
	fatal      string
}

// New creates an engine for one run.
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
	e.scope = &vars.Scope{Extra: o.Extra, Magic: magic{e}, Fallback: following{e}, Engine: o.Templates, Secrets: o.Redact,
		Merge: o.Plays.MergeDicts, Watch: vars.NewWatch(connectionNames()...)}
	return e
}

func perform(ctx context.Context, _ *project.Task, r module.Runner, c *module.Call) (module.Result, error) {
	return r.Run(ctx, c)
}

// Run runs playbooks in order, stops after the first one that does not succeed, and returns the exit code.
func (e *Engine) Run(ctx context.Context, playbooks []*project.Playbook) int {
	begin := e.Now()
	paths := make([]string, len(playbooks))
	for i, pb := range playbooks {
		paths[i] = pb.Path
	}
	e.emit(event.RunStarted{ID: e.RunID, Time: begin, Playbooks: paths, Check: e.Check, Diff: e.Diff, Version: e.Version,
		User: e.User, Command: e.Command, Dir: e.Dir})
	defer e.closeAll()
	defer func() { _ = e.share.Close() }() // only read
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
		e.emit(event.Warning{Diagnostic: source.Warningf(source.Pos{},
			"No matching task %q found. Note: --start-at-task can only follow static includes.", e.StartAt)})
	}
	end := e.Now()
	e.emit(event.RunEnded{ID: e.RunID, Time: end, Duration: end.Sub(begin), Stats: e.stats, ExitCode: code, Err: e.fatal,
		Results: e.results})
	return code
}

func (e *Engine) emit(ev event.Event) { e.Sink.Emit(ev) }

func (e *Engine) playbook(ctx context.Context, pb *project.Playbook) int {
	e.emit(event.PlaybookStarted{Path: pb.Path, Plays: len(pb.Plays)})
	for _, p := range pb.Plays {
		if more := e.Inventory.LoadVars(p.Dir); more.Err() != nil {
			e.fatal = more.Error()
			return ExitInput
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

// host returns the run's state of a host.
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

// inventoryLayers returns the inventory variables of a host for a playbook directory.
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

// forgetLayers drops the layers that inventoryLayers caches. It is called after the inventory changed.
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

// TaskView returns the variables of a host as a task sees them before a run: those of its play, role and blocks, and
// its own. It contains no facts and no results.
func (e *Engine) TaskView(ctx context.Context, host string, t *project.Task) *vars.View {
	p := t.Play
	v := e.scope.New(ctx, host, e.host(host), e.inventoryLayers(host, p.Dir), t.Static, t)
	v.Task = &here{e: e, play: &playState{play: p, dir: p.Dir}}
	return v
}

// View returns the variables of a host as a play sees them. p may be nil.
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
