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

// Rules are what arguments require of each other, and of their values. The
// struct of a module has them as a method, roles in their argument specs.
type Rules []Rule

// Ruled is a struct of arguments with rules.
type Ruled interface{ Rules() Rules }

// RuleKind says what a rule asks for.
type RuleKind int

// Of its arguments, a rule allows one (Exclusive), asks for all or none
// (Together), for at least one (OneOf) or for all (Required), or allows none
// (Refused). The others are about the value of one argument: a number between
// bounds (Range), so many entries (Length), one of some choices (Choice), or a
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

// Rule is one of them. It holds where all of its conditions do.
type Rule struct {
	Kind     RuleKind
	Args     []string
	When     []Cond
	Min, Max int                // of a Range and a Length; Max may be NoLimit
	Values   []any              // of a Choice
	What     string             // the form of a Form: "an absolute path"
	Fits     func(string) error // what keeps a text from having it
	Text     string             // what is said of a breach; "" is made of the rest
}

// NoLimit is the upper bound of a Range that has none.
const NoLimit = int(^uint(0) >> 1)

// Cond is a condition of a rule: an argument has one of the values, or, when
// there are no values, any of the arguments is given; Not is the opposite.
type Cond struct {
	Args   []string
	Values []any
	Not    bool
}

// AtMostOne is mutually_exclusive.
func AtMostOne(args ...string) Rule { return Rule{Kind: Exclusive, Args: args} }

// AllOrNone is required_together.
func AllOrNone(args ...string) Rule { return Rule{Kind: Together, Args: args} }

// AtLeastOne is required_one_of; under If it is required_if with any.
func AtLeastOne(args ...string) Rule { return Rule{Kind: OneOf, Args: args} }

// Needs is required_if and required_by, by the conditions that it is given.
func Needs(args ...string) Rule { return Rule{Kind: Required, Args: args} }

// Refuses is for arguments that say nothing where the conditions hold.
func Refuses(args ...string) Rule { return Rule{Kind: Refused, Args: args} }

// Between bounds a number.
func Between(arg string, least, most int) Rule {
	return Rule{Kind: Range, Args: []string{arg}, Min: least, Max: most}
}

// Entries bounds how many a list has.
func Entries(arg string, least, most int) Rule {
	return Rule{Kind: Length, Args: []string{arg}, Min: least, Max: most}
}

// Chooses restricts an argument to some values.
func Chooses(arg string, values ...any) Rule {
	return Rule{Kind: Choice, Args: []string{arg}, Values: values}
}

// Looks is for texts, and texts of a list, that fits accepts; what follows
// "must be". An empty text is as if the argument were not given.
func Looks(what string, fits func(string) bool, args ...string) Rule {
	return Parses(what, func(text string) error {
		if fits(text) {
			return nil
		}
		return errForm
	}, args...)
}

// Parses is Looks with an error that says what is wrong.
func Parses(what string, parse func(string) error, args ...string) Rule {
	return Rule{Kind: Form, Args: args, What: what, Fits: parse}
}

var errForm = errors.New("it has another form")

// If restricts a rule to where the argument has one of the values.
func (r Rule) If(arg string, values ...any) Rule { return r.with(Cond{[]string{arg}, values, false}) }

// Unless restricts a rule to where the argument has none of the values.
func (r Rule) Unless(arg string, values ...any) Rule {
	return r.with(Cond{[]string{arg}, values, true})
}

// With restricts a rule to where any of the arguments is given.
func (r Rule) With(args ...string) Rule { return r.with(Cond{Args: args}) }

// Without restricts a rule to where none of the arguments is given.
func (r Rule) Without(args ...string) Rule { return r.with(Cond{Args: args, Not: true}) }

func (r Rule) with(c Cond) Rule {
	r.When = append(slices.Clone(r.When), c)
	return r
}

// Says gives a rule words of its own. {NAME} is the value of an argument of its conditions.
func (r Rule) Says(text string) Rule {
	r.Text = text
	return r
}

// Answer is what is known of an argument.
type Answer int

// What only the run knows is Maybe.
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

// Arguments are what rules look at.
type Arguments interface {
	Given(name string) Answer
	// Value is the value of an argument, or its default; nil is none. It is not
	// known when only the run has it.
	Value(name string) (v any, known bool)
}

// Breach is how arguments break a rule.
type Breach struct {
	Msg  string
	Help string
	Args []string // those that are at fault and given; none when one is missing
}

// Broken returns how the arguments break the rule, if they do for certain.
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

// given are the arguments that made the rule hold.
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

// breach returns the arguments that are too many, missing, or of a wrong value.
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

// those are the arguments with an answer.
func those(args []string, a Arguments, answer Answer) []string {
	var out []string
	for _, name := range args {
		if a.Given(name) == answer {
			out = append(out, name)
		}
	}
	return out
}

// refusal is a value that a rule does not accept, and why.
type refusal struct {
	v   any
	err error
}

// refuse looks at a value, at each of a list, or at each of a dictionary as "key: value".
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

// oneValue is the argument of the only condition, when it is about a value.
func (r Rule) oneValue() (string, bool) {
	if len(r.When) != 1 || len(r.When[0].Values) == 0 || r.When[0].Not {
		return "", false
	}
	return r.When[0].Args[0], true
}

// misuse says where arguments may be used: "src is only for state link or hard".
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

// wants ends the sentence "value of x must be ...".
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

// where lists the conditions: " when state is present and force is not given".
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

// help says what to do about a breach.
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

// String is the rule as a sentence of the manual, with the names as `name`.
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

// below is the rule with the names of nested options.
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
