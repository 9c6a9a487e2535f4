package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"kubekey/pkg/config"
	"kubekey/pkg/convert"
	"kubekey/pkg/engine"
	"kubekey/pkg/inventory"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// builtinTables is the folder of the tables for conversions.
const builtinTables = source.Builtin + "/convert"

func (a *app) convertCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, c := range []struct {
		use, short, long string
		run              func(*convert.Converter, *source.File) (string, source.Diagnostics)
	}{
		{"config FILE", "Convert a config of KubeKey to one of kk",
			"Convert a config of KubeKey: kind Config of v4, or kind Cluster of v3. The result has comments where a key means " +
				"something else, and sets kk's keys to KubeKey's defaults where these differ. A key without an equivalent is an " +
				"error; then nothing is written: kk convert config config.yaml -o cluster.yaml",
			(*convert.Converter).Config},
		{"inventory FILE", "Convert an inventory of KubeKey to one of kk",
			"Convert an inventory of KubeKey: kind Inventory of v4, or the hosts and roleGroups of kind Cluster of v3: " +
				"kk convert inventory config.yaml -o inventory.yaml",
			(*convert.Converter).Inventory},
	} {
		var to string
		cmd := &cobra.Command{Use: c.use, Short: c.short, Long: c.long, Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error { return a.convert(args[0], to, c.run) }}
		newFileFlag(cmd, &to)
		out = append(out, cmd)
	}
	return out
}

func (a *app) convert(path, to string,
	run func(*convert.Converter, *source.File) (string, source.Diagnostics)) error {
	c, err := a.converter()
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	f, err := a.tree.Load(abs, path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return &exitError{engine.ExitError, fmt.Errorf("read %s: %w", path, err)}
	}
	a.hideSecretsIn(f)
	text, ds := run(c, f)
	if ds.Err() != nil {
		return &exitError{engine.ExitInput, ds}
	}
	if err := a.warnOfVersion(text); err != nil {
		return err
	}
	return a.printOrWrite(to, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// hideSecretsIn registers the values in a file with names of secrets so that errors do not show them.
func (a *app) hideSecretsIn(f *source.File) {
	docs, _ := source.ParseYAML(f)
	for _, doc := range docs {
		if v, err := value.FromYAML(doc); err == nil {
			a.hideSecrets(v)
		}
	}
}

// warnOfVersion warns if a converted config sets a version of Kubernetes that kk's catalog does not have.
func (a *app) warnOfVersion(text string) error {
	var set struct {
		Kubernetes struct {
			Version string `yaml:"kube_version"`
		} `yaml:"kubernetes"`
	}
	if err := yaml.Unmarshal([]byte(text), &set); err != nil || set.Kubernetes.Version == "" {
		return err
	}
	problem, err := a.kubernetesProblem(withV(set.Kubernetes.Version))
	if problem != "" {
		a.warn("kubernetes.kube_version: %s", problem)
	}
	return err
}

// converter returns the converter with the builtin tables and the schema of the cluster config.
func (a *app) converter() (*convert.Converter, error) {
	schema, ds := config.Load(a.tree, builtinSchema)
	if err := ds.Err(); err != nil {
		return nil, err
	}
	return convert.New(a.tree, builtinTables, schema)
}

// foreignConfigs returns the errors for config files of other tools, and whether there is one whose other errors say
// nothing more.
func (a *app) foreignConfigs(schema *config.Schema, given config.Given) (ds source.Diagnostics, whole bool) {
	files := given.Files()
	if !schema.Bundled() || len(files) == 0 {
		return nil, false
	}
	c, err := convert.New(a.tree, builtinTables, schema)
	if err != nil {
		return source.DiagnosticsOf(err), true
	}
	for _, f := range files {
		if d, all := c.Foreign(f); d != nil {
			ds.Add(d)
			whole = whole || all
		}
	}
	return ds, whole
}

// foreignInventories returns the warnings for inventories of other tools that kk reads.
func (a *app) foreignInventories(schema *config.Schema, sources []string) source.Diagnostics {
	var ds source.Diagnostics
	for _, name := range sources {
		abs, err := filepath.Abs(name)
		if err != nil || !schema.Bundled() || !a.tree.IsFile(abs) {
			continue
		}
		f, err := a.tree.Load(abs, name)
		if err != nil || !bytes.Contains(f.Text, []byte(inventory.APIVersion)) {
			continue
		}
		c, err := convert.New(a.tree, builtinTables, schema)
		if err != nil {
			return source.DiagnosticsOf(err)
		}
		ds.Add(c.Unused(f)...)
	}
	return ds
}
