package schema

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// RulesOf returns the rules of a struct, given as a pointer to it. A struct that embeds structs with rules includes
// their rules in its own.
func RulesOf(v any) Rules {
	if r, ok := v.(Ruled); ok {
		return r.Rules()
	}
	return nil
}

// DescribeRules returns the rules of a struct, given as a pointer to it, as sentences for the manual. The rules of
// nested options name them as a.b.
func DescribeRules(v any) ([]string, error) {
	p, err := PlanFor(v)
	if err != nil {
		return nil, err
	}
	return p.sentences(p.of, ""), nil
}

func (p *Plan) sentences(t reflect.Type, path string) []string {
	var out []string
	for _, r := range p.rules[t] {
		if text := r.below(path).String(); !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, f := range p.fields[t] {
		if f.nested != nil {
			out = append(out, p.sentences(f.nested, join(path, f.Name))...)
		}
	}
	return out
}

// addRules reads the rules of a struct of the plan, and checks that they name existing arguments.
func (p *Plan) addRules(t reflect.Type) error {
	rules := RulesOf(reflect.New(t).Interface())
	for _, r := range rules {
		for _, name := range r.names() {
			if i := fieldNamed(p.fields[t], name); i < 0 || p.fields[t][i].Name != name {
				return fmt.Errorf("a rule of %s is about %q, which is no argument of it", t, name)
			}
		}
	}
	p.rules[t] = rules
	return p.embeddedRules(t, rules)
}

// embeddedRules checks that rules includes those of embedded structs. It is needed because the Rules methods of two
// embedded structs hide each other.
func (p *Plan) embeddedRules(t reflect.Type, rules Rules) error {
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous || f.Type.Kind() != reflect.Struct {
			continue
		}
		for _, r := range RulesOf(reflect.New(f.Type).Interface()) {
			if !slices.ContainsFunc(rules, func(o Rule) bool { return o.String() == r.String() }) {
				return fmt.Errorf("the rule %q of %s is not among those of %s", r, f.Type, t)
			}
		}
		if err := p.embeddedRules(f.Type, rules); err != nil {
			return err
		}
	}
	return nil
}

// names returns the arguments that a rule is about.
func (r Rule) names() []string {
	out := slices.Clone(r.Args)
	for _, c := range r.When {
		out = append(out, c.Args...)
	}
	return out
}

// Unsure specifies which facts about arguments are unknown before a run.
type Unsure struct {
	Dynamic   func(v any) bool // v stands for a value that is only known during the run
	Omittable func(v any) bool // and that can turn out to be omitted
	More      bool             // there can be arguments that are not visible yet
}

func (u Unsure) dynamic(v any) bool { return u.Dynamic != nil && u.Dynamic(v) }

func (u Unsure) omittable(v any) bool { return u.Omittable != nil && u.Omittable(v) }

// obey adds a problem for each rule that the arguments of a filled struct certainly break.
func (d *decoder) obey(filled reflect.Value, t reflect.Type, given map[int]givenArg, path string) {
	rules := d.plan.rules[t]
	if len(rules) == 0 {
		return
	}
	v := filledArgs{d, d.plan.fields[t], filled, given, path, d.unsure.More && path == "" || d.misnamed(path)}
	for _, r := range rules {
		b, broken := r.Broken(v)
		if !broken {
			continue
		}
		p := Problem{Kind: Conflict, Path: path, Msg: b.Msg, Help: b.Help}
		if len(b.Args) > 0 {
			p.Path = join(path, given[fieldNamed(v.fields, b.Args[len(b.Args)-1])].key)
		}
		if path != "" {
			p.Msg += " found in " + path
		}
		if !slices.ContainsFunc(d.problems, func(o Problem) bool { return o.Msg == p.Msg }) {
			d.add(p)
		}
	}
}

// misnamed reports whether there is an unknown argument: it can be the one that a rule requires, under a wrong
// name.
func (d *decoder) misnamed(path string) bool {
	return slices.ContainsFunc(d.problems, func(p Problem) bool {
		rest, here := strings.CutPrefix(p.Path, join(path, ""))
		return p.Kind == Unknown && here && !strings.Contains(rest, ".")
	})
}

// filledArgs are the arguments of a struct, as far as they are known. An argument counts as given only if the
// module's code can distinguish it from an omitted one: an empty text, no, and the default value count as omitted,
// unless the field is a pointer.
type filledArgs struct {
	*decoder
	fields []field
	filled reflect.Value
	given  map[int]givenArg
	path   string
	more   bool
}

func (a filledArgs) Given(name string) Answer {
	i := fieldNamed(a.fields, name)
	g, ok := a.given[i]
	target := a.filled.FieldByIndex(a.fields[i].index)
	switch {
	case !ok && (a.more || a.fields[i].Required): // missing required arguments are reported separately
		return Maybe
	case !ok:
		return No
	case a.wrong(g.key):
		return Maybe
	case a.unsure.dynamic(g.v):
		if a.unsure.omittable(g.v) || target.Kind() == reflect.Bool || a.fields[i].hasDefault {
			return Maybe
		}
		return Yes
	}
	return known(!a.blank(target, a.fields[i], g.v))
}

func (a filledArgs) blank(target reflect.Value, f field, v any) bool {
	switch {
	case f.hasDefault:
		preset := reflect.New(target.Type()).Elem()
		d := decoder{secrets: &redact.Set{}} // a default is never a secret
		return d.coerce(preset, f, f.Default) == "" && reflect.DeepEqual(preset.Interface(), target.Interface())
	case target.Kind() == reflect.Slice:
		return v == "" // an empty list counts as given
	}
	return target.IsZero()
}

func (a filledArgs) Value(name string) (any, bool) {
	i := fieldNamed(a.fields, name)
	g, ok := a.given[i]
	if ok && (a.unsure.dynamic(g.v) || a.wrong(g.key)) || !ok && a.more {
		return nil, false
	}
	if !ok && !a.fields[i].hasDefault {
		return nil, true
	}
	return plainValue(a.filled.FieldByIndex(a.fields[i].index)), true
}

func (a filledArgs) wrong(key string) bool {
	return slices.ContainsFunc(a.problems, func(p Problem) bool { return p.Kind != Conflict && p.Path == join(a.path, key) })
}

// plainValue converts a decoded argument to a playbook value.
func plainValue(v reflect.Value) any {
	switch v.Type() {
	case durationType:
		return v.Interface().(time.Duration).Seconds()
	case secretType:
		return v.Interface()
	case modeType:
		return v.Interface().(FileMode).String()
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int:
		return int(v.Int())
	case reflect.Float64:
		return v.Float()
	case reflect.Pointer:
		if v.IsNil() || v.Type() == dictType {
			return v.Interface()
		}
		return plainValue(v.Elem())
	case reflect.Map:
		m := v.Interface().(map[string]string)
		d := value.NewDict()
		for _, k := range slices.Sorted(maps.Keys(m)) {
			d.Set(k, m[k])
		}
		return d
	case reflect.Slice:
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plainValue(v.Index(i))
		}
		return out
	}
	return v.Interface()
}
