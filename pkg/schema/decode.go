package schema

import (
	"fmt"
	"reflect"
	"strings"

	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// decoder fills structs and collects the problems. It skips values that are not known yet.
type decoder struct {
	plan     *Plan
	secrets  *redact.Set // registers every secret that is decoded
	unsure   Unsure
	problems Errors
}

func (d *decoder) add(p Problem) { d.problems = append(d.problems, p) }

// fill decodes args into a struct of the plan.
func (d *decoder) fill(into reflect.Value, t reflect.Type, args *value.Dict, path string) {
	fields := d.plan.fields[t]
	given, rest := d.assign(fields, args, path)
	var missing []string
	for i, f := range fields {
		target := into.FieldByIndex(f.index)
		if f.rest {
			d.secrets.AddNamed(value.Named("", rest, redact.Within))
			target.Set(reflect.ValueOf(rest))
			continue
		}
		g, ok := given[i]
		switch {
		case ok:
			d.set(target, f, g.v, join(path, g.key))
		case f.Required:
			missing = append(missing, f.Name)
		case f.hasDefault:
			d.set(target, f, f.Default, join(path, f.Name))
		}
	}
	if len(missing) > 0 {
		d.missing(missing, path)
	}
	d.obey(into, t, given, path)
}

func (d *decoder) missing(names []string, path string) {
	msg := "missing required arguments: " + strings.Join(names, ", ")
	if path != "" {
		msg += " found in " + path
	}
	d.add(Problem{Kind: Missing, Path: path, Msg: msg})
}

// givenArg is an argument with the key under which it was given.
type givenArg struct {
	key string
	v   any
}

// assign finds the field of each argument, by index. Arguments without a field go to the rest field, or are a
// problem when there is no rest field.
func (d *decoder) assign(fields []field, args *value.Dict, path string) (map[int]givenArg, *value.Dict) {
	given := make(map[int]givenArg, args.Len())
	rest, hasRest := value.NewDict(), false
	for _, f := range fields {
		hasRest = hasRest || f.rest
	}
	for k, v := range args.All() {
		key := value.Str(k)
		i := fieldNamed(fields, key)
		switch {
		case i < 0 && hasRest:
			rest.Set(k, v)
		case i < 0:
			d.add(unknownProblem(path, key, fields))
		case v == nil: // not given
		default:
			if before, twice := given[i]; twice {
				d.add(Problem{Path: join(path, key), Msg: fmt.Sprintf("%s and %s are the same argument", before.key, key),
					Help: "give only one of them"})
				continue
			}
			given[i] = givenArg{key, v}
		}
	}
	return given, rest
}

func fieldNamed(fields []field, key string) int {
	for i := range fields {
		if fields[i].rest {
			continue
		}
		if fields[i].Name == key {
			return i
		}
		for _, a := range fields[i].Aliases {
			if a == key {
				return i
			}
		}
	}
	return -1
}

func (d *decoder) set(target reflect.Value, f field, v any, path string) {
	if d.unsure.dynamic(v) {
		return
	}
	v, err := value.Force(v)
	if err == nil {
		if u, undefined := v.(*value.Undefined); undefined {
			err = u
		}
	}
	if err != nil {
		d.add(Problem{Path: path, Msg: fmt.Sprintf("value of %s: %v", path, err)})
		return
	}
	if f.nested != nil {
		d.setNested(target, f, v, path)
		return
	}
	if problem := d.coerce(target, f, v); problem != "" {
		d.add(Problem{Path: path, Msg: fmt.Sprintf("value of %s must be %s", path, problem)})
	}
}

// setNested decodes a dict into a struct, or a list of dicts into a slice of structs.
func (d *decoder) setNested(target reflect.Value, f field, v any, path string) {
	switch target.Kind() {
	case reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		d.setNested(target.Elem(), f, v, path)
		return
	case reflect.Slice:
		d.setList(target, f, v, path)
		return
	}
	dict, ok := toDict(v)
	if !ok {
		d.add(Problem{Path: path, Msg: fmt.Sprintf("value of %s must be a dict, got %s", path, got(v))})
		return
	}
	d.fill(target, target.Type(), dict, path)
}

func (d *decoder) setList(target reflect.Value, f field, v any, path string) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := reflect.MakeSlice(target.Type(), len(list), len(list))
	for i, e := range list {
		if d.unsure.dynamic(e) {
			continue
		}
		forced, err := value.Force(e)
		if err != nil {
			d.add(Problem{Path: path, Msg: fmt.Sprintf("value of %s: %v", path, err)})
			continue
		}
		d.setNested(out.Index(i), f, forced, path)
	}
	target.Set(out)
}
