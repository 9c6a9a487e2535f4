package expr

import (
	"fmt"

	"kubekey/pkg/value"
)

func filterDefault(_ *Call, in any, a Args) (any, error) {
	if len(a.Positional) > 2 {
		return nil, fmt.Errorf("default takes at most 2 arguments, not %d", len(a.Positional))
	}
	fallback, empty := any(""), any(false)
	if len(a.Positional) > 0 {
		fallback = a.Positional[0]
	}
	if len(a.Positional) > 1 {
		empty = a.Positional[1]
	}
	for k, v := range a.Named.All() {
		switch k {
		case "default_value":
			fallback = v
		case "boolean":
			empty = v
		default:
			return nil, fmt.Errorf("default has no argument %q (it takes default_value, boolean)", value.Str(k))
		}
	}
	if value.IsUndefined(in) || value.Truth(empty) && !value.Truth(in) {
		return fallback, nil
	}
	return in, nil
}
