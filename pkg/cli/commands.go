package cli

import (
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
)

// commands returns the commands of kk in the order of the help.
func (a *app) commands() []*cobra.Command {
	return slices.Concat(a.clusterCommands(), []*cobra.Command{
		a.precheckCommand(),
		a.runCommand(),
		a.lintCommand(),
		a.evalCommand(),
		a.varsCommand(),
		a.inventoryCommand(),
		a.factsCommand(),
		a.catalogCommand(),
		a.docCommand(),
		a.settingsCommand(),
		a.runsCommand(),
		a.vaultCommand(),
		a.versionCommand(),
	})
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of kk",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "kk %s %s/%s %s\n", version, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}
