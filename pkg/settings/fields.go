package settings

import (
	"fmt"
	"reflect"
	"slices"
)

// fields returns pointers to all settings, in the order of the table.
func fields(s *Settings) []any {
	v := reflect.ValueOf(s).Elem()
	out := make([]any, v.NumField())
	for i := range out {
		out[i] = v.Field(i).Interface()
	}
	return out
}

func setField(s *Settings, i int, v any) {
	reflect.ValueOf(s).Elem().Field(i).Set(reflect.ValueOf(v))
}

// valueOf is the value of the setting with a name.
func valueOf(s *Settings, name string, names []string) any {
	return fields(s)[slices.Index(names, name)]
}

func texts(v any) []string {
	if list, ok := v.([]string); ok {
		return list
	}
	return []string{fmt.Sprint(v)}
}
