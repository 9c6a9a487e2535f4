package ansibleutils

import (
	"strings"

	"kubekey/pkg/difflib"
	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// filterFactDiff returns a unified diff of two values. Texts and lists are compared by line, other values as JSON.
func filterFactDiff(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	var sides [2]string
	for i, v := range []any{in, p.Value("after", nil)} {
		v, err := expr.Defined(v)
		if err != nil {
			return nil, err
		}
		if sides[i], err = factLines(v); err != nil {
			return nil, err
		}
	}
	if sides[0] == sides[1] {
		return "", nil
	}
	return strings.Join(difflib.Unified(difflib.Lines(sides[0]), difflib.Lines(sides[1]), "before", "after"), "") + "\n",
		nil
}

func factLines(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case []any:
		var b strings.Builder
		for _, e := range v {
			b.WriteString(value.Str(e) + "\n")
		}
		return b.String(), nil
	}
	text, err := value.JSON(v, value.JSONOptions{Indent: 4, SortKeys: true})
	return text + "\n", err
}
