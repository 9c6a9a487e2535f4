package expr

import (
	"strings"

	"kubekey/pkg/value"
)

// Library is a set of rows that expressions can call.
type Library struct {
	Filters   []Filter
	Tests     []Test
	Lookups   []Lookup
	Functions []Function
	Methods   Methods
}

// Filter is one row of the table of filters: names, parameters and function. The function's in is forced, and
// defined unless UndefinedToo.
type Filter struct {
	Names        string
	Params       string
	Do           func(c *Call, in any, p *Bound) (any, error)
	UndefinedToo bool
	Of           string // the Ansible collections that contain it; "" means ansible.builtin
}

// filter makes the row callable: it checks the arguments and adds the filter's name to errors.
func (s Filter) filter(name string) filter {
	sig := parseSignature(name, s.Params)
	return func(c *Call, in any, a Args) (any, error) {
		in, err := value.Force(in)
		if err != nil {
			return nil, err
		}
		if !s.UndefinedToo {
			if in, err = lenient(in); err != nil {
				return nil, err
			}
		}
		p, err := sig.bind(a)
		if err != nil {
			return nil, err
		}
		out, err := s.Do(c, in, p)
		if p.Err != nil {
			err = p.Err
		}
		return out, named(name, err)
	}
}

// Test is one row of the table of tests: names, parameters (see signature) and function. The function's in is
// forced, and defined unless UndefinedToo.
type Test struct {
	Names        string
	Params       string
	UndefinedToo bool
	Of           string // see Filter
	Do           func(c *Call, in any, p *Bound) (bool, error)
}

func (s Test) test(name string) test {
	sig := parseSignature("the test "+name, s.Params)
	return func(c *Call, in any, a Args) (bool, error) {
		in, err := value.Force(in)
		if err != nil {
			return false, err
		}
		if u, ok := in.(*value.Undefined); ok && !s.UndefinedToo {
			if !u.Lenient {
				return false, u
			}
			in = ""
		}
		p, err := sig.bind(a)
		if err != nil {
			return false, err
		}
		ok, err := s.Do(c, in, p)
		if p.Err != nil {
			err = p.Err
		}
		return ok, err
	}
}

// Lookup is one row of the table of lookups: names, named parameters, and the function for its terms (the
// positional arguments).
type Lookup struct {
	Names  string
	Params string
	Do     func(c *Call, terms []any, p *Bound) ([]any, error)
	Of     string // see Filter
}

// function makes the row callable: terms must be defined, named arguments must exist.
func (s Lookup) function(name string) function {
	sig := parseSignature(name, s.Params)
	return func(c *Call, a Args) (any, error) {
		p, err := sig.bind(Args{Named: a.Named})
		if err != nil {
			return nil, err
		}
		terms := make([]any, len(a.Positional))
		for i, term := range a.Positional {
			if terms[i], err = Defined(term); err != nil {
				return nil, err
			}
		}
		out, err := s.Do(c, terms, p)
		if p.Err != nil {
			err = p.Err
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

// Function is one row of the table of global functions: names, parameters and function.
type Function struct {
	Names, Params string
	Do            func(c *Call, p *Bound) (any, error)
}

func (s Function) function(name string) function {
	sig := parseSignature(name+"()", s.Params)
	return func(c *Call, a Args) (any, error) {
		p, err := sig.bind(a)
		if err != nil {
			return nil, err
		}
		v, err := s.Do(c, p)
		if p.Err != nil {
			err = p.Err
		}
		return v, err
	}
}

// add adds the rows to the tables of an Env that is being created.
func (e *Env) add(l Library) {
	for _, row := range l.Filters {
		e.collect(row.Of)
		for name := range strings.FieldsSeq(row.Names) {
			e.filters[name] = row.filter(name)
		}
	}
	for _, row := range l.Tests {
		e.collect(row.Of)
		for name := range strings.FieldsSeq(row.Names) {
			e.tests[name] = row.test(name)
		}
	}
	for _, row := range l.Lookups {
		e.collect(row.Of)
		for name := range strings.FieldsSeq(row.Names) {
			e.lookups[name] = row.function(name)
		}
	}
	for _, row := range l.Functions {
		for name := range strings.FieldsSeq(row.Names) {
			e.functions[name] = row.function(name)
		}
	}
	e.methods.add(l.Methods)
}

func (e *Env) collect(collections string) {
	for name := range strings.FieldsSeq(collections) {
		e.collections[name] = true
	}
}
