package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"kubekey/pkg/pyregex"
	"kubekey/pkg/value"
)

// textTests look at strings. The table keeps compiled patterns.
func textTests() []testSpec {
	re := newPatterns()
	const params = "pattern! ignorecase multiline"
	return []testSpec{
		{names: "match", params: params, do: re.tester("match")},
		{names: "search", params: params, do: re.tester("search")},
		{names: "regex", params: params + " match_type", do: re.tester("search")},
		{names: "version version_compare", params: "version! operator strict version_type", do: testVersion},
		{names: "vault_encrypted", do: func(_ *Call, in any, _ *bound) (bool, error) {
			s, ok := in.(string)
			return ok && strings.HasPrefix(s, "$ANSIBLE_VAULT"), nil
		}},
		{names: "uri", params: "schemes", do: testURI(func(*value.Dict) bool { return true })},
		{names: "url", params: "schemes", do: testURI(func(u *value.Dict) bool {
			return u.String("netloc") != "" || u.String("scheme") == "file"
		})},
		{names: "urn", do: testURI(func(u *value.Dict) bool { return u.String("scheme") == "urn" })},
	}
}

func (ps *patterns) tester(how string) func(*Call, any, *bound) (bool, error) {
	return func(_ *Call, in any, p *bound) (bool, error) {
		text, err := subject(in)
		if err != nil {
			return false, err
		}
		kind, pattern, flags := p.str("match_type", how), p.str("pattern", ""), patternFlags(p)
		if p.err != nil {
			return false, p.err
		}
		anchor, ok := map[string]pyregex.Flags{"search": 0, "match": pyregex.AtStart, "fullmatch": pyregex.Whole}[kind]
		if !ok {
			return false, fmt.Errorf("match_type must be search, match or fullmatch, not '%s'", kind)
		}
		re, err := ps.get(pattern, flags|anchor)
		if err != nil {
			return false, err
		}
		return re.Matches(text)
	}
}

// testURI asks as Ansible's tests do, for which any text is an address, if one
// without a scheme; is has more to ask.
func testURI(is func(parts *value.Dict) bool) func(*Call, any, *bound) (bool, error) {
	return func(_ *Call, in any, p *bound) (bool, error) {
		s, ok := in.(string)
		if !ok {
			return false, nil
		}
		u, err := splitURL(s)
		if err != nil || !is(u) {
			return false, nil
		}
		schemes := p.list("schemes")
		if len(schemes) == 0 {
			return true, nil
		}
		return contains(schemes, u.String("scheme"))
	}
}

func testVersion(_ *Call, in any, p *bound) (bool, error) {
	have, want := pyStr(in), p.str("version", "")
	switch {
	case in == nil || have == "":
		return false, errors.New("Input version value cannot be empty") //nolint:staticcheck // users search for this text
	case want == "":
		return false, errors.New("Version parameter to compare against cannot be empty") //nolint:staticcheck // as above
	}
	kind := p.str("version_type", "")
	strict := p.flag("strict", false)
	switch {
	case p.has("strict") && kind != "":
		return false, errors.New("the test version takes either strict or version_type, not both")
	case strict:
		kind = "strict"
	}
	order, err := compareVersions(have, want, kind)
	if err != nil {
		return false, err
	}
	return versionRelation(order, p.str("operator", "eq"))
}

func compareVersions(a, b, kind string) (int, error) {
	switch kind {
	case "", "loose":
		return looseCompare(a, b), nil
	case "pep440":
		return comparePEP440(a, b)
	case "strict", "semver", "semantic":
	default:
		return 0, fmt.Errorf("version_type must be loose, strict, semver, semantic or pep440, not '%s'", kind)
	}
	x, err := parseVersion(a, kind)
	if err != nil {
		return 0, err
	}
	y, err := parseVersion(b, kind)
	if err != nil {
		return 0, err
	}
	return x.Compare(y), nil
}

// parseVersion reads 1.2b3 and 1.2rc1 (Python's pre-releases) as 1.2.0-b.3 when
// the kind is strict.
func parseVersion(text, kind string) (*semver.Version, error) {
	plain := text
	if kind == "strict" {
		pre := regexp.MustCompile(`^(v?[0-9.]+?)[-_.]?(a|b|c|rc|alpha|beta|pre|dev)[-_.]?([0-9]*)$`)
		plain = pre.ReplaceAllString(text, "$1-$2.${3}")
		plain = strings.TrimSuffix(plain, ".")
	}
	v, err := semver.NewVersion(plain)
	if err != nil {
		return nil, fmt.Errorf("'%s' is no %s version: %w", text, kind, err)
	}
	return v, nil
}

func versionRelation(order int, operator string) (bool, error) {
	switch operator {
	case "==", "=", "eq":
		return order == 0, nil
	case "!=", "<>", "ne":
		return order != 0, nil
	case "<", "lt":
		return order < 0, nil
	case "<=", "le":
		return order <= 0, nil
	case ">", "gt":
		return order > 0, nil
	case ">=", "ge":
		return order >= 0, nil
	}
	return false, fmt.Errorf("the operator of version must be one of == != < <= > >= or eq, ne, lt, le, gt, ge, not %s", value.Repr(operator))
}
