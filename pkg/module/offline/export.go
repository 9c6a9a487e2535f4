package offline

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/sbom"
	"kubekey/pkg/catalog"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func exportSpec() module.Spec {
	return module.Spec{
		Name: "artifact_export", Collection: "kk",
		Summary: "Writes an offline file from files and images in the cache.",
		Notes: []string{
			"The same inputs make the same bytes. The file gets its name only when it is complete; until then it is " +
				"NAME.part.",
			"Programs are stored compressed; compressed copies are kept in the cache. Archives and images are stored as " +
				"they are, and everything only once.",
			"In check mode only the list of what the file has is compared.",
			"Of a multi-platform image the images for platforms are included, and its index with its digest.",
		},
		Examples: []string{
			"- name: Write offline file\n  artifact_export:\n    dest: /srv/kubernetes.tar\n    cache: /var/cache/app\n" +
				"    files: [{name: kubeadm, version: v1.34.4, arch: amd64, file: amd64/kubeadm}]\n" +
				"    images: [{ref: \"registry.k8s.io/pause:3.10.1\", group: kubernetes}]\n    platforms: [linux/amd64]",
		},
		Returns: []module.Return{
			{Key: "dest", Type: "str", Doc: "path of the file"},
			{Key: "items", Type: "int", Doc: "number of files, charts and images in it"},
			{Key: "bytes", Type: "int", Doc: "size of what it holds, each blob once"},
		},
		New:   func() module.Runner { return &export{} },
		Where: module.Once,
	}
}

type export struct {
	Dest       string   `kk:"dest,required,path" doc:"path of the file on the control node"`
	Cache      string   `kk:"cache,required,path" doc:"directory on the control node that has the files"`
	Layout     string   `kk:"layout,path" doc:"OCI layout that has the images; default: images in cache"`
	Files      []item   `kk:"files" doc:"files for hosts"`
	Charts     []item   `kk:"charts" doc:"Helm charts"`
	Packages   []item   `kk:"packages" doc:"files of repositories of packages, as artifact_packages returns them"`
	Extras     []item   `kk:"extras" doc:"further files"`
	Programs   []build  `kk:"programs" doc:"builds of kk, for those who receive the file"`
	Images     []image  `kk:"images" doc:"images, by their names in the layout"`
	Platforms  []string `kk:"platforms" doc:"platforms of the images, such as linux/amd64"`
	Kubernetes []string `kk:"kubernetes" doc:"versions of Kubernetes that the file is for"`
	Base       string   `kk:"base,path" doc:"older offline file, or its manifest: only what it lacks is written, as a delta; files and images that it has need not be in cache"`
	Split      int      `kk:"split" default:"0" doc:"size of parts in bytes: DEST.001 and so on; 0 writes one file"`
	SBOM       bool     `kk:"sbom" default:"yes" doc:"add documents that list what is in everything, as SPDX and CycloneDX; not for a delta whose base is a manifest alone, with items that are not in cache"`
	Prepare    bool     `kk:"prepare" default:"no" doc:"write nothing: only make the compressed copies of programs, and read what SBOMs list, into cache; for the background, while other things are fetched"`
	Catalog    []string `kk:"catalog" doc:"catalog files that the file was planned with, in order"`
}

type build struct {
	Path string `kk:"path,required,path" doc:"path of the program"`
	Arch string `kk:"arch,required" doc:"architecture that it runs on"`
}

type image struct {
	Ref   string `kk:"ref,required" doc:"full name of the image, as nodes use it"`
	Group string `kk:"group" doc:"group of the catalog that it belongs to"`
}

// Rules implements schema.Ruled.
func (*export) Rules() schema.Rules { return schema.Rules{platformRule} }

// Run implements module.Runner.
func (m *export) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	platforms, err := parsePlatforms(m.Platforms)
	if err != nil {
		return module.Result{}, err
	}
	documents, err := m.documents(c)
	if err != nil {
		return module.Result{}, err
	}
	if c.Check {
		return module.Result{Changed: !m.Prepare && !m.covered()}, nil
	}
	options := artifact.Options{Split: int64(m.Split), Progress: func(done, total int64) {
		if c.Progress != nil {
			c.Progress(filepath.Base(m.Dest), done, total)
		}
	}}
	var older *artifact.File
	if m.Base != "" {
		if older, err = artifact.OpenOlder(m.Base); err != nil {
			return module.Result{}, err
		}
		defer func() { _ = older.Close() }() // only read
		options.Base = older.Manifest
	}
	b := artifact.NewBuilder(m.Cache, m.covers(platforms), documents)
	if err := m.add(ctx, b, platforms, older); err != nil {
		return module.Result{}, err
	}
	if m.SBOM && b.Complete() {
		if err := m.document(ctx, b); err != nil {
			return module.Result{}, err
		}
	}
	if m.Prepare {
		return module.Result{}, nil
	}
	manifest, err := b.Manifest()
	if err != nil {
		return module.Result{}, err
	}
	changed, err := b.Write(ctx, m.Dest, options)
	if err != nil {
		return module.Result{}, err
	}
	size := 0
	for _, blob := range manifest.Blobs {
		size += int(blob.Size)
	}
	return module.Result{Changed: changed, Data: value.NewDict("dest", m.Dest, "items", len(manifest.Items),
		"bytes", size)}, nil
}

// document adds the SBOMs.
func (m *export) document(ctx context.Context, b *artifact.Builder) error {
	manifest, err := b.Manifest()
	if err != nil {
		return err
	}
	formats := map[string]sbom.Format{artifact.SPDXName: sbom.SPDX, artifact.CycloneDXName: sbom.CycloneDX}
	for name, format := range formats {
		text, err := sbom.Make(ctx, manifest, b, filepath.Join(m.Cache, "sbom"), format)
		if err != nil {
			return err
		}
		if err := b.AddDocument(name, text); err != nil {
			return err
		}
	}
	return nil
}

// add adds everything. What the older file has comes from there, whatever the cache has: the same inputs make the same
// bytes. Of a manifest alone that is only what the cache lacks.
func (m *export) add(ctx context.Context, b *artifact.Builder, platforms []v1.Platform, older *artifact.File) error {
	layout := m.Layout
	if layout == "" {
		layout = filepath.Join(m.Cache, "images")
	}
	var work []func() error
	for _, list := range []struct {
		kind  artifact.Kind
		items []item
	}{{artifact.KindFile, m.Files}, {artifact.KindChart, m.Charts}, {artifact.KindPackage, m.Packages},
		{artifact.KindExtra, m.Extras}} {
		for _, i := range list.items {
			work = append(work, func() error {
				path := filepath.Join(m.Cache, i.File)
				if older != nil && i.SHA256 != "" {
					_, found, ok := artifact.Set{older}.File(i.File)
					if ok && found.SHA256 == i.SHA256 && (!older.ManifestAlone() || !exists(path)) {
						return b.AddKnown(i.found(list.kind, found), older)
					}
				}
				return b.AddFile(ctx, i.found(list.kind, artifact.Item{SHA256: i.SHA256}), path)
			})
		}
	}
	for _, p := range m.Programs {
		work = append(work, func() error {
			return b.AddFile(ctx, artifact.Item{Kind: artifact.KindExtra, Name: "kk", Architecture: p.Arch,
				File: "kk/" + p.Arch + "/kk"}, p.Path)
		})
	}
	for _, i := range m.Images {
		work = append(work, func() error {
			var found artifact.Item
			known := false
			if older != nil {
				_, found, known = artifact.Set{older}.Image(i.Ref)
				found.Group = i.Group
				lacks := func(p string) bool { return !slices.Contains(found.Platforms, p) }
				known = known && !slices.ContainsFunc(m.Platforms, lacks)
			}
			if known && !older.ManifestAlone() {
				return b.AddKnown(found, older)
			}
			err := b.AddImage(ctx, artifact.Item{Name: i.Ref, Group: i.Group}, layout, platforms)
			if err != nil && known {
				return b.AddKnown(found, older)
			}
			return err
		})
	}
	return each(len(work), func(i int) error { return work[i]() })
}

// covered reports whether the file exists and lists everything that is exported, for check mode: neither contents
// nor what may still be missing in the cache are read.
func (m *export) covered() bool {
	f, err := artifact.Open(m.Dest)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	set := artifact.Set{f}
	for _, i := range slices.Concat(m.Files, m.Charts, m.Packages, m.Extras) {
		if _, found, ok := set.File(i.File); !ok || i.SHA256 != "" && i.SHA256 != found.SHA256 {
			return false
		}
	}
	for _, i := range m.Images {
		for _, p := range m.Platforms {
			if _, _, ok := set.ImageFor(i.Ref, p); !ok {
				return false
			}
		}
	}
	return true
}

// found is the item of a file whose content is known.
func (i item) found(kind artifact.Kind, content artifact.Item) artifact.Item {
	return artifact.Item{Kind: kind, Name: i.Name, Version: i.Version, Architecture: i.Arch,
		Distribution: i.Distribution, File: i.File, Source: i.Upstream, Licence: content.Licence,
		Size: content.Size, SHA256: content.SHA256, Blob: content.Blob, Encoding: content.Encoding}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (m *export) covers(platforms []v1.Platform) artifact.Covers {
	covers := artifact.Covers{Kubernetes: m.Kubernetes}
	for _, p := range platforms {
		covers.Architectures = append(covers.Architectures, p.Architecture)
	}
	for _, i := range m.Packages {
		if !slices.Contains(covers.Distributions, i.Distribution) {
			covers.Distributions = append(covers.Distributions, i.Distribution)
		}
	}
	seen := map[string]bool{"": true}
	for _, i := range m.Images {
		if !seen[i.Group] {
			covers.Groups = append(covers.Groups, i.Group)
		}
		seen[i.Group] = true
	}
	return covers
}

// documents reads the catalog, without what applies to this site only.
func (m *export) documents(c *module.Call) ([]artifact.Document, error) {
	portable, err := catalog.PortableFiles(m.Catalog, c.Files.ReadFile)
	if err != nil {
		return nil, err
	}
	var out []artifact.Document
	for _, d := range portable {
		out = append(out, artifact.Document{Name: d.Name, Text: string(d.Text)})
	}
	return out, nil
}
