package argspec

import (
	"strings"

	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// exclusive checks mutually_exclusive.
func (c *check) exclusive(entry, args *value.Dict, path []string) {
	var bad []string
	for _, group := range groups(entry, "mutually_exclusive") {
		if _, broken := schema.AtMostOne(group...).Broken(roleArgs{args, true}); broken {
			bad = append(bad, strings.Join(group, "|"))
		}
	}
	if len(bad) > 0 {
		c.rule(path, "parameters are mutually exclusive: %s", strings.Join(bad, ", "))
	}
}

// rules checks the conditions between arguments. For each type of rule only the first violation is reported.
func (c *check) rules(entry, args *value.Dict, path []string) {
	var together, oneOf schema.Rules
	for _, group := range groups(entry, "required_together") {
		together = append(together, schema.AllOrNone(group...))
	}
	for _, group := range groups(entry, "required_one_of") {
		oneOf = append(oneOf, schema.AtLeastOne(group...))
	}
	for _, rules := range []schema.Rules{together, oneOf, requiredIf(entry)} {
		c.first(rules, roleArgs{args, true}, path)
	}
	c.first(requiredBy(entry), roleArgs{args, false}, path)
}

func (c *check) first(rules schema.Rules, args roleArgs, path []string) {
	for _, r := range rules {
		if b, broken := r.Broken(args); broken {
			c.rule(path, "%s", b.Msg)
			return
		}
	}
}

// requiredIf reads [argument, value, [arguments], any]: if the argument has the value, all of the others are
// required, or at least one of them if any is true.
func requiredIf(entry *value.Dict) schema.Rules {
	var out schema.Rules
	all, _ := entry.Get("required_if")
	for _, e := range list(all) {
		row := list(e)
		if len(row) < 3 {
			continue
		}
		r := schema.Needs(strs(row[2])...)
		if len(row) > 3 && value.Truth(row[3]) {
			r = schema.AtLeastOne(strs(row[2])...)
		}
		out = append(out, r.If(value.Str(row[0]), row[1]))
	}
	return out
}

// requiredBy reads {argument: [arguments]}.
func requiredBy(entry *value.Dict) schema.Rules {
	var out schema.Rules
	for k, needs := range dict(entry, "required_by").All() {
		out = append(out, schema.Needs(strs(needs)...).With(value.Str(k)))
	}
	return out
}

// roleArgs are the arguments of a role. As in Ansible, null counts as set for all rules except required_by.
type roleArgs struct {
	args *value.Dict
	null bool
}

func (a roleArgs) Given(name string) schema.Answer {
	if v, ok := a.args.Get(name); ok && (v != nil || a.null) {
		return schema.Yes
	}
	return schema.No
}

func (a roleArgs) Value(name string) (any, bool) {
	return a.args.Get(name) // a missing argument has no value, not even null
}

// groups returns the lists of names of a rule. A single list of names is one group.
func groups(entry *value.Dict, rule string) [][]string {
	v, _ := entry.Get(rule)
	all := list(v)
	if len(all) > 0 {
		if _, nested := all[0].([]any); !nested {
			return [][]string{strs(all)}
		}
	}
	out := make([][]string, len(all))
	for i, e := range all {
		out[i] = strs(e)
	}
	return out
}
