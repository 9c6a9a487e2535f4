// Package expr implements the expression language of playbooks, which is used in `when` and between {{ and }}. It
// is Jinja2's language as in ansible-core 2.14 to 2.18.
package expr

// Scope looks up the values of names. The variable store implements it. A value can be a value.Lazy. ok is false
// for a name that does not exist.
type Scope interface {
	Lookup(name string) (v any, ok bool, err error)
}

// Binder is a Scope that accepts the changed copies that mutating methods such as x.append(1) make. Bind sets the
// value of a name in the scope where the name is bound, which need not be the innermost one. With a Scope that is
// not a Binder, such a copy is only visible during the evaluation.
type Binder interface {
	Scope
	Bind(name string, v any)
}

// Lister is a Scope that can list its names, for lookup('varnames') and for "did you mean".
type Lister interface {
	Names() []string
}

// Names is a Scope over a Go map.
type Names map[string]any

// Lookup implements Scope.
func (n Names) Lookup(name string) (any, bool, error) {
	v, ok := n[name]
	return v, ok, nil
}

// Names implements Lister.
func (n Names) Names() []string { return sortedKeys(n) }

// Bind implements Binder.
func (n Names) Bind(name string, v any) { n[name] = v }

// Literals specifies how a backslash in a string literal is read.
type Literals int

// Escaped literals read \n as a newline (.j2 files, conditions without braces). Raw literals read a backslash as
// itself (inside {{ }} of a playbook's strings), except that \' and \" are quotes.
const (
	Escaped Literals = iota
	Raw
)
