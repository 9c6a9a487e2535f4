package net

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/dlclark/regexp2"

	"kubekey/pkg/backtrack"
	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

// searchWindow is how much of the end of a file is searched.
const searchWindow = 16 << 20

const searchFile = `[ -r "$1" ] || exit 0
tail -c "$2" -- "$1"`

const searchPort = `
h=$1 p=$2 t=$3
run() { if command -v timeout >/dev/null 2>&1; then timeout "$t" "$@"; else "$@"; fi; }
if command -v bash >/dev/null 2>&1; then run bash -c 'exec 3<>"/dev/tcp/$0/$1" && head -c 65536 <&3' "$h" "$p"
elif command -v nc >/dev/null 2>&1; then run nc -w "$t" "$h" "$p" </dev/null
else curl -s --max-time "$t" "telnet://$h:$p" </dev/null
fi 2>/dev/null
exit 0`

// search looks for the expression from here, since the host's grep reads
// other expressions than playbooks are written with.
func (m *waitFor) search(ctx context.Context, c *module.Call, data *value.Dict, start time.Time) (string, error) {
	find, err := compile(m.Search)
	if err != nil {
		return "", fmt.Errorf("search_regex: %w", err)
	}
	line := shell.Script(searchFile, m.Path, fmt.Sprint(searchWindow))
	if m.Path == "" {
		line = shell.Script(searchPort, m.Host, fmt.Sprint(m.Port), seconds(max(m.ConnectTimeout, time.Second)))
	}
	for {
		out, err := connector.Collect(ctx, c.Conn, connector.Command{Line: line, Probe: true}, connector.MaxLargeAnswer)
		if err != nil {
			return "", err
		}
		groups, named, err := find(string(out.Stdout))
		if err != nil {
			return "", fmt.Errorf("search_regex: %w", err)
		}
		if groups != nil {
			data.Set("match_groups", groups)
			data.Set("match_groupdict", named)
			return "", nil
		}
		if c.Now().Sub(start) >= m.Timeout {
			return m.late(), nil
		}
		if err := module.Sleep(ctx, max(m.Sleep, 10*time.Millisecond)); err != nil {
			return "", err
		}
	}
}

// finder returns the groups of the first match, nil without a match.
type finder func(text string) (groups []any, named *value.Dict, err error)

// matchLimit bounds expressions that backtrack.
const matchLimit = 5 * time.Second

// CheckLiterals implements module.Checker.
func (m *waitFor) CheckLiterals() []schema.Problem {
	if _, err := compile(m.Search); err != nil {
		return []schema.Problem{{Path: "search_regex", Msg: "search_regex: " + err.Error()}}
	}
	return nil
}

// compile reads a regular expression as Python does: multi-line, with
// lookaround and references where it has them.
func compile(pattern string) (finder, error) {
	if re, err := regexp.Compile("(?m)" + pattern); err == nil {
		return func(text string) ([]any, *value.Dict, error) { return linear(re, text) }, nil
	}
	re, err := backtrack.Compile(namedGroups(pattern), regexp2.Multiline, matchLimit)
	if err != nil {
		return nil, err
	}
	return func(text string) ([]any, *value.Dict, error) { return backtracking(re, text) }, nil
}

// namedGroups writes Python's (?P<n>...) and (?P=n) as regexp2 knows them.
func namedGroups(pattern string) string {
	pattern = strings.ReplaceAll(pattern, "(?P<", "(?<")
	return regexp.MustCompile(`\(\?P=(\w+)\)`).ReplaceAllString(pattern, `\k<$1>`)
}

func linear(re *regexp.Regexp, text string) ([]any, *value.Dict, error) {
	found := re.FindStringSubmatchIndex(text)
	if found == nil {
		return nil, nil, nil
	}
	groups, named := []any{}, value.NewDict()
	for i, name := range re.SubexpNames()[1:] {
		var group any
		if at := found[2*(i+1)]; at >= 0 {
			group = text[at:found[2*(i+1)+1]]
		}
		groups = append(groups, group)
		if name != "" {
			named.Set(name, group)
		}
	}
	return groups, named, nil
}

func backtracking(re *backtrack.Regexp, text string) ([]any, *value.Dict, error) {
	found, err := re.Find(text)
	if err != nil || found == nil {
		return nil, nil, err
	}
	groups, named := []any{}, value.NewDict()
	for i, g := range found.Groups()[1:] {
		var group any
		if len(g.Captures) > 0 {
			group = g.String()
		}
		groups = append(groups, group)
		if g.Name != fmt.Sprint(i+1) {
			named.Set(g.Name, group)
		}
	}
	return groups, named, nil
}
