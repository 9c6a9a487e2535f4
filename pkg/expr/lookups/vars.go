package lookups

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/value"
)

func variableLookups() []expr.Lookup {
	return []expr.Lookup{
		{Names: "env", Params: "default", Do: lookupEnv},
		{Names: "vars", Params: "default", Do: lookupVars},
		{Names: "varnames", Do: lookupVarNames},
		{Names: "config", Params: "on_missing", Do: lookupConfig},
		{Names: "inventory_hostnames", Do: lookupInventoryHostnames},
	}
}

func lookupEnv(_ *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		name, _, _ := strings.Cut(strings.TrimSpace(term), " ")
		if v, ok := os.LookupEnv(name); ok {
			return v, nil
		}
		return p.Value("default", ""), nil
	})
}

func lookupVars(c *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		v, err := scopeValue(c, term)
		if err != nil {
			return nil, err
		}
		u, ok := v.(*value.Undefined)
		switch {
		case !ok:
			return v, nil
		case p.Has("default"):
			return p.Value("default", nil), nil
		}
		return nil, u
	})
}

// lookupVarNames lists the variables whose name matches a pattern.
func lookupVarNames(c *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	names, err := scopeNames(c.Scope)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	re := filters.NewPatterns()
	var out []any
	err = eachTerm(terms, func(term string) error {
		m, err := re.Get(term, 0)
		if err != nil {
			return err
		}
		for _, name := range names {
			found, err := m.Matches(name)
			if err != nil {
				return err
			}
			if found {
				out = append(out, name)
			}
		}
		return nil
	})
	return out, err
}

func scopeNames(s expr.Scope) ([]string, error) {
	if l, ok := s.(expr.Lister); ok {
		return l.Names(), nil
	}
	return nil, fmt.Errorf("the names of all variables are not known here")
}

// lookupConfig returns those options of Ansible's configuration that have a meaning in kk.
func lookupConfig(_ *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	known := map[string]any{
		"DEFAULT_ROLES_PATH": []any{"roles"}, "RETRY_FILES_ENABLED": false, "DEFAULT_HASH_BEHAVIOUR": "replace",
		"DEFAULT_UNDEFINED_VAR_BEHAVIOR": true, "DEFAULT_JINJA2_NATIVE": false, "HOST_KEY_CHECKING": true,
	}
	missing := p.Str("on_missing", "error")
	var out []any
	err := eachTerm(terms, func(term string) error {
		v, ok := known[term]
		switch {
		case ok:
			out = append(out, v)
		case missing == "error":
			return fmt.Errorf("there is no setting %q (on_missing='skip' passes over it)", term)
		}
		return nil
	})
	return out, err
}

// lookupInventoryHostnames lists the hosts of a pattern: groups, hosts and globs joined with ":" or ",", each with
// an optional ! to exclude or & to intersect.
func lookupInventoryHostnames(c *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	v, err := scopeValue(c, "groups")
	if err != nil {
		return nil, err
	}
	groups, err := expr.AsDict(v)
	if err != nil {
		return nil, err
	}
	var words []string
	if err := eachTerm(terms, func(term string) error {
		words = append(words, strings.FieldsFunc(term, func(r rune) bool { return r == ':' || r == ',' || r == ' ' })...)
		return nil
	}); err != nil {
		return nil, err
	}
	return selectHosts(groups, words)
}

func selectHosts(groups *value.Dict, words []string) ([]any, error) {
	out, plain := []any{}, false
	for _, word := range words {
		plain = plain || word[0] != '!' && word[0] != '&'
	}
	if !plain {
		words = append([]string{"all"}, words...)
	}
	// Additions come first, then intersections, then exclusions.
	for _, kind := range []byte{'+', '&', '!'} {
		for _, word := range words {
			is := byte('+')
			if word[0] == '!' || word[0] == '&' {
				is, word = word[0], word[1:]
			}
			if is != kind {
				continue
			}
			hosts, err := hostsOf(groups, word)
			if err != nil {
				return nil, err
			}
			switch kind {
			case '+':
				out = filters.Union(out, hosts)
			case '&':
				out = filters.Intersect(out, hosts)
			default:
				out = filters.Difference(out, hosts)
			}
		}
	}
	return out, nil
}

// hostsOf returns the hosts of the groups that match a glob, and the hosts that match it themselves.
func hostsOf(groups *value.Dict, glob string) ([]any, error) {
	all, _ := groups.Get("all")
	everyone, err := filters.DefinedItems(all)
	if err != nil {
		return nil, err
	}
	if glob == "all" || glob == "*" {
		return everyone, nil
	}
	var out []any
	for name, hosts := range groups.All() {
		if ok, _ := path.Match(glob, value.Str(name)); !ok {
			continue
		}
		list, err := filters.DefinedItems(hosts)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	for _, host := range everyone {
		if ok, _ := path.Match(glob, value.Str(host)); ok {
			out = append(out, host)
		}
	}
	return out, nil
}
