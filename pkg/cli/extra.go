package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/playbook"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// extraVars reads --config, --extra-vars and --set, lowest first.
func (a *app) extraVars(in *inputs, e *template.Engine) ([]*vars.Layer, source.Diagnostics) {
	var ds source.Diagnostics
	config, extra := value.NewDict(), value.NewDict()
	if in.config != "" {
		if d, err := a.configFile(in.config); err != nil {
			ds = append(ds, diagnostics(err)...)
		} else {
			config = d
		}
	}
	for _, text := range in.extra {
		d, err := a.extraArg(text)
		if err != nil {
			ds = append(ds, diagnostics(err)...)
			continue
		}
		extra.Merge(d)
	}
	for _, text := range in.sets {
		if err := set(extra, config, text); err != nil {
			ds.Add(source.Errorf(source.Pos{}, "--set %s: %s", text, err))
		}
	}
	a.hideSecrets(config)
	a.hideSecrets(extra)
	nowhere := func(string) source.Pos { return source.Pos{} }
	var layers []*vars.Layer
	if config.Len() > 0 {
		layers = append(layers, vars.Templates("config "+in.config, config, e, nowhere, nil))
	}
	return append(layers, vars.Templates("command line", extra, e, nowhere, nil)), ds
}

func diagnostics(err error) source.Diagnostics {
	var ds source.Diagnostics
	var d *source.Diagnostic
	switch {
	case errors.As(err, &ds):
		return ds
	case errors.As(err, &d):
		return source.Diagnostics{d}
	}
	return source.Diagnostics{source.Errorf(source.Pos{}, "%s", err)}
}

var secretName = regexp.MustCompile(`(?i)(passw|passphrase|secret|token|private_key$|api_key|credential)`)

// hideSecrets keeps values whose names say that they are secret from being shown.
func (a *app) hideSecrets(v any) {
	switch v := v.(type) {
	case *value.Dict:
		for k, e := range v.All() {
			name, _ := k.(string)
			if s, ok := e.(string); ok && secretName.MatchString(name) && !strings.Contains(s, "{{") {
				a.secret.Add(s)
			}
			a.hideSecrets(e)
		}
	case []any:
		for _, e := range v {
			a.hideSecrets(e)
		}
	}
}

// mappingFile reads a file that holds one mapping.
func (a *app) mappingFile(path, what string) (*value.Dict, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	text, err := a.tree.ReadFile(abs)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	f := source.NewFile(path, text)
	docs, ds := source.ParseYAML(f)
	if err := ds.Err(); err != nil {
		return nil, err
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 {
		return value.NewDict(), nil
	}
	return mapping(f, docs[0])
}

func mapping(f *source.File, n *yaml.Node) (*value.Dict, error) {
	v, err := value.FromYAML(n)
	var ye *value.YAMLError
	if errors.As(err, &ye) {
		return nil, source.Errorf(source.Pos{File: f, Line: ye.Line, Col: ye.Col}, "%s", ye.Msg)
	}
	if err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil:
		return value.NewDict(), nil
	case *value.Dict:
		for k := range v.All() {
			if name, ok := k.(string); !ok || !playbook.IsIdentifier(name) {
				return nil, source.Errorf(source.NodePos(f, n), "%s cannot be the name of a variable", value.Repr(k))
			}
		}
		return v, nil
	}
	return nil, source.Errorf(source.NodePos(f, n), "a mapping of names to values is wanted, not a %s", value.TypeName(v))
}

// configFile reads a document of kind Config, or a plain mapping.
func (a *app) configFile(path string) (*value.Dict, error) {
	d, err := a.mappingFile(path, "config")
	if err != nil {
		return nil, err
	}
	kind, hasKind := d.Get("kind")
	if !hasKind || !d.Has("apiVersion") {
		return d, nil
	}
	if kind != "Config" {
		return nil, fmt.Errorf("%s: kind is %s, but a Config is wanted; an inventory is given with -i", path, value.Repr(kind))
	}
	spec, _ := d.Get("spec")
	switch spec := spec.(type) {
	case nil:
		return value.NewDict(), nil
	case *value.Dict:
		return spec, nil
	}
	return nil, fmt.Errorf("%s: spec must be a mapping", path)
}

// extraArg reads one -e: @FILE, YAML or JSON, or k=v words (whose values are text).
func (a *app) extraArg(text string) (*value.Dict, error) {
	trimmed := strings.TrimSpace(text)
	if path, ok := strings.CutPrefix(trimmed, "@"); ok {
		return a.mappingFile(path, "the file of -e")
	}
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		f := source.NewFile("-e", []byte(trimmed))
		docs, ds := source.ParseYAML(f)
		if err := ds.Err(); err != nil {
			return nil, err
		}
		return mapping(f, docs[0])
	}
	words, err := playbook.SplitWords(text)
	if err != nil {
		return nil, fmt.Errorf("-e %q: %w", text, err)
	}
	d := value.NewDict()
	for _, w := range words {
		if w.Key == "" {
			return nil, fmt.Errorf("-e %q: %q is no key=value", text, w.Value)
		}
		d.Set(w.Key, w.Value)
	}
	return d, nil
}

var pathPart = regexp.MustCompile(`^([A-Za-z_][\w-]*)((?:\[\d+\])*)$`)

// set sets a.b[0].c=v. What the config has of the path's first name is kept.
func set(extra, config *value.Dict, text string) error {
	path, raw, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("write it as path=value")
	}
	keys, err := splitPath(path)
	if err != nil {
		return err
	}
	first := keys[0].(string)
	if !playbook.IsIdentifier(first) {
		return fmt.Errorf("%q cannot be the name of a variable", first)
	}
	if !extra.Has(first) {
		if base, ok := config.Get(first); ok {
			extra.Set(first, value.Clone(base))
		}
	}
	_, err = setIn(extra, keys, setValue(raw))
	return err
}

func splitPath(path string) ([]any, error) {
	var keys []any
	for _, part := range strings.Split(path, ".") {
		m := pathPart.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("%q is no path: write a.b[0].c", path)
		}
		keys = append(keys, m[1])
		for _, i := range strings.FieldsFunc(m[2], func(r rune) bool { return r == '[' || r == ']' }) {
			n, err := strconv.Atoi(i)
			if err != nil || n > 10000 {
				return nil, fmt.Errorf("index %s is too large", i)
			}
			keys = append(keys, n)
		}
	}
	return keys, nil
}

// setIn returns the container with the value at the path.
func setIn(in any, keys []any, v any) (any, error) {
	if len(keys) == 0 {
		return v, nil
	}
	switch key := keys[0].(type) {
	case string:
		d, ok := in.(*value.Dict)
		if in != nil && !ok {
			return nil, fmt.Errorf("%q is in a %s, which has no keys", key, value.TypeName(in))
		}
		if d == nil {
			d = value.NewDict()
		}
		old, _ := d.Get(key)
		inner, err := setIn(old, keys[1:], v)
		d.Set(key, inner)
		return d, err
	case int:
		list, ok := in.([]any)
		if in != nil && !ok {
			return nil, fmt.Errorf("[%d] is of a %s, which is no list", key, value.TypeName(in))
		}
		for len(list) <= key {
			list = append(list, nil)
		}
		inner, err := setIn(list[key], keys[1:], v)
		list[key] = inner
		return list, err
	}
	return nil, errors.New("no path")
}

// setValue reads a value as YAML does, but keeps as text what would not print
// again as it was written: 1.30, 0755, 1e3.
func setValue(raw string) any {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(raw), &n); err != nil || len(n.Content) == 0 {
		return raw
	}
	v, err := value.FromYAML(&n)
	if err != nil {
		return raw
	}
	switch v := v.(type) {
	case int, float64:
		if value.Str(v) != raw {
			return raw
		}
	case string:
		return raw
	}
	return v
}

// rolePaths are the folders of roles beyond the project's: ANSIBLE_ROLES_PATH
// and the customary ones.
func rolePaths() []string {
	if p := os.Getenv("ANSIBLE_ROLES_PATH"); p != "" {
		return filepath.SplitList(p)
	}
	out := []string{"/usr/share/ansible/roles", "/etc/ansible/roles"}
	if home, err := os.UserHomeDir(); err == nil {
		out = append([]string{filepath.Join(home, ".ansible/roles")}, out...)
	}
	return out
}
