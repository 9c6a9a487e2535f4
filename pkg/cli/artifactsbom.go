package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/sbom"
)

// artifactSBOMCommand returns the command that prints the SBOM of an offline file.
func (a *app) artifactSBOMCommand() *cobra.Command {
	files := &offlineFiles{}
	var format, item, dir string
	cmd := &cobra.Command{
		Use:   "sbom FILE",
		Short: "Print the SBOM of an offline file",
		Long: "Print what an offline file consists of, as SPDX 2.3 or CycloneDX 1.6, in JSON: a component for each item, " +
			"and what is inside of it: modules of Go programs, packages of Debian and Alpine images. What is not known is " +
			"marked as such.\n\nThe same file has the same SBOM. What was found is kept in the work folder, so that a " +
			"second call is fast.",
		Example: `  kk artifact sbom kubernetes.tar > kubernetes.spdx.json
  kk artifact sbom kubernetes.tar --format cyclonedx --item kubeadm`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("%s needs one offline file; -a names others that have some of its blobs", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(sbom.Formats(), sbom.Format(format)) {
				return usage("--format %q is not a format of SBOMs: use one of %v", format, sbom.Formats())
			}
			work, err := workDir(dir)
			if err != nil {
				return err
			}
			text, err := fileSBOM(cmd.Context(), append(args, files.more...), item, filepath.Join(work, "sbom"),
				sbom.Format(format))
			if err != nil {
				return err
			}
			_, err = a.data().Write(text)
			return err
		},
	}
	f := cmd.Flags()
	files.flag(f)
	f.StringVar(&format, "format", string(sbom.SPDX), "spdx (SPDX 2.3) or cyclonedx (CycloneDX 1.6)")
	f.StringVar(&item, "item", "", "only items with this name: kubeadm, registry.k8s.io/pause:3.10.1")
	f.StringVar(&dir, flagWorkdir, "", "folder that keeps what was found (default $KK_WORKDIR or ~/.kk)")
	return cmd
}

// fileSBOM returns the SBOM of the first of the files. The others have blobs which it lacks.
func fileSBOM(ctx context.Context, paths []string, item, cache string, format sbom.Format) ([]byte, error) {
	set, err := artifact.OpenSet(paths)
	if err != nil {
		return nil, badFile(err)
	}
	defer func() { _ = set.Close() }() // only read
	file := openedAs(set, paths[0])
	m := file.Manifest
	if item != "" {
		if m, err = onlyItem(file, item); err != nil {
			return nil, badFile(err)
		}
	}
	name := map[sbom.Format]string{sbom.SPDX: artifact.SPDXName, sbom.CycloneDX: artifact.CycloneDXName}[format]
	has := func(d artifact.DocumentInfo) bool { return d.Name == name }
	if item == "" && slices.ContainsFunc(m.Documents, has) {
		text, err := file.Document(name)
		return text, badFile(err)
	}
	return sbom.Make(ctx, m, file, cache, format)
}

// onlyItem returns the manifest of a file with no items but those of a name.
func onlyItem(f *artifact.File, name string) (*artifact.Manifest, error) {
	m := *f.Manifest
	m.Items = slices.DeleteFunc(slices.Clone(m.Items),
		func(i artifact.Item) bool { return i.Name != name || i.IsAttached() })
	if len(m.Items) > 0 {
		return &m, nil
	}
	var names []string
	for _, i := range f.Manifest.Items {
		if !i.IsAttached() {
			names = append(names, i.Name)
		}
	}
	slices.Sort(names)
	return nil, fmt.Errorf("%s has no item %q: it has %s", f.Path, name, strings.Join(slices.Compact(names), ", "))
}
