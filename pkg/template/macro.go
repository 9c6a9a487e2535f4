package template

import (
	"fmt"

	"kubekey/pkg/expr"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

type macroNode struct {
	sig  signature
	at   source.Pos
	body body
}

func (n *macroNode) run(f *frame) error {
	f.scope.set(n.sig.name, &macro{sig: &n.sig, at: n.at, body: n.body, frame: *f})
	return nil
}

// macro is a macro that can be called; frame is the place of its definition.
type macro struct {
	sig   *signature
	at    source.Pos
	body  body
	frame frame
}

// Attr implements expr.Attrs.
func (m *macro) Attr(name string) (any, bool) {
	switch name {
	case "name":
		return m.sig.name, true
	case "arguments":
		out := make([]any, len(m.sig.params))
		for i, p := range m.sig.params {
			out[i] = p
		}
		return out, true
	case "catch_kwargs":
		return m.sig.kwargs, true
	case "catch_varargs":
		return m.sig.varargs, true
	case "caller":
		return m.sig.caller, true
	}
	return nil, false
}

// String is the macro as Jinja2 prints it.
func (m *macro) String() string { return "<Macro '" + m.sig.name + "'>" }

// Call implements expr.Callable.
func (m *macro) Call(_ *expr.Call, a expr.Args) (any, error) {
	f := m.frame
	if err := f.enter("macro "+m.sig.name, m.at); err != nil {
		return nil, err
	}
	defer f.leave()
	f.scope = &scope{outer: m.frame.scope}
	f.out, f.muted = &output{}, false
	if err := m.bind(&f, a); err != nil {
		return nil, err // the caller adds the position of the call
	}
	if err := m.body.run(&f); err != nil {
		return nil, f.fail(err, m.at)
	}
	return f.out.String(), nil
}

// bind assigns values to the parameters.
func (m *macro) bind(f *frame, a expr.Args) error {
	used := 0
	for i, p := range m.sig.params {
		named, ok := a.Named.Get(p)
		switch {
		case ok && i < len(a.Positional):
			return fmt.Errorf("macro '%s' got two values for argument '%s'", m.sig.name, p)
		case ok:
			f.scope.set(p, named)
			used++
		case i < len(a.Positional):
			f.scope.set(p, a.Positional[i])
		default:
			v, err := m.fallback(f, i)
			if err != nil {
				return err
			}
			f.scope.set(p, v)
		}
	}
	return m.bindRest(f, a, used)
}

func (m *macro) fallback(f *frame, i int) (any, error) {
	if x := m.sig.defaults[i]; x != nil {
		return x.EvalLoose(f.ctx, f.scope)
	}
	return &value.Undefined{Name: m.sig.params[i], Hint: "the call of '" + m.sig.name + "' did not give it"}, nil
}

// bindRest binds caller, varargs and kwargs, or rejects extra arguments.
func (m *macro) bindRest(f *frame, a expr.Args, used int) error {
	rest := value.NewDict()
	for k, v := range a.Named.All() {
		if name := value.Str(k); !m.has(name) {
			rest.Set(name, v)
		}
	}
	if caller, ok := rest.Get("caller"); ok && m.sig.caller {
		f.scope.set("caller", caller)
		rest.Delete("caller")
	} else if m.sig.caller && !m.has("caller") {
		f.scope.set("caller", &value.Undefined{Name: "caller", Hint: "use {% call " + m.sig.name + "() %}"})
	}
	if rest.Len() > 0 && !m.sig.kwargs {
		return fmt.Errorf("macro '%s' takes no argument '%s'", m.sig.name, value.Str(rest.Keys()[0]))
	}
	extra := a.Positional[min(len(m.sig.params), len(a.Positional)):]
	if len(extra) > 0 && !m.sig.varargs {
		return fmt.Errorf("macro '%s' takes at most %d arguments, not %d", m.sig.name, len(m.sig.params), len(a.Positional))
	}
	if m.sig.varargs {
		f.scope.set("varargs", append([]any{}, extra...))
	}
	if m.sig.kwargs {
		f.scope.set("kwargs", rest)
	}
	return nil
}

func (m *macro) has(param string) bool {
	for _, p := range m.sig.params {
		if p == param {
			return true
		}
	}
	return false
}

type callNode struct {
	sig  signature
	expr *expr.Expr
	at   source.Pos
	body body
}

func (n *callNode) run(f *frame) error {
	if f.muted {
		return nil
	}
	inner := &scope{outer: f.scope}
	inner.set(callerName, &macro{sig: &n.sig, at: n.at, body: n.body, frame: *f})
	v, err := n.expr.Eval(f.ctx, inner)
	if err == nil {
		err = f.data(v)
	}
	if err != nil {
		return f.fail(err, n.at)
	}
	return nil
}
