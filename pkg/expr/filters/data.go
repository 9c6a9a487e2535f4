package filters

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/jmespath/go-jmespath"
	"gopkg.in/yaml.v3"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func dataFilters() []expr.Filter {
	const jsonParams = "indent sort_keys ensure_ascii separators vault_to_text preprocess_unsafe"
	const yamlParams = "indent width sort_keys default_flow_style default_style allow_unicode explicit_start explicit_end"
	return []expr.Filter{
		{Names: "to_json", Params: jsonParams, Do: toJSON(0, false)},
		{Names: "to_nice_json", Params: jsonParams, Do: toJSON(4, true)},
		{Names: "from_json", Do: filterFromJSON},
		{Names: "to_yaml", Params: yamlParams, Do: toYAML(2, nil)},
		{Names: "to_nice_yaml", Params: yamlParams, Do: toYAML(4, false)},
		{Names: "from_yaml", Do: filterFromYAML},
		{Names: "from_yaml_all", Do: filterFromYAMLAll},
		{Names: "json_query", Of: "community.general", Params: "expr!", Do: filterJSONQuery},
	}
}

// maxIndent limits the blanks per level of JSON and YAML.
const maxIndent = 64

func indentWidth(p *expr.Bound, def int) (int, error) {
	n := p.Int("indent", def)
	if n < 0 || n > maxIndent {
		return 0, fmt.Errorf("argument indent must be from 0 to %d, not %d", maxIndent, n)
	}
	return n, p.Err
}

func toJSON(indent int, sorted bool) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(_ *expr.Call, in any, p *expr.Bound) (any, error) {
		n, err := indentWidth(p, indent)
		if err != nil {
			return nil, err
		}
		o := value.JSONOptions{Indent: n, SortKeys: p.Flag("sort_keys", sorted), ASCII: p.Flag("ensure_ascii", true)}
		if sep := p.Value("separators", nil); sep != nil {
			if o.Compact, err = compactSeparators(sep); err != nil {
				return nil, err
			}
		}
		return value.JSON(in, o)
	}
}

func compactSeparators(v any) (bool, error) {
	switch {
	case value.Equal(v, []any{",", ":"}):
		return true, nil
	case value.Equal(v, []any{", ", ": "}), value.Equal(v, []any{",", ": "}):
		return false, nil
	}
	return false, fmt.Errorf("argument separators must be [',', ':'] or [', ', ': '], not %s", value.Repr(v))
}

func filterFromJSON(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("needs a text, not %s", expr.DescribeType(in))
	}
	v, err := value.FromJSON([]byte(s))
	if err != nil {
		return nil, fmt.Errorf("%q is not JSON: %w", expr.Shorten(s), err)
	}
	return v, nil
}

// filterFromYAML returns values that are not text unchanged, as Ansible does.
func filterFromYAML(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, ok := in.(string)
	if !ok {
		return in, nil
	}
	docs, err := yamlDocuments(s)
	switch {
	case err != nil:
		return nil, err
	case len(docs) > 1:
		return nil, fmt.Errorf("the text has %d YAML documents (use from_yaml_all)", len(docs))
	case len(docs) == 0:
		return nil, nil
	}
	return docs[0], nil
}

func filterFromYAMLAll(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, ok := in.(string)
	if !ok {
		return in, nil
	}
	return yamlDocuments(s)
}

func yamlDocuments(s string) ([]any, error) {
	docs := []any{}
	for dec := yaml.NewDecoder(bytes.NewReader([]byte(s))); ; {
		v, err := value.DecodeYAML(dec)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("not YAML: %w", err)
		}
		docs = append(docs, v)
	}
}

func filterJSONQuery(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	src := p.Str("expr", "")
	if p.Err != nil {
		return nil, p.Err
	}
	query, err := jmespath.Compile(src)
	if err != nil {
		return nil, fmt.Errorf("bad query %q: %w", expr.Shorten(src), err)
	}
	plain := jmesData{dicts: map[uintptr]*value.Dict{}}
	data, err := plain.from(in, 0)
	if err != nil {
		return nil, err
	}
	out, err := query.Search(data)
	if err != nil {
		return nil, fmt.Errorf("query %q: %w", expr.Shorten(src), err)
	}
	return plain.to(out), nil
}

// jmesData converts values to the types of the query engine, and back. Dicts that a query returns unchanged are
// restored with their order.
type jmesData struct {
	dicts map[uintptr]*value.Dict
}

func (j jmesData) from(v any, depth int) (any, error) {
	if depth > expr.MaxDepth {
		return nil, value.ErrTooDeep
	}
	v, err := value.Force(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil, bool, string, float64:
		return v, nil
	case int:
		return float64(v), nil
	case *value.Undefined:
		return nil, v
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], err = j.from(e, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *value.Dict:
		return j.fromDict(v, depth)
	}
	return value.Str(v), nil
}

func (j jmesData) fromDict(d *value.Dict, depth int) (any, error) {
	out := make(map[string]any, d.Len())
	j.dicts[reflect.ValueOf(out).Pointer()] = d
	for k, v := range d.All() {
		var err error
		if out[value.Str(k)], err = j.from(v, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (j jmesData) to(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int(v)
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = j.to(e)
		}
		return out
	case map[string]any:
		if d, ok := j.dicts[reflect.ValueOf(v).Pointer()]; ok {
			return d
		}
		out := value.Of(v).(*value.Dict)
		for k, e := range out.Copy().All() {
			out.Set(k, j.to(e))
		}
		return out
	}
	return v
}
