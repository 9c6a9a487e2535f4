package kube

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/module"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// bundle is what is copied to the host: a tar of values-NN.yaml and the chart.
type bundle struct {
	tar      string
	chart    string // the chart argument of helm, in the folder of the unpacked tar
	ownCache bool   // helm's cache of the host is not needed

	dependencies bool // fetch the dependencies of the chart
	warnings     []string
}

// pack collects the values and the chart of the control node.
func (m *Helm) pack(c *module.Call) (*bundle, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := m.packValues(c, w); err != nil {
		return nil, err
	}
	if err := m.packSetValues(c, w); err != nil {
		return nil, err
	}
	l := &bundle{chart: m.Chart, ownCache: true}
	if err := m.packChart(c, w, l); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	l.tar = b.String()
	return l, nil
}

func (m *Helm) packValues(c *module.Call, w *tar.Writer) error {
	for i, name := range m.ValuesFiles {
		path, err := c.Find("files", name)
		if err != nil {
			return err
		}
		text, err := c.Files.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the values %s: %w", name, err)
		}
		if err := add(w, fmt.Sprintf("values-%03d.yaml", i), text); err != nil {
			return err
		}
	}
	if m.Values.Len() == 0 {
		return nil
	}
	text, err := value.JSON(m.Values, value.JSONOptions{})
	if err != nil {
		return fmt.Errorf("values: %w", err)
	}
	return add(w, "values-999.yaml", []byte(text))
}

// packSetValues writes a file for each value, named after helm's flag with a number.
func (m *Helm) packSetValues(c *module.Call, w *tar.Writer) error {
	for i, v := range m.SetValues {
		text, flag := v.Value, "set-"+v.Type
		switch v.Type {
		case "raw":
			flag = "set"
		case "file":
			key, name, _ := strings.Cut(text, "=")
			path, err := c.Find("files", name)
			if err != nil {
				return fmt.Errorf("set_values %q: %w", text, err)
			}
			content, err := c.Files.ReadFile(path)
			if err != nil {
				return fmt.Errorf("set_values: read %s: %w", name, err)
			}
			file := fmt.Sprintf("file-%03d", i)
			if err := add(w, file, content); err != nil {
				return err
			}
			text = key + "=" + file
		}
		if err := add(w, fmt.Sprintf("%s-%03d", flag, i), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// packChart bundles the chart if it is a file or a folder on the control node.
func (m *Helm) packChart(c *module.Call, w *tar.Writer, l *bundle) error {
	if m.RepoURL != "" || strings.Contains(m.Chart, "://") {
		return m.noDependencies()
	}
	path, err := c.Find("files", m.Chart)
	if err != nil {
		if source.IsAbs(m.Chart) || strings.HasPrefix(m.Chart, ".") || strings.HasSuffix(m.Chart, ".tgz") ||
			!strings.Contains(m.Chart, "/") {
			return fmt.Errorf("find the chart: %w", err)
		}
		l.ownCache = false // a chart of a repository that the host's helm knows
		return m.noDependencies()
	}
	if c.Files.IsDir(path) {
		l.chart = "./chart"
		if err := m.depends(c, path, l); err != nil {
			return err
		}
		return addFolder(c.Files, w, path, "chart", 0)
	}
	if err := m.noDependencies(); err != nil {
		return err
	}
	text, err := c.Files.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	l.chart = "./chart.tgz"
	return add(w, "chart.tgz", text)
}

// noDependencies rejects dependency_update for a chart that is not a folder.
func (m *Helm) noDependencies() error {
	if m.DependencyUp {
		return fmt.Errorf("dependency_update needs a chart folder, and %q is not one: a packaged chart contains its "+
			"dependencies", m.Chart)
	}
	return nil
}

// depends looks whether there is anything for dependency_update to fetch.
func (m *Helm) depends(c *module.Call, dir string, l *bundle) error {
	if !m.DependencyUp {
		return nil
	}
	text, err := c.Files.ReadFile(source.Join(dir, "Chart.yaml"))
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	about, err := fromYAML(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", source.Join(dir, "Chart.yaml"), err)
	}
	l.dependencies = len(about) == 1 && about[0].at("dependencies") != nil
	if !l.dependencies {
		l.warnings = []string{"dependency_update has nothing to do: Chart.yaml names no dependencies"}
	}
	return nil
}

// maxFolders bounds how deep a chart's folders are, and so a loop of links.
const maxFolders = 40

func addFolder(files source.Tree, w *tar.Writer, dir, as string, depth int) error {
	if depth > maxFolders {
		return errors.New("the chart's folders are nested too deep")
	}
	list, err := files.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	for _, e := range list {
		path, name := source.Join(dir, e.Name()), as+"/"+e.Name()
		if files.IsDir(path) {
			if err := addFolder(files, w, path, name, depth+1); err != nil {
				return err
			}
			continue
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read the chart: %w", err)
		}
		if err := add(w, name, text); err != nil {
			return err
		}
	}
	return nil
}

func add(w *tar.Writer, name string, text []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)),
		Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}
