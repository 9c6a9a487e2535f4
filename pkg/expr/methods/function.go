package methods

import (
	"errors"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

// Functions returns the global functions.
func Functions() []expr.Function {
	return []expr.Function{
		{Names: "range", Params: "start! stop step", Do: makeRange},
		{Names: "dict", Params: "mapping **", Do: makeDict},
		{Names: "namespace", Params: "mapping **", Do: makeNamespace},
		{Names: "cycler", Params: "*", Do: makeCycler},
		{Names: "joiner", Params: "sep", Do: makeJoiner},
		{Names: "now", Params: "utc fmt", Do: now},
		{Names: "undef", Params: "hint", Do: undef},
	}
}

func makeRange(_ *expr.Call, p *expr.Bound) (any, error) {
	start, stop, step := 0, p.Int("start", 0), 1
	if p.Has("stop") {
		start, stop, step = stop, p.Int("stop", 0), p.Int("step", 1)
	}
	if step == 0 {
		return nil, errors.New("the step of range() must not be zero")
	}
	out := []any{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; {
		if len(out) >= expr.MaxItems {
			return nil, expr.ErrListTooBig
		}
		out = append(out, i)
		next := i + step
		if (step > 0) != (next > i) {
			break // overflow
		}
		i = next
	}
	return out, nil
}

func makeDict(_ *expr.Call, p *expr.Bound) (any, error) {
	d, err := dictOf(p.Raw("mapping", nil))
	if err != nil {
		return nil, err
	}
	out := d.Copy()
	out.Merge(p.Named)
	return out, nil
}

// Namespace is the result of namespace(). {% set ns.x = 1 %} changes it, also from inside a loop.
type Namespace struct{ members *value.Dict }

// Attr implements Attrs.
func (n *Namespace) Attr(name string) (any, bool) { return n.members.Get(name) }

// SetAttr implements AttrSetter.
func (n *Namespace) SetAttr(name string, v any) { n.members.Set(name, v) }

// TypeName returns Python's name of the type.
func (n *Namespace) TypeName() string { return "namespace" }

// String prints the namespace as Jinja2 does.
func (n *Namespace) String() string { return "<Namespace " + value.Repr(n.members) + ">" }

func makeNamespace(c *expr.Call, p *expr.Bound) (any, error) {
	d, err := makeDict(c, p)
	if err != nil {
		return nil, err
	}
	return &Namespace{d.(*value.Dict)}, nil
}

// cycler cycles through a list, one step per call of next().
type cycler struct {
	items []any
	i     int
}

func makeCycler(_ *expr.Call, p *expr.Bound) (any, error) {
	if len(p.Rest) == 0 {
		return nil, errors.New("cycler() needs at least one item")
	}
	return &cycler{items: p.Rest}, nil
}

// Attr implements Attrs.
func (c *cycler) Attr(name string) (any, bool) {
	switch name {
	case "current":
		return c.items[c.i], true
	case "next":
		return expr.Func(func(*expr.Call, expr.Args) (any, error) {
			v := c.items[c.i]
			c.i = (c.i + 1) % len(c.items)
			return v, nil
		}), true
	case "reset":
		return expr.Func(func(*expr.Call, expr.Args) (any, error) {
			c.i = 0
			return nil, nil
		}), true
	}
	return nil, false
}

// joiner yields nothing the first time and its separator afterwards.
type joiner struct {
	sep  string
	used bool
}

func makeJoiner(_ *expr.Call, p *expr.Bound) (any, error) {
	return &joiner{sep: p.Str("sep", ", ")}, nil
}

// Call implements Callable.
func (j *joiner) Call(*expr.Call, expr.Args) (any, error) {
	if !j.used {
		j.used = true
		return "", nil
	}
	return j.sep, nil
}

func now(c *expr.Call, p *expr.Bound) (any, error) {
	t := c.Env.Options().Now()
	if p.Flag("utc", false) {
		t = t.In(time.UTC)
	}
	if layout := p.Str("fmt", ""); layout != "" {
		return expr.Strftime(t, layout), nil
	}
	return t, nil
}

func undef(_ *expr.Call, p *expr.Bound) (any, error) {
	return &value.Undefined{Name: "undef()", Hint: p.Str("hint", "Mandatory variable has not been overridden")}, nil
}
