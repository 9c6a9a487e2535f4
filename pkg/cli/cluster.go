package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// family is a group of commands with the same verb: kk create cluster, kk create config.
type family struct {
	name, short string
	members     []*cobra.Command
}

// shortcut is a command that runs one of the builtin playbooks.
type shortcut struct {
	use, short, long string
	playbook         string // relative to playbooks/, without .yaml
	args             func(cmd *cobra.Command, args []string) error
	asks             bool                 // has --yes
	offline          bool                 // has --artifact
	flags            func(*pflag.FlagSet) // adds flags of this command only
	vars             func(cmd *cobra.Command, args []string) *value.Dict
	check            func(s *session, args []string) source.Diagnostics // runs before any host is reached
	edit             func(cmd *cobra.Command, args []string) (inventoryEdit, error)
}

// Flags of shortcuts.
const (
	flagYes        = "yes"
	flagForce      = "force"
	flagAll        = "all"
	flagWithData   = "with-data"
	flagKubernetes = "with-kubernetes"
)

func (a *app) families() []family {
	create := []*cobra.Command{a.shortcutCommand(shortcut{
		use: "cluster", playbook: "create_cluster", asks: true, offline: true, args: noArgs, flags: kubernetesFlag,
		short: "Create a Kubernetes cluster, or apply the config to an existing one",
		long: "Create a Kubernetes cluster on the hosts of an inventory: prechecks, downloads, certificates, operating " +
			"systems, etcd, container runtime, " +
			"Kubernetes, network, DNS, storage, add-ons, and a final health check. Before anything changes it shows the plan " +
			"and asks for confirmation.\n\n" +
			"Without an inventory it creates a single-node cluster on this machine. Without a config the defaults apply; `kk " +
			"create config` prints them.\n\n" +
			"A second run changes only what differs from the config. After a failure, run the same command again.",
	}), a.createConfigCommand(), a.createInventoryCommand()}
	add := []*cobra.Command{a.shortcutCommand(shortcut{
		use: "nodes [NODE...]", playbook: "add_nodes", asks: true, offline: true,
		check: inInventory, vars: addedNodes, flags: newNodeFlags, edit: editForAdd,
		short: "Add new hosts to a cluster",
		long: "Add hosts to a cluster: those on the command line, or all hosts of the inventory that are not in the " +
			"cluster yet. They are in the inventory, in their groups: kube_control_plane, kube_worker, etcd. " +
			"--control-plane and --worker add them to the inventory file first, which keeps its comments and layout: " +
			"kk add nodes --worker node4=10.0.0.4 -i inventory.yaml",
	})}
	remove := []*cobra.Command{
		a.shortcutCommand(shortcut{
			use: "nodes NODE...", playbook: "delete_nodes", asks: true, args: someNodes, check: inInventory,
			edit: editForDelete,
			vars: with(names("delete_nodes"), flagForce, "force", flagWithData, "delete_with_data"),
			flags: func(f *pflag.FlagSet) {
				f.Bool(flagForce, false, "delete nodes even if no control plane is left or etcd loses its quorum")
				withDataFlag(f)
			},
			short: "Remove nodes from a cluster and clean up their hosts",
			long: "Remove nodes from a cluster: they are drained, their etcd members are removed, and everything that kk " +
				"installed on the hosts is removed. " +
				"A host that cannot be reached is removed from the cluster anyway. Afterwards the nodes are removed from the " +
				"inventory file, with their comments; hosts that did not answer, and those of the groups image_registry and nfs, " +
				"stay in it.",
		}),
		a.shortcutCommand(shortcut{
			use: "cluster", playbook: "delete_cluster", asks: true, args: noArgs,
			vars: with(names(""), flagAll, "delete_all", flagWithData, "delete_with_data"),
			flags: func(f *pflag.FlagSet) {
				f.Bool(flagAll, false, "also revert the operating system setup and remove the image registry")
				withDataFlag(f)
			},
			short: "Delete a cluster and clean up its hosts",
			long: "Delete a cluster: everything that kk installed on its hosts, and nothing else. Data is kept unless " +
				"--with-data is set.",
		}),
		a.shortcutCommand(shortcut{
			use: "registry", playbook: "delete_registry", asks: true, args: noArgs,
			vars: with(names(""), flagWithData, "delete_with_data"), flags: withDataFlag,
			short: "Delete the image registry",
			long: "Delete the image registry on the hosts of the group image_registry. Its images are kept unless " +
				"--with-data is set.",
		}),
	}
	prepare := []*cobra.Command{
		a.shortcutCommand(shortcut{
			use: "os", playbook: "init_os", offline: true, args: noArgs,
			short: "Prepare the operating systems of a cluster's hosts",
			long: "Only prepare the operating systems of a cluster's hosts: packages, host names, kernel settings, swap, " +
				"time. `kk create cluster` includes this.",
		}),
		a.shortcutCommand(shortcut{
			use: "registry", playbook: "init_registry", offline: true, args: noArgs, flags: kubernetesFlag,
			short: "Set up the private image registry",
			long: "Set up the private image registry on the hosts of the group image_registry, and push the images that the " +
				"config needs. `kk create cluster` includes this.",
		}),
	}
	certs := []*cobra.Command{
		a.shortcutCommand(shortcut{
			use: "check", playbook: "certs_check", args: noArgs,
			short: "Show the certificates of a cluster and when they expire",
			long:  "Show the certificates of a cluster and when they expire. Nothing is changed.",
		}),
		a.shortcutCommand(shortcut{
			use: "renew", playbook: "certs_renew", args: noArgs,
			short: "Renew the certificates of a cluster",
			long: "Renew the certificates of a cluster, one control plane at a time, and restart the services that use " +
				"them. The CAs are kept.",
		}),
	}
	return []family{
		{"create", "Create a cluster, a config, an inventory", create},
		{"add", "Add nodes to a cluster", add},
		{"delete", "Delete nodes, a cluster, a registry", remove},
		{"init", "Prepare hosts", prepare},
		{"certs", "Manage a cluster's certificates", certs},
		{"convert", "Convert the files of KubeKey", a.convertCommands()},
		{"artifact", "Make and use offline files", []*cobra.Command{
			a.artifactExportCommand(), a.artifactListCommand(), a.artifactVerifyCommand(), a.artifactDiffCommand(),
			a.artifactDeltaCommand(), a.artifactMergeCommand(), a.artifactSBOMCommand(), a.artifactSignCommand(),
			a.artifactImagesCommand(), a.artifactServeCommand(), a.artifactImportCommand(), a.artifactPruneCommand(),
		}},
	}
}

// clusterCommands returns the commands that manage clusters.
func (a *app) clusterCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, f := range a.families() {
		cmd := &cobra.Command{Use: f.name, Short: f.short}
		cmd.AddCommand(f.members...)
		out = append(out, cmd)
	}
	return out
}

// shortcutCommand returns the cobra command of a shortcut.
func (a *app) shortcutCommand(s shortcut) *cobra.Command {
	path := source.Builtin + "/playbooks/" + s.playbook + ".yaml"
	r := &runFlags{}
	cmd := &cobra.Command{Use: s.use, Short: s.short, Args: s.args,
		Long: s.long + "\n\nRuns playbooks/" + s.playbook + ".yaml and accepts the flags of `kk run`."}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if s.check != nil {
			r.inspect = func(session *session) source.Diagnostics { return s.check(session, args) }
		}
		if s.edit != nil {
			var err error
			if r.edit, err = s.edit(cmd, args); err != nil {
				return err
			}
		}
		if s.vars != nil {
			r.extraVars(s.vars(cmd, args))
		}
		if yes, _ := cmd.Flags().GetBool(flagYes); yes {
			r.extraVars(value.NewDict("kk_yes", true))
		}
		if v, _ := cmd.Flags().GetString(flagKubernetes); v != "" {
			r.sets = append(r.sets, "kubernetes.kube_version="+withV(v))
		}
		return a.runPlaybooks(cmd.Context(), r, []string{path})
	}
	r.flags(cmd.Flags())
	if s.flags != nil {
		s.flags(cmd.Flags())
	}
	if s.offline {
		r.artifactFlag(cmd.Flags())
	}
	if s.asks {
		cmd.Flags().BoolP(flagYes, "y", false, "do not ask")
	}
	return cmd
}

// extraVars sets variables with the precedence of -e.
func (r *runFlags) extraVars(vars *value.Dict) {
	if vars.Len() == 0 {
		return
	}
	text, err := value.JSON(vars, value.JSONOptions{})
	if err == nil { // names and booleans always have a JSON form
		r.extra = append(r.extra, text)
	}
}

func kubernetesFlag(f *pflag.FlagSet) {
	f.String(flagKubernetes, "", "version of Kubernetes, instead of the config's: v1.34.4")
}

func withDataFlag(f *pflag.FlagSet) {
	f.Bool(flagWithData, false, "delete data too: etcd, local volumes, registry. It cannot be recovered")
}

// withV returns a version in the catalog's spelling, with a leading v.
func withV(version string) string {
	if version[0] >= '0' && version[0] <= '9' {
		return "v" + version
	}
	return version
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s accepts no argument %q: it runs on the hosts of the inventory (-i) or of --limit", cmd.CommandPath(),
			args[0])
	}
	return nil
}

func someNodes(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("specify the nodes: %s node3 -i inventory.yaml", cmd.CommandPath())
	}
	return nil
}

// names returns a function that sets a variable to the arguments. Without arguments the variable is not set.
func names(variable string) func(*cobra.Command, []string) *value.Dict {
	return func(_ *cobra.Command, args []string) *value.Dict {
		if len(args) == 0 {
			return value.NewDict()
		}
		return value.NewDict(variable, value.Of(args))
	}
}

// with adds variables for flags. Each pair consists of a flag and its variable.
func with(vars func(*cobra.Command, []string) *value.Dict, pairs ...string) func(*cobra.Command, []string) *value.Dict {
	return func(cmd *cobra.Command, args []string) *value.Dict {
		d := vars(cmd, args)
		for i := 0; i+1 < len(pairs); i += 2 {
			if set, _ := cmd.Flags().GetBool(pairs[i]); set {
				d.Set(pairs[i+1], true)
			}
		}
		return d
	}
}

// inInventory rejects hosts that are not in the inventory.
func inInventory(s *session, args []string) source.Diagnostics {
	var ds source.Diagnostics
	for _, host := range args {
		if s.inventory.Has(host) {
			continue
		}
		help := source.DidYouMean(host, s.inventory.Hosts())
		if help == "" {
			help = "it has " + strings.Join(s.inventory.Hosts(), ", ")
		}
		ds.Add(source.Errorf(source.Pos{}, "the inventory has no host %q", host).WithHelp("%s", help))
	}
	return ds
}
