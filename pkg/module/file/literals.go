package file

import "kubekey/pkg/schema"

// invalid is what is wrong with a literal argument, if err says so.
func invalid(argument string, err error) []schema.Problem {
	if err == nil {
		return nil
	}
	return []schema.Problem{{Path: argument, Msg: err.Error()}}
}

// invalidPattern is what is wrong with a literal regular expression.
func invalidPattern(argument, pattern, flags string) []schema.Problem {
	_, err := compilePattern(pattern, flags)
	return invalid(argument, err)
}

// CheckLiterals implements module.Checker.
func (m *LineInFile) CheckLiterals() []schema.Problem {
	var out []schema.Problem
	if m.Regexp != nil {
		out = invalidPattern("regexp", *m.Regexp, "")
	}
	out = append(out, invalidPattern("insertafter", place(place(m.InsertAfter, "EOF"), "BOF"), "")...)
	return append(out, invalidPattern("insertbefore", place(m.InsertBefore, "BOF"), "")...)
}

// CheckLiterals implements module.Checker.
func (m *BlockInFile) CheckLiterals() []schema.Problem {
	out := invalidPattern("insertafter", place(m.InsertAfter, "EOF"), "")
	return append(out, invalidPattern("insertbefore", place(m.InsertBefore, "BOF"), "")...)
}

// CheckLiterals implements module.Checker.
func (m *Replace) CheckLiterals() []schema.Problem {
	out := invalidPattern("regexp", m.Regexp, "m")
	out = append(out, invalidPattern("after", m.After, "s")...)
	return append(out, invalidPattern("before", m.Before, "s")...)
}

// CheckLiterals implements module.Checker.
func (m *Find) CheckLiterals() []schema.Problem {
	out := invalidPattern("contains", m.Contains, "")
	_, err := m.names(m.Patterns)
	out = append(out, invalid("patterns", err)...)
	_, err = m.names(m.Excludes)
	return append(out, invalid("excludes", err)...)
}

// CheckLiterals implements module.Checker.
func (m *Assemble) CheckLiterals() []schema.Problem { return invalidPattern("regexp", m.Regexp, "") }
