package lookups

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func fileLookups() []expr.Lookup {
	return []expr.Lookup{
		{Names: "file", Params: "lstrip rstrip", Do: lookupFile},
		{Names: "unvault", Do: lookupUnvault},
		{Names: "template", Params: "template_vars convert_data jinja2_native variable_start_string variable_end_string " +
			"comment_start_string comment_end_string", Do: lookupTemplate},
		{Names: "fileglob", Do: lookupFileGlob},
		{Names: "first_found", Params: "files paths skip", Do: lookupFirstFound},
		{Names: "lines", Do: lookupLines},
		{Names: "pipe", Do: lookupPipe},
		{Names: "url", Params: "split_lines validate_certs username password headers timeout http_agent force " +
			"force_basic_auth follow_redirects use_proxy ca_path", Do: lookupURL},
		{Names: "ini", Params: "file section default re type allow_no_value allow_none case_sensitive encoding",
			Do: lookupRecords("ansible.ini", iniValues)},
		{Names: "csvfile", Params: "file delimiter col default encoding", Do: lookupRecords("ansible.csv", csvCell)},
	}
}

// searchPaths returns the paths where a file with a name can be: DIR/sub/NAME and DIR/NAME in the folders of the
// task, then in those of the playbook.
func searchPaths(c *expr.Call, sub, name string) ([]string, error) {
	if name = filters.ExpandUser(name); source.IsAbs(name) {
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

func searchFolders(c *expr.Call) ([]string, error) {
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

// findFile returns the first path that exists.
func findFile(c *expr.Call, sub, name string) (string, error) {
	paths, err := searchPaths(c, sub, name)
	if err != nil {
		return "", err
	}
	for _, path := range paths {
		if c.Env.Options().Files.IsFile(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("Could not find or access '%s'\nSearched in:\n\t%s", name,
		strings.Join(paths, "\n\t")) //nolint:staticcheck // the words are known to users
}

func readFound(c *expr.Call, name string) (string, error) {
	path, err := findFile(c, "files", name)
	if err != nil {
		return "", err
	}
	text, err := c.Env.Options().Files.Read(path, expr.MaxText)
	return string(text), err
}

func lookupFile(c *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		text, err := readFound(c, term)
		if p.Flag("rstrip", true) {
			text = strings.TrimRightFunc(text, unicode.IsSpace)
		}
		if p.Flag("lstrip", false) {
			text = strings.TrimLeftFunc(text, unicode.IsSpace)
		}
		return text, err
	})
}

// extraNames is a scope with a few additional names.
type extraNames struct {
	expr.Scope
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

func lookupTemplate(c *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	if c.Env.Options().Template == nil {
		return nil, fmt.Errorf("templates cannot be rendered here")
	}
	scope := c.Scope
	if vars := p.Value("template_vars", nil); vars != nil {
		extra, err := expr.AsDict(vars)
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
		return c.Env.Options().Template(c.Context, expr.TemplateFile{
			Path: path, VariableStart: p.Str("variable_start_string", ""), VariableEnd: p.Str("variable_end_string", ""),
			CommentStart: p.Str("comment_start_string", ""), CommentEnd: p.Str("comment_end_string", ""),
		}, scope)
	})
}

// lookupFileGlob lists the files that match, in the first folder with matches.
func lookupFileGlob(c *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	var out []any
	err := eachTerm(terms, func(term string) error {
		paths, err := searchPaths(c, "files", term)
		if err != nil {
			return err
		}
		for _, path := range paths {
			found, err := filters.FileGlob(c, path, nil)
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

// fileSearch has the search parameters of first_found.
type fileSearch struct {
	names []string
	skip  bool
}

// lookupFirstFound returns the first file that exists. With "skip", the result is an empty list when there is none.
func lookupFirstFound(c *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	w := &fileSearch{skip: p.Flag("skip", false)}
	if p.Has("files") {
		if err := w.add(p.List("files"), p.List("paths")); err != nil {
			return nil, err
		}
	}
	flat, err := filters.Flatten(terms, expr.MaxDepth, false, 0)
	if err != nil {
		return nil, err
	}
	for _, term := range flat {
		if err := w.term(term, p.List("paths")); err != nil {
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
			if i := slices.IndexFunc(paths, c.Env.Options().Files.IsFile); i >= 0 {
				return []any{paths[i]}, nil
			}
			searched = append(searched, paths...)
		}
	}
	if w.skip {
		return nil, nil
	}
	slices.Sort(searched)
	return nil, fmt.Errorf("no file was found (skip=true makes this an empty list)\nSearched in:\n\t%s",
		strings.Join(slices.Compact(searched), "\n\t"))
}

func (w *fileSearch) term(term any, paths []any) error {
	d, ok := term.(*value.Dict)
	if !ok {
		return w.add([]any{term}, paths)
	}
	var lists [2][]any
	for k, v := range d.All() {
		v, err := expr.Defined(v)
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

// oneOrMore returns a list, or splits a text at commas, semicolons and colons.
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
			name, err := expr.Text(file)
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

// lookupUnvault reads files, encrypted or not, and keeps all whitespace.
func lookupUnvault(c *expr.Call, terms []any, _ *expr.Bound) ([]any, error) {
	return mapTerms(terms, func(term string) (any, error) {
		text, err := readFound(c, strings.TrimSpace(term))
		return text, err
	})
}
