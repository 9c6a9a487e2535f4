package template

import (
	"slices"

	"kubekey/pkg/expr"
)

// Files returns the files that the value looks up by literal names in every evaluation. Texts with tags ({% if %})
// are not searched.
func (d *Data) Files() []expr.FileRead {
	var out []expr.FileRead
	for _, e := range slices.Concat(d.list, d.vals) {
		out = append(out, e.Files()...)
	}
	if d.tmpl == nil {
		return out
	}
	if d.tmpl.pure != nil {
		return append(out, d.tmpl.pure.Files()...)
	}
	if d.tmpl.unit == nil {
		return out
	}
	for _, n := range d.tmpl.unit.flat {
		if n, ok := n.(*outputNode); ok {
			out = append(out, n.expr.Files()...)
		}
	}
	return out
}
