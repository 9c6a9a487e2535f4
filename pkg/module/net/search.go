package net

import (
	"context"
	"fmt"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/pyregex"
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

// search matches the expression on the control node, since the host's grep has another
// syntax than Python.
func (m *waitFor) search(ctx context.Context, c *module.Call, data *value.Dict, start time.Time) (string, error) {
	re, err := m.expression()
	if err != nil {
		return "", err
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
		text := string(out.Stdout)
		found, err := re.Find(text)
		if err != nil {
			return "", fmt.Errorf("search_regex: %w", err)
		}
		if found != nil {
			groups, named := groupsOf(re, text, found)
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

// matchLimit bounds expressions that backtrack.
const matchLimit = 5 * time.Second

// CheckLiterals implements module.Checker.
func (m *waitFor) CheckLiterals() []schema.Problem {
	if _, err := m.expression(); err != nil {
		return []schema.Problem{{Path: "search_regex", Msg: err.Error()}}
	}
	return nil
}

// expression is the search expression on bytes, as in Ansible: letters and digits are ASCII.
func (m *waitFor) expression() (*pyregex.Regexp, error) {
	re, err := pyregex.Compile(m.Search, pyregex.Multiline|pyregex.ASCII, matchLimit)
	if err != nil {
		return nil, fmt.Errorf("search_regex: %w", err)
	}
	return re, nil
}

// groupsOf returns the groups of a match, None for those that took no part, and the named ones.
func groupsOf(re *pyregex.Regexp, text string, found pyregex.Match) ([]any, *value.Dict) {
	groups, named := []any{}, value.NewDict()
	for g := range re.Groups() {
		var group any
		if found.Has(g + 1) {
			group = found.Text(text, g+1)
		}
		groups = append(groups, group)
		if name := re.Name(g + 1); name != "" {
			named.Set(name, group)
		}
	}
	return groups, named
}
