package sql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kubekey/pkg/value"
)

// mysqlPrivs are privileges grouped by their object: `db`.`table`, `db`.*, *.*, FUNCTION `db`.`f`. GRANT in a group
// is the grant option.
type mysqlPrivs struct {
	on    []string // in order
	privs map[string][]string
}

func (p *mysqlPrivs) set(on string, privs []string) {
	if p.privs == nil {
		p.privs = map[string][]string{}
	}
	if _, there := p.privs[on]; !there {
		p.on = append(p.on, on)
	}
	p.privs[on] = privs
}

func (p *mysqlPrivs) equal(q *mysqlPrivs) bool {
	return len(p.on) == len(q.on) &&
		!slices.ContainsFunc(p.on, func(on string) bool { return !slices.Equal(p.privs[on], q.privs[on]) })
}

// desiredPrivs parses the argument priv: db.table:PRIV,PRIV/db.table:PRIV, or a mapping of db.table to PRIV,PRIV.
func desiredPrivs(v any) (*mysqlPrivs, error) {
	out := &mysqlPrivs{}
	add := func(on, privs string) error {
		name, err := privTarget(on)
		if err == nil {
			out.set(name, privList(privs))
		}
		return err
	}
	switch v := v.(type) {
	case *value.Dict:
		for _, key := range v.Keys() {
			privs, _ := v.Get(key)
			if err := add(value.Str(key), value.Str(privs)); err != nil {
				return nil, err
			}
		}
	default:
		for _, part := range strings.Split(value.Str(v), "/") {
			on, privs, ok := cutLast(strings.TrimSpace(part), ":")
			if !ok {
				return nil, fmt.Errorf("priv: %q is not DATABASE.TABLE:PRIVILEGE,PRIVILEGE", part)
			}
			if err := add(on, privs); err != nil {
				return nil, err
			}
		}
	}
	if _, there := out.privs["*.*"]; !there {
		out.set("*.*", []string{"USAGE"}) // reported by the server for a user without privileges
	}
	return out, nil
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// privTarget returns the object of privileges, quoted as the server does.
func privTarget(s string) (string, error) {
	kind := ""
	for _, k := range []string{"FUNCTION", "PROCEDURE", "TABLE"} {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(s), k+" "); ok {
			kind, s = k+" ", rest
		}
	}
	db, table, ok := cutLast(strings.TrimSpace(s), ".")
	if !ok || db == "" || table == "" {
		return "", fmt.Errorf("priv: %q is not DATABASE.TABLE", s)
	}
	if kind == "TABLE " {
		kind = ""
	}
	return kind + privName(db) + "." + privName(table), nil
}

func privName(s string) string {
	if s == "*" {
		return s
	}
	return mysqlName(strings.ReplaceAll(strings.Trim(s, "`'\""), "``", "`"))
}

// privList splits privileges at commas outside of parentheses. The result is sorted and in the server's spelling.
func privList(s string) []string {
	var out []string
	depth, from := 0, 0
	add := func(p string) {
		if p = privWord(p); p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for i, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			add(s[from:i])
			from = i + 1
		}
	}
	add(s[from:])
	slices.Sort(out)
	return out
}

func privWord(p string) string {
	word, columns, ok := strings.Cut(strings.TrimSpace(p), "(")
	word = strings.ToUpper(strings.Join(strings.Fields(word), " "))
	switch word {
	case "ALL PRIVILEGES":
		word = "ALL"
	case "GRANT OPTION":
		word = "GRANT"
	}
	if !ok {
		return word
	}
	var names []string
	for _, n := range strings.Split(strings.TrimSuffix(strings.TrimSpace(columns), ")"), ",") {
		names = append(names, privName(strings.TrimSpace(n)))
	}
	slices.Sort(names)
	return word + " (" + strings.Join(names, ", ") + ")"
}

// granted matches a line of SHOW GRANTS.
var granted = regexp.MustCompile("(?s)^GRANT (.+?) ON ((?:FUNCTION |PROCEDURE " +
	")?(?:`(?:[^`]|``)*`|\\*|'[^']*')(?:[.@](?:`(?:[^`]|``)*`|\\*|'[^']*'))) TO (.*)$")

// grantedPrivs parses the output of SHOW GRANTS. Roles do not count as privileges.
func grantedPrivs(rows mysqlRows) *mysqlPrivs {
	out := &mysqlPrivs{}
	for _, row := range rows.body() {
		m := granted.FindStringSubmatch(row[0])
		if m == nil {
			continue
		}
		privs := privList(m[1])
		if strings.Contains(m[3], " WITH GRANT OPTION") {
			privs = append(privs, "GRANT")
			slices.Sort(privs)
		}
		if had, twice := out.privs[m[2]]; twice { // static and dynamic privileges are on separate lines
			privs = append(privs, had...)
			slices.Sort(privs)
			privs = slices.Compact(privs)
		}
		out.set(m[2], privs)
	}
	return out
}

// grantStatement returns the statement that grants privileges. GRANT among them is the grant option.
func grantStatement(privs []string, on, user string) string {
	rest := without(privs, "GRANT")
	if len(rest) == 0 {
		rest = []string{"USAGE"}
	}
	s := fmt.Sprintf("GRANT %s ON %s TO %s", strings.Join(rest, ", "), on, user)
	if slices.Contains(privs, "GRANT") {
		s += " WITH GRANT OPTION"
	}
	return s
}

// revokeStatements returns the statements that revoke privileges.
func revokeStatements(privs []string, on, user string) []string {
	var out []string
	if slices.Contains(privs, "GRANT") {
		out = append(out, fmt.Sprintf("REVOKE GRANT OPTION ON %s FROM %s", on, user))
	}
	if rest := without(without(privs, "GRANT"), "USAGE"); len(rest) > 0 {
		out = append(out, fmt.Sprintf("REVOKE %s ON %s FROM %s", strings.Join(rest, ", "), on, user))
	}
	return out
}

func without(list []string, word string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == word })
}
