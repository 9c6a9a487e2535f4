// Package module defines what a module is: a Spec that names and documents it, and
// a struct that is its arguments, its defaults, its manual and its code.
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

// Runner does a module's work. It is a pointer to the struct that
// schema.Decode filled from the task's arguments.
//
// An error becomes a failed result with its text as msg; an
// *connector.UnreachableError makes the host unreachable.
type Runner interface {
	Run(ctx context.Context, c *Call) (Result, error)
}

// Where a module does its work.
type Where int

// A module works on the host over its connector; or on the control node only,
// once for each host; or on the control node once for all hosts of a batch.
const (
	OnHost Where = iota
	OnControl
	Once
)

// CheckMode is the behavior of a module in check mode.
type CheckMode int

// A module predicts its change (Predicts: it is called, with Call.Check set
// and a read-only connector), or is not called and reported as skipped
// (Skips), or runs as ever since it changes nothing (Harmless).
const (
	Predicts CheckMode = iota
	Skips
	Harmless
)

// Spec describes a module.
type Spec struct {
	Name    string   // plain name: "copy"
	Aliases []string // further names: "yum" for dnf, "http_get_file" for get_url
	// Collection is Ansible's collection that has the module, and whose name may
	// stand before its own: "community.general"; "" is ansible.builtin, and "kk"
	// says that Ansible has no such module. Every module is also kk.NAME.
	Collection string
	Former     string   // the name that the collection had before, which playbooks may still use
	Summary    string   // one sentence
	Notes      []string // sentences on behaviour, limits and check mode
	Examples   []string // YAML tasks
	Returns    []Return // documented keys of the result
	New        func() Runner
	// Groups are the action groups that the module belongs to: module_defaults
	// for group/NAME are its defaults, too.
	Groups []string
	// FreeForm names the argument that takes the text of `module: text`, less
	// the k=v words of the module's other arguments; "" when the text may only
	// be k=v words.
	FreeForm string
	// AnyArgs lets the module take arguments that its struct does not name:
	// the struct has a field *value.Dict tagged `kk:",rest"`.
	AnyArgs bool
	// RawArgs keeps the named arguments from being templated before the call:
	// the module evaluates them itself (assert's that, debug's var). Texts in them are Written.
	RawArgs []string
	Where   Where
	Check   CheckMode
	// CheckSkipMsg is the msg of the skipped result of a module that Skips.
	CheckSkipMsg string
	// Action marks the names that the engine runs itself and that have no
	// Runner: meta, include_tasks, ... They are here for their documentation.
	Action bool

	plan *schema.Plan
}

// Checker is a Runner that knows of its arguments what their types do not say:
// that a pattern compiles, that a command can be split into words. It is asked
// before the run. Only arguments that are literals have their values, others are as
// if they were not given; in the text of the module's FreeForm a word stands for
// each template. The paths of problems are names of arguments.
type Checker interface {
	CheckLiterals() []schema.Problem
}

// CanDetach reports whether async may run the module in the background: what
// works on kk's own state is done at once.
func (s *Spec) CanDetach() bool { return s.Where == OnHost || s.Check != Harmless }

// Return documents one key of a result.
type Return struct{ Key, Type, Doc string }

// Written is a text that stands in a playbook, in an argument of Spec.RawArgs. It alone may be
// evaluated by a module: a string is data, wherever it comes from.
type Written string

// AsWritten converts texts of a playbook, in lists too, to Written.
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
	// Target is the host that Conn leads to: Host, or the one that the task is
	// delegated to.
	Target string
	Conn   connector.Connector // become, environment and check mode already applied
	Check  bool                // predict only; Conn is read-only
	Diff   bool                // fill Result.Diff
	Args   *value.Dict         // arguments as templated; the struct is decoded from it
	Raw    *value.Dict         // arguments before templating
	At     source.Pos          // of the task
	Now    func() time.Time

	Scope     expr.Scope       // variables of the host, with the task's and item's
	Templates *template.Engine // for modules that evaluate or render themselves
	Files     source.Tree      // the control node's files
	// Find returns the path of a file of the control node that a playbook names by a
	// relative path, searched in the order of the language: kind is "files",
	// "templates" or "vars". The error lists the folders searched.
	Find func(kind, name string) (string, error)
	// WorkDir is kk's work folder on the control node (0700).
	WorkDir string
	// Outputs bounds what results hold of outputs; Bound reads it. May be nil.
	Outputs *Outputs
	// Output passes on a line that a command printed; may be nil.
	Output func(line string, stderr bool)
	// Progress passes on how far a transfer is; may be nil.
	Progress func(what string, done, total int64)
	// Reset drops and rebuilds the host's connection (reboot, wait_for_connection, meta reset_connection).
	Reset func(ctx context.Context) error
	// Share does once what all hosts would do alike; may be nil.
	Share *Share
	// Jobs are the async tasks that kk itself works on; may be nil.
	Jobs *Jobs
	// Ask asks the person at the terminal; ok is false without one.
	Ask func(ctx context.Context, prompt string, echo bool) (answer string, ok bool, err error)
}

// Fact returns ansible_facts.NAME of the host if facts were gathered, else nil.
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

// Result is what a module did. Data holds the documented keys beyond those
// that have a field of their own.
type Result struct {
	Changed bool
	Failed  bool
	Skipped bool
	Msg     string
	Data    *value.Dict
	Diff    []event.Diff
	// Facts become ansible_facts of the result. Gathered ones are known as
	// ansible_facts.NAME and ansible_NAME; set ones (set_fact, include_vars)
	// as NAME.
	Facts    *value.Dict
	FactKind FactKind
	Warnings []string
	Verbose  bool // show the result without -v (debug, assert)
	NoLog    bool // keep the result from being shown: it is of another task, which has no_log
	Effect   Effect
}

// FactKind is the layer of variables for Result.Facts.
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
