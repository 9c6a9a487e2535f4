package argspec

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"kubekey/pkg/value"
)

// Types lists the valid types of an option.
func Types() []string {
	return []string{"str", "int", "float", "bool", "list", "dict", "path", "raw", "json", "jsonarg", "bytes", "bits"}
}

// convert converts an argument to the type of its option, and checks its elements.
func (c *check) convert(name string, o *value.Dict, v any, args *value.Dict, path []string) {
	kind := text(o, "type")
	if kind == "" {
		kind = "str"
	}
	got, err := to(kind, v)
	if err != nil {
		where := ""
		if len(path) > 0 {
			where = fmt.Sprintf(" found in '%s'.", strings.Join(path, " -> "))
		}
		c.fail("argument '%s' is of type %s%s and we were unable to convert to %s: %s", name, class(v), where, kind, err)
		return
	}
	args.Set(name, got)
	want := text(o, "elements")
	elements, isList := got.([]any)
	switch {
	case want == "":
		return
	case kind != "list" || !isList:
		c.fail("Invalid type %s for option '%s', elements value check is supported only with 'list' type", kind,
			c.shown(o, got))
		return
	}
	out := make([]any, 0, len(elements))
	for _, e := range elements {
		as, err := to(want, e)
		if err != nil {
			where := ""
			if len(path) > 0 {
				where = fmt.Sprintf(" found in '%s'", strings.Join(path, " -> "))
			}
			c.fail("Elements value for option '%s'%s is of type %s and we were unable to convert to %s: %s", name, where,
				class(e), want, err)
			continue
		}
		out = append(out, as)
	}
	args.Set(name, out)
}

// class formats a type as Python does.
func class(v any) string { return "<class '" + value.TypeName(v) + "'>" }

func cannot(v any, what string) error {
	return fmt.Errorf("%s cannot be converted to %s", class(v), what)
}

func to(kind string, v any) (any, error) {
	switch kind {
	case "str", "path":
		return value.Str(v), nil
	case "raw":
		return v, nil
	case "int":
		return toInt(v)
	case "float":
		return toFloat(v)
	case "bool":
		return toBool(v)
	case "list":
		return toList(v)
	case "dict":
		return toDict(v)
	case "json", "jsonarg":
		switch v.(type) {
		case string, []any, *value.Dict:
			return v, nil
		}
		return nil, cannot(v, "a json string")
	case "bytes":
		return toBytes(v, 'B', cannot(v, "a Byte value"))
	case "bits":
		return toBytes(v, 'b', cannot(v, "a Bit value"))
	}
	return nil, fmt.Errorf("there is no such type; choose one of %s", strings.Join(Types(), ", "))
}

func toInt(v any) (any, error) {
	switch v := v.(type) {
	case int, bool:
		return v, nil
	case string:
		if n, err := strconv.Atoi(strings.TrimSpace(v)); err == nil {
			return n, nil
		}
	}
	return nil, cannot(v, "an int")
}

func toFloat(v any) (any, error) {
	switch v := v.(type) {
	case float64, bool:
		return v, nil
	case int:
		return float64(v), nil
	case string:
		if f, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return f, nil
		}
	}
	return nil, cannot(v, "a float")
}

func toBool(v any) (bool, error) {
	switch v := v.(type) {
	case bool:
		return v, nil
	case []any, *value.Dict, nil:
		return false, cannot(v, "a bool")
	}
	switch strings.ToLower(strings.TrimSpace(value.Str(v))) {
	case "y", "yes", "on", "1", "1.0", "true", "t":
		return true, nil
	case "n", "no", "off", "0", "0.0", "false", "f":
		return false, nil
	}
	return false, fmt.Errorf("The value '%s' is not a valid boolean.  Valid booleans include: 'y', 'yes', 'on', '1', "+
		"'true', 't', 1, 'n', 'no', 'off', '0', 'false', 'f', 0", value.Str(v)) //nolint:staticcheck // users search for this text
}

func toList(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case string:
		parts := strings.Split(v, ",")
		out := make([]any, len(parts))
		for i, p := range parts {
			out[i] = p
		}
		return out, nil
	case int, float64, bool:
		return []any{value.Str(v)}, nil
	}
	return nil, cannot(v, "a list")
}

// toDict accepts a dict, the text of a JSON object, or k=v tokens.
func toDict(v any) (any, error) {
	s, isText := v.(string)
	switch d, isDict := v.(*value.Dict); {
	case isDict:
		return d, nil
	case !isText:
		return nil, cannot(v, "a dict")
	case strings.HasPrefix(s, "{"):
		decoded, err := value.FromJSON([]byte(s))
		if err != nil {
			return nil, errors.New("unable to evaluate string as dictionary")
		}
		return decoded, nil
	case !strings.Contains(s, "="):
		return nil, errors.New("dictionary requested, could not parse JSON or key=value")
	}
	out := value.NewDict()
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		k, v, _ := strings.Cut(word, "=")
		out.Set(k, strings.Trim(v, `'"`))
	}
	return out, nil
}

var size = regexp.MustCompile(`^\s*(\d+\.?\d*|\.\d+)\s*([A-Za-z]+)?`)

// toBytes parses a size with a unit: 10, 10K, 1.5MB (or Mb for bits).
func toBytes(v any, unit byte, bad error) (any, error) {
	m := size.FindStringSubmatch(value.Str(v))
	if m == nil {
		return nil, bad
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return nil, bad
	}
	if m[2] == "" {
		return int(math.Round(n)), nil
	}
	power := strings.IndexByte("BKMGTPEZY", strings.ToUpper(m[2])[0])
	whole := strings.Contains(strings.ToLower(m[2]), map[byte]string{'B': "byte", 'b': "bit"}[unit])
	if power < 0 || len(m[2]) > 1 && !whole && m[2][1] != unit {
		return nil, bad
	}
	return int(math.Round(n * math.Pow(1024, float64(power)))), nil
}
