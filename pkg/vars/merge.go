package vars

import (
	"fmt"

	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// merge is the variant of Lookup that merges dictionaries: those of all levels, down to the first value that is not a
// dictionary. Only values that are written as mappings are merged. The text "{{ other }}" replaces the lower levels,
// whatever its value.
func (v *View) merge(name string) (any, bool, error) {
	parts, ok, err := v.parts(name)
	if err != nil || !ok {
		return nil, ok, err
	}
	if len(parts) == 1 {
		if c, ok := parts[0].(*container); ok {
			c.name = name
		}
		return parts[0], true, nil
	}
	return &merged{parts: parts}, true, nil
}

// parts returns the values that make up a name, highest first: a single value that is not a dictionary, or
// dictionaries.
func (v *View) parts(name string) (parts []any, found bool, err error) {
	take := func(val any, d *template.Data) (goOn bool) {
		found = true
		if !isMapping(val, d) {
			if len(parts) == 0 {
				if d != nil {
					val, _, err = v.expand(name, d)
				}
				parts = append(parts, val)
			}
			return false
		}
		if d != nil {
			// For the detection of cycles each part is a variable of its own.
			val = &container{v: v, d: d, name: partName(name, len(parts))}
		}
		parts = append(parts, val)
		return true
	}
	for level := range levelCount {
		if val, ok := v.learned.get(level, name); ok {
			var d *template.Data
			if level == levelIncluded {
				if val, d, _, _, err = v.included(val); err != nil {
					return nil, true, err
				}
			}
			if !take(val, d) || err != nil {
				return parts, true, err
			}
		}
		layers := v.layers(level)
		for i := len(layers) - 1; i >= 0; i-- {
			val, d, ok, bad := layers[i].get(name)
			if bad != nil {
				return nil, true, bad
			}
			if ok && (!take(val, d) || err != nil) {
				return parts, true, err
			}
		}
	}
	return parts, found, nil
}

func isMapping(val any, d *template.Data) bool {
	if d != nil {
		return d.IsMapping()
	}
	_, ok := val.(*value.Dict)
	return ok
}

// partName returns a name that differs for each dictionary of a variable.
func partName(name string, n int) string { return fmt.Sprintf("%s[%d]", name, n) }

// merged is a dictionary that consists of several parts, highest first. Its members are evaluated one at a time, as
// in a container, so that one can refer to another.
type merged struct{ parts []any }

// At implements value.Lazy.
func (m *merged) At(key any) (any, bool, error) {
	var found []any
	for _, p := range m.parts {
		val, ok, err := member(p, key)
		if err != nil {
			return nil, false, err
		}
		if !ok {
			continue
		}
		if !isDict(val) {
			if len(found) == 0 {
				return val, true, nil
			}
			break
		}
		found = append(found, val)
	}
	switch len(found) {
	case 0:
		return nil, false, nil
	case 1:
		return found[0], true, nil
	}
	return &merged{found}, true, nil
}

func member(of, key any) (any, bool, error) {
	switch c := of.(type) {
	case value.Lazy:
		return c.At(key)
	case *value.Dict:
		val, ok := c.Get(key)
		return val, ok, nil
	}
	return nil, false, nil
}

func isDict(v any) bool {
	switch v := v.(type) {
	case *value.Dict, *merged:
		return true
	case *container:
		return v.d.IsMapping()
	}
	return false
}

// Force implements value.Lazy.
func (m *merged) Force() (any, error) {
	out := value.NewDict()
	for i := len(m.parts) - 1; i >= 0; i-- {
		val, err := value.Force(m.parts[i])
		if err != nil {
			return nil, err
		}
		d, ok := val.(*value.Dict)
		if !ok { // undefined
			return val, nil
		}
		out = over(out, d)
	}
	return out, nil
}

// over merges high into low, recursively. high overrides low.
func over(low, high *value.Dict) *value.Dict {
	out := low.Copy()
	for k, v := range high.All() {
		old, _ := out.Get(k)
		a, both := old.(*value.Dict)
		if b, ok := v.(*value.Dict); ok && both {
			v = over(a, b)
		}
		out.Set(k, v)
	}
	return out
}
