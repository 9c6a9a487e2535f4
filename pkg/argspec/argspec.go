// Package argspec checks arguments against the argument_specs in a role's meta/argument_specs.yml, with the rules
// and the messages of Ansible's validate_argument_spec.
package argspec

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"kubekey/pkg/value"
)

// Validate returns all problems of arguments. The entry is the spec of a role's entry point: options, and the rules
// between them (mutually_exclusive, required_together, required_one_of, required_if, required_by). Aliases are
// resolved, and defaults are checked like given values.
func Validate(entry, args *value.Dict) []string {
	c := &check{}
	c.level(entry, args.Copy(), nil)
	if len(c.unknown) > 0 {
		sort.Strings(c.unknown)
		c.fail("%s. Supported parameters include: %s.", strings.Join(c.unknown, ", "), c.supported)
	}
	return c.problems
}

// check is one validation.
type check struct {
	problems  []string
	unknown   []string
	supported string // set by the last level with an unknown argument
}

func (c *check) fail(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// rule adds a problem that concerns several arguments, and the path where they were found.
func (c *check) rule(path []string, format string, args ...any) {
	if len(path) > 0 {
		format += " found in " + strings.ReplaceAll(strings.Join(path, " -> "), "%", "%%")
	}
	c.fail(format, args...)
}

// level checks the options of one dict. Converted values are written to args.
func (c *check) level(entry, args *value.Dict, path []string) {
	options := dict(entry, "options")
	aliases := c.aliases(options, args)
	c.known(options, aliases, args, path)
	c.exclusive(entry, args, path)
	for name, o := range each(options) {
		if def, ok := o.Get("default"); ok && def != nil && !args.Has(name) && !isTemplate(def) {
			args.Set(name, def)
		}
	}
	c.required(options, args, path)
	for name, o := range each(options) {
		if v, ok := args.Get(name); ok && v != nil {
			c.convert(name, o, v, args, path)
		}
	}
	for name, o := range each(options) {
		if v, ok := args.Get(name); ok {
			c.choices(name, o, v, path)
		}
	}
	c.rules(entry, args, path)
	for name, o := range each(options) {
		c.nested(name, o, args, path)
	}
}

// nested checks the suboptions of a dict, or of each dict in a list.
func (c *check) nested(name string, o, args *value.Dict, path []string) {
	kind := text(o, "type")
	if !o.Has("options") || kind != "dict" && (kind != "list" || text(o, "elements") != "dict") {
		return
	}
	v, _ := args.Get(name)
	if v == nil && truth(o, "apply_defaults") {
		v = value.NewDict()
	}
	if v == nil {
		return
	}
	elements, ok := v.([]any)
	if !ok {
		elements = []any{v}
	}
	for _, e := range elements {
		d, ok := e.(*value.Dict)
		if !ok {
			c.fail("value of '%s' must be of type dict or list of dicts", name)
			continue
		}
		c.level(o, d.Copy(), append(path[:len(path):len(path)], name))
	}
}

// aliases renames arguments to their real names, and returns all aliases.
func (c *check) aliases(options, args *value.Dict) []string {
	var all []string
	for name, o := range each(options) {
		if def, _ := o.Get("default"); def != nil && truth(o, "required") {
			c.fail("internal error: required and default are mutually exclusive for %s", name)
		}
		for _, alias := range words(o, "aliases") {
			all = append(all, alias)
			if v, ok := args.Get(alias); ok {
				args.Set(name, v)
			}
		}
	}
	return all
}

func (c *check) known(options *value.Dict, aliases []string, args *value.Dict, path []string) {
	for k := range args.All() {
		name := value.Str(k)
		if options.Has(name) || slices.Contains(aliases, name) {
			continue
		}
		c.unknown = append(c.unknown, strings.Join(append(path[:len(path):len(path)], name), "."))
		c.supported = strings.Join(slices.Sorted(slices.Values(names(options))), ", ")
		if len(aliases) > 0 {
			c.supported += " (" + strings.Join(slices.Sorted(slices.Values(aliases)), ", ") + ")"
		}
	}
}

func (c *check) required(options, args *value.Dict, path []string) {
	var missing []string
	for name, o := range each(options) {
		if truth(o, "required") && !args.Has(name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		sort.Strings(missing)
		c.rule(path, "missing required arguments: %s", strings.Join(missing, ", "))
	}
}

// choices checks that a value, or each element of a list, is one of the option's choices.
func (c *check) choices(name string, o *value.Dict, v any, path []string) {
	given, ok := o.Get("choices")
	if !ok || given == nil {
		return
	}
	list, ok := given.([]any)
	if !ok {
		c.rule(path, "internal error: choices for argument %s are not iterable: %s", name, value.Str(given))
		return
	}
	shown := make([]string, len(list))
	for i, e := range list {
		shown[i] = value.Str(e)
	}
	want := strings.Join(shown, ", ")
	if many, ok := v.([]any); ok {
		var none []string
		for _, e := range many {
			if !chosen(list, e) {
				none = append(none, c.shown(o, e))
			}
		}
		if len(none) > 0 {
			c.rule(path, "value of %s must be one or more of: %s. Got no match for: %s", name, want, strings.Join(none, ", "))
		}
		return
	}
	if !chosen(list, v) {
		c.rule(path, "value of %s must be one of: %s, got: %s", name, want, c.shown(o, v))
	}
}

// shown formats a value for a message. The value of a no_log option is hidden.
func (c *check) shown(o *value.Dict, v any) string {
	if truth(o, "no_log") {
		return "********"
	}
	return value.Str(v)
}

// chosen reports whether v is among the choices. YAML reads yes as a bool, which is True as a string. It matches if
// exactly one choice has this meaning.
func chosen(choices []any, v any) bool {
	same := func(e any) bool { return value.Equal(e, v) }
	if slices.ContainsFunc(choices, same) {
		return true
	}
	if v != "True" && v != "False" {
		return false
	}
	n := 0
	for _, e := range choices {
		if b, err := toBool(e); err == nil && b == (v == "True") {
			n++
		}
	}
	return n == 1
}
