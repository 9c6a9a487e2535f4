package expr

import (
	"fmt"
	"regexp"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// walkFilters go through what is nested: those of ansible.utils.
func walkFilters() []filterSpec {
	return []filterSpec{
		{names: "get_path", of: "ansible.utils", params: "path! wantlist", do: filterGetPath},
		{names: "to_paths", of: "ansible.utils", params: "prepend wantlist", do: filterToPaths},
	}
}

// filterGetPath evaluates a path, as a.b['c'][0], within a dictionary.
func filterGetPath(c *Call, in any, p *bound) (any, error) {
	d, err := asDict(in)
	if err != nil {
		return nil, err
	}
	path, whole := p.str("path", ""), p.flag("wantlist", false)
	if p.err != nil {
		return nil, p.err
	}
	x, err := c.Env.Compile(path, source.Pos{}, Escaped)
	if err != nil {
		return nil, fmt.Errorf("argument path: %w", err)
	}
	if !isPath(x.root) { // the text may come from a host
		return nil, fmt.Errorf("argument path: %q is not a path, as a.b['c'][0]", path)
	}
	names := Names{}
	for k, v := range d.All() {
		if name, ok := k.(string); ok {
			names[name] = v
		}
	}
	v, err := x.Eval(c.Context, names)
	if err != nil || !whole {
		return v, err
	}
	return []any{v}, nil
}

// plainKey is a key that stands behind a dot in a path.
var plainKey = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// filterToPaths makes one dictionary of what is nested, with paths as its keys.
func filterToPaths(_ *Call, in any, p *bound) (any, error) {
	prepend, whole := p.str("prepend", ""), p.flag("wantlist", false)
	if p.err != nil {
		return nil, p.err
	}
	out := value.NewDict()
	if err := addPaths(out, prepend, in, 0); err != nil || !whole {
		return out, err
	}
	return []any{out}, nil
}

func addPaths(out *value.Dict, path string, v any, depth int) error {
	if depth > maxFlatten {
		return value.ErrTooDeep
	}
	v, err := defined(v)
	if err != nil {
		return err
	}
	switch v := v.(type) {
	case *value.Dict:
		for k, inner := range v.All() {
			name := value.Str(k)
			switch {
			case path == "":
			case plainKey.MatchString(name):
				name = path + "." + name
			default:
				name = path + "['" + name + "']"
			}
			if err := addPaths(out, name, inner, depth+1); err != nil {
				return err
			}
		}
		if v.Len() == 0 && path != "" {
			out.Set(path, v)
		}
	case []any:
		for i, inner := range v {
			if err := addPaths(out, fmt.Sprintf("%s[%d]", path, i), inner, depth+1); err != nil {
				return err
			}
		}
		if len(v) == 0 && path != "" {
			out.Set(path, v)
		}
	default:
		out.Set(path, v)
	}
	if out.Len() > maxItems {
		return errListTooBig
	}
	return nil
}
