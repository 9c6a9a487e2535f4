package argspec

import (
	"iter"
	"strings"

	"kubekey/pkg/value"
)

// each ranges over the options of a spec in their order.
func each(options *value.Dict) iter.Seq2[string, *value.Dict] {
	return func(yield func(string, *value.Dict) bool) {
		for k, v := range options.All() {
			o, _ := v.(*value.Dict)
			if o == nil {
				o = value.NewDict()
			}
			if !yield(value.Str(k), o) {
				return
			}
		}
	}
}

func names(options *value.Dict) []string {
	var out []string
	for name := range each(options) {
		out = append(out, name)
	}
	return out
}

func dict(d *value.Dict, key string) *value.Dict {
	v, _ := d.Get(key)
	out, _ := v.(*value.Dict)
	if out == nil {
		return value.NewDict()
	}
	return out
}

func text(d *value.Dict, key string) string {
	v, _ := d.Get(key)
	s, _ := v.(string)
	return s
}

func truth(d *value.Dict, key string) bool {
	v, _ := d.Get(key)
	return value.Truth(v)
}

func words(d *value.Dict, key string) []string {
	v, _ := d.Get(key)
	return strs(v)
}

func list(v any) []any {
	out, _ := v.([]any)
	return out
}

// strs returns the texts of a list. A text counts as a list of one element.
func strs(v any) []string {
	if s, ok := v.(string); ok {
		return []string{s}
	}
	var out []string
	for _, e := range list(v) {
		out = append(out, value.Str(e))
	}
	return out
}

func isTemplate(v any) bool {
	s, ok := v.(string)
	return ok && strings.Contains(s, "{{")
}
