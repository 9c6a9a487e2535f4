package schema

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// field is one argument of a struct.
type field struct {
	Arg
	index      []int
	rest       bool
	hasDefault bool
	nested     reflect.Type // the struct of nested options, or nil
}

func structType(v any) (reflect.Type, error) {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments are decoded into a pointer to a struct, not into %T", v)
	}
	return t.Elem(), nil
}

func fieldsOf(t reflect.Type) ([]field, error) {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		tag, tagged := sf.Tag.Lookup("kk")
		if !tagged {
			if !sf.Anonymous || sf.Type.Kind() != reflect.Struct {
				continue
			}
			inner, err := fieldsOf(sf.Type)
			if err != nil {
				return nil, err
			}
			for _, f := range inner {
				f.index = append([]int{i}, f.index...)
				fields = append(fields, f)
			}
			continue
		}
		f, err := newField(sf, tag)
		if err != nil {
			return nil, fmt.Errorf("field %s of %s: %w", sf.Name, t, err)
		}
		f.index = []int{i}
		fields = append(fields, f)
	}
	return fields, nil
}

func newField(sf reflect.StructField, tag string) (field, error) {
	if !sf.IsExported() {
		return field{}, fmt.Errorf("an argument must be an exported field")
	}
	var f field
	options := strings.Split(tag, ",")
	f.Name = options[0]
	f.Doc = sf.Tag.Get("doc")
	f.Default, f.hasDefault = sf.Tag.Lookup("default")
	if c := sf.Tag.Get("choices"); c != "" {
		f.Choices = strings.Split(c, ",")
	}
	typeName, nested, err := describeType(sf.Type)
	if err != nil {
		return field{}, err
	}
	f.Type, f.nested = typeName, nested
	for _, o := range options[1:] {
		if err := f.option(o); err != nil {
			return field{}, err
		}
	}
	if f.Name == "" && !f.rest {
		return field{}, fmt.Errorf("the argument has no name")
	}
	if f.rest && sf.Type != dictType {
		return field{}, fmt.Errorf("the rest field must be a *value.Dict")
	}
	return f, nil
}

func (f *field) option(o string) error {
	alias, isAlias := strings.CutPrefix(o, "alias=")
	switch {
	case isAlias:
		f.Aliases = append(f.Aliases, strings.Split(alias, "|")...)
	case strings.HasPrefix(o, "file="):
		f.File = strings.TrimPrefix(o, "file=")
	case strings.HasPrefix(o, "away="):
		f.Away = strings.Split(strings.TrimPrefix(o, "away="), "|")
	case o == "makes":
		f.Makes = true
	case o == "required":
		f.Required = true
	case o == "rest":
		f.rest = true
	case o == private:
	case o == "path":
		f.Type = strings.Replace(f.Type, "str", "path", 1)
	default:
		return fmt.Errorf("unknown option %q in its kk tag", o)
	}
	return nil
}

var (
	dictType     = reflect.TypeFor[*value.Dict]()
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[redact.Secret]()
	modeType     = reflect.TypeFor[FileMode]()
	anyType      = reflect.TypeFor[any]()
)

func describeType(t reflect.Type) (name string, nested reflect.Type, err error) {
	switch t {
	case dictType:
		return "dict", nil, nil
	case durationType:
		return "seconds", nil, nil
	case secretType:
		return "secret", nil, nil
	case modeType:
		return "mode", nil, nil
	case anyType:
		return "any", nil, nil
	}
	switch t.Kind() {
	case reflect.String:
		return "str", nil, nil
	case reflect.Bool:
		return "bool", nil, nil
	case reflect.Int:
		return "int", nil, nil
	case reflect.Float64:
		return "float", nil, nil
	case reflect.Struct:
		return "dict", t, nil
	case reflect.Pointer:
		return describeType(t.Elem())
	case reflect.Slice:
		name, nested, err = describeType(t.Elem())
		if t.Elem() == anyType {
			return "list", nil, err
		}
		return "list of " + name, nested, err
	case reflect.Map:
		if t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String {
			return "dict of str", nil, nil
		}
	}
	return "", nil, fmt.Errorf("type %s cannot be an argument", t)
}
