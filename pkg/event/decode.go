package event

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Kinds returns an empty value of every event type.
func Kinds() []Event {
	return []Event{
		RunStarted{}, PlaybookStarted{}, PlayStarted{}, BatchStarted{}, PlayEnded{}, PlayEmpty{}, NoMoreHosts{},
		TaskStarted{}, HostStarted{},
		Output{}, Progress{}, Retry{}, Async{}, HostResult{}, Included{}, Notified{}, MetaRan{}, Warning{}, RunEnded{},
	}
}

func typeOf(name string) (reflect.Type, bool) {
	for _, e := range Kinds() {
		if t := reflect.TypeOf(e); snake(t.Name()) == name {
			return t, true
		}
	}
	return nil, false
}

// Decode decodes the output of Encode, and its time. Unknown fields are ignored; an unknown type
// is an error.
func Decode(line []byte) (Event, time.Time, error) {
	v, err := value.FromJSON(line)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("decode event: %w", err)
	}
	d, ok := v.(*value.Dict)
	if !ok {
		return nil, time.Time{}, fmt.Errorf("decode event: not a JSON object")
	}
	t, ok := typeOf(d.String("type"))
	if !ok {
		return nil, time.Time{}, fmt.Errorf("decode event: unknown type %q", d.String("type"))
	}
	out := reflect.New(t).Elem()
	if err := fill(out, d); err != nil {
		return nil, time.Time{}, fmt.Errorf("decode event %s: %w", d.String("type"), err)
	}
	complete(out)
	at, _ := time.Parse(time.RFC3339Nano, d.String("time"))
	return out.Interface().(Event), at, nil
}

// complete sets the task and the diagnostic that sinks rely on, if the line does not have
// them.
func complete(out reflect.Value) {
	for i := range out.NumField() {
		switch p := out.Field(i).Addr().Interface().(type) {
		case **Task:
			if *p == nil {
				*p = &Task{}
			}
		case **source.Diagnostic:
			if *p == nil {
				*p = &source.Diagnostic{}
			}
		}
	}
}

func fill(out reflect.Value, d *value.Dict) error {
	for i := range out.NumField() {
		name := snake(out.Type().Field(i).Name)
		v, ok := d.Get(name)
		if !ok {
			continue
		}
		if err := set(out.Field(i), v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// set decodes v into a field. A value that does not match the field's type is an error.
func set(field reflect.Value, v any) error {
	if v == nil {
		return nil
	}
	switch p := field.Addr().Interface().(type) {
	case *Status:
		return setStatus(p, v)
	case *source.Severity:
		if v == "warning" {
			*p = source.Warning
		}
		return nil
	case *time.Time:
		var err error
		*p, err = time.Parse(time.RFC3339Nano, value.Str(v))
		return err
	case *time.Duration:
		return setDuration(p, v)
	case *source.Pos:
		*p = posOf(v, nil)
		return nil
	case **source.Diagnostic:
		return setDiagnostic(p, v)
	case **value.Dict:
		d, ok := v.(*value.Dict)
		*p = d
		return shape(ok, field, v)
	}
	return setKind(field, v)
}

func shape(ok bool, field reflect.Value, v any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("expected %s, found %s", field.Type(), value.TypeName(v))
}

func setKind(field reflect.Value, v any) error {
	switch field.Kind() {
	case reflect.Interface:
		field.Set(reflect.ValueOf(v))
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		return set(field.Elem(), v)
	case reflect.Struct:
		d, ok := v.(*value.Dict)
		if !ok {
			return shape(false, field, v)
		}
		return fill(field, d)
	case reflect.Slice:
		return setSlice(field, v)
	case reflect.Map:
		return setMap(field, v)
	case reflect.String:
		s, ok := v.(string)
		field.SetString(s)
		return shape(ok, field, v)
	case reflect.Bool:
		b, ok := v.(bool)
		field.SetBool(b)
		return shape(ok, field, v)
	case reflect.Int, reflect.Int64:
		n, ok := v.(int)
		field.SetInt(int64(n))
		return shape(ok, field, v)
	}
	return nil
}

func setSlice(field reflect.Value, v any) error {
	list, ok := v.([]any)
	if !ok {
		return shape(false, field, v)
	}
	field.Set(reflect.MakeSlice(field.Type(), len(list), len(list)))
	for i, e := range list {
		if err := set(field.Index(i), e); err != nil {
			return err
		}
	}
	return nil
}

func setMap(field reflect.Value, v any) error {
	d, ok := v.(*value.Dict)
	if !ok {
		return shape(false, field, v)
	}
	field.Set(reflect.MakeMap(field.Type()))
	for k, e := range d.All() {
		if e == nil {
			e = value.NewDict()
		}
		elem := reflect.New(field.Type().Elem()).Elem()
		if err := set(elem, e); err != nil {
			return err
		}
		field.SetMapIndex(reflect.ValueOf(value.Str(k)), elem)
	}
	return nil
}

func setStatus(p *Status, v any) error {
	for s := OK; s <= Unreachable; s++ {
		if s.String() == v {
			*p = s
			return nil
		}
	}
	return fmt.Errorf("unknown status %q", value.Str(v))
}

func setDuration(p *time.Duration, v any) error {
	switch n := v.(type) {
	case int:
		*p = time.Duration(n) * time.Second
	case float64:
		*p = time.Duration(n*1e6+0.5) * time.Microsecond
	default:
		return fmt.Errorf("expected seconds, found %s", value.TypeName(v))
	}
	return nil
}

// maxLines bounds the placeholder text for the file of a diagnostic.
const maxLines = 1_000_000

func posOf(v any, text []byte) source.Pos {
	d, ok := v.(*value.Dict)
	if !ok {
		return source.Pos{}
	}
	line, _ := d.Get("line")
	col, _ := d.Get("col")
	p := source.Pos{File: source.NewFile(d.String("file"), text)}
	p.Line, _ = line.(int)
	p.Col, _ = col.(int)
	return p
}

func setDiagnostic(p **source.Diagnostic, v any) error {
	d, ok := v.(*value.Dict)
	if !ok {
		return fmt.Errorf("expected a diagnostic, found %s", value.TypeName(v))
	}
	out := &source.Diagnostic{}
	if err := fill(reflect.ValueOf(out).Elem(), d); err != nil {
		return err
	}
	if n := out.Pos.Line; n > 0 && n < maxLines && d.Has("text") {
		pos, _ := d.Get("pos")
		text := strings.Repeat("\n", max(0, n-2))
		if n > 1 {
			text += d.String("before") + "\n"
		}
		out.Pos = posOf(pos, []byte(text+d.String("text")))
	}
	*p = out
	return nil
}
