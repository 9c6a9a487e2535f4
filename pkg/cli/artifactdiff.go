package cli

import (
	"github.com/spf13/cobra"

	"kubekey/pkg/artifact"
	"kubekey/pkg/ui"
)

// artifactDiffCommand returns the command that compares two offline files.
func (a *app) artifactDiffCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show what distinguishes offline file B from A: new items, removed items, other versions",
		Long: "Show what distinguishes offline file B from A: items that are new, that were removed, and that have " +
			"another version or other contents; and the size of the blobs that a delta has. Instead of a file, its " +
			"manifest is accepted (`kk artifact ls --manifest`).",
		Args: exactFiles(2, "diff OLD NEW"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := textOrJSON("--output", output); err != nil {
				return err
			}
			from, err := artifact.ReadManifest(args[0])
			if err != nil {
				return badFile(err)
			}
			to, err := artifact.ReadManifest(args[1])
			if err != nil {
				return badFile(err)
			}
			d := artifact.Diff(from, to)
			if output == "json" {
				return writeJSON(a, d)
			}
			a.printDifference(d)
			return nil
		},
	}
	outputFlag(cmd.Flags(), &output)
	return cmd
}

func (a *app) printDifference(d artifact.Difference) {
	for _, i := range d.Added {
		a.row("+ %s %s", i, ui.Size(i.Size))
	}
	for _, i := range d.Removed {
		a.row("- %s %s", i, ui.Size(i.Size))
	}
	for _, c := range d.Changed {
		a.row("~ %s: %s", c.New, changeOf(c))
	}
	if len(d.Added)+len(d.Removed)+len(d.Changed) == 0 {
		a.row("same items")
	}
	a.row("a delta has %s", ui.Size(d.Bytes))
}

// changeOf describes a change.
func changeOf(c artifact.Change) string {
	switch {
	case c.Old.Kind == artifact.KindImage && c.Old.Name != c.New.Name:
		return "was " + c.Old.Name
	case c.Old.Version != c.New.Version:
		return "was " + c.Old.Version
	case c.Old.SHA256 != c.New.SHA256:
		return "other contents"
	case platformOf(c.Old) != platformOf(c.New):
		return "was for " + platformOf(c.Old) + ", is for " + platformOf(c.New)
	}
	return "other description"
}

// exactFiles returns a check for the number of arguments.
func exactFiles(n int, example string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage("%s needs %d arguments, not %d: kk artifact %s", cmd.CommandPath(), n, len(args), example)
		}
		return nil
	}
}
