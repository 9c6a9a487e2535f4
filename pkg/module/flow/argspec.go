package flow

import (
	"context"
	"fmt"
	"strings"

	"kubekey/pkg/argspec"
	"kubekey/pkg/module"
	"kubekey/pkg/value"
)

// validateArgumentSpec is the module validate_argument_spec, which the linker puts
// before the tasks of a role that declares its arguments.
type validateArgumentSpec struct {
	Spec     *value.Dict `kk:"argument_spec,required" doc:"specs of the arguments by name, each with type, required, choices, elements, options, ..."`
	Provided *value.Dict `kk:"provided_arguments" doc:"arguments in addition to variables with their names"`
	Context  *value.Dict `kk:"validate_args_context" doc:"description of what is validated, for the result"`
	Rules    *value.Dict `kk:"rules" doc:"mutually_exclusive, required_together, required_one_of, required_if and required_by of the arguments (kk only)"`
}

// Run implements module.Runner.
func (m *validateArgumentSpec) Run(_ context.Context, c *module.Call) (module.Result, error) {
	args := value.NewDict()
	for k := range m.Spec.All() {
		name := value.Str(k)
		v, ok, err := c.Scope.Lookup(name)
		if err == nil && ok {
			v, err = resolved(v)
		}
		switch {
		case err != nil:
			return module.Result{}, fmt.Errorf("argument %s: %w", name, err)
		case ok:
			args.Set(name, v)
		}
	}
	for k, v := range m.Provided.All() {
		v, err := resolved(v)
		if err != nil {
			return module.Result{}, fmt.Errorf("argument %s: %w", value.Str(k), err)
		}
		args.Set(k, v)
	}
	entry := value.NewDict("options", m.Spec)
	entry.Merge(m.Rules)
	data := value.NewDict("validate_args_context", orEmpty(m.Context))
	problems := argspec.Validate(entry, args)
	if len(problems) == 0 {
		return module.Result{Msg: "The arg spec validation passed", Data: data}, nil
	}
	data.Set("argument_errors", strs(problems))
	data.Set("argument_spec_data", m.Spec)
	return module.Result{Failed: true, Msg: "Validation of arguments failed:\n" + strings.Join(problems, "\n"),
		Data: data}, nil
}

func orEmpty(d *value.Dict) *value.Dict {
	if d == nil {
		return value.NewDict()
	}
	return d
}

// resolved is a value with all of its parts evaluated.
func resolved(v any) (any, error) {
	v, err := value.Force(v)
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *value.Undefined:
		return nil, v
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], err = resolved(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case *value.Dict:
		out := value.NewDict()
		for k, e := range v.All() {
			if e, err = resolved(e); err != nil {
				return nil, err
			}
			out.Set(k, e)
		}
		return out, nil
	}
	return v, nil
}
