package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Param is an argument in the form that scripts get: a name and a text.
type Param struct{ Name, Text string }

// Params returns the arguments of the struct that v points to as parameters of a script: texts as they are, numbers
// in decimal, modes as they were written, lists of texts with one entry per line. A bool is 1 when true; a *bool
// that is false is 1 under the name no_NAME. Empty texts and lists, and nil pointers, are skipped.
//
// Everybody on the host can read parameters in the command line. Secrets and arguments that are marked private are
// therefore never parameters. Neither are dicts and values of any type.
func Params(v any) ([]Param, error) {
	if _, err := structType(v); err != nil {
		return nil, err
	}
	return appendParams(nil, reflect.ValueOf(v).Elem()), nil
}

// private is the tag option of arguments that are not parameters.
const private = "private"

// appendParams reads as little of the tags as possible, since it runs at each call of a module.
func appendParams(out []Param, v reflect.Value) []Param {
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		tag, tagged := sf.Tag.Lookup("kk")
		if !tagged && sf.Anonymous && sf.Type.Kind() == reflect.Struct {
			out = appendParams(out, v.Field(i))
		}
		name, options, _ := strings.Cut(tag, ",")
		if name == "" || slices.Contains(strings.Split(options, ","), private) {
			continue
		}
		if p, ok := param(name, v.Field(i)); ok {
			out = append(out, p)
		}
	}
	return out
}

func param(name string, v reflect.Value) (p Param, ok bool) {
	given := v.Kind() == reflect.Pointer
	if given {
		if v.IsNil() {
			return Param{}, false
		}
		v = v.Elem()
	}
	if given && v.Kind() == reflect.Bool && !v.Bool() {
		return Param{"no_" + name, "1"}, true
	}
	text, known := paramText(v)
	return Param{name, text}, known && (given || text != "")
}

func paramText(v reflect.Value) (text string, known bool) {
	switch v.Type() {
	case durationType:
		return strconv.FormatFloat(time.Duration(v.Int()).Seconds(), 'f', -1, 64), true
	case modeType:
		return v.Interface().(FileMode).String(), true
	}
	switch v.Kind() {
	case reflect.String:
		return v.String(), true
	case reflect.Bool:
		if v.Bool() {
			return "1", true
		}
		return "", true
	case reflect.Int:
		return strconv.FormatInt(v.Int(), 10), true
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64), true
	case reflect.Slice:
		if lines, ok := v.Interface().([]string); ok {
			return strings.Join(lines, "\n"), true
		}
	}
	return "", false
}
