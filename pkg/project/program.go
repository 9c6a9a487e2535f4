// Package project finds playbooks, roles and included files, and links them
// into a Program: what is to be run, with every error that can be known
// without a host found and reported together.
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
	Bundled bool // the binary bundles the file
	Plays   []*Play
}

// Play is a linked play.
type Play struct {
	Syntax *playbook.Play
	Name   string
	Path   string // of the playbook's file
	Dir    string // folder of the playbook
	Attrs  Attrs
	Static vars.Static

	GatherFacts *template.Data
	Hosts       *template.Data
	VarsFiles   [][]*template.Data // each the candidates of one entry
	VarsFilesAt []source.Pos
	Prompts     []*Prompt
	Serial      []*template.Data
	Order       *template.Data
	Strategy    *template.Data
	MaxFail     *template.Data
	Force       *template.Data
	Continue    *template.Data
	Setup       *Task // gathers facts; nil when tags filter it out
	Pre, Main   []Step
	Post        []Step
	Handlers    []*Task
	Roles       *RoleList
	rolePaths   []string // of the roles linked so far
	hasDynRole  bool
	notifies    []notify
}

// Prompt is a variable that a person is asked for.
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

// Block is steps with error handling, and the roles of a play.
type Block struct {
	Syntax               *playbook.Block // nil for roles and includes
	Name                 string
	Body, Rescue, Always []Step
	Role                 *Role  // set on the block that is a whole role
	Once                 string // role blocks with the same key run once on a host; "" is no limit
	Extra                []*vars.Layer
}

func (*Block) linked() {}

// Task is a linked task.
type Task struct {
	Syntax *playbook.Task
	At     source.Pos
	Name   *template.Data // nil when it has none
	Action string         // plain module name
	Spec   *module.Spec   // nil for the engine's own actions
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
	Known       string // of a handler: the name that it is notified by
	Local       bool

	Files []FileName // of the control node, that it names literally

	Include *playbook.Include // set on include_tasks and include_role
	Meta    string            // of meta tasks: flush_handlers, ...
	Hidden  bool              // an implicit flush: no banner
	Handler bool

	Play       *Play
	Role       *Role
	Static     vars.Static
	SearchPath []string // folders in which relative paths are looked for
	Trace      []source.Frame
	place      place
}

func (*Task) linked() {}

// Loop is a linked loop.
type Loop struct {
	Syntax    *playbook.Loop
	Lookup    string // of with_LOOKUP, without namespace; "" of loop
	Items     *template.Data
	Var       *template.Data // nil is "item"
	IndexVar  *template.Data
	Label     *template.Data
	Pause     *template.Data
	Extended  *template.Data
	AllItems  *template.Data
	Forks     *template.Data
	BreakWhen []*Cond
}

// Role is a role at one place of use.
type Role struct {
	Name       string // with its collection's before it
	Path       string
	Collection string // "" when it is in none
	Public     bool
	Parent     *Role // that depends on it, or includes it
	dependency bool  // Parent depends on it
	listed     bool  // the play's list of roles has it

	low         []*vars.Layer
	mid         []*vars.Layer
	high        []*vars.Layer
	collections []string // in which it looks for roles
}

// Variable is a variable about the role that a task is in; outside of roles
// there are none.
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

// includers tell of the roles that include this one; without any there is no
// such variable.
func (r *Role) includers(what func(*Role) string) (any, bool) {
	var out []any
	for _, p := range r.Includers() {
		out = append(out, what(p))
	}
	return out, len(out) > 0
}

// PlainName is the name without the collection's.
func (r *Role) PlainName() string {
	if r.Collection == "" {
		return r.Name
	}
	return strings.TrimPrefix(r.Name, r.Collection+".")
}

// Attr numbers the keywords that children inherit as one value.
type Attr int

// The inherited keywords of one value.
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

// String is the keyword.
func (a Attr) String() string {
	return [...]string{
		"become", "become_user", "become_method", "become_flags", "become_exe", "check_mode", "diff", "connection", "port",
		"remote_user", "delegate_to", "delegate_facts", "ignore_errors", "ignore_unreachable", "any_errors_fatal", "no_log",
		"run_once", "throttle", "timeout",
	}[a]
}

// AttrOf is the inherited keyword of a name.
func AttrOf(keyword string) (Attr, bool) {
	for a := range attrCount {
		if a.String() == keyword {
			return a, true
		}
	}
	return 0, false
}

// Type is what the keyword takes.
func (a Attr) Type() playbook.Type { return playbook.TypeOf(a.String()) }

// Attrs are the inherited keywords of a task, after inheritance.
type Attrs struct {
	Value          [attrCount]*template.Data // nil: not set anywhere
	When           []*Cond
	Tags           []string
	Environment    []*template.Data
	ModuleDefaults []*template.Data
	Notify         []*template.Data
	Collections    []string // in which roles are looked for under plain names

	outer *Attrs
}

// Outer is what the parent has where the child has something of its own; nil
// beyond the play.
func (a *Attrs) Outer(attr Attr) *Attrs {
	own := a.Value[attr]
	for a = a.outer; a != nil && a.Value[attr] == own; a = a.outer {
	}
	return a
}

// inherit returns the attributes of a child that has own.
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
