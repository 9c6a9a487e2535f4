package expr

import (
	"errors"
	"fmt"
	"time"

	"kubekey/pkg/value"
)

// functionSpec is one row of the table of global functions; see signature for params.
type functionSpec struct {
	name, params string
	do           func(c *Call, p *bound) (any, error)
}

// builtinFunctions are the global functions.
func builtinFunctions() map[string]function {
	specs := []functionSpec{
		{"range", "start! stop step", makeRange},
		{"dict", "mapping **", makeDict},
		{"namespace", "mapping **", makeNamespace},
		{"cycler", "*", makeCycler},
		{"joiner", "sep", makeJoiner},
		{"now", "utc fmt", now},
		{"undef", "hint", undef},
	}
	table := make(map[string]function, len(specs)+3)
	for _, s := range specs {
		sig := parseSignature(s.name+"()", s.params)
		table[s.name] = func(c *Call, a Args) (any, error) {
			p, err := sig.bind(a)
			if err != nil {
				return nil, err
			}
			v, err := s.do(c, p)
			if p.err != nil {
				err = p.err
			}
			return v, err
		}
	}
	table["lookup"] = func(c *Call, a Args) (any, error) { return lookup(c, a, false) }
	table["query"] = func(c *Call, a Args) (any, error) { return lookup(c, a, true) }
	table["q"] = table["query"]
	return table
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
	t := c.Env.opts.Now()
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

// lookup runs a lookup plugin. Texts that it finds are joined with commas
// unless a list is wanted; a single value that is no text stands for itself,
// and what found nothing is an empty list.
func lookup(c *Call, a Args, list bool) (any, error) {
	name, a, err := lookupName(a)
	if err != nil {
		return nil, err
	}
	fn, err := c.Env.lookup(name)
	if err != nil {
		return nil, err
	}
	onError := "strict"
	if a.Named.Len() > 0 {
		a.Named = a.Named.Copy()
		if v, ok := a.Named.Get("wantlist"); ok {
			list = value.Truth(v)
		}
		if s := a.Named.String("errors"); s != "" {
			onError = s
		}
		a.Named.Delete("wantlist")
		a.Named.Delete("errors")
	}
	found, err := fn(c, a)
	switch {
	case err == nil:
		return joinFound(found, list)
	case asUndefined(err) != nil:
		return nil, err // no option hides an undefined name
	case onError == "strict" || c.Context != nil && c.Context.Err() != nil:
		return nil, fmt.Errorf("lookup '%s': %w", name, err)
	case list:
		return []any{}, nil
	}
	return nil, nil
}

func lookupName(a Args) (string, Args, error) {
	if len(a.Positional) == 0 {
		return "", a, errors.New("a lookup needs the name of a plugin")
	}
	v, err := defined(a.Positional[0])
	if err != nil {
		return "", a, err
	}
	name, ok := v.(string)
	if !ok {
		return "", a, fmt.Errorf("the name of a lookup must be a string, not '%s'", value.TypeName(v))
	}
	a.Positional = a.Positional[1:]
	return name, a, nil
}

func joinFound(found any, list bool) (any, error) {
	all, ok := found.([]any)
	if list || !ok {
		if !ok && list {
			return []any{found}, nil
		}
		return found, nil
	}
	if len(all) == 0 {
		return []any{}, nil
	}
	text := ""
	for i, v := range all {
		s, ok := v.(string)
		switch {
		case ok && i > 0:
			text += "," + s
		case ok:
			text = s
		case len(all) == 1:
			return v, nil
		default:
			return all, nil
		}
	}
	return text, nil
}
