package flow

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/module"
	"kubekey/pkg/pyregex"
	"kubekey/pkg/schema"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

type setFact struct {
	Cacheable bool        `kk:"cacheable" default:"no" doc:"also store the values as facts"`
	Facts     *value.Dict `kk:",rest"`
}

// Run implements module.Runner.
func (m *setFact) Run(context.Context, *module.Call) (module.Result, error) {
	if m.Facts.Len() == 0 {
		return module.Result{Failed: true, Msg: "No key/value pairs provided, at least one is required for this action " +
			"to succeed"}, nil
	}
	facts := value.NewDict()
	for k, v := range m.Facts.All() {
		name := value.Str(k)
		if !isName(name) {
			return module.Result{Failed: true, Msg: badName(name)}, nil
		}
		facts.Set(name, wordBool(v))
	}
	r := module.Result{Facts: facts, FactKind: module.SetFact}
	if m.Cacheable {
		r.FactKind = module.SetFactCacheable
	}
	return r, nil
}

type setStats struct {
	Data      *value.Dict `kk:"data" doc:"values by name"`
	PerHost   bool        `kk:"per_host" default:"no" doc:"keep separate values for each host"`
	Aggregate bool        `kk:"aggregate" default:"yes" doc:"add to existing values instead of replacing them"`
}

// Run implements module.Runner.
func (m *setStats) Run(context.Context, *module.Call) (module.Result, error) {
	for k := range m.Data.All() {
		if name := value.Str(k); !isName(name) {
			return module.Result{Failed: true, Msg: badName(name)}, nil
		}
	}
	stats := value.NewDict("data", m.Data, "per_host", m.PerHost, "aggregate", m.Aggregate)
	return module.Result{Data: value.NewDict("ansible_stats", stats)}, nil
}

func badName(name string) string {
	return fmt.Sprintf("The variable name '%s' is not valid. Variables must start with a letter or underscore "+
		"character, and contain only letters, numbers and underscores.", name)
}

func isName(s string) bool {
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// wordBool converts the words that set_fact accepts as bools.
func wordBool(v any) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	switch strings.ToLower(s) {
	case "true", "yes":
		return true
	case "false", "no":
		return false
	}
	return v
}

type includeVars struct {
	File       string   `kk:"file,path,file=vars" doc:"YAML or JSON file, searched for in vars/; may be given as free-form text"`
	Dir        string   `kk:"dir,path,file=vars" doc:"folder to read all files from, in order"`
	Name       string   `kk:"name" doc:"name of a dict to put the variables into"`
	Depth      int      `kk:"depth" default:"0" doc:"how many levels of dir to search; 0 is unlimited"`
	Matching   string   `kk:"files_matching" doc:"regular expression that file names in dir must match"`
	Ignore     []string `kk:"ignore_files" doc:"regular expressions of file names to ignore"`
	Extensions []string `kk:"extensions" default:"json,yaml,yml" doc:"file extensions to read in dir"`
	IgnoreExt  bool     `kk:"ignore_unknown_extensions" default:"no" doc:"ignore files with other extensions instead of failing"`
	Hash       string   `kk:"hash_behaviour" choices:"replace,merge" doc:"whether dicts replace existing ones or are merged into them"`
}

// Rules implements schema.Ruled.
func (*includeVars) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("file", "dir"),
		schema.AtLeastOne("file", "dir"),
		schema.Looks("the name of a variable", isName, "name"),
	}
}

// Run implements module.Runner.
func (m *includeVars) Run(_ context.Context, c *module.Call) (module.Result, error) {
	facts, files, err := m.read(c)
	if err != nil {
		return module.Result{Failed: true, Msg: err.Error(),
			Data: value.NewDict("message", err.Error(), "ansible_included_var_files", strs(files))}, nil
	}
	if m.Name != "" {
		facts = value.NewDict(m.Name, facts)
	}
	if m.Hash == "merge" {
		if facts, err = mergedWithScope(c, facts); err != nil {
			return module.Result{}, err
		}
	}
	return module.Result{Facts: facts, FactKind: module.IncludeVars,
		Data: value.NewDict("ansible_included_var_files", strs(files))}, nil
}

func strs(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// CheckLiterals implements module.Checker.
func (m *includeVars) CheckLiterals() []schema.Problem {
	var out []schema.Problem
	check := func(argument, pattern string) {
		if _, err := pyregex.Compile(pattern, 0, matchLimit); err != nil {
			out = append(out, schema.Problem{Path: argument, Msg: argument + ": " + err.Error()})
		}
	}
	check("files_matching", m.Matching)
	for _, p := range m.Ignore {
		check("ignore_files", p)
	}
	return out
}

func (m *includeVars) read(c *module.Call) (*value.Dict, []string, error) {
	if m.File != "" {
		p, err := c.Find("vars", m.File)
		if err != nil {
			return nil, nil, err
		}
		facts, err := readVars(c.Files, p)
		return facts, []string{p}, err
	}
	dir, err := c.Find("vars", m.Dir)
	if err != nil {
		return nil, nil, err
	}
	if !c.Files.IsDir(dir) {
		return nil, nil, fmt.Errorf("%s is not a folder", m.Dir)
	}
	files, err := m.list(c.Files, dir, 1)
	if err != nil {
		return nil, nil, err
	}
	all := value.NewDict()
	for _, f := range files {
		facts, err := readVars(c.Files, f)
		if err != nil {
			return nil, files, err
		}
		all.Merge(facts)
	}
	return all, files, nil
}

// list finds the files of a folder in order; subfolders come after files.
func (m *includeVars) list(tree source.Tree, dir string, depth int) ([]string, error) {
	entries, err := tree.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list variable files: %w", err)
	}
	var files, folders []string
	for _, e := range entries {
		p := source.Join(dir, e.Name())
		if tree.IsDir(p) {
			folders = append(folders, p)
			continue
		}
		take, err := m.wants(e.Name())
		if err != nil {
			return nil, err
		}
		if take {
			files = append(files, p)
		}
	}
	if m.Depth != 0 && depth >= m.Depth {
		return files, nil
	}
	for _, p := range folders {
		below, err := m.list(tree, p, depth+1)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

// matchLimit bounds patterns that backtrack.
const matchLimit = time.Second

func finds(pattern, name string) (bool, error) {
	re, err := pyregex.Compile(pattern, 0, matchLimit)
	if err != nil {
		return false, err
	}
	return re.Matches(name)
}

func (m *includeVars) wants(name string) (bool, error) {
	for _, pattern := range m.Ignore {
		if hit, err := finds(pattern+`$`, name); err != nil || hit {
			return false, err
		}
	}
	if m.Matching != "" {
		if hit, err := finds(m.Matching, name); err != nil || !hit {
			return false, err
		}
	}
	if ext := strings.TrimPrefix(path.Ext(name), "."); slices.Contains(m.Extensions, ext) {
		return true, nil
	}
	if m.IgnoreExt || m.Matching != "" || strings.HasPrefix(name, ".") {
		return false, nil
	}
	return false, fmt.Errorf("%s does not have a valid extension: %s", name, strings.Join(m.Extensions, ", "))
}

func readVars(tree source.Tree, name string) (*value.Dict, error) {
	f, err := tree.Load(name, name)
	if err != nil {
		return nil, fmt.Errorf("read variables: %w", err)
	}
	docs, problems := source.ParseYAML(f)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	all := value.NewDict()
	for _, doc := range docs {
		vars, err := varsOf(doc, name)
		if err != nil {
			return nil, err
		}
		all.Merge(vars)
	}
	return all, nil
}

func varsOf(doc *yaml.Node, name string) (*value.Dict, error) {
	v, err := value.FromYAMLFile(doc, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	switch v := v.(type) {
	case nil:
		return nil, nil
	case *value.Dict:
		return v, nil
	}
	return nil, fmt.Errorf("%s must hold a mapping of variables, not a %s", filepath.Base(name), value.TypeName(v))
}

// mergedWithScope merges each dict into the current value of the variable.
func mergedWithScope(c *module.Call, facts *value.Dict) (*value.Dict, error) {
	out := value.NewDict()
	for k, v := range facts.All() {
		old, ok, err := c.Scope.Lookup(value.Str(k))
		if err == nil && ok {
			old, err = value.Force(old)
		}
		if err != nil {
			return nil, err
		}
		out.Set(k, merge(old, v))
	}
	return out, nil
}

func merge(old, v any) any {
	a, okA := old.(*value.Dict)
	b, okB := v.(*value.Dict)
	if !okA || !okB {
		return v
	}
	out := a.Copy()
	for k, e := range b.All() {
		before, _ := out.Get(k)
		out.Set(k, merge(before, e))
	}
	return out
}
