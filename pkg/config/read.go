package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/inventory"
	"kubekey/pkg/playbook"
	"kubekey/pkg/redact"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// mappingFile reads a file that contains one mapping.
func (r Reader) mappingFile(path, what string) (Part, error) {
	f, n, err := r.yamlFile(path, what)
	if err != nil || n == nil {
		return Part{Name: path, Values: value.NewDict()}, err
	}
	return part(r.Secrets, path, f, n)
}

// part converts a node to the variables that a file sets.
func part(hide *redact.Set, name string, f *source.File, n *yaml.Node) (Part, error) {
	for i := 0; i < len(n.Content); i++ {
		hideGlued(hide, n.Content[i].Value)
	}
	d, err := mapping(f, n)
	return Part{Name: name, Values: d, File: f, Node: n}, err
}

// hideGlued registers the value in name:value (with the space missing) as secret, if the name is that of a secret.
func hideGlued(hide *redact.Set, key string) {
	if name, text, glued := strings.Cut(key, ":"); glued && redact.IsSecretName(name) {
		hide.Add(text)
	}
}

// yamlFile reads a file with one YAML document. n is nil if it is empty.
func (r Reader) yamlFile(path, what string) (f *source.File, n *yaml.Node, err error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	f, err = r.Files.Load(abs, path)
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
	if d := inventory.OldVersion(f, docs, "config"); d != nil {
		return f, nil, d
	}
	if len(docs) > 1 {
		ds.Add(source.Errorf(source.NodePos(f, docs[1]), "a second YAML document").WithHelp("put everything under one ---"))
	}
	if ds.Err() != nil || len(docs) == 0 || len(docs[0].Content) == 0 {
		return f, nil, ds.Err()
	}
	return f, docs[0].Content[0], nil
}

// mapping converts a node to a mapping of names to values. Every key that cannot be a name is reported.
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
		return nil, source.Errorf(source.NodePos(f, n), "expected a mapping of names to values, got a %s",
			value.TypeName(v)).
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
func (r Reader) configFile(path string) (Part, error) {
	f, n, err := r.yamlFile(path, "the config")
	if err != nil || n == nil {
		return Part{Name: path, Values: value.NewDict()}, err
	}
	doc := playbook.Value{Node: n, File: f}
	kind, version := doc.Get("kind"), doc.Get("apiVersion")
	if !kind.IsSet() || !version.IsSet() {
		return part(r.Secrets, path, f, n)
	}
	if d := inventory.OtherVersion(version.At(), version.Text()); d != nil {
		return Part{}, d
	}
	if kind.Text() != "Config" {
		return Part{}, source.Errorf(kind.At(), "kind is %q, expected a Config", kind.Text()).
			WithHelp("an inventory is given with -i")
	}
	spec := doc.Get("spec")
	if spec.IsNull() {
		return Part{Name: path, Values: value.NewDict()}, nil
	}
	return part(r.Secrets, path, f, spec.Node)
}

// extraArg reads one -e: @FILE, YAML or JSON, or k=v tokens (whose values are text). Errors do not show the text
// because it may contain secrets.
func (r Reader) extraArg(text string) (Part, error) {
	trimmed := strings.TrimSpace(text)
	if path, ok := strings.CutPrefix(trimmed, "@"); ok {
		return r.mappingFile(path, "the file of -e")
	}
	d, n, err := extraText(trimmed)
	return Part{Name: commandLine, Values: d, Node: n}, err
}

// ExtraText reads the variables from the text of one -e. The text must not be @FILE.
func ExtraText(text string) (*value.Dict, error) {
	d, _, err := extraText(text)
	return d, err
}

// extraText reads variables. Where the text is YAML, it returns its mapping node, too.
func extraText(text string) (*value.Dict, *yaml.Node, error) {
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		f := source.NewFile("-e", []byte(text))
		docs, ds := source.ParseYAML(f)
		if err := ds.Err(); err != nil {
			return nil, nil, withoutText(ds)
		}
		d, err := mapping(f, docs[0])
		if err != nil {
			return nil, nil, withoutText(source.DiagnosticsOf(err))
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

// withoutText removes the source text from diagnostics.
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

// withoutQuoted masks the quoted parts of a message, except for variable names.
func withoutQuoted(msg string) string {
	return quotedText.ReplaceAllStringFunc(msg, func(q string) string {
		if text, err := strconv.Unquote(q); err == nil && playbook.IsIdentifier(text) {
			return q
		}
		return redact.Mask
	})
}
