package cli

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
)

// Script parameters appear on a command line: no secret argument of any module is passed as one.
func TestSecretsAreNoParametersOfScripts(t *testing.T) {
	r, err := Modules()
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	texts := 0
	for _, s := range r.Specs() {
		if s.New == nil {
			continue
		}
		m := s.New()
		fill(reflect.ValueOf(m).Elem(), new(redact.Set))
		params, err := schema.Params(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range params {
			texts += strings.Count(p.Text, "plain")
			switch {
			case strings.Contains(p.Text, "hidden"):
				t.Errorf("%s: the secret %s is a parameter", s.Name, p.Name)
			case !name.MatchString(p.Name) || p.Name == "check":
				t.Errorf("%s: %s cannot be the name of a parameter: p_check is check mode", s.Name, p.Name)
			}
		}
	}
	if texts < 100 {
		t.Errorf("only %d texts are parameters", texts)
	}
}

// fill sets each text of a struct to the value plain and each secret to the value hidden.
func fill(v reflect.Value, set *redact.Set) {
	if !v.CanSet() {
		return
	}
	switch {
	case v.Type() == reflect.TypeFor[redact.Secret]():
		v.Set(reflect.ValueOf(set.Secret("hidden")))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), set)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), set)
	case v.Kind() == reflect.String:
		v.SetString("plain")
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), set)
		}
	}
}
