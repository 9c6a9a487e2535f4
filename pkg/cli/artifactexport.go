package cli

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// artifactExportCommand returns the command that makes an offline file.
func (a *app) artifactExportCommand() *cobra.Command {
	r := &runFlags{}
	var output, kubernetes string
	var arches, images []string
	cmd := &cobra.Command{
		Use:   "export -o FILE",
		Short: "Make an offline file: everything that a cluster is built from",
		Long: "Make one file of everything that the config needs: binaries, charts and images, verified, for a site without " +
			"a network. There, `kk create cluster -a FILE` builds the cluster from it. Use the config and the inventory of " +
			"that cluster; its hosts are not contacted.\n\n" +
			"What was fetched is kept in the work folder: after a failure, run the same command again. The same inputs " +
			"make the same bytes.\n\nRuns playbooks/artifact_export.yaml.",
		Example: `  kk artifact export -c config.yaml -i inventory.yaml -o kubernetes.tar
  kk artifact export --kubernetes v1.34.4 --arch amd64,arm64 -o kubernetes.tar`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output == "" {
				return usage("%s needs the file to write: -o FILE", cmd.CommandPath())
			}
			path, err := filepath.Abs(output)
			if err != nil {
				return err
			}
			if kubernetes != "" {
				r.sets = append(r.sets, "kubernetes.kube_version="+withV(kubernetes))
			}
			if len(images) > 0 {
				text, err := value.JSON(value.Of(images), value.JSONOptions{})
				if err != nil {
					return err
				}
				r.sets = append(r.sets, "artifact.images="+text)
			}
			r.extraVars(value.NewDict("artifact_export", value.NewDict("output", path, "architectures", value.Of(arches))))
			return a.runPlaybooks(cmd.Context(), r, []string{source.Builtin + "/playbooks/artifact_export.yaml"})
		},
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "path of the offline file (required)")
	f.StringVar(&kubernetes, "kubernetes", "", "version of Kubernetes, instead of the config's: v1.34.4")
	f.StringSliceVar(&arches, "arch", nil, "architectures of the hosts: amd64, arm64 (default: that of this machine)")
	f.StringArrayVar(&images, "image", nil,
		"image besides those that the config needs, with registry and tag, instead of artifact.images; may be repeated")
	exportFlags(r, f)
	return cmd
}

// exportFlags adds those flags of a run that matter without hosts. -o is the file here.
func exportFlags(r *runFlags, f *pflag.FlagSet) {
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	r.flags(all)
	hosts := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(connectFlags).flags(hosts)
	others := []string{"limit", "tags", "skip-tags", "forks", "force-handlers", "start-at-task", "resume", "step",
		"flush-cache", "list-hosts", "list-tasks", "list-tags", "syntax-check", "diff"}
	all.VisitAll(func(flag *pflag.Flag) {
		switch {
		case hosts.Lookup(flag.Name) != nil || slices.Contains(others, flag.Name):
			return
		case flag.Name == "output":
			flag.Name, flag.Shorthand = "format", ""
		}
		f.AddFlag(flag)
	})
}
