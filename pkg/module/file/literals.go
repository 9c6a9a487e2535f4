package file

import (
	"fmt"
	"time"

	"kubekey/pkg/pyregex"
	"kubekey/pkg/schema"
)

// invalid returns the problem of a literal argument if err is not nil.
func invalid(argument string, err error) []schema.Problem {
	if err == nil {
		return nil
	}
	return []schema.Problem{{Path: argument, Msg: err.Error()}}
}

// matchLimit is the time limit for matching a backtracking pattern against one text.
const matchLimit = 5 * time.Second

func compilePattern(text string, flags pyregex.Flags) (*pyregex.Regexp, error) {
	p, err := pyregex.Compile(text, flags, matchLimit)
	if err != nil {
		return nil, fmt.Errorf("the regular expression %q is not valid: %w", text, err)
	}
	return p, nil
}

// invalidPattern returns the problem of an invalid literal regular expression.
func invalidPattern(argument, pattern string) []schema.Problem {
	_, err := compilePattern(pattern, 0)
	return invalid(argument, err)
}

// CheckLiterals implements module.Checker.
func (m *LineInFile) CheckLiterals() []schema.Problem {
	var out []schema.Problem
	if m.Regexp != nil {
		out = invalidPattern("regexp", *m.Regexp)
	}
	out = append(out, invalidPattern("insertafter", place(place(m.InsertAfter, "EOF"), "BOF"))...)
	return append(out, invalidPattern("insertbefore", place(m.InsertBefore, "BOF"))...)
}

// CheckLiterals implements module.Checker.
func (m *BlockInFile) CheckLiterals() []schema.Problem {
	out := invalidPattern("insertafter", place(m.InsertAfter, "EOF"))
	return append(out, invalidPattern("insertbefore", place(m.InsertBefore, "BOF"))...)
}

// CheckLiterals implements module.Checker.
func (m *Replace) CheckLiterals() []schema.Problem {
	var out []schema.Problem
	if m.Regexp != "" { // otherwise it is a template, and its groups are unknown
		_, _, err := m.compile()
		out = invalid("regexp", err)
	}
	if _, err := m.section(); err != nil { // they form one expression: before may refer to groups of after
		out = append(out, invalidPattern("after", m.After)...)
		out = append(out, invalidPattern("before", m.Before)...)
	}
	return out
}

// CheckLiterals implements module.Checker.
func (m *Find) CheckLiterals() []schema.Problem {
	out := invalidPattern("contains", m.Contains)
	_, err := m.names(m.Patterns)
	out = append(out, invalid("patterns", err)...)
	_, err = m.names(m.Excludes)
	return append(out, invalid("excludes", err)...)
}

// CheckLiterals implements module.Checker.
func (m *Assemble) CheckLiterals() []schema.Problem { return invalidPattern("regexp", m.Regexp) }
