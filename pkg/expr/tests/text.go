package tests

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/value"
)

// textTests check strings. The table keeps compiled patterns.
func textTests() []expr.Test {
	re := filters.NewPatterns()
	const params = "pattern! ignorecase multiline"
	return []expr.Test{
		{Names: "match", Params: params, Do: tester(re, "match")},
		{Names: "search", Params: params, Do: tester(re, "search")},
		{Names: "regex", Params: params + " match_type", Do: tester(re, "search")},
		{Names: "version version_compare", Params: "version! operator strict version_type", Do: testVersion},
		{Names: "vault_encrypted", Do: func(_ *expr.Call, in any, _ *expr.Bound) (bool, error) {
			s, ok := in.(string)
			return ok && strings.HasPrefix(s, "$ANSIBLE_VAULT"), nil
		}},
		{Names: "uri", Params: "schemes", Do: testURI(func(*value.Dict) bool { return true })},
		{Names: "url", Params: "schemes", Do: testURI(func(u *value.Dict) bool {
			return u.String("netloc") != "" || u.String("scheme") == "file"
		})},
		{Names: "urn", Do: testURI(func(u *value.Dict) bool { return u.String("scheme") == "urn" })},
	}
}

func tester(ps *filters.Patterns, how string) func(*expr.Call, any, *expr.Bound) (bool, error) {
	return func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
		text, err := filters.Subject(in)
		if err != nil {
			return false, err
		}
		kind, pattern, flags := p.Str("match_type", how), p.Str("pattern", ""), filters.PatternFlags(p)
		if p.Err != nil {
			return false, p.Err
		}
		anchor, ok := map[string]pyregex.Flags{"search": 0, "match": pyregex.AtStart, "fullmatch": pyregex.Whole}[kind]
		if !ok {
			return false, fmt.Errorf("match_type must be search, match or fullmatch, not '%s'", kind)
		}
		re, err := ps.Get(pattern, flags|anchor)
		if err != nil {
			return false, err
		}
		return re.Matches(text)
	}
}

// testURI follows Ansible's tests, which accept any text as an address, even without a scheme; is has additional
// checks.
func testURI(is func(parts *value.Dict) bool) func(*expr.Call, any, *expr.Bound) (bool, error) {
	return func(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
		s, ok := in.(string)
		if !ok {
			return false, nil
		}
		u, err := filters.SplitURL(s)
		if err != nil || !is(u) {
			return false, nil
		}
		schemes := p.List("schemes")
		if len(schemes) == 0 {
			return true, nil
		}
		return expr.Contains(schemes, u.String("scheme"))
	}
}

func testVersion(_ *expr.Call, in any, p *expr.Bound) (bool, error) {
	have, want := expr.PyStr(in), p.Str("version", "")
	switch {
	case in == nil || have == "":
		return false, errors.New("Input version value cannot be empty") //nolint:staticcheck // users search for this text
	case want == "":
		return false, errors.New("Version parameter to compare against cannot be empty") //nolint:staticcheck // as above
	}
	kind := p.Str("version_type", "")
	strict := p.Flag("strict", false)
	switch {
	case p.Has("strict") && kind != "":
		return false, errors.New("the test version takes either strict or version_type, not both")
	case strict:
		kind = "strict"
	}
	order, err := compareVersions(have, want, kind)
	if err != nil {
		return false, err
	}
	return versionRelation(order, p.Str("operator", "eq"))
}

func compareVersions(a, b, kind string) (int, error) {
	switch kind {
	case "", "loose":
		return filters.CompareVersions(a, b), nil
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

// parseVersion parses a version; when the kind is strict, 1.2b3 and 1.2rc1 (Python's pre-releases) become 1.2.0-b.3
// and similar.
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
	return false, fmt.Errorf("the operator of version must be one of == != < <= > >= or eq, ne, lt, le, gt, ge, not %s",
		value.Repr(operator))
}
