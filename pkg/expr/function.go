package expr

import (
	"errors"
	"time"

	"kubekey/pkg/value"
)

// functionRows are the global functions.
func functionRows() []functionSpec {
	return []functionSpec{
		{"range", "start! stop step", makeRange},
		{"dict", "mapping **", makeDict},
		{"namespace", "mapping **", makeNamespace},
		{"cycler", "*", makeCycler},
		{"joiner", "sep", makeJoiner},
		{"now", "utc fmt", now},
		{"undef", "hint", undef},
	}
}

func makeRange(_ *Call, p *bound) (any, error) {
	start, stop, step := 0, p.int("start", 0), 1
	if p.has("stop") {
		start, stop, step = stop, p.int("stop", 0), p.int("step", 1)
	}
	if step == 0 {
		return nil, errors.New("the step of range() must not be zero")
	}
	out := []any{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; {
		if len(out) >= maxItems {
			return nil, errListTooBig
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

func makeDict(_ *Call, p *bound) (any, error) {
	d, err := dictOf(p.raw("mapping", nil))
	if err != nil {
		return nil, err
	}
	out := d.Copy()
	out.Merge(p.named)
	return out, nil
}

// Namespace is what namespace() makes: {% set ns.x = 1 %} changes it, also
// from inside a loop.
type Namespace struct{ members *value.Dict }

// Attr implements Attrs.
func (n *Namespace) Attr(name string) (any, bool) { return n.members.Get(name) }

// SetAttr implements AttrSetter.
func (n *Namespace) SetAttr(name string, v any) { n.members.Set(name, v) }

// TypeName is Python's.
func (n *Namespace) TypeName() string { return "namespace" }

// String prints the namespace as Jinja2 does.
func (n *Namespace) String() string { return "<Namespace " + value.Repr(n.members) + ">" }

func makeNamespace(c *Call, p *bound) (any, error) {
	d, err := makeDict(c, p)
	if err != nil {
		return nil, err
	}
	return &Namespace{d.(*value.Dict)}, nil
}

// cycler walks around a list, one step a next().
type cycler struct {
	items []any
	i     int
}

func makeCycler(_ *Call, p *bound) (any, error) {
	if len(p.rest) == 0 {
		return nil, errors.New("cycler() needs at least one item")
	}
	return &cycler{items: p.rest}, nil
}

// Attr implements Attrs.
func (c *cycler) Attr(name string) (any, bool) {
	switch name {
	case "current":
		return c.items[c.i], true
	case "next":
		return Func(func(*Call, Args) (any, error) {
			v := c.items[c.i]
			c.i = (c.i + 1) % len(c.items)
			return v, nil
		}), true
	case "reset":
		return Func(func(*Call, Args) (any, error) {
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

func makeJoiner(_ *Call, p *bound) (any, error) {
	return &joiner{sep: p.str("sep", ", ")}, nil
}

// Call implements Callable.
func (j *joiner) Call(*Call, Args) (any, error) {
	if !j.used {
		j.used = true
		return "", nil
	}
	return j.sep, nil
}

func now(c *Call, p *bound) (any, error) {
	t := c.Env.Options().Now()
	if p.flag("utc", false) {
		t = t.In(time.UTC)
	}
	if layout := p.str("fmt", ""); layout != "" {
		return strftime(t, layout), nil
	}
	return t, nil
}

func undef(_ *Call, p *bound) (any, error) {
	return &value.Undefined{Name: "undef()", Hint: p.str("hint", "Mandatory variable has not been overridden")}, nil
}
