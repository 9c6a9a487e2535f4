package expr

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func fileLookups() []lookupSpec {
	return []lookupSpec{
		{names: "file", params: "lstrip rstrip", do: lookupFile},
		{names: "unvault", do: lookupUnvault},
		{names: "template", params: "template_vars convert_data", do: lookupTemplate},
		{names: "fileglob", do: lookupFileGlob},
		{names: "first_found", params: "files paths skip", do: lookupFirstFound},
		{names: "lines", do: lookupLines},
		{names: "pipe", do: lookupPipe},
		{names: "url", params: "split_lines validate_certs username password headers timeout", do: lookupURL},
		{names: "ini", params: "file section default re type allow_no_value case_sensitive encoding", do: lookupINI},
		{names: "csvfile", params: "file delimiter col default encoding", do: lookupCSV},
	}
}

// searchPaths are the places where a file of a name may be: DIR/sub/NAME and
// DIR/NAME of the folders of the task, then those of the playbook.
func searchPaths(c *Call, sub, name string) ([]string, error) {
	if name = expandUser(name); source.IsAbs(name) {
		return []string{source.Clean(name)}, nil
	}
	dirs, err := searchFolders(c)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, dir := range dirs {
		for _, path := range []string{source.Join(dir, sub+"/"+name), source.Join(dir, name)} {
			if !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out, nil
}

func searchFolders(c *Call) ([]string, error) {
	var dirs []string
	for _, name := range []string{"ansible_search_path", "playbook_dir"} {
		v, err := scopeValue(c, name)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case string:
			dirs = append(dirs, v)
		case []any:
			for _, dir := range v {
				dirs = append(dirs, value.Str(dir))
			}
		}
	}
	if len(dirs) == 0 {
		dirs = []string{"."}
	}
	return dirs, nil
}

// findFile is the first place where the file is.
func findFile(c *Call, sub, name string) (string, error) {
	paths, err := searchPaths(c, sub, name)
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		if c.Env.opts.Files.IsFile(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("Could not find or access '%s'\nSearched in:\n\t%s", name, strings.Join(paths, "\n\t")) //nolint:staticcheck // the words are known to users
}

func readFound(c *Call, name string) (string, error) {
	path, err := findFile(c, "files", name)
	if err != nil {
		return "", err
	}
	if info, err := c.Env.opts.Files.Stat(path); err == nil && info.Size() > maxText {
		return "", fmt.Errorf("%s: %w", path, errTextTooBig)
	}
	text, err := c.Env.opts.Files.ReadFile(path)
	return string(text), err
}

func lookupFile(c *Call, terms []any, p *bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		text, err := readFound(c, term)
		if p.flag("rstrip", true) {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		if p.flag("lstrip", false) {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		return text, err
	})
}

// extraNames is a scope with a few more names.
type extraNames struct {
	Scope
	extra *value.Dict
}

// Lookup implements Scope.
func (o extraNames) Lookup(name string) (any, bool, error) {
	if v, ok := o.extra.Get(name); ok {
		return v, true, nil
	}
	if o.Scope == nil {
		return nil, false, nil
	}
	return o.Scope.Lookup(name)
}

func lookupTemplate(c *Call, terms []any, p *bound) ([]any, error) {
	if c.Env.opts.Template == nil {
		return nil, fmt.Errorf("templates cannot be rendered here")
	}
	scope := c.Scope
	if vars := p.value("template_vars", nil); vars != nil {
		extra, err := asDict(vars)
		if err != nil {
			return nil, fmt.Errorf("argument template_vars: %w", err)
		}
		scope = extraNames{scope, extra}
	}
	return mapTerms(terms, func(term string) (any, error) {
		path, err := findFile(c, "templates", term)
		if err != nil {
			return nil, err
		}
		return c.Env.opts.Template(c.Context, path, scope)
	})
}

// lookupFileGlob lists the files that match, in the first folder that has some.
func lookupFileGlob(c *Call, terms []any, _ *bound) ([]any, error) {
	var out []any
	err := eachTerm(terms, func(term string) error {
		paths, err := searchPaths(c, "files", term)
		if err != nil {
			return err
		}
		for _, path := range paths {
			found, err := filterFileGlob(c, path, nil)
			if err != nil {
				return err
			}
			if list := found.([]any); len(list) > 0 {
				out = append(out, list...)
				return nil
			}
		}
		return nil
	})
	return out, err
}

// fileSearch is what first_found looks for.
type fileSearch struct {
	names []string
	skip  bool
}

// lookupFirstFound is the first file that exists; "skip" makes none an empty list.
func lookupFirstFound(c *Call, terms []any, p *bound) ([]any, error) {
	w := &fileSearch{skip: p.flag("skip", false)}
	if p.has("files") {
		if err := w.add(p.list("files"), p.list("paths")); err != nil {
			return nil, err
		}
	}
	flat, err := flatten(terms, maxFlatten, false, 0)
	if err != nil {
		return nil, err
	}
	for _, term := range flat {
		if err := w.term(term, p.list("paths")); err != nil {
			return nil, err
		}
	}
	var searched []string
	for _, name := range w.names {
		for _, sub := range []string{"files", "templates", "vars", "tasks"} {
			paths, err := searchPaths(c, sub, name)
			if err != nil {
				return nil, err
			}
			if i := slices.IndexFunc(paths, c.Env.opts.Files.IsFile); i >= 0 {
				return []any{paths[i]}, nil
			}
			searched = append(searched, paths...)
		}
	}
	if w.skip {
		return nil, nil
	}
	slices.Sort(searched)
	return nil, fmt.Errorf("no file was found (skip=true makes this an empty list)\nSearched in:\n\t%s", strings.Join(slices.Compact(searched), "\n\t"))
}

func (w *fileSearch) term(term any, paths []any) error {
	d, ok := term.(*value.Dict)
	if !ok {
		return w.add([]any{term}, paths)
	}
	var lists [2][]any
	for k, v := range d.All() {
		v, err := defined(v)
		if err != nil {
			return err
		}
		switch k {
		case "files":
			lists[0] = oneOrMore(v)
		case "paths":
			lists[1] = oneOrMore(v)
		case "skip":
			w.skip = value.Truth(v)
		default:
			return fmt.Errorf("no argument %q (it takes files, paths, skip)", value.Str(k))
		}
	}
	return w.add(lists[0], lists[1])
}

// oneOrMore is a list, or the parts of a text between commas, semicolons and colons.
func oneOrMore(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case string:
		return value.Of(strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ';' || r == ':' })).([]any)
	}
	return []any{v}
}

func (w *fileSearch) add(files, paths []any) error {
	if len(paths) == 0 {
		paths = []any{""}
	}
	for _, dir := range paths {
		for _, file := range files {
			name, err := plainText(file)
			if err != nil {
				return err
			}
			if s := value.Str(dir); s != "" && !source.IsAbs(name) {
				name = strings.TrimSuffix(s, "/") + "/" + name
			}
			w.names = append(w.names, name)
		}
	}
	return nil
}

// maxOutput bounds what a command or an address may return.
const maxOutput = 16 << 20

// shellOutput is the output of a shell command on the control node.
func shellOutput(c *Call, command string) (string, error) {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &capped{b: &out}, &capped{b: &complaints}
	cmd.WaitDelay = time.Second
	if dir := scopeText(c, "playbook_dir"); dir != "" && !source.IsBuiltin(dir) {
		cmd.Dir = dir
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("command failed: %w: %s", err, truncateText(strings.TrimSpace(complaints.String())))
	}
	return out.String(), nil
}

// capped is a buffer that refuses to grow beyond maxOutput.
type capped struct{ b *bytes.Buffer }

// Write implements io.Writer.
func (w *capped) Write(p []byte) (int, error) {
	if w.b.Len()+len(p) > maxOutput {
		return 0, errors.New("too much output")
	}
	return w.b.Write(p)
}

func lookupPipe(c *Call, terms []any, _ *bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		out, err := shellOutput(c, term)
		return strings.TrimRightFunc(out, unicode.IsSpace), err
	})
}

func lookupLines(c *Call, terms []any, _ *bound) ([]any, error) {
	var out []any
	err := eachTerm(terms, func(term string) error {
		text, err := shellOutput(c, term)
		out = append(out, textLines(text)...)
		return err
	})
	return out, err
}

func textLines(text string) []any {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return nil
	}
	lines := splitLines(text)
	for i := range lines {
		lines[i] = strings.TrimRightFunc(lines[i], unicode.IsSpace)
	}
	return value.Of(lines).([]any)
}

func lookupURL(c *Call, terms []any, p *bound) ([]any, error) {
	if !p.flag("validate_certs", true) {
		return nil, fmt.Errorf("validate_certs=false is not supported (add the authority to the system's certificates)")
	}
	var out []any
	err := eachTerm(terms, func(term string) error {
		text, err := fetch(c, term, p)
		switch {
		case err != nil:
			return err
		case p.flag("split_lines", true):
			out = append(out, textLines(text)...)
		default:
			out = append(out, text)
		}
		return nil
	})
	return out, err
}

func fetch(c *Call, address string, p *bound) (string, error) {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(min(max(p.int("timeout", 10), 1), 3600))*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	if headers, ok := p.value("headers", nil).(*value.Dict); ok {
		for k, v := range headers.All() {
			req.Header.Set(value.Str(k), value.Str(v))
		}
	}
	if p.has("username") {
		req.SetBasicAuth(p.str("username", ""), p.str("password", ""))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("get %s: %s", req.URL.Redacted(), resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	if len(text) > maxOutput {
		return "", errTextTooBig
	}
	return string(text), err
}

// withOptions reads the "key file=x section=y" form: a name, then options
// that add to the named arguments.
func withOptions(term string, p *bound) (string, map[string]string, error) {
	opts := map[string]string{}
	var name []string
	for _, word := range strings.Fields(term) {
		k, v, ok := strings.Cut(word, "=")
		if ok && slices.Contains(p.sig.params, k) {
			opts[k] = v
			continue
		}
		name = append(name, word)
	}
	for _, k := range p.sig.params {
		if _, set := opts[k]; !set && p.has(k) {
			opts[k] = p.str(k, "")
		}
	}
	return strings.Join(name, " "), opts, p.err
}

func lookupINI(c *Call, terms []any, p *bound) ([]any, error) {
	var out []any
	err := eachTerm(terms, func(term string) error {
		key, opts, err := withOptions(term, p)
		if err != nil {
			return err
		}
		name := opts["file"]
		if name == "" {
			name = "ansible.ini"
		}
		text, err := readFound(c, name)
		if err != nil {
			return err
		}
		found, err := iniValues(text, key, opts)
		out = append(out, found...)
		return err
	})
	return out, err
}

// iniValues are the values of a key, or of all keys that match it as a pattern.
func iniValues(text, key string, opts map[string]string) ([]any, error) {
	section := opts["section"]
	if section == "" && opts["type"] != "properties" {
		section = "global"
	}
	matches := func(k string) bool { return strings.EqualFold(k, key) }
	if strings.EqualFold(opts["re"], "true") || opts["re"] == "yes" {
		re, err := regexp.Compile("^(?:" + key + ")")
		if err != nil {
			return nil, fmt.Errorf("bad pattern %q: %w", truncateText(key), err)
		}
		var out []any
		for k, v := range iniSection(text, section).All() {
			if re.MatchString(value.Str(k)) {
				out = append(out, v)
			}
		}
		return out, nil
	}
	for k, v := range iniSection(text, section).All() {
		if matches(value.Str(k)) {
			return []any{v}, nil
		}
	}
	return []any{opts["default"]}, nil
}

// iniSection are the keys of a section; those of [DEFAULT] are in all.
func iniSection(text, section string) *value.Dict {
	d, current := value.NewDict(), ""
	for _, line := range splitLines(text) {
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case trimmed[0] == '[' && strings.HasSuffix(trimmed, "]"):
			current = trimmed[1 : len(trimmed)-1]
			continue
		case current != section && current != "DEFAULT":
			continue
		}
		i := strings.IndexAny(trimmed, "=:")
		if i < 0 {
			continue
		}
		k := strings.TrimSpace(trimmed[:i])
		if current == section || !d.Has(k) {
			d.Set(k, strings.TrimSpace(trimmed[i+1:]))
		}
	}
	return d
}

func lookupCSV(c *Call, terms []any, p *bound) ([]any, error) {
	var out []any
	err := eachTerm(terms, func(term string) error {
		key, opts, err := withOptions(term, p)
		if err != nil {
			return err
		}
		name := opts["file"]
		if name == "" {
			name = "ansible.csv"
		}
		text, err := readFound(c, name)
		if err != nil {
			return err
		}
		v, err := csvCell(text, key, opts)
		out = append(out, v)
		return err
	})
	return out, err
}

func csvCell(text, key string, opts map[string]string) (any, error) {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	r.Comma = '\t'
	switch d := []rune(opts["delimiter"]); {
	case opts["delimiter"] == "TAB" || opts["delimiter"] == `\t` || len(d) == 0:
	case len(d) == 1 && !strings.ContainsRune("\"\r\n\uFFFD", d[0]):
		r.Comma = d[0]
	default:
		return nil, fmt.Errorf("argument delimiter must be one character, not %q", opts["delimiter"])
	}
	col := 1
	if text, ok := opts["col"]; ok {
		n, ok := wholeNumber(text)
		if !ok || n < 0 {
			return nil, fmt.Errorf("argument col must be the number of a column, not %q", text)
		}
		col = n
	}
	records, err := r.ReadAll()
	if err != nil {
		return nil, err
	}
	for _, row := range records {
		if len(row) > col && row[0] == key {
			return row[col], nil
		}
	}
	if v, ok := opts["default"]; ok {
		return v, nil
	}
	return []any{}, nil
}
