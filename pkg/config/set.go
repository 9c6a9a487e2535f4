package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// setParts returns the --set arguments for keys of the config. An index changes an element of the list that the
// parts before it result in.
func (s *Schema) setParts(sets []string, parts []Part) (out []Part, ds source.Diagnostics) {
	for _, text := range sets {
		if !s.Has(firstKey(text)) {
			if near := source.DidYouMean(firstKey(text), s.Keys()); near != "" {
				ds.Add(badSet(text, errors.New("unknown config key")).WithHelp("%s", near))
			}
			continue
		}
		values, err := setValues(s.Merge(append(slices.Clone(parts), out...)...), text)
		if err != nil {
			continue // Layers already reports this error
		}
		out = append(out, Part{Name: commandLine, Values: values})
	}
	return out, ds
}

// setValues returns the mapping that a --set merges over the config.
func setValues(under *Config, text string) (*value.Dict, error) {
	path, raw, err := cutSet(text)
	if err != nil {
		return nil, err
	}
	v := setValue(raw)
	keys := slices.IndexFunc(path, func(k any) bool { _, isIndex := k.(int); return isIndex })
	if keys < 0 {
		keys = len(path)
	}
	if keys < len(path) {
		var names []string
		for _, k := range path[:keys] {
			names = append(names, k.(string))
		}
		list, _ := under.Get(names...)
		if v, err = setIn(value.Clone(list), path[keys:], v); err != nil {
			return nil, err
		}
	}
	d := value.NewDict()
	_, err = setIn(d, path[:keys], v)
	return d, err
}

// likePath matches the characters of a --set path. Anything else may be a value.
var likePath = regexp.MustCompile(`^[\w.\[\]-]+$`)

// badSet returns the error of a --set. The value is not shown because it may be a secret.
func badSet(text string, err error) *source.Diagnostic {
	path, _, _ := strings.Cut(text, "=")
	if !likePath.MatchString(path) {
		return source.Errorf(source.Pos{}, "--set: write it as path=value, with a path such as a.b[0].c")
	}
	return source.Errorf(source.Pos{}, "--set %s: %s", path, err)
}

// firstKey returns the variable that a --set changes.
func firstKey(text string) string {
	path, _, _ := strings.Cut(text, "=")
	name, _, _ := strings.Cut(path, ".")
	name, _, _ = strings.Cut(name, "[")
	return name
}

var pathPart = regexp.MustCompile(`^([\w-]+)((?:\[\d+\])*)$`)

// set sets a.b[0].c=v. Existing config below the first name of the path is kept.
func set(extra, config *value.Dict, text string) error {
	keys, raw, err := cutSet(text)
	if err != nil {
		return err
	}
	first := keys[0].(string)
	if !extra.Has(first) {
		if base, ok := config.Get(first); ok {
			extra.Set(first, value.Clone(base))
		}
	}
	_, err = setIn(extra, keys, setValue(raw))
	return err
}

// setPart returns a --set as a part of its own. Empty elements precede an element of a list.
func setPart(text string) Part {
	p := Part{Name: commandLine, Values: value.NewDict()}
	if keys, raw, err := cutSet(text); err == nil {
		_, _ = setIn(p.Values, keys, setValue(raw)) // an empty mapping accepts any path
	}
	return p
}

// CutSet returns the path and the value of a --set. The path consists of names and indexes; the value is parsed as
// YAML.
func CutSet(text string) (path []any, v any, err error) {
	path, raw, err := cutSet(text)
	if err != nil {
		return nil, nil, err
	}
	return path, setValue(raw), nil
}

// cutSet splits path=value.
func cutSet(text string) (keys []any, raw string, err error) {
	path, raw, ok := strings.Cut(text, "=")
	if !ok {
		return nil, "", errors.New("write it as path=value")
	}
	if keys, err = splitPath(path); err != nil {
		return nil, "", err
	}
	if first := keys[0].(string); !playbook.IsIdentifier(first) {
		return nil, "", fmt.Errorf("%q cannot be the name of a variable", first)
	}
	return keys, raw, nil
}

func splitPath(path string) ([]any, error) {
	var keys []any
	for _, part := range strings.Split(path, ".") {
		m := pathPart.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("%q is no path: write a.b[0].c", path)
		}
		keys = append(keys, m[1])
		for _, i := range strings.FieldsFunc(m[2], func(r rune) bool { return r == '[' || r == ']' }) {
			n, err := strconv.Atoi(i)
			if err != nil || n > 10000 {
				return nil, fmt.Errorf("index %s is too large", i)
			}
			keys = append(keys, n)
		}
	}
	return keys, nil
}

// setIn returns the container with the value set at the path.
func setIn(in any, keys []any, v any) (any, error) {
	if len(keys) == 0 {
		return v, nil
	}
	switch key := keys[0].(type) {
	case string:
		d, ok := in.(*value.Dict)
		if in != nil && !ok {
			return nil, fmt.Errorf("%q is in a value of type %s, which has no keys", key, value.TypeName(in))
		}
		if d == nil {
			d = value.NewDict()
		}
		old, _ := d.Get(key)
		inner, err := setIn(old, keys[1:], v)
		d.Set(key, inner)
		return d, err
	case int:
		list, ok := in.([]any)
		if in != nil && !ok {
			return nil, fmt.Errorf("[%d] is of a value of type %s, which is no list", key, value.TypeName(in))
		}
		for len(list) <= key {
			list = append(list, nil)
		}
		inner, err := setIn(list[key], keys[1:], v)
		list[key] = inner
		return list, err
	}
	return nil, errors.New("no path")
}

// setValue parses a value as YAML. Values that YAML would print differently are kept as text: 1.30, 0755, 1e3.
func setValue(raw string) any {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(raw), &n); err != nil || len(n.Content) == 0 {
		return raw
	}
	v, err := value.FromYAML(&n)
	if err != nil {
		return raw
	}
	switch v := v.(type) {
	case int, float64:
		if value.Str(v) != raw {
			return raw
		}
	case string:
		return raw
	}
	return v
}
