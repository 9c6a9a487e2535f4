// Package expr is the expression language of playbooks: what stands in `when`
// and between {{ and }}. It is Jinja2's, as ansible-core 2.14 to 2.18 have it.
package expr

// Scope gives names their values. The variable store implements it; a value
// may be a value.Lazy. ok is false for a name that does not exist.
type Scope interface {
	Lookup(name string) (v any, ok bool, err error)
}

// Binder is a Scope that takes the changed copies that mutating methods
// (x.append(1)) make: Bind gives a name a new value where the name is bound,
// which need not be the innermost scope. With a Scope that is no Binder such
// a copy lasts as long as the evaluation.
type Binder interface {
	Scope
	Bind(name string, v any)
}

// Lister is a Scope that knows the names it has, for lookup('varnames') and
// for "did you mean".
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

// Literals says how a backslash in a string literal is read.
type Literals int

// Escaped literals read \n as a newline (.j2 files, bare conditions); Raw ones
// read a backslash as itself (inside {{ }} of a playbook's strings), but \' and \" still quote.
const (
	Escaped Literals = iota
	Raw
)
