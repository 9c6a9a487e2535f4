package event

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Encode encodes an event as one line of JSON without a line end: an object with "type"
// (host_result), "time" (RFC 3339 with nanoseconds, UTC; omitted if at is zero) and the event's
// fields in snake case. Empty texts, false and missing values are omitted; numbers never are.
// Durations are seconds, a position is {file, line, col}, a Status its name. hide removes
// secrets from every text; it may be nil.
func Encode(e Event, at time.Time, hide func(string) string) []byte {
	if hide == nil {
		hide = func(s string) string { return s }
	}
	enc := encoder{hide: hide}
	v := reflect.ValueOf(e)
	out := value.NewDict("type", snake(v.Type().Name()))
	if !at.IsZero() {
		out.Set("time", stamp(at))
	}
	enc.fields(out, v)
	text, err := value.JSON(out, value.JSONOptions{Compact: true})
	if err != nil { // data nested too deeply: at least report what happened
		text = fmt.Sprintf(`{"type":%q,"error":%q}`, snake(v.Type().Name()), err)
	}
	return []byte(text)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// snake turns HostResult into host_result and ID into id.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

type encoder struct{ hide func(string) string }

func (enc encoder) fields(out *value.Dict, v reflect.Value) {
	for i := range v.NumField() {
		name := snake(v.Type().Field(i).Name)
		if name == "time" && out.Has("time") && v.Field(i).IsZero() {
			continue // replaced by the time of encoding
		}
		if coded, ok := enc.value(v.Field(i)); ok {
			out.Set(name, coded)
		}
	}
}

// value encodes one field; ok is false if the field is omitted.
func (enc encoder) value(v reflect.Value) (coded any, ok bool) {
	switch x := v.Interface().(type) {
	case Status:
		return x.String(), true
	case source.Severity:
		return severityName(x), true
	case time.Time:
		return stamp(x), !x.IsZero()
	case time.Duration:
		return x.Seconds(), true
	case source.Pos:
		return enc.pos(x), x.File != nil
	case *source.Diagnostic:
		return enc.diagnostic(x), x != nil
	case *value.Dict:
		return enc.plain(x), x != nil
	}
	switch v.Kind() {
	case reflect.Interface:
		return enc.plain(v.Interface()), !v.IsNil()
	case reflect.Pointer:
		if v.IsNil() {
			return nil, false
		}
		return enc.value(v.Elem())
	case reflect.Struct:
		out := value.NewDict()
		enc.fields(out, v)
		return out, true
	case reflect.Slice:
		return enc.slice(v), v.Len() > 0
	case reflect.Map:
		return enc.mapping(v), v.Len() > 0
	case reflect.String:
		return enc.hide(v.String()), v.String() != ""
	case reflect.Bool:
		return true, v.Bool()
	case reflect.Int, reflect.Int64:
		return int(v.Int()), true
	}
	return nil, false
}

func (enc encoder) slice(v reflect.Value) []any {
	out := make([]any, 0, v.Len())
	for i := range v.Len() {
		coded, ok := enc.value(v.Index(i))
		if !ok && v.Index(i).Kind() == reflect.String {
			coded = ""
		}
		out = append(out, coded)
	}
	return out
}

func (enc encoder) mapping(v reflect.Value) *value.Dict {
	byKey := map[string]any{}
	for it := v.MapRange(); it.Next(); {
		coded, _ := enc.value(it.Value())
		byKey[enc.hide(it.Key().String())] = coded
	}
	return value.Of(byKey).(*value.Dict)
}

// plain hides the secrets in data, and converts what JSON cannot represent to text.
func (enc encoder) plain(v any) any { return Map(v, enc.hide) }

// Map returns a copy of data with every text in it, including keys, passed through f. Values
// that JSON cannot represent become text.
func Map(v any, f func(string) string) any { return mapped(v, f, 0) }

// maxData bounds the depth of data; decoders produce none that is deeper.
const maxData = 90

func mapped(v any, f func(string) string, depth int) any {
	if depth > maxData {
		return "..."
	}
	switch v := v.(type) {
	case nil, bool:
		return v
	case int, float64:
		if n, ok := v.(float64); ok && (math.IsInf(n, 0) || math.IsNaN(n)) {
			return value.Float(n)
		}
		text := value.Str(v)
		if shown := f(text); shown != text { // a secret can be a number
			return shown
		}
		return v
	case string:
		return f(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = mapped(e, f, depth+1)
		}
		return out
	case *value.Dict:
		out := value.NewDict()
		for k, e := range v.All() {
			text := value.Str(k)
			if shown := f(text); shown != text {
				k = shown
			}
			out.Set(k, mapped(e, f, depth+1))
		}
		return out
	case value.Lazy:
		if forced, err := value.Force(v); err == nil {
			return mapped(forced, f, depth+1)
		}
	}
	return f(value.Str(v))
}

func severityName(s source.Severity) string {
	if s == source.Warning {
		return "warning"
	}
	return "error"
}

func (enc encoder) pos(p source.Pos) *value.Dict {
	if p.File == nil {
		return nil
	}
	return value.NewDict("file", enc.hide(p.File.Name), "line", p.Line, "col", p.Col)
}

// diagnostic includes the source lines that it refers to: the file may have changed by the time
// somebody reads this.
func (enc encoder) diagnostic(d *source.Diagnostic) *value.Dict {
	if d == nil {
		return nil
	}
	out := value.NewDict()
	enc.fields(out, reflect.ValueOf(*d))
	if d.Pos.IsValid() {
		out.Set("before", enc.hide(d.Pos.File.Line(d.Pos.Line-1)))
		out.Set("text", enc.hide(d.Pos.File.Line(d.Pos.Line)))
	}
	return out
}
