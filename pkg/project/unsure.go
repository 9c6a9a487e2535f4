package project

import (
	"strings"

	"kubekey/pkg/template"
)

// dynamic represents an argument whose value comes from a template.
type dynamic struct{ mayBeEmpty bool }

func isDynamic(v any) bool {
	_, ok := v.(dynamic)
	return ok
}

func isOmittable(v any) bool {
	d, _ := v.(dynamic)
	return d.mayBeEmpty
}

// mayBeEmpty reports whether a template can omit the argument: it contains the word omit, none, an empty text, or a
// block.
func mayBeEmpty(d *template.Data) bool {
	text, ok := d.Raw().(string)
	if !ok {
		return false
	}
	for _, sign := range []string{"omit", "none", "None", "''", `""`, "{%"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}
