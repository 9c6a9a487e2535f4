package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/config"
	"kubekey/pkg/inventory"
	"kubekey/pkg/playbook"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// given is what the command line sets: --config, --extra-vars and --set,
// lowest first.
type given struct {
	configs []config.Part
	extra   []config.Part
	sets    []string
}

// commandLine is the origin of what the command line itself says.
const commandLine = "the command line"

// readGiven reads --config and --extra-vars.
func (a *app) readGiven(in *inputs) (given, source.Diagnostics) {
	var ds source.Diagnostics
	g := given{sets: in.sets}
	for _, path := range in.configs {
		p, err := a.configFile(path)
		if err != nil {
			ds = append(ds, diagnostics(err)...)
			continue
		}
		g.configs = append(g.configs, p)
	}
	for _, text := range in.extra {
		p, err := a.extraArg(text)
		if err != nil {
			ds = append(ds, diagnostics(err)...)
			continue
		}
		g.extra = append(g.extra, p)
	}
	return g, ds
}

// layers are the variables of the command line for playbooks whose project has
// no schema, but for the keys that it is told to leave out.
func (a *app) layers(g given, e *template.Engine, leaveOut func(string) bool) ([]*vars.Layer, source.Diagnostics) {
	var ds source.Diagnostics
	merged, extra := config.Merge(g.configs...), value.NewDict()
	base := without(merged.Values, leaveOut)
	for _, p := range g.extra {
		extra.Merge(without(p.Values, leaveOut))
	}
	all := slices.Concat(g.configs, g.extra)
	for _, text := range g.sets {
		if leaveOut(firstKey(text)) {
			continue
		}
		if err := set(extra, base, text); err != nil {
			ds.Add(badSet(text, err))
			continue
		}
		all = append(all, setPart(text))
	}
	a.hideSecrets(base)
	a.hideSecrets(extra)
	var layers []*vars.Layer
	if base.Len() > 0 {
		layers = append(layers, vars.Templates("config", base, e, keyAt(merged), merged.Unsafe))
	}
	nowhere := func(string) source.Pos { return source.Pos{} }
	return append(layers, vars.Templates("command line", extra, e, nowhere, config.Merge(all...).Unsafe)), ds
}

// without is a copy of a dict without the keys to leave out.
func without(d *value.Dict, leaveOut func(string) bool) *value.Dict {
	out := value.NewDict()
	for k, v := range d.All() {
		if name, _ := k.(string); !leaveOut(name) {
			out.Set(k, value.Clone(v)) // --set changes what is in it
		}
	}
	return out
}

// likePath is what a path of --set is made of. Anything else may be a value.
var likePath = regexp.MustCompile(`^[\w.\[\]-]+$`)

// badSet is an error of a --set; the value may be a secret and is not shown.
func badSet(text string, err error) *source.Diagnostic {
	path, _, _ := strings.Cut(text, "=")
	if !likePath.MatchString(path) {
		return source.Errorf(source.Pos{}, "--set: write it as path=value, with a path such as a.b[0].c")
	}
	return source.Errorf(source.Pos{}, "--set %s: %s", path, err)
}

// firstKey is the variable that a --set is about.
func firstKey(text string) string {
	path, _, _ := strings.Cut(text, "=")
	name, _, _ := strings.Cut(path, ".")
	name, _, _ = strings.Cut(name, "[")
	return name
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

// hideSecrets keeps values whose names say that they are secret from being shown.
func (a *app) hideSecrets(v any) { a.secret.AddNamed(value.Named("", v, redact.Within)) }

// mappingFile reads a file that holds one mapping.
func (a *app) mappingFile(path, what string) (config.Part, error) {
	f, n, err := a.yamlFile(path, what)
	if err != nil || n == nil {
		return config.Part{Name: path, Values: value.NewDict()}, err
	}
	return part(a.secret, path, f, n)
}

// part reads a node as the mapping of names that a file sets.
func part(hide *redact.Set, name string, f *source.File, n *yaml.Node) (config.Part, error) {
	for i := 0; i < len(n.Content); i++ {
		hideGlued(hide, n.Content[i].Value)
	}
	d, err := mapping(f, n)
	return config.Part{Name: name, Values: d, File: f, Node: n}, err
}

// hideGlued hides what stands in name:value, where a blank was forgotten, under the name of a secret.
func hideGlued(hide *redact.Set, key string) {
	if name, text, glued := strings.Cut(key, ":"); glued && redact.IsSecretName(name) {
		hide.Add(text)
	}
}

// yamlFile reads a file of one YAML document; n is nil when it is empty.
func (a *app) yamlFile(path, what string) (f *source.File, n *yaml.Node, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	f, err = a.tree.Load(abs, path)
	if err != nil {
		var d *source.Diagnostic
		if errors.As(err, &d) {
			return nil, nil, d
		}
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, nil, fmt.Errorf("read %s %s: %w", what, path, err)
	}
	docs, ds := source.ParseYAML(f)
	if len(docs) > 1 {
		ds.Add(source.Errorf(source.NodePos(f, docs[1]), "a second YAML document").WithHelp("put everything under one ---"))
	}
	if ds.Err() != nil || len(docs) == 0 || len(docs[0].Content) == 0 {
		return f, nil, ds.Err()
	}
	return f, docs[0].Content[0], nil
}

// mapping turns a node into a mapping of names to values; every key that
// cannot be a name is reported.
func mapping(f *source.File, n *yaml.Node) (*value.Dict, error) {
	for n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	v, err := value.FromYAMLFile(n, f.Name)
	var ye *value.YAMLError
	if errors.As(err, &ye) {
		return nil, source.Errorf(source.Pos{File: f, Line: ye.Line, Col: ye.Col}, "%s", ye.Msg)
	}
	if err != nil {
		return nil, err
	}
	d, ok := v.(*value.Dict)
	switch {
	case v == nil:
		return value.NewDict(), nil
	case !ok:
		return nil, source.Errorf(source.NodePos(f, n), "a mapping of names to values is wanted, not a %s", value.TypeName(v)).
			WithHelp("write `name: value`")
	}
	return d, badNames(f, n).Err()
}

func badNames(f *source.File, n *yaml.Node) source.Diagnostics {
	var ds source.Diagnostics
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.ShortTag() == "!!merge" || playbook.IsIdentifier(k.Value) {
			continue
		}
		d := source.Errorf(source.NodePos(f, k), "%q cannot be the name of a variable", k.Value).
			WithHelp("use letters, digits and _, not starting with a digit")
		if name, _, glued := strings.Cut(k.Value, ":"); glued && playbook.IsIdentifier(name) {
			d = d.WithHelp("write a blank behind the colon: `%s: value`", name)
		}
		d.Width = utf8.RuneCountInString(k.Value)
		ds.Add(d)
	}
	return ds
}

// configFile reads a document of kind Config, or a plain mapping.
func (a *app) configFile(path string) (config.Part, error) {
	f, n, err := a.yamlFile(path, "the config")
	if err != nil || n == nil {
		return config.Part{Name: path, Values: value.NewDict()}, err
	}
	doc := playbook.Value{Node: n, File: f}
	kind, version := doc.Get("kind"), doc.Get("apiVersion")
	if !kind.IsSet() || !version.IsSet() {
		return part(a.secret, path, f, n)
	}
	if d := inventory.OtherVersion(version.At(), version.Text()); d != nil {
		return config.Part{}, d
	}
	if kind.Text() != "Config" {
		return config.Part{}, source.Errorf(kind.At(), "kind is %q, but a Config is wanted", kind.Text()).
			WithHelp("an inventory is given with -i")
	}
	spec := doc.Get("spec")
	if spec.IsNull() {
		return config.Part{Name: path, Values: value.NewDict()}, nil
	}
	return part(a.secret, path, f, spec.Node)
}

// extraArg reads one -e: @FILE, YAML or JSON, or k=v words (whose values are
// text). Errors do not show it, since it may hold secrets.
func (a *app) extraArg(text string) (config.Part, error) {
	trimmed := strings.TrimSpace(text)
	if path, ok := strings.CutPrefix(trimmed, "@"); ok {
		return a.mappingFile(path, "the file of -e")
	}
	d, n, err := extraText(trimmed)
	return config.Part{Name: commandLine, Values: d, Node: n}, err
}

// extraText reads variables, and the mapping that they are where it is YAML.
func extraText(text string) (*value.Dict, *yaml.Node, error) {
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		f := source.NewFile("-e", []byte(text))
		docs, ds := source.ParseYAML(f)
		if err := ds.Err(); err != nil {
			return nil, nil, withoutText(ds)
		}
		d, err := mapping(f, docs[0])
		if err != nil {
			return nil, nil, withoutText(diagnostics(err))
		}
		return d, docs[0].Content[0], nil
	}
	words, err := playbook.SplitWords(text)
	if err != nil {
		return nil, nil, fmt.Errorf("-e: %w", err)
	}
	d := value.NewDict()
	for n, w := range words {
		if w.Key == "" {
			return nil, nil, fmt.Errorf("-e: word %d is no key=value; a file is given as @FILE", n+1)
		}
		if d.Has(w.Key) {
			return nil, nil, fmt.Errorf("-e: word %d sets %s again: remove one", n+1, w.Key)
		}
		d.Set(w.Key, w.Value)
	}
	return d, nil, nil
}

// withoutText takes the text that diagnostics point into away from them.
func withoutText(ds source.Diagnostics) source.Diagnostics {
	out := make(source.Diagnostics, len(ds))
	for i, d := range ds {
		bare := *d
		bare.Summary = fmt.Sprintf("-e, column %d: %s", d.Pos.Col, withoutQuoted(d.Summary))
		bare.Pos = source.Pos{}
		out[i] = &bare
	}
	return out
}

var quotedText = regexp.MustCompile("\"(?:[^\"\\\\]|\\\\.)*\"")

// withoutQuoted masks what a message quotes, but for names of variables.
func withoutQuoted(msg string) string {
	return quotedText.ReplaceAllStringFunc(msg, func(q string) string {
		if text, err := strconv.Unquote(q); err == nil && playbook.IsIdentifier(text) {
			return q
		}
		return redact.Mask
	})
}

var pathPart = regexp.MustCompile(`^([\w-]+)((?:\[\d+\])*)$`)

// set sets a.b[0].c=v. What the config has of the path's first name is kept.
func set(extra, config *value.Dict, text string) error {
	keys, raw, err := cutSet(text)
	if err != nil {
		return err
	}
	first := keys[0].(string)
	if !extra.Has(first) {
		if base, ok := config.Get(first); ok {
			extra.Set(first, value.Clone(base))
		}
	}
	_, err = setIn(extra, keys, setValue(raw))
	return err
}

// setPart is what a --set sets, alone: an element of a list has empty ones before it.
func setPart(text string) config.Part {
	p := config.Part{Name: commandLine, Values: value.NewDict()}
	if keys, raw, err := cutSet(text); err == nil {
		_, _ = setIn(p.Values, keys, setValue(raw)) // an empty mapping takes any path
	}
	return p
}

// cutSet takes path=value apart.
func cutSet(text string) (keys []any, raw string, err error) {
	path, raw, ok := strings.Cut(text, "=")
	if !ok {
		return nil, "", errors.New("write it as path=value")
	}
	if keys, err = splitPath(path); err != nil {
		return nil, "", err
	}
	if first := keys[0].(string); !playbook.IsIdentifier(first) {
		return nil, "", fmt.Errorf("%q cannot be the name of a variable", first)
	}
	return keys, raw, nil
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
			return nil, fmt.Errorf("%q is in a value of type %s, which has no keys", key, value.TypeName(in))
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
			return nil, fmt.Errorf("[%d] is of a value of type %s, which is no list", key, value.TypeName(in))
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
