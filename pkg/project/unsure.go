package project

import (
	"strings"

	"kubekey/pkg/template"
)

// dynamic stands for an argument whose value a template yields.
type dynamic struct{ mayBeEmpty bool }

func isDynamic(v any) bool {
	_, ok := v.(dynamic)
	return ok
}

func isOmittable(v any) bool {
	d, _ := v.(dynamic)
	return d.mayBeEmpty
}

// mayBeEmpty reports whether a template shows that it may leave the argument
// out: it has the word omit, none or an empty text in it, or a block.
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
