package expr

import (
	"strings"

	"kubekey/pkg/value"
)

// Library is what expressions may call, as rows.
type Library struct {
	filters   []filterSpec
	tests     []testSpec
	lookups   []lookupSpec
	functions []functionSpec
	methods   Methods
}

// filterSpec is one row of the table of filters: its names, its parameters,
// what it does. in is forced, and defined unless undefinedToo.
type filterSpec struct {
	names        string
	params       string
	do           func(c *Call, in any, p *bound) (any, error)
	undefinedToo bool
	of           string // the collections of Ansible that it is in, ansible.builtin if none
}

// filter makes the row callable: arguments are checked and errors say whose they are.
func (s filterSpec) filter(name string) filter {
	sig := parseSignature(name, s.params)
	return func(c *Call, in any, a Args) (any, error) {
		in, err := value.Force(in)
		if err != nil {
			return nil, err
		}
		if !s.undefinedToo {
			if in, err = lenient(in); err != nil {
				return nil, err
			}
		}
		p, err := sig.bind(a)
		if err != nil {
			return nil, err
		}
		out, err := s.do(c, in, p)
		if p.err != nil {
			err = p.err
		}
		return out, named(name, err)
	}
}

// testSpec is one row of the table of tests: its names, its parameters (see
// signature), what it says. in is forced, and defined unless undefinedToo.
type testSpec struct {
	names        string
	params       string
	undefinedToo bool
	of           string // as that of a Filter
	do           func(c *Call, in any, p *bound) (bool, error)
}

func (s testSpec) test(name string) test {
	sig := parseSignature("the test "+name, s.params)
	return func(c *Call, in any, a Args) (bool, error) {
		in, err := value.Force(in)
		if err != nil {
			return false, err
		}
		if u, ok := in.(*value.Undefined); ok && !s.undefinedToo {
			if !u.Lenient {
				return false, u
			}
			in = ""
		}
		p, err := sig.bind(a)
		if err != nil {
			return false, err
		}
		ok, err := s.do(c, in, p)
		if p.err != nil {
			err = p.err
		}
		return ok, err
	}
}

// lookupSpec is one row of the table of lookups: names, named parameters, and
// what it does with its terms (the positional arguments).
type lookupSpec struct {
	names  string
	params string
	do     func(c *Call, terms []any, p *bound) ([]any, error)
	of     string // as that of a Filter
}

// function makes the row callable: terms must be defined, named arguments known.
func (s lookupSpec) function(name string) function {
	sig := parseSignature(name, s.params)
	return func(c *Call, a Args) (any, error) {
		p, err := sig.bind(Args{Named: a.Named})
		if err != nil {
			return nil, err
		}
		terms := make([]any, len(a.Positional))
		for i, term := range a.Positional {
			if terms[i], err = defined(term); err != nil {
				return nil, err
			}
		}
		out, err := s.do(c, terms, p)
		if p.err != nil {
			err = p.err
		}
		if err != nil {
			return nil, named(name, err)
		}
		if out == nil {
			out = []any{}
		}
		return out, nil
	}
}

// functionSpec is one row of the table of global functions: names, parameters, what it does.
type functionSpec struct {
	names, params string
	do            func(c *Call, p *bound) (any, error)
}

func (s functionSpec) function(name string) function {
	sig := parseSignature(name+"()", s.params)
	return func(c *Call, a Args) (any, error) {
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

// add puts the rows into the tables of an Env that is being made.
func (e *Env) add(l Library) {
	for _, row := range l.filters {
		e.collect(row.of)
		for name := range strings.FieldsSeq(row.names) {
			e.filters[name] = row.filter(name)
		}
	}
	for _, row := range l.tests {
		e.collect(row.of)
		for name := range strings.FieldsSeq(row.names) {
			e.tests[name] = row.test(name)
		}
	}
	for _, row := range l.lookups {
		e.collect(row.of)
		for name := range strings.FieldsSeq(row.names) {
			e.lookups[name] = row.function(name)
		}
	}
	for _, row := range l.functions {
		for name := range strings.FieldsSeq(row.names) {
			e.functions[name] = row.function(name)
		}
	}
	e.methods.add(l.methods)
}

func (e *Env) collect(collections string) {
	for name := range strings.FieldsSeq(collections) {
		e.collections[name] = true
	}
}

// Standard is everything that is built in.
func Standard() Library {
	return Library{filters: filterRows(), tests: testRows(), lookups: lookupRows(), functions: functionRows(), methods: methodRows()}
}
