package cli

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/foreign"
	"kubekey/pkg/catalog"
	"kubekey/pkg/engine"
	"kubekey/pkg/value"
)

// importFlags are those of kk artifact import.
type importFlags struct {
	configs          []string
	workdir          string
	output, format   string
	allowsUnverified bool
}

// artifactImportCommand returns the command that makes an offline file of what other tools made.
func (a *app) artifactImportCommand() *cobra.Command {
	in := &importFlags{}
	cmd := &cobra.Command{
		Use:   "import SRC... -o FILE",
		Short: "Make an offline file of what other tools made",
		Long: "Make an offline file of archives, folders and files of other tools: artifacts of KubeKey 3 and 4, docker " +
			"archives, OCI layouts as folders or tars, folders of files. The files must have digests of the catalog; with " +
			"--allow-unverified others are included as well, and are marked as unverified for good. So are images, unless " +
			"their names have their digests. They keep their names, with registry and tag. Where the catalog has an image " +
			"under another name, as of images that were fetched from a mirror, that is printed.\n\n" +
			"Archives are checked and unpacked below the work folder, which needs their space.",
		Example: `  kk artifact import kubekey-artifact.tgz -o kubernetes.tar
  kk artifact import images.tar downloads/ --allow-unverified -o kubernetes.tar`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usage("specify what to import: %s kubekey-artifact.tgz -o FILE", cmd.CommandPath())
			case in.output == "":
				return usage("%s needs the file to write: -o FILE", cmd.CommandPath())
			}
			if err := textOrJSON("--format", in.format); err != nil {
				return err
			}
			return a.importArtifacts(cmd.Context(), in, args)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&in.output, "output", "o", "", "path of the offline file (required)")
	f.BoolVar(&in.allowsUnverified, "allow-unverified", false,
		"include files and images that the catalog has no digest of; they are marked for good")
	f.StringArrayVarP(&in.configs, "config", "c", nil,
		"config file whose catalog.overlays are applied; may be repeated, later files override earlier ones")
	f.StringVar(&in.workdir, flagWorkdir, "", "folder whose cache archives are unpacked in (default $KK_WORKDIR or ~/.kk)")
	f.StringVar(&in.format, "format", "text", "output format: text or json")
	return cmd
}

func (a *app) importArtifacts(ctx context.Context, in *importFlags, sources []string) (err error) {
	dir, err := workDir(in.workdir)
	if err != nil {
		return err
	}
	known, documents, err := a.portableCatalog(in.configs)
	if err != nil {
		return &exitError{engine.ExitInput, err}
	}
	cache, lookup := filepath.Join(dir, cacheFolder), newImportCatalog(known)
	found, err := foreign.Read(ctx, sources, foreign.Options{Cache: cache, Catalog: lookup,
		AllowUnverified: in.allowsUnverified})
	if err != nil {
		return &exitError{engine.ExitInput, err}
	}
	defer func() {
		if closing := found.Close(); err == nil {
			err = closing
		}
	}()
	b := artifact.NewBuilder(cache, lookup.covers(found.Items()), documents)
	if err := found.AddTo(ctx, b); err != nil {
		return &exitError{engine.ExitInput, err}
	}
	m, err := b.Manifest()
	if err != nil {
		return &exitError{engine.ExitInput, err}
	}
	changed, err := b.Write(ctx, in.output, artifact.Options{})
	if err != nil {
		return &exitError{engine.ExitError, err}
	}
	return a.reportImport(in, m, changed, namesakes(known, m))
}

// cacheFolder is the folder of the work folder that files and images are fetched into.
const cacheFolder = "cache"

// portableCatalog returns the builtin catalog with the overlays of config files, and its documents without what
// applies to this site only.
func (a *app) portableCatalog(configs []string) (*catalog.Catalog, []artifact.Document, error) {
	overlays, err := a.catalogOverlays(configs)
	if err != nil {
		return nil, nil, err
	}
	known, err := catalog.Load(a.readFile, a.tree.Embedded, overlays)
	if err != nil {
		return nil, nil, err
	}
	portable, err := catalog.PortableFiles(append(catalog.Files(a.tree.Embedded), overlays...), a.readFile)
	if err != nil {
		return nil, nil, err
	}
	var documents []artifact.Document
	for _, d := range portable {
		documents = append(documents, artifact.Document{Name: d.Name, Text: string(d.Text)})
	}
	return known, documents, nil
}

// importCatalog is the catalog as package foreign asks for it.
type importCatalog struct {
	*catalog.Catalog
	digests map[string]catalog.File
	names   *catalog.FileNames
}

func newImportCatalog(c *catalog.Catalog) importCatalog {
	return importCatalog{c, c.Digests(), c.FileNames()}
}

// Known implements foreign.Catalog.
func (c importCatalog) Known(sha256 string) (artifact.Item, bool) {
	f, ok := c.digests[sha256]
	return itemOf(f), ok
}

// Named implements foreign.Catalog.
func (c importCatalog) Named(path string) (artifact.Item, bool) {
	f, ok := c.names.Find(path)
	return itemOf(f), ok
}

func itemOf(f catalog.File) artifact.Item {
	kind := artifact.KindFile
	if f.Chart {
		kind = artifact.KindChart
	}
	return artifact.Item{Kind: kind, Name: f.Name, Version: f.Version, Architecture: f.Arch, File: f.File,
		Source: f.Upstream, SHA256: f.SHA256}
}

// covers returns what items are for: the versions of Kubernetes that have verified files, and architectures and
// groups.
func (c importCatalog) covers(items iter.Seq[artifact.Item]) artifact.Covers {
	var covers artifact.Covers
	add := func(list *[]string, text string) {
		if text != "" && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	for i := range items {
		if f, ok := c.digests[i.SHA256]; ok && f.Kubernetes {
			add(&covers.Kubernetes, f.Version)
		}
		add(&covers.Architectures, i.Architecture)
		add(&covers.Groups, i.Group)
		for _, p := range i.Platforms {
			if parts := strings.Split(p, "/"); len(parts) > 1 {
				add(&covers.Architectures, parts[1])
			}
		}
	}
	return covers
}

// namesakes lists the images that a cluster does not get, since the catalog has other names for them, with these names.
func namesakes(c *catalog.Catalog, m *artifact.Manifest) *value.Dict {
	names, found := map[string]bool{}, value.NewDict()
	for _, i := range m.Items {
		names[i.Name] = names[i.Name] || i.Kind == artifact.KindImage
	}
	for _, i := range m.Items {
		if name, ok := c.Namesake(i.Name); ok && i.Kind == artifact.KindImage && !names[name] {
			found.Set(i.Name, name)
		}
	}
	return found
}

func (a *app) reportImport(in *importFlags, m *artifact.Manifest, changed bool, others *value.Dict) error {
	counts, attached := map[artifact.Kind]int{}, 0
	unverified := value.NewDict()
	var size int64
	for _, i := range m.Items {
		if i.IsAttached() {
			attached++
		} else {
			counts[i.Kind]++
		}
		if i.Unverified {
			unverified.Set(cmp.Or(i.File, i.Name), i.SHA256)
		}
	}
	for _, b := range m.Blobs {
		size += b.Size
	}
	if in.format == "json" {
		text, err := value.JSON(value.NewDict("dest", in.output, "changed", changed, "items", len(m.Items),
			"images", counts[artifact.KindImage], "attached", attached, "unverified", unverified, "namesakes", others,
			"bytes", int(size)), value.JSONOptions{Indent: 2})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.data(), text)
		return err
	}
	state := "wrote"
	if !changed {
		state = "unchanged:"
	}
	with := ""
	if attached > 0 {
		with = fmt.Sprintf(" with %d signatures and attestations", attached)
	}
	a.row("%s %s: %d images%s, %d charts, %d files, %d of them unverified; %d bytes", state, in.output,
		counts[artifact.KindImage], with, counts[artifact.KindChart],
		len(m.Items)-attached-counts[artifact.KindImage]-counts[artifact.KindChart], unverified.Len(), size)
	for name, other := range others.All() {
		a.row("%s is in the file, %s of the catalog is not: if they are the same image, copy it under that name "+
			"(skopeo copy), and import the copy", name, other)
	}
	return nil
}
