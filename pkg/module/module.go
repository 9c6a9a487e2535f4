// Package module defines modules. A module is a Spec, which names and documents it, and a struct with its
// arguments, defaults, documentation and code.
package module

import (
	"context"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/event"
	"kubekey/pkg/expr"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// Runner does a module's work. It is a pointer to the struct that schema.Decode filled with the task's arguments.
//
// An error becomes a failed result with its text as msg. An *connector.UnreachableError makes the host unreachable.
type Runner interface {
	Run(ctx context.Context, c *Call) (Result, error)
}

// Where defines where a module does its work.
type Where int

// A module runs on the host over its connector; or on the control node, once per host; or on the control node, once
// for all hosts of a batch.
const (
	OnHost Where = iota
	OnControl
	Once
)

// CheckMode is the behavior of a module in check mode.
type CheckMode int

// In check mode a module predicts its change (Predicts: it is called with Call.Check set and a read-only
// connector), is not called and reported as skipped (Skips), or runs normally because it changes nothing
// (Harmless).
const (
	Predicts CheckMode = iota
	Skips
	Harmless
)

// Spec describes a module.
type Spec struct {
	Name    string   // plain name: "copy"
	Aliases []string // further names: "yum" for dnf, "http_get_file" for get_url
	// Collection is the Ansible collection that contains the module: "community.general". It can precede the module's
	// name. "" means ansible.builtin; "kk" means that Ansible has no such module. Every module can also be called
	// kk.NAME.
	Collection string
	Former     string   // the previous name of the collection, which playbooks may still use
	Summary    string   // one sentence
	Notes      []string // sentences about behavior, limits and check mode
	Examples   []string // YAML tasks
	Returns    []Return // documented keys of the result
	New        func() Runner
	// Groups are the action groups of the module: module_defaults for group/NAME apply to it, too.
	Groups []string
	// FreeForm names the argument that gets the text of `module: text`, without the k=v tokens of other arguments. ""
	// means that the text may only consist of k=v tokens.
	FreeForm string
	// AnyArgs allows arguments that the struct does not define. They are stored in a field *value.Dict tagged
	// `kk:",rest"`.
	AnyArgs bool
	// RawArgs are arguments that are not templated before the call because the module evaluates them itself (that of
	// assert, var of debug). Texts in them have the type Written.
	RawArgs []string
	Where   Where
	Check   CheckMode
	// CheckSkipMsg is the msg of the skipped result in check mode, for modules with Skips.
	CheckSkipMsg string
	// Action marks names without a Runner that the engine handles itself: meta, include_tasks, ... They are only here
	// for their documentation.
	Action bool

	plan *schema.Plan
}

// Checker is a Runner that checks its arguments beyond their types: that a pattern compiles, that a command can be
// split. It is called before the run. Only literal arguments have values; all others look unset. In the text of the
// module's FreeForm, a placeholder replaces each template. The paths of problems are argument names.
type Checker interface {
	CheckLiterals() []schema.Problem
}

// CanDetach reports whether async may run the module in the background. Modules that work on kk's own state run at
// once.
func (s *Spec) CanDetach() bool { return s.Where == OnHost || s.Check != Harmless }

// Return documents one key of a result.
type Return struct{ Key, Type, Doc string }

// Written is text from a playbook, in an argument listed in Spec.RawArgs. It is the only text that a module may
// evaluate. A plain string is data, wherever it comes from.
type Written string

// AsWritten converts texts of a playbook to Written, also in lists.
func AsWritten(v any) any {
	switch v := v.(type) {
	case string:
		return Written(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = AsWritten(e)
		}
		return out
	}
	return v
}

// Call is one execution of a module for one host (and one item).
type Call struct {
	Host string // inventory name
	// Target is the host that Conn connects to: Host, or the host that the task is delegated to.
	Target string
	Conn   connector.Connector // with become, environment and check mode applied
	Check  bool                // only predict; Conn is read-only
	Diff   bool                // fill Result.Diff
	Args   *value.Dict         // templated arguments; the struct is decoded from them
	Raw    *value.Dict         // arguments before templating
	At     source.Pos          // position of the task
	Now    func() time.Time

	Scope     expr.Scope       // variables of the host, the task and the item
	Templates *template.Engine // for modules that evaluate expressions or templates
	Files     source.Tree      // the control node's files
	// Find returns the path of a file on the control node that a playbook refers to by a relative path. It searches in
	// the order of the language; kind is "files", "templates" or "vars". The error lists the searched folders.
	Find func(kind, name string) (string, error)
	// WorkDir is kk's work folder on the control node (0700).
	WorkDir string
	// Outputs limits the size of command output in results; read it with Bound. It may be nil.
	Outputs *Outputs
	// Output reports a line that a command printed. It may be nil.
	Output func(line string, stderr bool)
	// Progress reports the progress of a transfer, as often as is convenient. Several transfers may report at a time.
	// It may be nil.
	Progress func(what string, done, total int64)
	// Reset closes and reopens the host's connection (reboot, wait_for_connection, meta reset_connection).
	Reset func(ctx context.Context) error
	// Connect returns the connector of a host, as the task would reach it: for modules that work Once. It is nil for
	// others. It may be called concurrently. The connection belongs to the run.
	Connect func(ctx context.Context, host string) (connector.Connector, error)
	// Share does work only once that is the same for all hosts. It may be nil.
	Share *Share
	// Jobs are the async tasks that kk itself runs. It may be nil.
	Jobs *Jobs
	// Ask prompts the user at the terminal. ok is false without a terminal.
	Ask func(ctx context.Context, prompt string, echo bool) (answer string, ok bool, err error)
}

// Fact returns ansible_facts.NAME of the host, or nil if facts were not gathered.
func (c *Call) Fact(name string) any {
	v, ok, err := c.Scope.Lookup("ansible_facts")
	if err != nil || !ok {
		return nil
	}
	if lazy, isLazy := v.(value.Lazy); isLazy {
		v, ok, err = lazy.At(name)
		if err != nil || !ok {
			return nil
		}
		return v
	}
	facts, _ := v.(*value.Dict)
	v, _ = facts.Get(name)
	return v
}

// Result is the result of a module. Data contains the documented keys that have no field here.
type Result struct {
	Changed bool
	Failed  bool
	Skipped bool
	Msg     string
	Data    *value.Dict
	Diff    []event.Diff
	// Facts become ansible_facts of the result. Gathered facts are available as ansible_facts.NAME and ansible_NAME;
	// facts from set_fact and include_vars as NAME.
	Facts    *value.Dict
	FactKind FactKind
	Warnings []string
	Verbose  bool // show the result without -v (debug, assert)
	NoLog    bool // do not show the result: it belongs to another task, which has no_log
	BadInput bool // it failed because of what kk was given: unless it is rescued, the run has the exit code for that
	Effect   Effect
}

// FactKind is the variable layer for Result.Facts.
type FactKind int

// The layers: facts of the host, set_fact, include_vars.
const (
	Gathered FactKind = iota
	SetFact
	SetFactCacheable
	IncludeVars
)

// Effect is a request to the engine beyond the result. The set is closed.
type Effect interface{ effect() }

// AddHost adds a host to the inventory of the run, or variables to an existing one.
type AddHost struct {
	Name   string
	Groups []string
	Vars   *value.Dict
}

// GroupBy puts the host into a group.
type GroupBy struct {
	Group   string
	Parents []string
}

// AddHostVars sets variables on the hosts of a pattern (add_hostvars).
type AddHostVars struct {
	Hosts []string // host or group names
	Vars  *value.Dict
}

// RunResult adds to the results of the run (module result).
type RunResult struct{ Values *value.Dict }

func (AddHost) effect()     {}
func (GroupBy) effect()     {}
func (AddHostVars) effect() {}
func (RunResult) effect()   {}
