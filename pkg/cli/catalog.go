package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kubekey/pkg/catalog"
	"kubekey/pkg/config"
	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/vars"
)

func (a *app) catalogCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "catalog", Short: "Show what kk installs: versions, files, digests, charts and images"}
	cmd.AddCommand(a.catalogListCommand(), a.catalogShowCommand())
	return cmd
}

func (a *app) catalogListCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "list [NAME]",
		Short: "List Kubernetes releases with their component versions, or the versions of one component",
		Long: "List the minor releases of Kubernetes with the component versions that the newest patch release of each " +
			"installs. " +
			"With a name (kubernetes, etcd, containerd, calico, coredns, ...) list its versions, newest first, with the " +
			"minor releases of Kubernetes that install them by default.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.catalog(files)
			if err != nil {
				return &exitError{engine.ExitInput, err}
			}
			if len(args) == 0 {
				return a.listMinors(c)
			}
			return a.listVersions(c, args[0])
		},
	}
	cmd.Flags().StringArrayVarP(&files, "config", "c", nil,
		"config file whose catalog.overlays are applied; may be repeated, later files override earlier ones")
	return cmd
}

// catalog returns the builtin catalog with the overlays of config files.
func (a *app) catalog(files []string) (*catalog.Catalog, error) {
	overlays, err := a.catalogOverlays(files)
	if err != nil {
		return nil, err
	}
	return catalog.Load(a.readFile, a.tree.Embedded, overlays)
}

// catalogOverlays lists the catalog.overlays of config files.
func (a *app) catalogOverlays(files []string) ([]string, error) {
	given, ds := a.configReader().Given(files, nil, nil)
	schema, more := config.Load(a.tree, builtinSchema)
	if ds = append(ds, more...); ds.Err() != nil {
		return nil, ds
	}
	merged, more := schema.Apply(given)
	foreign, _ := a.foreignConfigs(schema, given)
	if ds = append(append(ds, foreign...), more...); ds.Err() != nil {
		return nil, ds
	}
	q := &question{app: a, config: merged}
	overlays := q.overlays()
	if q.ds.Err() != nil {
		return nil, q.ds
	}
	return overlays, nil
}

// listed are the columns next to Kubernetes: the versions that matter when choosing one.
var listed = [...]string{"etcd", "coredns", "pause", "containerd", "runc", "calico", "cilium"}

func (a *app) listMinors(c *catalog.Catalog) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "KUBERNETES\tVERSIONS\t%s\n", strings.ToUpper(strings.Join(listed[:], "\t")))
	for _, m := range slices.Backward(c.Minors()) {
		chosen := c.Chosen(m.Newest)
		fmt.Fprintf(w, "%s\t%s to %s", m.Name, m.Oldest, m.Newest)
		for _, name := range listed {
			fmt.Fprintf(w, "\t%s", chosen[name])
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// listVersions lists the catalog's entries for one name: versions with known digests, and versions that are the
// default of a Kubernetes release.
func (a *app) listVersions(c *catalog.Catalog, name string) error {
	minors := map[string][]string{}
	for _, v := range c.Known(name) {
		minors[v] = nil
	}
	names := map[string]bool{"kubernetes": true}
	for _, m := range slices.Backward(c.Minors()) {
		chosen := c.Chosen(m.Newest)
		for n := range chosen {
			names[n] = true
		}
		if v := chosen[name]; v != "" {
			minors[v] = append(minors[v], m.Name)
		}
	}
	if len(minors) == 0 {
		return &exitError{engine.ExitError, source.Errorf(source.Pos{}, "the catalog has no component %q", name).
			WithHelp("%s", cmp.Or(source.DidYouMean(name, slices.Collect(maps.Keys(names))), "`kk catalog show` lists all"))}
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tDEFAULT OF KUBERNETES\n", strings.ToUpper(name))
	for _, v := range slices.Backward(catalog.Sort(slices.Collect(maps.Keys(minors)))) {
		fmt.Fprintf(w, "%s\t%s\n", v, cmp.Or(strings.Join(minors[v], ", "), "-"))
	}
	return w.Flush()
}

func (a *app) catalogShowCommand() *cobra.Command {
	in := &inputs{}
	var output string
	cmd := &cobra.Command{
		Use:   "show [KUBE_VERSION]",
		Short: "Show the components of a cluster: versions, URLs, digests, charts and images",
		Long: "Show the components of a cluster: the variable `catalog` as roles see it, computed from the config and the " +
			"inventory. " +
			"KUBE_VERSION defaults to the version in the config. An empty URL means that upstream does not publish the file, " +
			"or that it could not be verified.",
		Example: `  kk catalog show v1.34.4
  kk catalog show -c config.yaml -i inventory.yaml -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			expression, err := catalogFormat(output)
			if err != nil {
				return err
			}
			if len(args) > 0 && args[0] != "" {
				in.sets = append(in.sets, "kubernetes.kube_version="+withV(args[0]))
			}
			return a.showCatalog(cmd.Context(), in, expression)
		},
	}
	in.flags(cmd.Flags())
	in.artifactFlag(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or json")
	return cmd
}

// catalogFormat returns the expression that prints the catalog.
func catalogFormat(output string) (string, error) {
	switch output {
	case "yaml", "json":
		return "catalog | to_nice_" + output + "(indent=2, sort_keys=false)", nil
	}
	return "", usage("-o %q: use yaml or json", output)
}

func (a *app) showCatalog(ctx context.Context, in *inputs, expression string) error {
	s, v, err := a.catalogView(ctx, in)
	if err != nil {
		return err
	}
	return a.evalText(ctx, s, v, expression)
}

// catalogView returns the variables of a config, as the builtin playbooks see them; catalog is among them.
func (a *app) catalogView(ctx context.Context, in *inputs) (*session, *vars.View, error) {
	s, err := a.begin(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	a.configure(s, []string{precheckPlaybook})
	if s.diagnostics.Err() != nil {
		return nil, nil, &exitError{engine.ExitInput, s.diagnostics}
	}
	a.diagnostics(s.diagnostics)
	v, err := a.hostView(ctx, s, "", source.Dir(precheckPlaybook))
	return s, v, err
}
