// Package playbook contains the syntax tree of playbooks and its parser. It knows the keywords of the language, but
// no modules and no hosts. Package project resolves names, and package engine evaluates templates.
package playbook

import (
	"kubekey/pkg/source"

	"gopkg.in/yaml.v3"
)

// Playbook is one file of plays.
type Playbook struct {
	File  *source.File
	Items []Item
}

// Item is a *Play or an *ImportPlaybook.
type Item interface{ item() }

// ImportPlaybook imports another playbook.
type ImportPlaybook struct {
	At   source.Pos
	Path Value
	Attrs
}

// Play runs roles and tasks on hosts.
type Play struct {
	At    source.Pos
	Name  string // as written; may be a template
	Hosts Value
	Attrs

	GatherFacts, GatherSubset, GatherTimeout, FactPath Value
	VarsFiles                                          Value
	VarsPrompt                                         []*Prompt
	Serial, Order, Strategy, MaxFailPercentage         Value
	ForceHandlers, SerialContinue                      Value

	PreTasks, Tasks, PostTasks, Handlers []Step
	Roles                                []*RoleEntry
}

func (*Play) item()           {}
func (*ImportPlaybook) item() {}

// Prompt is one element of vars_prompt.
type Prompt struct {
	At      source.Pos
	Name    string
	Text    Value // prompt: the question
	Default Value
	Private Value // do not echo the input; default true
	Confirm Value // ask twice
	Encrypt Value // the scheme to hash the answer with: sha512_crypt, ...
	Salt    Value
	Size    Value // salt_size: characters of a random salt
	Unsafe  Value // the answer is not a template
}

// RoleEntry is one element of a play's roles, or of a role's dependencies.
type RoleEntry struct {
	At     source.Pos
	Name   Value
	Attrs        // its vars are the role's vars
	Params *Vars // keys that are not keywords: role parameters
	From   FromFiles
	Dup    Value // allow_duplicates
}

// FromFiles names files of a role to use instead of main.
type FromFiles struct{ Tasks, Vars, Defaults, Handlers Value }

// Step is a *Task, *Block or *Include.
type Step interface {
	At() source.Pos
	step()
}

// Block groups steps, with error handling.
type Block struct {
	Pos  source.Pos
	Name string
	Attrs
	Body, Rescue, Always []Step
}

// Task runs one module.
type Task struct {
	Pos  source.Pos
	Name string // as written; may be a template
	Attrs

	Module   string     // as written
	ModuleAt source.Pos // of the module's key
	Args     Value      // mapping, or text (k=v words or free form)
	Extra    Value      // args:
	Local    bool       // local_action

	Register     string
	RegisterType string // "", string, json or yaml
	Loop         *Loop
	Until        []Value
	Retries      Value
	Delay        Value
	Async, Poll  Value // seconds
	ChangedWhen  []Value
	FailedWhen   []Value
	Listen       []string
}

// Include includes tasks or a role, either when the file is read (Static) or when the run reaches it. Its Task has
// Module set and Args as written.
type Include struct {
	*Task
	Static bool
	Role   bool  // include_role, import_role
	Apply  Value // attributes for the children of a dynamic include
}

// RoleName returns the role name of an include_role as written.
func (i *Include) RoleName() string {
	for _, key := range []string{"name", "role"} {
		if v := i.Args.Get(key); v.IsSet() {
			return v.Text()
		}
	}
	return ""
}

// Loop is loop: or with_X:, and loop_control:.
type Loop struct {
	At     source.Pos
	Lookup string // "" for loop:, else the X of with_X
	Items  Value

	Var              Value // a name, or a template that yields one; default "item"
	IndexVar         Value
	Label            Value
	Pause            Value // seconds between items
	Extended         Value
	ExtendedAllItems Value
	BreakWhen        []Value
	Forks            Value // items at a time on each host; default 1
}

// At returns the position of the step.
func (b *Block) At() source.Pos { return b.Pos }

// At returns the position of the step.
func (t *Task) At() source.Pos { return t.Pos }

func (*Block) step() {}
func (*Task) step()  {}

// Attrs contains the keywords that children inherit. An unset Value inherits.
type Attrs struct {
	Become, BecomeUser, BecomeMethod, BecomeFlags, BecomeExe Value
	CheckMode, Diff                                          Value
	Connection, Port, RemoteUser                             Value
	DelegateTo, DelegateFacts                                Value
	IgnoreErrors, IgnoreUnreachable, AnyErrorsFatal          Value
	NoLog, RunOnce, Throttle, Timeout                        Value

	When           []Value // all must be true; those of the parents come first
	Tags           []Value
	Environment    []Value // later elements override
	ModuleDefaults []Value // later elements override
	Notify         []Value
	Collections    []Value
	Vars           *Vars // of this object alone
}

// Vars is a list of named values as written, in order.
type Vars struct {
	Names  []string
	Values map[string]Value
}

// Len returns the number of names; 0 for a nil Vars.
func (v *Vars) Len() int {
	if v == nil {
		return 0
	}
	return len(v.Names)
}

// Value is a value in a file that has not been evaluated yet.
type Value struct {
	Node *yaml.Node
	File *source.File
}

// IsSet reports whether the value exists.
func (v Value) IsSet() bool { return v.Node != nil }

// At returns the position of the value.
func (v Value) At() source.Pos { return source.NodePos(v.File, v.Node) }

// TextAt returns the position at which the text of a scalar begins.
func (v Value) TextAt() source.Pos {
	if v.Node == nil {
		return source.Pos{}
	}
	return source.TextPos(v.File, v.Node)
}

// Text returns the text of a scalar, or "" for anything else.
func (v Value) Text() string {
	if v.Node == nil || source.Resolve(v.Node).Kind != yaml.ScalarNode {
		return ""
	}
	return source.Resolve(v.Node).Value
}

// IsTemplate reports whether the text contains a template.
func (v Value) IsTemplate() bool { return isTemplate(v.Text()) }

// Scalar returns the node of a scalar, with aliases resolved.
func (v Value) Scalar() *yaml.Node { return source.Resolve(v.Node) }

// IsNull reports whether the value is missing or null.
func (v Value) IsNull() bool {
	return v.Node == nil || (v.Node.Kind == yaml.ScalarNode && v.Node.ShortTag() == "!!null")
}

// Kind returns the YAML kind, with aliases resolved; 0 if not set.
func (v Value) Kind() yaml.Kind {
	if v.Node == nil {
		return 0
	}
	return source.Resolve(v.Node).Kind
}

// Elements returns the elements of a list. A single value is its only element; a missing value has none.
func (v Value) Elements() []Value {
	if v.IsNull() {
		return nil
	}
	n := source.Resolve(v.Node)
	if n.Kind != yaml.SequenceNode {
		return []Value{v}
	}
	out := make([]Value, len(n.Content))
	for i, c := range n.Content {
		out[i] = Value{c, v.File}
	}
	return out
}

// Get returns the value of a key of a mapping.
func (v Value) Get(key string) Value {
	if v.Kind() != yaml.MappingNode {
		return Value{}
	}
	n := source.Resolve(v.Node)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return Value{n.Content[i+1], v.File}
		}
	}
	return Value{}
}
