package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/artifact"
)

// artifactDeltaCommand returns the command that writes what a newer offline file has more.
func (a *app) artifactDeltaCommand() *cobra.Command {
	w := &writeFlags{}
	files := &offlineFiles{}
	cmd := &cobra.Command{
		Use:   "delta OLD NEW -o FILE",
		Short: "Write an offline file that makes NEW out of OLD",
		Long: "Write an offline file that has the manifest of NEW, and those of its items that OLD lacks. A site that " +
			"has OLD needs this one only: `-a OLD -a FILE`, or `kk artifact merge`. Signatures of NEW stay valid.\n\n" +
			"Instead of OLD, its manifest is accepted (`kk artifact ls --manifest`). If NEW is a delta itself, name its " +
			"base with -a.",
		Args: exactFiles(2, "delta OLD NEW -o FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, o, err := w.parse(cmd)
			if err != nil {
				return err
			}
			old, err := artifact.ReadManifest(args[0])
			if err != nil {
				return badFile(err)
			}
			changed, err := writeDelta(cmd.Context(), old, args[1], files.more, path, o)
			if err != nil {
				return badFile(err)
			}
			return a.reportWritten(w, path, changed)
		},
	}
	w.flags(cmd.Flags())
	files.flag(cmd.Flags())
	return cmd
}

func writeDelta(ctx context.Context, old *artifact.Manifest, newer string, more []string, path string,
	o artifact.Options) (bool, error) {
	set, err := artifact.OpenSet(append([]string{newer}, more...))
	if err != nil {
		return false, err
	}
	defer func() { _ = set.Close() }() // only read
	return artifact.Delta(ctx, old, openedAs(set, newer), path, o)
}

// openedAs returns the file of a set that was opened by a name, which can be that of a part.
func openedAs(set artifact.Set, name string) *artifact.File {
	for _, path := range []string{name, strings.TrimSuffix(name, filepath.Ext(name))} {
		if i := slices.IndexFunc(set, func(f *artifact.File) bool { return f.Path == path }); i >= 0 {
			return set[i]
		}
	}
	return nil
}

// artifactMergeCommand returns the command that makes one offline file out of several.
func (a *app) artifactMergeCommand() *cobra.Command {
	w := &writeFlags{}
	files := &offlineFiles{}
	cmd := &cobra.Command{
		Use:   "merge BASE DELTA... -o FILE",
		Short: "Write one offline file out of a base and its deltas, or out of several files",
		Long: "Write the offline file that a base and its deltas make. It has the bytes that an export would have " +
			"written, and the signatures of the newest delta. Files that are independent of each other, such as one for " +
			"each architecture, are joined.",
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := files.paths(cmd, args)
			if err != nil {
				return err
			}
			path, o, err := w.parse(cmd)
			if err != nil {
				return err
			}
			changed, err := mergeFiles(cmd.Context(), paths, path, o)
			if err != nil {
				return badFile(err)
			}
			return a.reportWritten(w, path, changed)
		},
	}
	w.flags(cmd.Flags())
	files.flag(cmd.Flags())
	return cmd
}

func mergeFiles(ctx context.Context, paths []string, path string, o artifact.Options) (bool, error) {
	set, err := artifact.OpenSet(paths)
	if err != nil {
		return false, err
	}
	defer func() { _ = set.Close() }() // only read
	return artifact.Merge(ctx, set, path, o)
}
