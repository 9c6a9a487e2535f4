package playbook

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Type is the type of a keyword. Convert is the only place that knows which values a type accepts. Literals are
// converted when they are read, results of templates during the run.
type Type string

// The types of keywords.
const (
	Bool      Type = "bool"
	Count     Type = "int"        // not negative
	Port      Type = "port"       // 1 to 65535
	Seconds   Type = "seconds"    // not negative
	Percent   Type = "percentage" // not negative; the % is optional
	Batch     Type = "int or percentage"
	Text      Type = "string"
	Address   Type = "address"       // of a host
	List      Type = "list"          // of strings, or one string
	Files     Type = "list of files" // of names, and of lists of them
	Map       Type = "dict"
	Any       Type = "any"
	Steps     Type = "list of tasks"
	Condition Type = "condition or list of conditions"

	Connection   Type = "connection"
	BecomeMethod Type = "become method"
	Strategy     Type = "strategy"
	Order        Type = "order"
	Debugger     Type = "debugger"
	Registered   Type = "register type"
)

// choices returns the words that a type accepts; nil if it accepts other values.
func (t Type) choices() []string {
	switch t {
	case Connection:
		return []string{"ssh", "local"}
	case BecomeMethod:
		return []string{"sudo", "su"}
	case Strategy:
		return []string{"linear", "free", "host_pinned"}
	case Order:
		return []string{"inventory", "sorted", "reverse_sorted", "reverse_inventory", "shuffle"}
	case Debugger:
		return []string{"always", "never", "on_failed", "on_unreachable", "on_skipped"}
	case Registered:
		return []string{"string", "json", "yaml"}
	}
	return nil
}

// Synonym maps Ansible's alternative words to the one that kk uses.
func (t Type) Synonym(word string) string {
	word = strings.TrimPrefix(word, "ansible.builtin.")
	if t == Connection && slices.Contains([]string{"smart", "paramiko", "paramiko_ssh"}, word) {
		return "ssh"
	}
	return word
}

// String returns the name of the type in the manual.
func (t Type) String() string {
	if t.choices() != nil {
		return string(Text)
	}
	return string(t)
}

// Share is a value of type Batch that is a percentage of the hosts.
type Share float64

// TypeError reports a value of the wrong type.
type TypeError struct {
	Want    string   // "true or false"
	Choices []string // the accepted words, if limited
	Got     any
}

// Error returns the text that follows the name of the keyword: "must be true or false, not 'maybe'".
func (e *TypeError) Error() string {
	if help := e.Help(); help != "" {
		return e.Problem() + ": " + help
	}
	return e.Problem()
}

// Problem returns the error without the help.
func (e *TypeError) Problem() string {
	switch {
	case !isScalar(e.Got):
		return fmt.Sprintf("must be %s, not a %s", e.Want, value.TypeName(e.Got))
	case e.Choices != nil:
		return fmt.Sprintf("%q is not supported", value.Str(e.Got))
	}
	return fmt.Sprintf("must be %s, not %s", e.Want, value.Repr(e.Got))
}

// Help returns the most likely word, or all accepted words; "" if any value is accepted.
func (e *TypeError) Help() string {
	if e.Choices == nil || !isScalar(e.Got) {
		return ""
	}
	if near := source.DidYouMean(value.Str(e.Got), e.Choices); near != "" {
		return near
	}
	return "choose one of: " + strings.Join(e.Choices, ", ")
}

// Convert returns v as the type's Go value: bool, int (Count, Port, Batch), Share, time.Duration (Seconds), float64
// (Percent) or string. Values of the other types are returned unchanged. The error is a *TypeError, or the error of a
// value that cannot be evaluated.
func (t Type) Convert(v any) (any, error) {
	v, err := value.Force(v)
	if err != nil {
		return nil, err
	}
	out, want := t.convert(v)
	if want == "" {
		return out, nil
	}
	return nil, &TypeError{Want: want, Choices: t.choices(), Got: v}
}

func (t Type) convert(v any) (out any, want string) {
	if words := t.choices(); words != nil {
		word, ok := v.(string)
		word = t.Synonym(word)
		return word, unless(ok && slices.Contains(words, word), "a string")
	}
	text := strings.TrimSpace(value.Str(v))
	switch t {
	case Bool:
		b, ok := boolean(v)
		return b, unless(ok, "true or false")
	case Count:
		return count(text, "a whole number")
	case Port:
		n, err := strconv.Atoi(text)
		return n, unless(err == nil && n > 0 && n <= math.MaxUint16, "a number from 1 to 65535")
	case Seconds:
		f, want := number(text, "a number of seconds")
		if f > math.MaxInt64/1e9 {
			want = "a number of seconds"
		}
		return time.Duration(f * float64(time.Second)), want
	case Percent:
		return number(strings.TrimSuffix(text, "%"), "a number")
	case Batch:
		if share, ok := strings.CutSuffix(text, "%"); ok {
			f, want := number(share, "a number or a percentage")
			return Share(f), want
		}
		return count(text, "a number or a percentage")
	case Address:
		return v, unless(isScalar(v) && text != "" && !strings.ContainsAny(text, " \t\n"), "the name or address of a host")
	case Text:
		return v, unless(isScalar(v), "a string")
	case List, Files:
		list, ok := v.([]any)
		return v, unless(!ok && isScalar(v) || ok && !slices.ContainsFunc(list, isNested), "a string or a list of strings")
	case Map:
		_, ok := v.(*value.Dict)
		return v, unless(ok, "a mapping")
	}
	return v, ""
}

func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

func isScalar(v any) bool {
	switch v.(type) {
	case []any, *value.Dict:
		return false
	}
	return true
}

func isNested(v any) bool { return !isScalar(v) }

// count parses a whole number that is not negative.
func count(text, what string) (n int, want string) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, what
	case n < 0:
		return 0, "0 or more"
	}
	return n, ""
}

// number parses a finite number that is not negative.
func number(text, what string) (f float64, want string) {
	f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil || math.IsNaN(f) || math.IsInf(f, 0):
		return 0, what
	case f < 0:
		return 0, "0 or more"
	}
	return f, ""
}

// boolean parses true or false in the spellings of the language.
func boolean(v any) (on, ok bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "yes", "on", "true", "1", "t", "y":
			return true, true
		case "", "no", "off", "false", "0", "n", "f", "none":
			return false, true
		}
	case int:
		return v == 1, v == 0 || v == 1
	}
	return false, false
}
