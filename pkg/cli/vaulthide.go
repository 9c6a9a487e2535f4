package cli

import (
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// hideVault registers decrypted vault content as secret: its lines, and the values of the variables in it.
func (a *app) hideVault(plain []byte) {
	a.secret.Add(string(plain))
	docs, ds := source.ParseYAML(source.NewFile("", plain))
	if ds.Err() != nil {
		return
	}
	for _, doc := range docs {
		if len(doc.Content) == 1 && doc.Content[0].Kind == yaml.MappingNode {
			if v, err := value.FromYAML(doc); err == nil {
				a.hideValues(v)
			}
		}
	}
}

// hideValues registers every value of a mapping of variables as secret. Of a template it also registers the texts
// between its braces.
func (a *app) hideValues(v any) {
	switch v := v.(type) {
	case *value.Dict:
		for _, e := range v.All() {
			a.hideValues(e)
		}
	case []any:
		for _, e := range v {
			a.hideValues(e)
		}
	case string:
		for _, piece := range strings.FieldsFunc(v, func(r rune) bool { return r == '{' || r == '}' }) {
			a.secret.Add(piece)
		}
		a.secret.Add(v)
	case int, float64:
		a.secret.Add(value.Str(v))
	}
}
