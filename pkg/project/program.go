// Package project finds playbooks, roles and included files, and links them into a Playbook, which is ready to run.
// It finds every error that can be detected without a host, and reports all of them together.
package project

import (
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/vars"
)

// Playbook is a linked playbook: plays in order, imports resolved.
type Playbook struct {
	Path    string
	Bundled bool // the file is bundled in the binary
	Plays   []*Play
}

// Play is a linked play.
type Play struct {
	Syntax *playbook.Play
	Name   string
	Path   string // of the playbook file
	Dir    string // directory of the playbook
	Attrs  Attrs
	Static vars.Static

	GatherFacts *template.Data
	Hosts       *template.Data
	VarsFiles   [][]*template.Data // for each entry, its candidates
	VarsFilesAt []source.Pos
	Prompts     []*Prompt
	Serial      []*template.Data
	Order       *template.Data
	Strategy    *template.Data
	MaxFail     *template.Data
	Force       *template.Data
	Continue    *template.Data
	Setup       *Task // gathers facts; nil if the tags exclude it
	Pre, Main   []Step
	Post        []Step
	Handlers    []*Task
	Roles       *RoleList
	rolePaths   []string // of the roles linked so far
	hasDynRole  bool
	notifies    []notify
}

// Prompt is a variable that kk asks the user for.
type Prompt struct {
	Syntax                                  *playbook.Prompt
	Text, Default, Private, Confirm, Unsafe *template.Data
	Encrypt, Salt, Size                     *template.Data
}

type notify struct {
	name string
	at   source.Pos
	role *Role
}

// Step is a *Task or a *Block.
type Step interface{ linked() }

// Block is a list of steps with error handling. A role of a play is also a Block.
type Block struct {
	Syntax               *playbook.Block // nil for roles and includes
	Name                 string
	Body, Rescue, Always []Step
	Role                 *Role  // set if the block is a whole role
	Once                 string // role blocks with the same key run once per host; "" is no limit
	Extra                []*vars.Layer
}

func (*Block) linked() {}

// Task is a linked task.
type Task struct {
	Syntax *playbook.Task
	At     source.Pos
	Name   *template.Data // nil if it has none
	Action string         // plain module name
	Spec   *module.Spec   // nil for actions of the engine itself
	Attrs  Attrs
	Args   *template.Data // a mapping, or a template that yields one

	Loop        *Loop
	Until       []*Cond
	ChangedWhen []*Cond
	FailedWhen  []*Cond
	Retries     *template.Data
	Delay       *template.Data
	Async, Poll *template.Data
	Register    string
	Listen      []string
	Known       string // for a handler: the name that notifies it
	Local       bool

	Files []FileName // files of the control node that it names literally

	Include *playbook.Include // set on include_tasks and include_role
	Meta    string            // for meta tasks: flush_handlers, ...
	Hidden  bool              // an implicit flush, without a banner
	Handler bool

	Play       *Play
	Role       *Role
	Static     vars.Static
	SearchPath []string // directories that are searched for relative paths
	Trace      []source.Frame
	place      place
}

func (*Task) linked() {}

// Loop is a linked loop.
type Loop struct {
	Syntax    *playbook.Loop
	Lookup    string // the LOOKUP of with_LOOKUP, without namespace; "" for loop
	Items     *template.Data
	Var       *template.Data // nil means "item"
	IndexVar  *template.Data
	Label     *template.Data
	Pause     *template.Data
	Extended  *template.Data
	AllItems  *template.Data
	Forks     *template.Data
	BreakWhen []*Cond
}

// Role is a role as used at one place.
type Role struct {
	Name       string // including the name of its collection
	Path       string
	Collection string // "" if it is in none
	Public     bool
	Parent     *Role // the role that depends on it or includes it
	dependency bool  // Parent depends on it
	listed     bool  // it is in the play's list of roles

	low         []*vars.Layer
	mid         []*vars.Layer
	high        []*vars.Layer
	collections []string // collections that it searches for roles
}

// Variable returns a variable that describes the role of a task. Outside of roles no such variable exists.
func (r *Role) Variable(name string) (any, bool) {
	if r == nil {
		return nil, false
	}
	switch name {
	case "role_name":
		return r.PlainName(), true
	case "ansible_role_name":
		return r.Name, true
	case "ansible_collection_name":
		return r.Collection, true
	case "role_path":
		return r.Path, true
	case "ansible_parent_role_names":
		return r.includers(func(p *Role) string { return p.Name })
	case "ansible_parent_role_paths":
		return r.includers(func(p *Role) string { return p.Path })
	}
	return nil, false
}

// includers returns a property of each role that includes this one; ok is false if there are none.
func (r *Role) includers(what func(*Role) string) (any, bool) {
	var out []any
	for _, p := range r.Includers() {
		out = append(out, what(p))
	}
	return out, len(out) > 0
}

// PlainName returns the name without that of the collection.
func (r *Role) PlainName() string {
	if r.Collection == "" {
		return r.Name
	}
	return strings.TrimPrefix(r.Name, r.Collection+".")
}

// Attr numbers the inherited keywords that have a single value.
type Attr int

// The inherited keywords with a single value.
const (
	Become Attr = iota
	BecomeUser
	BecomeMethod
	BecomeFlags
	BecomeExe
	CheckMode
	Diff
	Connection
	Port
	RemoteUser
	DelegateTo
	DelegateFacts
	IgnoreErrors
	IgnoreUnreachable
	AnyErrorsFatal
	NoLog
	RunOnce
	Throttle
	Timeout
	attrCount
)

// String returns the keyword.
func (a Attr) String() string {
	return [...]string{
		"become", "become_user", "become_method", "become_flags", "become_exe", "check_mode", "diff", "connection", "port",
		"remote_user", "delegate_to", "delegate_facts", "ignore_errors", "ignore_unreachable", "any_errors_fatal", "no_log",
		"run_once", "throttle", "timeout",
	}[a]
}

// AttrOf returns the inherited keyword with a name.
func AttrOf(keyword string) (Attr, bool) {
	for a := range attrCount {
		if a.String() == keyword {
			return a, true
		}
	}
	return 0, false
}

// Type returns the type of the keyword.
func (a Attr) Type() playbook.Type { return playbook.TypeOf(a.String()) }

// Attrs are the inherited keywords of a task, after inheritance.
type Attrs struct {
	Value          [attrCount]*template.Data // nil: not set anywhere
	When           []*Cond
	Tags           []string
	Environment    []*template.Data
	ModuleDefaults []*template.Data
	Notify         []*template.Data
	Collections    []string // searched for roles with plain names

	outer *Attrs
}

// Outer returns the attributes of the nearest ancestor that has another value for attr; nil if there is none up to
// the play.
func (a *Attrs) Outer(attr Attr) *Attrs {
	own := a.Value[attr]
	for a = a.outer; a != nil && a.Value[attr] == own; a = a.outer {
	}
	return a
}

// inherit returns the attributes of a child that sets own.
func (a Attrs) inherit(own Attrs) Attrs {
	out := a
	out.outer = &a
	for i, v := range own.Value {
		if v != nil {
			out.Value[i] = v
		}
	}
	out.When = join(a.When, own.When)
	out.Tags = union(a.Tags, own.Tags)
	out.Environment = join(a.Environment, own.Environment)
	out.ModuleDefaults = join(a.ModuleDefaults, own.ModuleDefaults)
	if len(own.Collections) > 0 {
		out.Collections = own.Collections
	}
	if len(own.Notify) > 0 {
		out.Notify = join(a.Notify, own.Notify)
	}
	return out
}

func join[T any](a, b []T) []T {
	if len(b) == 0 {
		return a
	}
	return append(a[:len(a):len(a)], b...)
}

func union(a, b []string) []string {
	out := a[:len(a):len(a)]
next:
	for _, t := range b {
		for _, have := range out {
			if have == t {
				continue next
			}
		}
		out = append(out, t)
	}
	return out
}
