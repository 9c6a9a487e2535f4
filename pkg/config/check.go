package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Check validates the config against the schema and reports every error with its position. Templates are accepted
// because their results are not known yet.
func (c *Config) Check() source.Diagnostics {
	var ve *jsonschema.ValidationError
	if !errors.As(c.schema.compiled.Validate(plain(c.Values)), &ve) {
		return nil
	}
	found := leaves(ve)
	slices.SortStableFunc(found, func(a, b *jsonschema.ValidationError) int {
		return cmp.Or(slices.Compare(a.InstanceLocation, b.InstanceLocation), cmp.Compare(a.SchemaURL, b.SchemaURL))
	})
	var ds source.Diagnostics
	for _, leaf := range found {
		if v, _ := c.Get(leaf.InstanceLocation...); !IsTemplate(v) || c.Unsafe(leaf.InstanceLocation) {
			ds.Add(c.diagnose(leaf)...)
		}
	}
	return ds.Sort()
}

// IsTemplate reports whether a value is text that must still be evaluated or decrypted.
func IsTemplate(v any) bool {
	if _, isSealed := v.(value.Sealed); isSealed {
		return true
	}
	s, ok := v.(string)
	return ok && (strings.Contains(s, "{{") || strings.Contains(s, "{%"))
}

// leaves returns the errors that are meaningful by themselves. If all alternatives failed, that is the error of the
// keyword that lists them.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		return []*jsonschema.ValidationError{e}
	}
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}

func (c *Config) diagnose(e *jsonschema.ValidationError) source.Diagnostics {
	path := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var ds source.Diagnostics
		for _, key := range sorted(k.Properties) {
			ds.Add(c.unknown(path, key))
		}
		return ds
	case *kind.Enum:
		v, _ := c.Get(path...)
		choices := texts(k.Want)
		return source.Diagnostics{c.Problem(path, fmt.Sprintf("%s is not one of %s", shown(v), strings.Join(choices, ", ")),
			source.DidYouMean(value.Str(v), choices))}
	case *kind.Type:
		v, _ := c.Get(path...)
		return source.Diagnostics{c.Problem(path,
			fmt.Sprintf("%s is %s, expected %s", shown(v), typeName(k.Got), typeNames(k.Want)), typeHelp(v, k.Want))}
	}
	return source.Diagnostics{c.Problem(path, reason(e), "")}
}

// unknown reports a key that the schema does not define at a path.
func (c *Config) unknown(path []string, key string) *source.Diagnostic {
	full := append(slices.Clone(path), key)
	s, from := c.locate(full)
	in := "the config"
	if len(path) > 0 {
		in = dotted(path)
	}
	known := c.schema.keysAt(path)
	d := source.Errorf(s.key, "%s has no key %q%s", in, key, from)
	d.Width = s.width
	if near := source.DidYouMean(key, known); near != "" {
		return d.WithHelp("%s", near)
	}
	if where := c.schema.elsewhere(key); where != "" {
		return d.WithHelp("it belongs under %s", where)
	}
	if len(known) > 0 && len(known) <= 12 {
		return d.WithHelp("it has %s", strings.Join(known, ", "))
	}
	return d
}

// keysAt returns the keys that the schema describes at a path.
func (s *Schema) keysAt(path []string) []string {
	n := s.root
	for _, step := range path {
		next, ok := n.property(step)
		if !ok {
			next = node{s, n.keyword("items")}
			if _, err := strconv.Atoi(step); err != nil {
				next.yaml = n.keyword("additionalProperties")
			}
		}
		n = next
	}
	var out []string
	for name := range n.properties() {
		out = append(out, name)
	}
	return out
}

// elsewhere returns the section that has a key of this name, or "" if none has.
func (s *Schema) elsewhere(key string) string {
	for top, sub := range s.root.properties() {
		if _, ok := sub.property(key); ok {
			return top
		}
	}
	return ""
}

// reason returns the message of the schema library when there is no better one.
func reason(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Format:
		return fmt.Sprintf("%s %s", shown(k.Got), k.Err)
	case *kind.Pattern:
		return fmt.Sprintf("%s does not match %s", shown(k.Got), k.Want)
	case *kind.Required:
		return "needs " + strings.Join(k.Missing, ", ")
	case *kind.OneOf, *kind.AnyOf:
		var ways []string
		for _, cause := range e.Causes {
			for _, leaf := range leaves(cause) {
				ways = append(ways, reason(leaf))
			}
		}
		slices.Sort(ways)
		return strings.Join(slices.Compact(ways), "; or ")
	case *kind.MinLength:
		if k.Want == 1 {
			return "must not be empty"
		}
	case *kind.MinItems:
		if k.Want == 1 {
			return "must not be empty"
		}
	case *kind.MinProperties:
		if k.Want == 1 {
			return "must not be empty"
		}
	case *kind.Minimum:
		return fmt.Sprintf("%s is less than %s", k.Got.RatString(), k.Want.RatString())
	case *kind.Maximum:
		return fmt.Sprintf("%s is more than %s", k.Got.RatString(), k.Want.RatString())
	case *kind.UniqueItems:
		return fmt.Sprintf("elements %d and %d are the same", k.Duplicates[0]+1, k.Duplicates[1]+1)
	}
	return e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}

func typeName(json string) string {
	switch json {
	case "string":
		return "text"
	case "integer":
		return "a whole number"
	case "number":
		return "a number"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	case "null":
		return "nothing"
	}
	return json
}

func typeNames(json []string) string {
	var out []string
	for _, j := range json {
		out = append(out, typeName(j))
	}
	return strings.Join(out, " or ")
}

// typeHelp returns a hint for values that look correct but have the wrong type.
func typeHelp(v any, want []string) string {
	text, isText := v.(string)
	switch {
	case slices.Contains(want, "string") && !isText:
		if _, isDict := v.(*value.Dict); !isDict && v != nil {
			return "put it into quotes"
		}
	case isText && slices.Contains(want, "boolean") &&
		slices.Contains([]string{"true", "false", "yes", "no", "on", "off"}, strings.ToLower(text)):
		return "write it without quotes"
	case isText && (slices.Contains(want, "integer") || slices.Contains(want, "number")):
		if _, err := strconv.ParseFloat(text, 64); err == nil {
			return "write it without quotes"
		}
	}
	return ""
}

// shown formats a value for a message. The content of containers is not shown because it can be long.
func shown(v any) string {
	switch v := v.(type) {
	case *value.Dict:
		return "the mapping"
	case []any:
		return "the list"
	case nil:
		return "an empty value"
	case string:
		return strconv.Quote(v)
	case map[string]any:
		return "the mapping"
	}
	return value.Str(v)
}

func texts(vs []any) []string {
	out := make([]string, len(vs))
	for i, v := range vs {
		if out[i] = value.Str(v); out[i] == "" {
			out[i] = `""`
		}
	}
	return out
}

func sorted(in []string) []string {
	out := slices.Clone(in)
	slices.Sort(out)
	return out
}

// dotted formats a path as users write it: a.b[0].c.
func dotted(path []string) string {
	var b strings.Builder
	for i, step := range path {
		switch _, err := strconv.Atoi(step); {
		case err == nil:
			b.WriteString("[" + step + "]")
			continue
		case i > 0:
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}
