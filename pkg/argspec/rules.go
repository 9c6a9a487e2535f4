package argspec

import (
	"strings"

	"kubekey/pkg/value"
)

// exclusive checks mutually_exclusive.
func (c *check) exclusive(entry, args *value.Dict, path []string) {
	var bad []string
	for _, group := range groups(entry, "mutually_exclusive") {
		if count(group, args) > 1 {
			bad = append(bad, strings.Join(group, "|"))
		}
	}
	if len(bad) > 0 {
		c.rule(path, "parameters are mutually exclusive: %s", strings.Join(bad, ", "))
	}
}

// rules checks what one argument asks of others. Of each kind the first
// breach is told.
func (c *check) rules(entry, args *value.Dict, path []string) {
	for _, group := range groups(entry, "required_together") {
		if n := count(group, args); n > 0 && n < len(group) {
			c.rule(path, "parameters are required together: %s", strings.Join(group, ", "))
			break
		}
	}
	for _, group := range groups(entry, "required_one_of") {
		if count(group, args) == 0 {
			c.rule(path, "one of the following is required: %s", strings.Join(group, ", "))
			break
		}
	}
	c.requiredIf(entry, args, path)
	c.requiredBy(entry, args, path)
}

// requiredIf checks [argument, value, [arguments], any]: when the argument has
// the value, all of the others are required, or any of them.
func (c *check) requiredIf(entry, args *value.Dict, path []string) {
	all, _ := entry.Get("required_if")
	for _, e := range list(all) {
		r := list(e)
		if len(r) < 3 {
			continue
		}
		name := value.Str(r[0])
		v, ok := args.Get(name)
		if !ok || !value.Equal(v, r[1]) {
			continue
		}
		var missing []string
		wanted := strs(r[2])
		for _, w := range wanted {
			if !args.Has(w) {
				missing = append(missing, w)
			}
		}
		how, most := "all", 0
		if len(r) > 3 && value.Truth(r[3]) {
			how, most = "any", len(wanted)
		}
		if len(missing) > 0 && len(missing) >= most {
			c.rule(path, "%s is %s but %s of the following are missing: %s", name, value.Str(r[1]), how, strings.Join(missing, ", "))
			return
		}
	}
}

// requiredBy checks {argument: [arguments]}.
func (c *check) requiredBy(entry, args *value.Dict, path []string) {
	for k, needs := range dict(entry, "required_by").All() {
		name := value.Str(k)
		if v, _ := args.Get(name); v == nil {
			continue
		}
		var missing []string
		for _, w := range strs(needs) {
			if v, _ := args.Get(w); v == nil {
				missing = append(missing, w)
			}
		}
		if len(missing) > 0 {
			c.rule(path, "missing parameter(s) required by '%s': %s", name, strings.Join(missing, ", "))
			return
		}
	}
}

func count(group []string, args *value.Dict) int {
	n := 0
	for _, name := range group {
		if args.Has(name) {
			n++
		}
	}
	return n
}

// groups are the lists of names of a rule; a single list of names is one.
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
