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
		return nil, errors.New("there is no object in what the task gives")
	}
	var wrong []error
	seen := map[string]bool{}
	for _, o := range objects {
		if m.Namespace != "" && o.namespace() == "" {
			o.setNamespace(m.Namespace)
		}
		err := o.check()
		if err == nil && seen[o.key()] {
			err = fmt.Errorf("%s is there twice", o)
		}
		wrong = append(wrong, err)
		seen[o.key()] = true
	}
	return objects, errors.Join(wrong...)
}

func (o object) setNamespace(ns string) {
	meta, ok := o.at("metadata").(*value.Dict)
	if !ok {
		meta = value.NewDict()
		o.Set("metadata", meta)
	}
	meta.Set("namespace", ns)
}

// read takes the objects from the one argument that gives them.
func (m *K8s) read(ctx context.Context, c *module.Call) ([]object, error) {
	given := 0
	for _, is := range []bool{m.Definition != nil, m.Src != "", m.Template != ""} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, errors.New("definition, src and template exclude each other")
	case m.Definition != nil:
		return m.definition()
	case m.Src != "":
		return m.source(ctx, c)
	case m.Template != "":
		return m.rendered(ctx, c)
	case m.Kind == "" || m.Name == "":
		return nil, errors.New("one of definition, src, template, or kind and name is required")
	}
	meta := value.NewDict("name", m.Name)
	return []object{{value.NewDict("apiVersion", m.APIVersion, "kind", m.Kind, "metadata", meta)}}, nil
}

func (m *K8s) definition() ([]object, error) {
	if text, ok := m.Definition.(string); ok {
		return fromYAML(text)
	}
	return flatten(value.Clone(m.Definition))
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
		return nil, fmt.Errorf("read %s: the server says %s", address, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxSource+1))
	if err == nil && len(text) > maxSource {
		err = fmt.Errorf("read %s: it has more than %d bytes", address, maxSource)
	}
	return text, err
}

func (m *K8s) rendered(ctx context.Context, c *module.Call) ([]object, error) {
	path, err := c.Find("templates", m.Template)
	if err != nil {
		return nil, err
	}
	compiled, err := c.Templates.File(path, template.FileOptions{})
	if err != nil {
		return nil, err
	}
	text, err := compiled.Text(ctx, c.Scope)
	if err != nil {
		return nil, err
	}
	objects, err := fromYAML(text)
	if err != nil {
		return nil, fmt.Errorf("%s, rendered: %w", m.Template, err)
	}
	return objects, nil
}
