package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// Rules specify what arguments require of each other, and of their values. Structs of modules have them as a
// method, roles in their argument specs.
type Rules []Rule

// Ruled is implemented by argument structs with rules.
type Ruled interface{ Rules() Rules }

// RuleKind specifies what a rule requires.
type RuleKind int

// Some kinds count the arguments that are given: a rule allows at most one (Exclusive), requires all or none
// (Together), at least one (OneOf) or all (Required), or allows none (Refused). The others check the value of one
// argument: a number between bounds (Range), the number of entries (Length), one of some choices (Choice), or a
// text of some form (Form).
const (
	Exclusive RuleKind = iota
	Together
	OneOf
	Required
	Refused
	Range
	Length
	Choice
	Form
)

// Rule is a single rule. It applies when all of its conditions hold.
type Rule struct {
	Kind     RuleKind
	Args     []string
	When     []Cond
	Min, Max int                // of a Range and a Length; Max can be NoLimit
	Values   []any              // of a Choice
	What     string             // description of the form of a Form: "an absolute path"
	Fits     func(string) error // returns an error for a text that does not have the form
	Text     string             // message for a breach; "" generates one from the other fields
}

// NoLimit is the upper bound of a Range without an upper bound.
const NoLimit = int(^uint(0) >> 1)

// Cond is a condition of a rule: an argument has one of the values or, when there are no values, any of the
// arguments is given. Not inverts the condition.
type Cond struct {
	Args   []string
	Values []any
	Not    bool
}

// AtMostOne is Ansible's mutually_exclusive.
func AtMostOne(args ...string) Rule { return Rule{Kind: Exclusive, Args: args} }

// AllOrNone is Ansible's required_together.
func AllOrNone(args ...string) Rule { return Rule{Kind: Together, Args: args} }

// AtLeastOne is Ansible's required_one_of; with If, it is required_if with any.
func AtLeastOne(args ...string) Rule { return Rule{Kind: OneOf, Args: args} }

// Needs is Ansible's required_if and required_by, depending on its conditions.
func Needs(args ...string) Rule { return Rule{Kind: Required, Args: args} }

// Refuses is for arguments that have no meaning when the conditions hold.
func Refuses(args ...string) Rule { return Rule{Kind: Refused, Args: args} }

// Between sets the bounds of a number.
func Between(arg string, least, most int) Rule {
	return Rule{Kind: Range, Args: []string{arg}, Min: least, Max: most}
}

// Entries sets the bounds of the length of a list.
func Entries(arg string, least, most int) Rule {
	return Rule{Kind: Length, Args: []string{arg}, Min: least, Max: most}
}

// Chooses restricts an argument to some values.
func Chooses(arg string, values ...any) Rule {
	return Rule{Kind: Choice, Args: []string{arg}, Values: values}
}

// Looks requires that fits accepts a text, or each text of a list; what completes "must be". An empty text counts
// as not given.
func Looks(what string, fits func(string) bool, args ...string) Rule {
	return Parses(what, func(text string) error {
		if fits(text) {
			return nil
		}
		return errForm
	}, args...)
}

// Parses is Looks with an error that describes the problem.
func Parses(what string, parse func(string) error, args ...string) Rule {
	return Rule{Kind: Form, Args: args, What: what, Fits: parse}
}

var errForm = errors.New("it has another form")

// If limits a rule to cases where the argument has one of the values.
func (r Rule) If(arg string, values ...any) Rule { return r.with(Cond{[]string{arg}, values, false}) }

// Unless limits a rule to cases where the argument has none of the values.
func (r Rule) Unless(arg string, values ...any) Rule {
	return r.with(Cond{[]string{arg}, values, true})
}

// With limits a rule to cases where any of the arguments is given.
func (r Rule) With(args ...string) Rule { return r.with(Cond{Args: args}) }

// Without limits a rule to cases where none of the arguments is given.
func (r Rule) Without(args ...string) Rule { return r.with(Cond{Args: args, Not: true}) }

func (r Rule) with(c Cond) Rule {
	r.When = append(slices.Clone(r.When), c)
	return r
}

// Says sets the message of a rule. {NAME} is the value of an argument of its conditions.
func (r Rule) Says(text string) Rule {
	r.Text = text
	return r
}

// Answer is No, Yes, or Maybe for facts that are unknown before the run.
type Answer int

// Maybe is for facts that only the run can decide.
const (
	No Answer = iota
	Maybe
	Yes
)

func (a Answer) not(negate bool) Answer {
	if negate {
		return Yes - a
	}
	return a
}

func known(b bool) Answer {
	if b {
		return Yes
	}
	return No
}

// Arguments are the arguments that rules check.
type Arguments interface {
	Given(name string) Answer
	// Value returns the value of an argument, or its default; nil means none. The bool is false when the value is
	// only known during the run.
	Value(name string) (v any, known bool)
}

// Breach describes how arguments break a rule.
type Breach struct {
	Msg  string
	Help string
	Args []string // given arguments that caused the breach; nil when one is missing
}

// Broken returns how the arguments break the rule, if they certainly do.
func (r Rule) Broken(a Arguments) (Breach, bool) {
	for _, c := range r.When {
		if c.holds(a) != Yes {
			return Breach{}, false
		}
	}
	bad, broken := r.breach(a)
	if !broken {
		return Breach{}, false
	}
	b := Breach{Msg: r.Text, Help: r.help(a, bad)}
	for _, c := range r.When {
		b.Msg = strings.ReplaceAll(b.Msg, "{"+c.Args[0]+"}", shown(a, c.Args[0]))
	}
	if b.Msg == "" {
		b.Msg = r.message(a, bad)
	}
	switch r.Kind {
	case Exclusive, Refused, Range, Length, Choice, Form:
		b.Args = bad
	default:
		b.Args = r.given(a)
	}
	return b, true
}

// given returns the arguments that made the rule apply.
func (r Rule) given(a Arguments) []string {
	var out []string
	for _, c := range r.When {
		if !c.Not {
			out = append(out, those(c.Args, a, Yes)...)
		}
	}
	return append(out, those(r.Args, a, Yes)...)
}

func (c Cond) holds(a Arguments) Answer {
	if len(c.Values) == 0 {
		given := No
		for _, name := range c.Args {
			given = max(given, a.Given(name))
		}
		return given.not(c.Not)
	}
	v, isKnown := a.Value(c.Args[0])
	if !isKnown {
		return Maybe
	}
	if s, secret := v.(redact.Secret); secret {
		v = s.Reveal()
	}
	return known(among(c.Values, v)).not(c.Not)
}

func among(values []any, v any) bool {
	return slices.ContainsFunc(values, func(e any) bool { return value.Equal(e, v) })
}

// breach returns the arguments that are too many, missing, or have a wrong value.
func (r Rule) breach(a Arguments) (bad []string, broken bool) {
	switch r.Kind {
	case Exclusive:
		bad = those(r.Args, a, Yes)
		return bad, len(bad) > 1
	case Together:
		bad = those(r.Args, a, No)
		return bad, len(bad) > 0 && len(those(r.Args, a, Yes)) > 0
	case OneOf:
		bad = those(r.Args, a, No)
		return bad, len(bad) == len(r.Args)
	case Required:
		bad = those(r.Args, a, No)
	case Refused:
		bad = those(r.Args, a, Yes)
	default:
		for _, name := range r.Args {
			if v, isKnown := a.Value(name); isKnown && v != nil && r.refuse(v) != nil {
				bad = append(bad, name)
			}
		}
	}
	return bad, len(bad) > 0
}

// those returns the arguments with the given answer.
func those(args []string, a Arguments, answer Answer) []string {
	var out []string
	for _, name := range args {
		if a.Given(name) == answer {
			out = append(out, name)
		}
	}
	return out
}

// refusal is a value that a rule rejects, and the reason.
type refusal struct {
	v   any
	err error
}

// refuse checks a value, each element of a list, or each entry of a dictionary as "key: value".
func (r Rule) refuse(v any) *refusal {
	if d, ok := v.(*value.Dict); ok && r.Kind == Form {
		for k, e := range d.All() {
			if no := r.refuseOne(value.Str(k) + ": " + value.Str(e)); no != nil {
				return no
			}
		}
		return nil
	}
	list, isList := v.([]any)
	switch {
	case isList && r.Kind == Length:
		return r.refuseOne(len(list))
	case isList:
		for _, e := range list {
			if no := r.refuseOne(e); no != nil {
				return no
			}
		}
		return nil
	}
	if s, ok := v.(redact.Secret); v == "" || ok && s.IsZero() {
		return nil
	}
	return r.refuseOne(v)
}

func (r Rule) refuseOne(v any) *refusal {
	var err error
	switch r.Kind {
	case Range, Length:
		n, ok := toFloat(v)
		if in := ok && n >= float64(r.Min) && (r.Max == NoLimit || n <= float64(r.Max)); !in {
			err = errForm
		}
	case Choice:
		if !among(r.Values, v) {
			err = errForm
		}
	default:
		text := value.Str(v)
		if s, ok := v.(redact.Secret); ok {
			text = s.Reveal()
		}
		err = r.Fits(text)
	}
	if err == nil {
		return nil
	}
	return &refusal{v, err}
}

func (r Rule) message(a Arguments, bad []string) string {
	args := strings.Join(bad, ", ")
	switch r.Kind {
	case Exclusive:
		return "parameters are mutually exclusive: " + strings.Join(r.Args, "|") + r.where()
	case Together:
		return "parameters are required together: " + strings.Join(r.Args, ", ") + r.where()
	case OneOf:
		if c, ok := r.oneValue(); ok {
			return fmt.Sprintf("%s is %s but any of the following are missing: %s", c, shown(a, c), args)
		}
		return "one of the following is required: " + args + r.where()
	case Required:
		if c, ok := r.oneValue(); ok {
			return fmt.Sprintf("%s is %s but all of the following are missing: %s", c, shown(a, c), args)
		}
		if len(r.When) == 1 && len(r.When[0].Values) == 0 && !r.When[0].Not {
			by := those(r.When[0].Args, a, Yes)
			return fmt.Sprintf("missing parameter(s) required by '%s': %s", by[0], args)
		}
		return "missing required arguments: " + args + r.where()
	case Refused:
		return r.misuse(bad)
	}
	v, _ := a.Value(bad[0])
	no := r.refuse(v)
	if !errors.Is(no.err, errForm) {
		return no.err.Error()
	}
	return fmt.Sprintf("value of %s must be %s%s, got %s", bad[0], r.wants(), r.where(), got(no.v))
}

func shown(a Arguments, arg string) string {
	v, _ := a.Value(arg)
	return value.Str(v)
}

// oneValue returns the argument of the only condition, if that condition is about a value.
func (r Rule) oneValue() (string, bool) {
	if len(r.When) != 1 || len(r.When[0].Values) == 0 || r.When[0].Not {
		return "", false
	}
	return r.When[0].Args[0], true
}

// misuse specifies where arguments can be used: "src is only for state link or hard".
func (r Rule) misuse(bad []string) string {
	args, verb := strings.Join(bad, " and "), " is "
	if len(bad) > 1 {
		verb = " are "
	}
	if len(r.When) == 1 && r.When[0].Not {
		c := r.When[0]
		c.Not = false
		return args + verb + "only for a task where " + c.String()
	}
	return args + " cannot be used" + r.where()
}

// wants returns the end of the sentence "value of x must be ...".
func (r Rule) wants() string {
	switch {
	case r.Kind == Choice && len(r.Values) == 1:
		return listed(r.Values, "")
	case r.Kind == Choice:
		return "one of " + listed(r.Values, ", ")
	case r.Kind == Form:
		return r.What
	case r.Kind == Length:
		return "a list of " + r.bounds()
	}
	return r.bounds()
}

func (r Rule) bounds() string {
	switch {
	case r.Max == NoLimit:
		return "at least " + strconv.Itoa(r.Min)
	case r.Min == r.Max:
		return strconv.Itoa(r.Min)
	}
	return fmt.Sprintf("%d to %d", r.Min, r.Max)
}

// where returns the conditions as text: " when state is present and force is not given".
func (r Rule) where() string {
	if len(r.When) == 0 {
		return ""
	}
	parts := make([]string, len(r.When))
	for i, c := range r.When {
		parts[i] = c.String()
	}
	return " when " + strings.Join(parts, " and ")
}

func (c Cond) String() string {
	args := strings.Join(c.Args, " or ")
	switch {
	case len(c.Values) == 0 && c.Not && len(c.Args) > 1:
		return "none of " + strings.Join(c.Args, ", ") + " is given"
	case len(c.Values) == 0 && c.Not:
		return args + " is not given"
	case len(c.Values) == 0:
		return args + " is given"
	case c.Not && len(c.Values) > 1:
		return args + " is none of " + listed(c.Values, ", ")
	case c.Not:
		return args + " is not " + listed(c.Values, ", ")
	}
	return args + " is " + listed(c.Values, " or ")
}

func listed(values []any, sep string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		switch v := v.(type) {
		case bool:
			parts[i] = yesOrNo(v)
		case string:
			parts[i] = v
			if v == "" {
				parts[i] = "empty"
			}
		default:
			parts[i] = value.Str(v)
		}
	}
	return strings.Join(parts, sep)
}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// help returns advice on a breach.
func (r Rule) help(a Arguments, bad []string) string {
	args := strings.Join(bad, ", ")
	switch r.Kind {
	case Exclusive:
		return "give only one of " + strings.Join(bad, ", ")
	case Together:
		return "add " + args + ", or leave out " + strings.Join(those(r.Args, a, Yes), ", ")
	case OneOf:
		return "add one of " + args
	case Required:
		return "add " + args
	case Refused:
		return "leave out " + args
	}
	return ""
}

// String returns the rule as a sentence for the manual, with the names as `name`.
func (r Rule) String() string {
	r = r.renamed(func(name string) string { return "`" + name + "`" })
	return r.sentence() + r.where()
}

func (r Rule) sentence() string {
	args := strings.Join(r.Args, ", ")
	switch r.Kind {
	case Exclusive:
		return "At most one of " + args
	case Together:
		return "All of " + args + ", or none"
	case OneOf:
		return "At least one of " + args
	case Required:
		return args + " must be given"
	case Refused:
		return args + " cannot be used"
	}
	return args + " must be " + r.wants()
}

// below returns the rule with the names of nested options.
func (r Rule) below(path string) Rule {
	return r.renamed(func(name string) string { return join(path, name) })
}

func (r Rule) renamed(name func(string) string) Rule {
	r.Args, r.When = slices.Clone(r.Args), slices.Clone(r.When)
	for i := range r.Args {
		r.Args[i] = name(r.Args[i])
	}
	for i := range r.When {
		args := slices.Clone(r.When[i].Args)
		for j := range args {
			args[j] = name(args[j])
		}
		r.When[i].Args = args
	}
	return r
}
