package filters

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func tomlFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "to_toml", Do: filterToTOML},
		{Names: "from_toml", Do: filterFromTOML},
	}
}

// filterToTOML writes a mapping as TOML with sorted keys.
func filterToTOML(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	text, err := value.JSON(in, value.JSONOptions{})
	if err != nil {
		return nil, err
	}
	var tree any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, ok := tree.(map[string]any); !ok {
		return nil, fmt.Errorf("needs a mapping, not %s", expr.DescribeType(in))
	}
	if tree, err = tomlValue(tree); err != nil {
		return nil, err
	}
	out, err := toml.Marshal(tree)
	return string(out), err
}

// tomlValue converts numbers to the types that TOML distinguishes.
func tomlValue(v any) (_ any, err error) {
	switch v := v.(type) {
	case nil:
		return nil, errors.New("TOML has no null")
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case []any:
		for i := range v {
			if v[i], err = tomlValue(v[i]); err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
		}
	case map[string]any:
		for k := range v {
			if v[k], err = tomlValue(v[k]); err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return v, nil
}

// filterFromTOML parses TOML. Times become texts.
func filterFromTOML(c *expr.Call, in any, p *expr.Bound) (any, error) {
	text, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("needs a text, not %s", expr.DescribeType(in))
	}
	var tree map[string]any
	if err := toml.Unmarshal([]byte(text), &tree); err != nil {
		return nil, err
	}
	data, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	return filterFromJSON(c, string(data), p)
}
