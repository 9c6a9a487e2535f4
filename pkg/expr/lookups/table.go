// Package lookups implements the lookups that every playbook has.
package lookups

import (
	"slices"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/value"
)

// Rows returns all lookups.
func Rows() []expr.Lookup {
	return slices.Concat(listLookups(), fileLookups(), variableLookups(), secretLookups())
}

// eachTerm calls do with the text of every term. A list counts as several terms.
func eachTerm(terms []any, do func(term string) error) error {
	flat, err := filters.Flatten(terms, 1, false, 0)
	if err != nil {
		return err
	}
	for _, term := range flat {
		s, err := expr.Text(term)
		if err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

// mapTerms returns one result for the text of every term.
func mapTerms(terms []any, do func(term string) (any, error)) ([]any, error) {
	var out []any
	err := eachTerm(terms, func(term string) error {
		v, err := do(term)
		out = append(out, v)
		return err
	})
	return out, err
}

// scopeValue returns a variable of the scope, forced; a *value.Undefined when there is none.
func scopeValue(c *expr.Call, name string) (any, error) {
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
