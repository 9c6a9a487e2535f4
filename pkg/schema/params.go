package schema

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Param is an argument as a script gets it: a name, and a text.
type Param struct{ Name, Text string }

// Params are the arguments of the struct that v points to, as parameters of a script:
// texts as they are, numbers in decimal, modes as they were written, the entries of a
// list of texts as lines. A bool is 1 when true, and a *bool that is false
// is 1 under the name no_NAME. Texts and lists that are empty are left out, and pointers that are nil.
//
// Parameters stand in a command line that everybody on the host can read: secrets, and arguments that
// are marked private, are never among them. Dicts and values of any type are not either.
func Params(v any) ([]Param, error) {
	if _, err := structType(v); err != nil {
		return nil, err
	}
	return appendParams(nil, reflect.ValueOf(v).Elem()), nil
}

// private is the option of an argument that is no parameter.
const private = "private"

// appendParams reads no more of the tags than it needs: it works at each call of a module.
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
