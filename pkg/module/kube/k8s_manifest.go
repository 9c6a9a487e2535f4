package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/source"
	"kubekey/pkg/template"
	"kubekey/pkg/value"
)

// objects are those of the task, complete and checked.
func (m *K8s) objects(ctx context.Context, c *module.Call) ([]object, error) {
	objects, err := m.read(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(objects) == 0 {
		return nil, errors.New("the task has no object: set definition, src, template or kind and name")
	}
	var wrong []error
	seen := map[string]bool{}
	for _, o := range objects {
		m.complete(o)
		err := o.check()
		if len(m.Labels) > 0 && o.kind() != "" && o.name() == "" {
			err = nil // the labels stand for the name, or leave the object out
		}
		if err == nil && m.AppendHash {
			err = o.appendHash()
		}
		if err == nil && o.name() != "" && seen[o.key()] {
			err = fmt.Errorf("%s is defined twice", o)
		}
		wrong = append(wrong, err)
		seen[o.key()] = true
	}
	return objects, errors.Join(wrong...)
}

// complete sets the defaults of the task on the object.
func (m *K8s) complete(o object) {
	for key, v := range map[string]string{"kind": m.Kind, "apiVersion": m.APIVersion} {
		if v != "" && o.text(key) == "" {
			o.Set(key, v)
		}
	}
	for key, v := range map[string]string{"namespace": m.Namespace, "name": m.Name, "generateName": m.GenerateName} {
		if v != "" && o.text("metadata", key) == "" && (key != "generateName" || o.name() == "") {
			o.setMeta(key, v)
		}
	}
}

func (o object) setMeta(key, v string) {
	meta, ok := o.at("metadata").(*value.Dict)
	if !ok {
		meta = value.NewDict()
		o.Set("metadata", meta)
	}
	meta.Set(key, v)
}

// read reads the objects from the one argument that has them.
func (m *K8s) read(ctx context.Context, c *module.Call) ([]object, error) {
	switch {
	case m.Definition != nil:
		return m.definition()
	case m.Src != "":
		return m.source(ctx, c)
	case m.Template != nil:
		return m.rendered(ctx, c)
	}
	return []object{{value.NewDict("apiVersion", m.APIVersion, "kind", m.Kind, "metadata", value.NewDict())}}, nil
}

func (m *K8s) definition() ([]object, error) {
	if text, ok := m.Definition.(string); ok {
		return fromYAML(text)
	}
	list, ok := m.Definition.([]any)
	if !ok {
		return flatten(value.Clone(m.Definition))
	}
	var all []object
	for _, v := range list {
		one := K8s{Definition: v}
		objects, err := one.definition()
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func (m *K8s) source(ctx context.Context, c *module.Call) ([]object, error) {
	if strings.HasPrefix(m.Src, "http://") || strings.HasPrefix(m.Src, "https://") {
		text, err := fetch(ctx, m.Src)
		if err != nil {
			return nil, err
		}
		return parse(m.Src, text)
	}
	path, err := c.Find("files", m.Src)
	if err != nil {
		return nil, err
	}
	if c.Files.IsDir(path) {
		return readFolder(c.Files, path)
	}
	return readManifest(c.Files, path)
}

// readFolder reads the manifests of a folder as kubectl does: not those of folders below.
func readFolder(files source.Tree, dir string) ([]object, error) {
	list, err := files.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []object
	for _, e := range list {
		path := source.Join(dir, e.Name())
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) || files.IsDir(path) {
			continue
		}
		objects, err := readManifest(files, path)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no manifest is in the folder", dir)
	}
	return all, nil
}

func readManifest(files source.Tree, path string) ([]object, error) {
	text, err := files.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, text)
}

func parse(name string, text []byte) ([]object, error) {
	objects, err := fromYAML(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return objects, nil
}

// maxSource bounds what is read from an address.
const maxSource = 64 << 20

func fetch(ctx context.Context, address string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", address, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read %s: the server responded with %s", address, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSource+1))
	if err == nil && len(text) > maxSource {
		err = fmt.Errorf("read %s: it has more than %d bytes", address, maxSource)
	}
	return text, err
}

func (m *K8s) rendered(ctx context.Context, c *module.Call) ([]object, error) {
	given, many := m.Template.([]any)
	if !many {
		given = []any{m.Template}
	}
	var all []object
	for _, one := range given {
		objects, err := render(ctx, c, one)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func render(ctx context.Context, c *module.Call, given any) ([]object, error) {
	name, options, err := templateOf(given)
	if err != nil {
		return nil, err
	}
	path, err := c.Find("templates", name)
	if err != nil {
		return nil, err
	}
	compiled, err := c.Templates.File(path, options)
	if err != nil {
		return nil, err
	}
	text, err := compiled.Text(ctx, c.Scope)
	if err != nil {
		return nil, err
	}
	objects, err := fromYAML(text)
	if err != nil {
		return nil, fmt.Errorf("%s, rendered: %w", name, err)
	}
	return objects, nil
}

// templateOf reads one value of the argument template.
func templateOf(given any) (path string, o template.FileOptions, err error) {
	d, isDict := given.(*value.Dict)
	if !isDict {
		if path, isText := given.(string); isText && path != "" {
			return path, o, nil
		}
		return "", o, fmt.Errorf("template is a path, a dictionary with path, or a list of these, not %s", value.Repr(given))
	}
	texts := map[string]*string{
		"path": &path, "newline_sequence": &o.Newline,
		"block_start_string": &o.BlockStart, "block_end_string": &o.BlockEnd,
		"variable_start_string": &o.VariableStart, "variable_end_string": &o.VarEnd,
		"comment_start_string": &o.CommentStart, "comment_end_string": &o.CommentEnd,
	}
	for k, v := range d.All() {
		switch key := value.Str(k); {
		case key == "trim_blocks":
			o.NoTrimBlocks = !value.Truth(v)
		case key == "lstrip_blocks":
			o.LStripBlocks = value.Truth(v)
		case texts[key] == nil:
			return "", o, fmt.Errorf("template has no option %q", key)
		default:
			*texts[key] = value.Str(v)
		}
	}
	if path == "" {
		return "", o, errors.New("template needs a path")
	}
	return path, o, nil
}
