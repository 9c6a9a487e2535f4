package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"kubekey/pkg/artifact"
	"kubekey/pkg/ui"
)

// listing are the flags of `kk artifact ls`.
type listing struct {
	files                  offlineFiles
	kinds                  []string
	images, long, manifest bool
	output                 string
}

// artifactListCommand returns the command that lists what is in offline files.
func (a *app) artifactListCommand() *cobra.Command {
	l := &listing{}
	cmd := &cobra.Command{
		Use:   "ls FILE...",
		Short: "List the items of offline files",
		Long: "List the items of offline files: kind, name, version, platforms, size, and how much of that other items " +
			"use as well. Only the head of a file is read. The size is that of the content; in the file, programs are " +
			"compressed. Signatures and attestations are listed after the image that they are attached to, by the tags that " +
			"they have in a registry.",
		Example: `  kk artifact ls kubernetes.tar
  kk artifact ls kubernetes.tar --kind image --long
  kk artifact ls kubernetes.tar --manifest > manifest.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			paths, err := l.files.paths(cmd, args)
			if err != nil {
				return err
			}
			return a.listArtifacts(l, paths)
		},
	}
	f := cmd.Flags()
	l.files.flag(f)
	f.StringSliceVar(&l.kinds, "kind", nil, "only items of these kinds: file, chart, image, package, extra")
	f.BoolVar(&l.images, "images", false, "only print the references of images, one per line")
	f.BoolVarP(&l.long, "long", "l", false, "also print digests, distributions, licences, groups and sources")
	f.BoolVar(&l.manifest, "manifest", false,
		"print the manifest as it is in the file; `kk artifact delta` and `diff` accept it instead of the file")
	outputFlag(f, &l.output)
	return cmd
}

// listed is a file in the JSON of `kk artifact ls`.
type listedFile struct {
	File     string          `json:"file"`
	Manifest string          `json:"manifest"`       // digest
	Base     string          `json:"base,omitempty"` // of a delta: digest of the manifest of its base
	Bytes    int64           `json:"bytes"`
	Covers   artifact.Covers `json:"covers"`
	Items    []listedItem    `json:"items"`
}

type listedItem struct {
	artifact.Item
	Shared     int64  `json:"shared"`                // bytes of blobs that other items use as well
	AttachedTo string `json:"attached_to,omitempty"` // digest of the manifest that it is a signature or attestation of
}

func (a *app) listArtifacts(l *listing, paths []string) error {
	if err := textOrJSON("--output", l.output); err != nil {
		return err
	}
	for _, k := range l.kinds {
		if err := oneOf("--kind", k, artifact.Kinds()...); err != nil {
			return err
		}
	}
	if l.manifest && len(paths) > 1 {
		return usage("--manifest prints the manifest of one file")
	}
	files := []listedFile{}
	for _, path := range paths {
		f, err := artifact.Open(path)
		if err != nil {
			return badFile(err)
		}
		if l.manifest {
			_, err = a.data().Write(f.ManifestBytes())
			return cmp.Or(err, f.Close())
		}
		files = append(files, l.list(f))
		if err := f.Close(); err != nil {
			return err
		}
	}
	switch {
	case l.output == "json":
		return writeJSON(a, files)
	case l.images:
		for _, f := range files {
			for _, i := range f.Items {
				if i.AttachedTo == "" {
					a.row("%s", i.Name)
				}
			}
		}
		return nil
	}
	return a.printItems(l, files)
}

func (l *listing) list(f *artifact.File) listedFile {
	out := listedFile{f.Path, f.Digest(), f.Base(), f.Size(), f.Manifest.Covers, []listedItem{}}
	shared := f.Manifest.Shared()
	for n, i := range f.Manifest.Items {
		if (len(l.kinds) == 0 || slices.Contains(l.kinds, string(i.Kind))) && (!l.images || i.Kind == artifact.KindImage) {
			one := listedItem{Item: i, Shared: shared[n]}
			if i.IsAttached() {
				one.AttachedTo, _ = artifact.AttachedTo(i.Name)
			}
			out.Items = append(out.Items, one)
		}
	}
	return out
}

func (a *app) printItems(l *listing, files []listedFile) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for n, f := range files {
		if len(files) > 1 {
			if n > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%s:\n", ui.Inline(f.File))
		}
		fmt.Fprint(w, "KIND\tNAME\tVERSION\tPLATFORM\tSIZE\tSHARED")
		if l.long {
			fmt.Fprint(w, "\tSHA256\tDISTRIBUTION\tLICENCE\tGROUP\tSOURCE")
		}
		fmt.Fprintln(w)
		for _, i := range withAttached(f.Items) {
			row := []string{string(i.Kind), i.Name, i.Version, platformOf(i.Item), ui.Size(i.Size), ""}
			if i.Shared > 0 {
				row[5] = ui.Size(i.Shared)
			}
			if l.long {
				row = append(row, i.SHA256, i.Distribution, i.Licence, i.Group, i.Source)
			}
			if i.AttachedTo != "" {
				row[0], row[1] = "attached", "  "+attachedLabel(i.Name)
			}
			if i.Unverified {
				row[1] += " (unverified)"
			}
			for c, cell := range row {
				row[c] = ui.Inline(cmp.Or(cell, "-"))
			}
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range files {
		if f.Base != "" {
			a.row("%s is a delta for the file with the manifest %s", f.File, f.Base)
		}
	}
	return nil
}

// withAttached brings items into an order in which what is attached to an image comes after that.
func withAttached(items []listedItem) []listedItem {
	attached, shown := map[string][]listedItem{}, map[string]bool{}
	for _, i := range items {
		if i.AttachedTo != "" {
			key := artifact.Repository(i.Name) + "@" + i.AttachedTo
			attached[key] = append(attached[key], i)
		}
	}
	var out, rest []listedItem
	for _, i := range items {
		if i.AttachedTo != "" {
			rest = append(rest, i)
			continue
		}
		out = append(out, i)
		for _, digest := range i.Blobs {
			for _, at := range attached[artifact.Repository(i.Name)+"@"+digest] {
				if !shown[at.Name] {
					out = append(out, at)
				}
				shown[at.Name] = true
			}
		}
	}
	// What is attached to no image of the list.
	return append(out, slices.DeleteFunc(rest, func(i listedItem) bool { return shown[i.Name] })...)
}

// attachedLabel is the tag of what is attached, with the start of the digest.
func attachedLabel(name string) string {
	digest, suffix := artifact.AttachedTo(name)
	return strings.Replace(digest, ":", "-", 1)[:len("sha256-")+12] + suffix
}

// platformOf returns the platforms or the architecture of an item.
func platformOf(i artifact.Item) string {
	if len(i.Platforms) > 0 {
		return strings.Join(i.Platforms, ",")
	}
	return i.Architecture
}
