package offline

import (
	"context"

	"kubekey/pkg/artifact"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func knownSpec() module.Spec {
	return module.Spec{
		Name: "artifact_known", Collection: "kk",
		Summary: "Lists what an older offline file has already, so that it need not be fetched.",
		Notes:   []string{"A file counts only with its sha256. An image counts by its name, with all platforms."},
		Examples: []string{
			"- name: Find what was exported before\n  artifact_known:\n    base: /srv/old.tar\n" +
				"    images: [\"registry.k8s.io/pause:3.10.1\"]\n    platforms: [linux/amd64]",
		},
		Returns: []module.Return{
			{Key: "files", Type: "list", Doc: "names of the files that it has"},
			{Key: "images", Type: "list", Doc: "images that it has"},
		},
		New:   func() module.Runner { return &known{} },
		Where: module.Once, Check: module.Harmless,
	}
}

type known struct {
	Base      string   `kk:"base,required,path" doc:"older offline file, or its manifest"`
	Files     []item   `kk:"files" doc:"files to look for"`
	Images    []string `kk:"images" doc:"images to look for"`
	Platforms []string `kk:"platforms" doc:"platforms that each image is needed for, such as linux/amd64"`
}

// Rules implements schema.Ruled.
func (*known) Rules() schema.Rules { return schema.Rules{platformRule} }

// Run implements module.Runner.
func (m *known) Run(context.Context, *module.Call) (module.Result, error) {
	older, err := artifact.ReadManifest(m.Base)
	if err != nil {
		return module.Result{}, err
	}
	set := artifact.Set{{Manifest: older}}
	files, images := []any{}, []any{}
	for _, i := range m.Files {
		if _, found, ok := set.File(i.File); ok && i.SHA256 != "" && i.SHA256 == found.SHA256 {
			files = append(files, i.File)
		}
	}
	for _, ref := range m.Images {
		has := true
		for _, p := range m.Platforms {
			_, _, ok := set.ImageFor(ref, p)
			has = has && ok
		}
		if has {
			images = append(images, ref)
		}
	}
	return module.Result{Data: value.NewDict("files", files, "images", images)}, nil
}
