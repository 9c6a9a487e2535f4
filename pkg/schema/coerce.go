package schema

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// coerce sets target to v. It returns "", or the end of the sentence "value of x must be ...".
func (d *decoder) coerce(target reflect.Value, f field, v any) string {
	if holdsAny(target.Type()) {
		d.secrets.AddNamed(value.Named(f.Name, v, redact.Within))
	}
	switch target.Type() {
	case dictType:
		return put(target, v, toDict, "a dict")
	case durationType:
		return put(target, v, toSeconds, "a number of seconds")
	case secretType:
		return put(target, v, d.toSecret, "a string")
	case modeType:
		return coerceMode(target, v)
	case anyType:
		target.Set(reflect.ValueOf(&v).Elem())
		return ""
	}
	switch target.Kind() {
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		return d.coerce(target.Elem(), f, v)
	case reflect.String:
		return coerceString(target, f, v)
	case reflect.Bool:
		return put(target, v, toBool, "a bool (yes or no)")
	case reflect.Int:
		return put(target, v, toInt, "an int")
	case reflect.Float64:
		return put(target, v, toFloat, "a number")
	case reflect.Map:
		return put(target, v, toStringMap, "a dict of strings")
	case reflect.Slice:
		if target.Type().Elem() == anyType {
			target.Set(reflect.ValueOf(toAnyList(v)))
			return ""
		}
		return coerceList(target, f, v)
	}
	return fmt.Sprintf("of a type that can be decoded, not %s", target.Type())
}

func put[T any](target reflect.Value, v any, convert func(any) (T, bool), want string) string {
	out, ok := convert(v)
	if !ok {
		return want + ", got " + got(v)
	}
	target.Set(reflect.ValueOf(out).Convert(target.Type()))
	return ""
}

// got describes a rejected value: its type, and the value if it is short.
func got(v any) string {
	switch v := v.(type) {
	case []any:
		return "a list"
	case *value.Dict:
		return "a dict"
	case nil:
		return "nothing"
	case string:
		if len(v) > 60 {
			return "a string of " + strconv.Itoa(len(v)) + " bytes"
		}
		return strconv.Quote(v)
	}
	return value.Str(v)
}

func coerceMode(target reflect.Value, v any) string {
	m, err := ParseMode(v)
	if err != nil {
		return "a file mode: " + err.Error()
	}
	target.Set(reflect.ValueOf(m))
	return ""
}

func coerceString(target reflect.Value, f field, v any) string {
	s, ok := toString(v)
	if !ok {
		return "a string, got " + got(v)
	}
	if s, ok = choose(f.Choices, v, s); !ok {
		return oneOf(f.Choices, s)
	}
	target.SetString(s)
	return ""
}

func oneOf(choices []string, got string) string {
	return "one of: " + strings.Join(choices, ", ") + ", got: " + got
}

// choose reports whether s is one of the choices. A YAML bool matches the choice with the same spelling:
// `state: on`.
func choose(choices []string, v any, s string) (string, bool) {
	if len(choices) == 0 {
		return s, true
	}
	b, isBool := v.(bool)
	for _, c := range choices {
		if c == s {
			return s, true
		}
		if as, ok := toBool(c); isBool && ok && as == b {
			return c, true
		}
	}
	return s, false
}

func coerceList(target reflect.Value, f field, v any) string {
	list, ok := toStrings(v)
	if !ok {
		return "a list of strings, got " + got(v)
	}
	for _, s := range list {
		if _, ok := choose(f.Choices, s, s); !ok {
			return oneOf(f.Choices, s)
		}
	}
	target.Set(reflect.ValueOf(list).Convert(target.Type()))
	return ""
}

func toString(v any) (string, bool) {
	switch v.(type) {
	case []any, *value.Dict, nil:
		return "", false
	}
	return value.Str(v), true
}

func (d *decoder) toSecret(v any) (redact.Secret, bool) {
	s, ok := toString(v)
	return d.secrets.Secret(s), ok
}

// holdsAny reports whether an argument has a free structure, chosen by the playbook. In such a structure the names
// of keys decide which values are secret.
func holdsAny(t reflect.Type) bool {
	return t == dictType || t == anyType || t.Kind() == reflect.Map || t.Kind() == reflect.Slice && t.Elem() == anyType
}

func toBool(v any) (b, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case int:
		return v == 1, v == 0 || v == 1
	case float64:
		return v == 1, v == 0 || v == 1
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "yes", "on", "true", "1", "1.0", "t", "y":
			return true, true
		case "no", "off", "false", "0", "0.0", "f", "n":
			return false, true
		}
	}
	return false, false
}

func toInt(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		return int(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		i, err := strconv.Atoi(strings.TrimSpace(v))
		return i, err == nil
	}
	return 0, false
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return f, err == nil
	}
	return 0, false
}

func toSeconds(v any) (time.Duration, bool) {
	f, ok := toFloat(v)
	if !ok || math.IsNaN(f) || math.Abs(f) > math.MaxInt64/1e9 {
		return 0, false
	}
	return time.Duration(f * float64(time.Second)), true
}

// toStrings makes a list of strings from a list, from "a,b" or from another scalar.
func toStrings(v any) ([]string, bool) {
	switch v := v.(type) {
	case []any:
		out := make([]string, 0, len(v))
		for _, e := range v {
			s, ok := forcedString(e)
			if !ok {
				return nil, false
			}
			out = append(out, s)
		}
		return out, true
	case string:
		return splitList(v), true
	}
	s, ok := toString(v)
	return []string{s}, ok
}

func forcedString(v any) (string, bool) {
	v, err := value.Force(v)
	if err != nil || value.IsUndefined(v) {
		return "", false
	}
	return toString(v)
}

func splitList(s string) []string {
	if strings.TrimSpace(s) == "" {
		return []string{}
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// toAnyList returns a list as it is and wraps anything else in a list. It does not split strings, since elements
// can be expressions with commas in them.
func toAnyList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	return []any{v}
}

// toDict accepts a dict, or the text of a JSON object.
func toDict(v any) (*value.Dict, bool) {
	if s, ok := v.(string); ok && strings.HasPrefix(strings.TrimSpace(s), "{") {
		decoded, err := value.FromJSON([]byte(s))
		if err != nil {
			return nil, false
		}
		v = decoded
	}
	d, ok := v.(*value.Dict)
	return d, ok
}

func toStringMap(v any) (map[string]string, bool) {
	d, ok := toDict(v)
	if !ok {
		return nil, false
	}
	out := make(map[string]string, d.Len())
	for k, e := range d.All() {
		s, ok := forcedString(e)
		if !ok && e != nil {
			return nil, false
		}
		out[value.Str(k)] = s
	}
	return out, true
}
