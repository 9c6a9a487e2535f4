package expr

import (
	"context"
	"errors"
	"fmt"

	"kubekey/pkg/value"
)

// lookupFunctions are the functions that run lookups. Their names are part of the language.
func lookupFunctions() map[string]function {
	query := func(c *Call, a Args) (any, error) { return lookup(c, a, true) }
	return map[string]function{
		"lookup": func(c *Call, a Args) (any, error) { return lookup(c, a, false) },
		"query":  query,
		"q":      query,
	}
}

// RunLookup runs a lookup by its name, as with_NAME does, and returns its list.
func (e *Env) RunLookup(ctx context.Context, s Scope, name string, terms []any) ([]any, error) {
	f, err := e.lookup(name)
	if err != nil {
		return nil, err
	}
	v, err := f(&Call{Context: ctx, Env: e, Scope: s}, Args{Positional: terms})
	if err != nil {
		return nil, fmt.Errorf("with_%s: %w", name, err)
	}
	if list, ok := v.([]any); ok {
		return list, nil
	}
	return []any{value.Clone(v)}, nil
}

// lookup runs a lookup plugin. Texts in the result are joined with commas unless a list is requested. A single
// value that is not a text is returned as it is; an empty result is an empty list.
func lookup(c *Call, a Args, list bool) (any, error) {
	name, a, err := lookupName(a)
	if err != nil {
		return nil, err
	}
	fn, err := c.Env.lookup(name)
	if err != nil {
		return nil, err
	}
	onError := "strict"
	if a.Named.Len() > 0 {
		a.Named = a.Named.Copy()
		if v, ok := a.Named.Get("wantlist"); ok {
			list = value.Truth(v)
		}
		if s := a.Named.String("errors"); s != "" {
			onError = s
		}
		a.Named.Delete("wantlist")
		a.Named.Delete("errors")
	}
	found, err := fn(c, a)
	switch {
	case err == nil:
		return joinFound(found, list)
	case asUndefined(err) != nil:
		return nil, err // no option hides an undefined name
	case onError == "strict" || c.Context != nil && c.Context.Err() != nil:
		return nil, fmt.Errorf("lookup '%s': %w", name, err)
	case list:
		return []any{}, nil
	}
	return nil, nil
}

func lookupName(a Args) (string, Args, error) {
	if len(a.Positional) == 0 {
		return "", a, errors.New("a lookup needs the name of a plugin")
	}
	v, err := Defined(a.Positional[0])
	if err != nil {
		return "", a, err
	}
	name, ok := v.(string)
	if !ok {
		return "", a, fmt.Errorf("the name of a lookup must be a string, not '%s'", value.TypeName(v))
	}
	a.Positional = a.Positional[1:]
	return name, a, nil
}

func joinFound(found any, list bool) (any, error) {
	all, ok := found.([]any)
	if list || !ok {
		if !ok && list {
			return []any{found}, nil
		}
		return found, nil
	}
	if len(all) == 0 {
		return []any{}, nil
	}
	text := ""
	for i, v := range all {
		s, ok := v.(string)
		switch {
		case ok && i > 0:
			text += "," + s
		case ok:
			text = s
		case len(all) == 1:
			return v, nil
		default:
			return all, nil
		}
	}
	return text, nil
}
