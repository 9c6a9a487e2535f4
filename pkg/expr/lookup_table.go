package expr

import (
	"strings"

	"kubekey/pkg/value"
)

// lookupSpec is one row of the table of lookups: names, named parameters, and
// what it does with its terms (the positional arguments).
type lookupSpec struct {
	names  string
	params string
	do     func(c *Call, terms []any, p *bound) ([]any, error)
}

// builtinLookups returns the lookups that every Env has, by short name.
func builtinLookups() map[string]function {
	table := map[string]function{}
	for _, rows := range [][]lookupSpec{listLookups(), fileLookups(), variableLookups(), secretLookups()} {
		for _, row := range rows {
			for _, name := range strings.Fields(row.names) {
				table[name] = row.function(name)
			}
		}
	}
	return table
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

// eachTerm calls do with the text of every term; a term that is a list is several.
func eachTerm(terms []any, do func(term string) error) error {
	flat, err := flatten(terms, 1, false, 0)
	if err != nil {
		return err
	}
	for _, term := range flat {
		s, err := plainText(term)
		if err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

// mapTerms is one result for the text of every term.
func mapTerms(terms []any, do func(term string) (any, error)) ([]any, error) {
	var out []any
	err := eachTerm(terms, func(term string) error {
		v, err := do(term)
		out = append(out, v)
		return err
	})
	return out, err
}

// scopeValue is a variable of the scope, forced; a *value.Undefined when there is none.
func scopeValue(c *Call, name string) (any, error) {
	if c.Scope == nil {
		return &value.Undefined{Name: name}, nil
	}
	v, ok, err := c.Scope.Lookup(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return &value.Undefined{Name: name}, nil
	}
	return value.Force(v)
}
