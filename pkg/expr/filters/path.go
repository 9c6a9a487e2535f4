package filters

import (
	"fmt"
	"net/url"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"kubekey/pkg/expr"
	"kubekey/pkg/value"
)

func pathFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "basename", Do: onText(func(s string) string { return s[strings.LastIndexByte(s, '/')+1:] })},
		{Names: "dirname", Do: onText(dirName)},
		{Names: "splitext", Do: filterSplitExt},
		{Names: "win_basename", Do: onText(func(s string) string { _, base := windowsSplit(s); return base })},
		{Names: "win_dirname", Do: onText(func(s string) string { dir, _ := windowsSplit(s); return dir })},
		{Names: "win_splitdrive", Do: filterWindowsDrive},
		{Names: "normpath", Do: onText(path.Clean)},
		{Names: "realpath", Do: filterRealPath},
		{Names: "relpath", Params: "start", Do: filterRelPath},
		{Names: "path_join", Do: filterPathJoin},
		{Names: "commonpath", Do: filterCommonPath},
		{Names: "expanduser", Do: onText(ExpandUser)},
		{Names: "expandvars", Do: onText(expandVars)},
		{Names: "fileglob", Do: FileGlob},
		{Names: "urlsplit", Params: "query", Do: filterURLSplit},
		{Names: "urlencode", Do: filterURLEncode},
		{Names: "urldecode", Do: filterURLDecode},
	}
}

func dirName(s string) string {
	head := s[:strings.LastIndexByte(s, '/')+1]
	if trimmed := strings.TrimRight(head, "/"); trimmed != "" {
		return trimmed
	}
	return head
}

func filterSplitExt(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	base := s[strings.LastIndexByte(s, '/')+1:]
	name := strings.TrimLeft(base, ".")
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return []any{s, ""}, nil
	}
	ext := name[dot:]
	return []any{strings.TrimSuffix(s, ext), ext}, nil
}

// filterRealPath resolves links as far as the path exists, like Python.
func filterRealPath(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(s)
	if err != nil {
		return nil, err
	}
	return realPath(abs), nil
}

func realPath(abs string) string {
	rest := ""
	for head := abs; ; head = filepath.Dir(head) {
		if real, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(real, rest)
		}
		if head == filepath.Dir(head) {
			return abs
		}
		rest = filepath.Join(filepath.Base(head), rest)
	}
}

func filterRelPath(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	from, err := filepath.Abs(p.Str("start", "."))
	if err != nil {
		return nil, err
	}
	to, err := filepath.Abs(s)
	if err != nil {
		return nil, err
	}
	return filepath.Rel(from, to)
}

// windowsSplit splits a Windows path before its last part, as Python's ntpath.split does. The win_ filters are part of
// ansible.builtin: roles for Windows and Linux use them, and must load.
func windowsSplit(s string) (dir, base string) {
	drive, rest := windowsDrive(s)
	i := strings.LastIndexAny(rest, `\/`) + 1
	dir, base = rest[:i], rest[i:]
	if trimmed := strings.TrimRight(dir, `\/`); trimmed != "" {
		dir = trimmed
	}
	return drive + dir, base
}

// windowsDrive splits off a drive (C:) or a share (\\host\share).
func windowsDrive(s string) (drive, rest string) {
	if len(s) >= 2 && s[1] == ':' {
		return s[:2], s[2:]
	}
	slashes := strings.ReplaceAll(s, "/", `\`)
	if !strings.HasPrefix(slashes, `\\`) || strings.HasPrefix(slashes, `\\\`) {
		return "", s
	}
	host := strings.IndexByte(slashes[2:], '\\')
	if host < 0 {
		return "", s
	}
	share := strings.IndexByte(slashes[2+host+1:], '\\')
	if share < 0 {
		return s, ""
	}
	end := 2 + host + 1 + share
	return s[:end], s[end:]
}

func filterWindowsDrive(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	drive, rest := windowsDrive(s)
	return []any{drive, rest}, err
}

// filterPathJoin joins like Python: an absolute part discards the parts before it, and the result is not cleaned.
func filterPathJoin(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	parts, ok := in.([]any)
	if _, text := in.(string); text {
		parts, ok = []any{in}, true
	}
	if !ok {
		return nil, fmt.Errorf("expects string or sequence, got %s", expr.DescribeType(in))
	}
	out := ""
	for i, part := range parts {
		s, err := expr.Text(part)
		switch {
		case err != nil:
			return nil, err
		case i == 0 || strings.HasPrefix(s, "/"):
			out = s
		case out == "" || strings.HasSuffix(out, "/"):
			out += s
		default:
			out += "/" + s
		}
	}
	return out, nil
}

func filterCommonPath(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	list, ok := in.([]any)
	if !ok {
		return nil, fmt.Errorf("|commonpath expects a list of paths, got %s", expr.DescribeType(in))
	}
	var common []string
	for i, v := range list {
		s, err := expr.Text(v)
		if err != nil {
			return nil, err
		}
		parts := strings.Split(path.Clean(s), "/")
		if i == 0 {
			common = parts
		}
		n := 0
		for n < len(common) && n < len(parts) && common[n] == parts[n] {
			n++
		}
		common = common[:n]
	}
	if len(common) == 1 && common[0] == "" {
		return "/", nil
	}
	return strings.Join(common, "/"), nil
}

// ExpandUser replaces a leading tilde with the home folder.
func ExpandUser(s string) string {
	name, rest, slash := strings.Cut(s, "/")
	if slash {
		rest = "/" + rest
	}
	switch {
	case !strings.HasPrefix(name, "~"):
		return s
	case name == "~":
		home, err := os.UserHomeDir()
		if err != nil {
			return s
		}
		return strings.TrimRight(home, "/") + rest
	}
	u, err := user.Lookup(name[1:])
	if err != nil {
		return s
	}
	return strings.TrimRight(u.HomeDir, "/") + rest
}

// expandVars replaces $NAME and ${NAME}. Variables that are not set are kept as written.
func expandVars(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		name, size := variableAt(s[i:])
		v, ok := os.LookupEnv(name)
		if name == "" || !ok {
			size = max(size, 1)
			v = s[i : i+size]
		}
		b.WriteString(v)
		i += size
	}
	return b.String()
}

// variableAt returns the name of the variable at the start of s, and the length of its notation.
func variableAt(s string) (string, int) {
	if len(s) < 2 || s[0] != '$' {
		return "", 0
	}
	if s[1] == '{' {
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return "", 0
		}
		return s[2:end], end + 1
	}
	end := 1
	for end < len(s) && (s[end] == '_' || s[end] >= '0' && s[end] <= '9' || s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
		end++
	}
	return s[1:end], end
}

// FileGlob returns the files that match a pattern.
func FileGlob(c *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	found, err := c.Env.Options().Files.Glob(s)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", s, err)
	}
	out := []any{}
	for _, name := range found {
		if c.Env.Options().Files.IsFile(name) {
			out = append(out, name)
		}
	}
	return out, nil
}

func filterURLSplit(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	parts, err := SplitURL(s)
	if err != nil {
		return nil, err
	}
	query := p.Str("query", "")
	if query == "" {
		return parts, nil
	}
	v, ok := parts.Get(query)
	if !ok {
		return nil, fmt.Errorf("unknown URL component %q (there are %s)", query, keyNames(parts))
	}
	return v, nil
}

// SplitURL is as lenient as Python's urlsplit: any text is an address.
func SplitURL(s string) (*value.Dict, error) {
	rest, fragment, _ := strings.Cut(strings.TrimSpace(s), "#")
	rest, query, _ := strings.Cut(rest, "?")
	scheme, netloc := "", ""
	if i := strings.IndexByte(rest, ':'); i > 0 && isScheme(rest[:i]) {
		scheme, rest = strings.ToLower(rest[:i]), rest[i+1:]
	}
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		i := strings.IndexByte(after+"/", '/')
		netloc, rest = after[:i], after[i:]
	}
	var name, password any
	host := netloc
	if i := strings.LastIndexByte(netloc, '@'); i >= 0 {
		host = netloc[i+1:]
		login, pass, ok := strings.Cut(netloc[:i], ":")
		name = login
		if ok {
			password = pass
		}
	}
	hostname, port, err := splitHostPort(host)
	if err != nil {
		return nil, err
	}
	return value.NewDict("fragment", fragment, "hostname", hostname, "netloc", netloc, "password", password,
		"path", rest, "port", port, "query", query, "scheme", scheme, "username", name), nil
}

func isScheme(s string) bool {
	for i, r := range strings.ToLower(s) {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789+-.", r)) {
			return false
		}
	}
	return true
}

func splitHostPort(host string) (hostname, port any, err error) {
	text := ""
	if inner, ok := strings.CutPrefix(host, "["); ok {
		var after string
		host, after, ok = strings.Cut(inner, "]")
		if !ok {
			return nil, nil, fmt.Errorf("missing ] in the address of the host")
		}
		text = strings.TrimPrefix(after, ":")
	} else {
		host, text, _ = strings.Cut(host, ":")
	}
	if host != "" {
		hostname = strings.ToLower(host)
	}
	if text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, nil, fmt.Errorf("%q is no port", text)
		}
		port = int(n)
	}
	return hostname, port, nil
}

func filterURLEncode(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	var pairs []any
	switch v := in.(type) {
	case *value.Dict:
		pairs = dictPairs(v)
	case []any:
		pairs = v
	default:
		s, err := expr.Text(in)
		return percentEncode(s, "/", "%20"), err
	}
	out := make([]string, len(pairs))
	for i, v := range pairs {
		pair, err := expr.ListItems(v)
		if err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("item %d must be a list of a name and a value", i)
		}
		key, err := expr.Text(pair[0])
		if err != nil {
			return nil, err
		}
		val, err := expr.Text(pair[1])
		if err != nil {
			return nil, err
		}
		out[i] = percentEncode(key, "", "+") + "=" + percentEncode(val, "", "+")
	}
	return strings.Join(out, "&"), nil
}

// percentEncode encodes everything except letters, digits, _.-~ and the safe characters.
func percentEncode(s, safe, blank string) string {
	var b strings.Builder
	for i := range len(s) {
		ch := s[i]
		switch {
		case ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9',
			strings.IndexByte("_.-~", ch) >= 0, strings.IndexByte(safe, ch) >= 0:
			b.WriteByte(ch)
		case ch == ' ':
			b.WriteString(blank)
		default:
			fmt.Fprintf(&b, "%%%02X", ch)
		}
	}
	return b.String()
}

// filterURLDecode keeps a % that does not begin an escape.
func filterURLDecode(_ *expr.Call, in any, _ *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	if out, err := url.QueryUnescape(s); err == nil {
		return strings.ToValidUTF8(out, "\uFFFD"), nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b.WriteByte(' ')
		case s[i] == '%' && i+2 < len(s):
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				b.WriteByte('%')
				continue
			}
			b.WriteByte(byte(n))
			i += 2
		default:
			b.WriteByte(s[i])
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), nil
}
