package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/catalog"
	"kubekey/pkg/config"
	"kubekey/pkg/engine"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func (a *app) createConfigCommand() *cobra.Command {
	var kubernetes, to string
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print a config with every key, its description and its default",
		Long: "Print a config with every key, its description and its default. Keep the keys that you change and delete " +
			"the rest: " +
			"kk create config -o config.yaml; kk create cluster -c config.yaml",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.printOrWrite(to, func(w io.Writer) error { return a.printConfig(w, kubernetes) })
		},
	}
	newFileFlag(cmd, &to)
	cmd.Flags().StringVar(&kubernetes, flagKubernetes, "", "Kubernetes version to write into it: v1.34.4")
	return cmd
}

// newFileFlag adds --output, the new file that a command writes instead of stdout.
func newFileFlag(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVarP(to, "output", "o", "", "file to write instead of stdout; it must not exist yet")
}

// printOrWrite prints what a command makes, or writes it to a new file that only its owner can read: passwords may be
// added to it. An existing file stays as it is.
func (a *app) printOrWrite(to string, print func(io.Writer) error) error {
	if to == "" {
		return print(a.data())
	}
	var text bytes.Buffer
	if err := print(&text); err != nil {
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return usage("--output: %s exists: choose another name, or delete it", to)
	}
	if err := replaceFile(to, text.Bytes(), false); err != nil {
		return &exitError{engine.ExitError, fmt.Errorf("write %s: %w", to, err)}
	}
	return nil
}

func (a *app) printConfig(w io.Writer, kubernetes string) error {
	schema, ds := config.Load(a.tree, builtinSchema)
	if err := ds.Err(); err != nil {
		return &exitError{engine.ExitError, err}
	}
	over := value.NewDict()
	if kubernetes != "" {
		kubernetes = withV(kubernetes)
		if err := a.knowsKubernetes(kubernetes); err != nil {
			return err
		}
		over.Set("kubernetes", value.NewDict("kube_version", kubernetes))
	}
	return schema.Example(w, over)
}

// builtinSchema is the schema of the cluster config.
const builtinSchema = source.Builtin + "/config/schema.yaml"

func (a *app) knowsKubernetes(version string) error {
	problem, err := a.kubernetesProblem(version)
	if err == nil && problem != "" {
		return usage("--%s: %s", flagKubernetes, problem)
	}
	return err
}

// kubernetesProblem returns why the builtin catalog cannot be used for a version, or "".
func (a *app) kubernetesProblem(version string) (string, error) {
	known, err := catalog.Load(a.readFile, a.tree.Embedded, nil)
	if err != nil {
		return "", &exitError{engine.ExitError, err}
	}
	_, problems := known.Resolve(catalog.Request{KubeVersion: version})
	if len(problems) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s (%s)", problems[0].Msg, problems[0].Help), nil
}

func (a *app) createInventoryCommand() *cobra.Command {
	var nodes []string
	var to string
	cmd := &cobra.Command{
		Use:   "inventory",
		Short: "Print an inventory to fill in",
		Long: "Print an inventory to fill in: hosts, their addresses, and the groups that set their roles. " +
			"The first host of --nodes is the control plane; of five or more hosts, the first three are: kk create inventory " +
			"--nodes node1=10.0.0.1,node2=10.0.0.2 -o inventory.yaml",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			hosts, err := namedAddresses(nodes)
			if err != nil {
				return err
			}
			return a.printOrWrite(to, func(w io.Writer) error { return printInventory(w, hosts) })
		},
	}
	newFileFlag(cmd, &to)
	cmd.Flags().StringSliceVar(&nodes, "nodes", []string{"node1=10.0.0.1", "node2=10.0.0.2", "node3=10.0.0.3"},
		"hosts: name=address, or just an address")
	return cmd
}

// hostEntry is a host and the address that it is reached at.
type hostEntry struct{ name, address string }

func namedAddresses(nodes []string) ([]hostEntry, error) {
	var out []hostEntry
	seen := map[string]bool{}
	for i, n := range nodes {
		name, address, named := strings.Cut(strings.TrimSpace(n), "=")
		if !named {
			name, address = fmt.Sprintf("node%d", i+1), name
		}
		if name == "" || address == "" || strings.ContainsAny(name+address, " \t:#{}[]&*!|>'\"%@`,") &&
			!strings.Contains(address, ":") {
			return nil, usage("--nodes: %q is not NAME=ADDRESS", n)
		}
		if seen[name] {
			return nil, usage("--nodes: the name %s is listed twice", name)
		}
		seen[name] = true
		out = append(out, hostEntry{name, address})
	}
	return out, nil
}

// controlPlanes returns the number of control plane hosts. It is odd, so that etcd keeps its majority when one host
// fails.
func controlPlanes(hosts int) int {
	if hosts >= 5 {
		return 3
	}
	return 1
}

func printInventory(w io.Writer, hosts []hostEntry) error {
	var b strings.Builder
	b.WriteString("# The hosts of a cluster. Look at it with: kk inventory graph -i inventory.yaml\nall:\n  hosts:\n" +
		"    # ansible_host is the address that kk connects to, internal_ipv4 (internal_ipv6) the one that\n" +
		"    # the hosts know each other by. Also: node_name, node_labels: {}, node_annotations: {},\n" +
		"    # node_taints: [], storage_disks: [].\n")
	for _, h := range hosts {
		family := "internal_ipv4"
		if strings.Contains(h.address, ":") {
			family = "internal_ipv6"
		}
		fmt.Fprintf(&b, "    %s: {ansible_host: %q, %s: %q}\n", h.name, h.address, family, h.address)
	}
	b.WriteString("  vars:\n    ansible_user: root\n    # Another user becomes root with sudo; its password is better " +
		"asked for (-K) than written here.\n" +
		"    # ansible_ssh_private_key_file: ~/.ssh/id_ed25519\n    # ansible_port: 22\n  children:\n")
	n := controlPlanes(len(hosts))
	workers := hosts[n:]
	if len(workers) == 0 {
		workers = hosts
	}
	b.WriteString("    k8s_cluster:\n      children:\n")
	group(&b, "        ", groupControlPlane, hosts[:n], "")
	group(&b, "        ", groupWorker, workers, "")
	group(&b, "    ", "etcd", nil, "Hosts of an etcd apart from the control planes (etcd.deployment_type: external): "+
		"an odd number.")
	group(&b, "    ", "image_registry", nil, "A private registry that the cluster pulls all images from.")
	group(&b, "    ", "nfs", nil, "One host that exports folders for volumes.")
	_, err := io.WriteString(w, b.String())
	return err
}

// group writes an inventory group.
func group(b *strings.Builder, indent, name string, hosts []hostEntry, comment string) {
	if comment != "" {
		fmt.Fprintf(b, "%s# %s\n", indent, comment)
	}
	fmt.Fprintf(b, "%s%s:\n%s  hosts:", indent, name, indent)
	if len(hosts) == 0 {
		b.WriteString(" {}\n")
		return
	}
	b.WriteByte('\n')
	for _, h := range hosts {
		fmt.Fprintf(b, "%s    %s:\n", indent, h.name)
	}
}
