// Package schema maps Go structs to the arguments of playbooks. One struct yields strict decoding with positions,
// defaults, the check of literal arguments before a run, and the table in the manual.
//
// A field is an argument when it has a `kk` tag:
//
//	Dest string      `kk:"dest,required,alias=path,alias=name" doc:"absolute path on the host"`
//	Mode string      `kk:"mode" default:"0644"`
//	State string     `kk:"state" default:"file" choices:"file,absent,directory"`
//	Rest *value.Dict `kk:",rest"`
//
// Types: string, bool, int, float64, []string, []any, map[string]string, *value.Dict, any, time.Duration (seconds),
// redact.Secret, FileMode, pointers to these (nil when not given), and structs and slices of structs (nested options).
// The options `file=KIND` and `away=remote_src|!copy` mark arguments that name files of the control node, see Arg.
// The fields of embedded structs without a tag become fields of the outer struct. The option `path` only changes the
// type that the manual shows. The option `private` keeps an argument that can contain a password, such as a URL, out
// of Params.
//
// Values are coerced as playbooks expect: yes and no are bools, "5" is an int and never truncated, "a,b" is a list of
// strings, a number is a string where a string is expected. A null value counts as an argument that was not given.
//
// The rows of a method Rules specify what arguments require of each other, and of their values. They are checked
// before a run as far as values are literal, by Decode for the rest, and are part of the manual.
package schema

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Arg documents one argument.
type Arg struct {
	Name     string
	Aliases  []string
	Type     string // as shown to users: str, bool, int, list of str, seconds, ...
	Required bool
	Default  string // as written in the struct; "" means none
	Choices  []string
	Doc      string
	Options  []Arg // of a dict or a list of dicts
	// File is the kind of file on the control node that the argument names, see Call.Find. It is "" when the
	// argument names no file, and begins with "word" when only the first word is the name. Away lists the bool
	// arguments that give the name another meaning: when true, or when false for one with a leading "!".
	File string
	Away []string
	// Makes is true when a module that works on hosts writes this file on the control node.
	Makes bool
}

// Kind classifies problems by their cause.
type Kind int

// A wrong value, an unknown argument, missing required arguments, or a broken rule.
const (
	Invalid Kind = iota
	Unknown
	Missing
	Conflict
)

// Problem is a single problem with arguments.
type Problem struct {
	Kind Kind
	Path string // the argument as it was written, nested ones as a.b; "" means the arguments as a whole
	Msg  string
	Help string // advice; can be empty
}

// String omits the advice of a rule, because tasks compare its text with Ansible's.
func (p Problem) String() string {
	if p.Help == "" || p.Kind == Conflict {
		return p.Msg
	}
	return p.Msg + " (" + p.Help + ")"
}

// Errors are all problems with arguments.
type Errors []Problem

// Error joins the problems with "; ".
func (e Errors) Error() string {
	parts := make([]string, len(e))
	for i, p := range e {
		parts[i] = p.String()
	}
	return strings.Join(parts, "; ")
}

// Describe lists the arguments of a struct, given as a pointer to it, in the order of its fields. It skips the rest
// field.
func Describe(v any) ([]Arg, error) {
	t, err := structType(v)
	if err != nil {
		return nil, err
	}
	return describe(t)
}

func describe(t reflect.Type) ([]Arg, error) {
	fields, err := fieldsOf(t)
	if err != nil {
		return nil, err
	}
	var args []Arg
	for _, f := range fields {
		if f.rest {
			continue
		}
		if f.nested != nil {
			if f.Options, err = describe(f.nested); err != nil {
				return nil, err
			}
		}
		args = append(args, f.Arg)
	}
	return args, nil
}

// Decode fills the struct that into points to: first with args, then with defaults. The error is an Errors with all
// problems at once; a struct with a wrong declaration returns another error.
//
// Secrets among the arguments are registered with the set, which hides them from then on. Callers that decode into
// the same struct type many times should make a Plan once.
func Decode(into any, args *value.Dict, secrets *redact.Set) error {
	p, err := PlanFor(into)
	if err != nil {
		return err
	}
	return p.Decode(into, args, secrets)
}

// Plan is the parsed tags of a struct. It is immutable: many goroutines can decode with it at once.
type Plan struct {
	of     reflect.Type
	fields map[reflect.Type][]field // of the struct and of its nested structs
	rules  map[reflect.Type]Rules
}

// PlanFor makes the plan for the struct that v points to.
func PlanFor(v any) (*Plan, error) {
	t, err := structType(v)
	if err != nil {
		return nil, err
	}
	p := &Plan{t, map[reflect.Type][]field{}, map[reflect.Type]Rules{}}
	return p, p.add(t)
}

func (p *Plan) add(t reflect.Type) error {
	if _, known := p.fields[t]; known {
		return nil
	}
	fields, err := fieldsOf(t)
	if err != nil {
		return err
	}
	p.fields[t] = fields
	if err := p.addRules(t); err != nil {
		return err
	}
	for _, f := range fields {
		if f.nested == nil {
			continue
		}
		if err := p.add(f.nested); err != nil {
			return err
		}
	}
	return nil
}

// Decode is the function Decode for a struct of the plan's type.
func (p *Plan) Decode(into any, args *value.Dict, secrets *redact.Set) error {
	if t, err := structType(into); err != nil || t != p.of {
		return fmt.Errorf("the plan is for *%s, not for %T", p.of, into)
	}
	d := decoder{plan: p, secrets: secrets}
	d.fill(reflect.ValueOf(into).Elem(), p.of, args, "")
	if len(d.problems) > 0 {
		return d.problems
	}
	return nil
}

// Check returns the problems that Decode into a struct like v's would certainly report, whatever values the unsure
// arguments get. It does not change v. Secrets that are already known are hidden from then on.
func Check(v any, args *value.Dict, secrets *redact.Set, u Unsure) []Problem {
	p, err := PlanFor(v)
	if err != nil {
		return []Problem{{Msg: err.Error()}}
	}
	d := decoder{plan: p, secrets: secrets, unsure: u}
	d.fill(reflect.New(p.of).Elem(), p.of, args, "")
	return d.problems
}

// Explain returns the text of a failed result for problems with the arguments of module, whose struct v points to.
// Unknown arguments read as "Unsupported parameters for (copy) module: dst. Supported parameters include: ...".
func Explain(module string, v any, problems []Problem) string {
	var unknown, rest []string
	var hints []string
	for _, p := range problems {
		if p.Kind != Unknown || strings.Contains(p.Path, ".") {
			rest = append(rest, p.String())
			continue
		}
		unknown = append(unknown, p.Path)
		if p.Help != "" {
			hints = append(hints, p.Help)
		}
	}
	if len(unknown) > 0 {
		text := fmt.Sprintf("Unsupported parameters for (%s) module: %s. Supported parameters include: %s.",
			module, strings.Join(unknown, ", "), strings.Join(supported(v), ", "))
		for _, h := range hints {
			text += " " + h
		}
		rest = append([]string{text}, rest...)
	}
	return strings.Join(rest, "; ")
}

// supported lists the arguments by name, each with its aliases.
func supported(v any) []string {
	args, err := Describe(v)
	if err != nil {
		return nil
	}
	var names []string
	for _, a := range args {
		name := a.Name
		if len(a.Aliases) > 0 {
			name += " (" + strings.Join(a.Aliases, ", ") + ")"
		}
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func unknownProblem(path, key string, fields []field) Problem {
	var names []string
	for _, f := range fields {
		if !f.rest {
			names = append(append(names, f.Name), f.Aliases...)
		}
	}
	return Problem{
		Kind: Unknown,
		Path: join(path, key),
		Msg:  fmt.Sprintf("unknown argument %q", join(path, key)),
		Help: source.DidYouMean(key, names),
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
