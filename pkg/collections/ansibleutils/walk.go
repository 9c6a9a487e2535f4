package ansibleutils

import (
	"fmt"
	"regexp"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// filterGetPath evaluates a path such as a.b['c'][0] in a dictionary.
func filterGetPath(c *expr.Call, in any, p *expr.Bound) (any, error) {
	d, err := expr.AsDict(in)
	if err != nil {
		return nil, err
	}
	path, whole := p.Str("path", ""), p.Flag("wantlist", false)
	if p.Err != nil {
		return nil, p.Err
	}
	x, err := c.Env.Compile(path, source.Pos{}, expr.Escaped)
	if err != nil {
		return nil, fmt.Errorf("argument path: %w", err)
	}
	if !x.IsPath() { // the text may come from a host
		return nil, fmt.Errorf("argument path: %q is not a path, as a.b['c'][0]", path)
	}
	names := expr.Names{}
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

// plainKey matches keys that can follow a dot in a path.
var plainKey = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// filterToPaths flattens nested data into one dictionary with paths as keys.
func filterToPaths(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	prepend, whole := p.Str("prepend", ""), p.Flag("wantlist", false)
	if p.Err != nil {
		return nil, p.Err
	}
	out := value.NewDict()
	if err := addPaths(out, prepend, in, 0); err != nil || !whole {
		return out, err
	}
	return []any{out}, nil
}

func addPaths(out *value.Dict, path string, v any, depth int) error {
	if depth > expr.MaxDepth {
		return value.ErrTooDeep
	}
	v, err := expr.Defined(v)
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
	if out.Len() > expr.MaxItems {
		return expr.ErrListTooBig
	}
	return nil
}
