package offline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kubekey/pkg/artifact"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func checkSpec() module.Spec {
	return module.Spec{
		Name: "artifact_check", Collection: "kk",
		Summary: "Checks that offline files have what a cluster needs, undamaged.",
		Notes: []string{
			"Everything that is missing is listed. What is there is read and verified; what is not needed is not read.",
		},
		Examples: []string{
			"- name: Check offline file\n  artifact_check:\n    artifact: [/srv/kubernetes.tar]\n" +
				"    files: [{name: kubeadm, version: v1.34.4, arch: amd64, file: amd64/kubeadm}]\n" +
				"    images: [\"registry.k8s.io/pause:3.10.1\"]\n    platforms: [linux/amd64]",
		},
		Returns: []module.Return{{Key: "missing", Type: "list", Doc: "what is missing, if it failed"}},
		New:     func() module.Runner { return &check{} },
		Where:   module.Once, Check: module.Harmless,
	}
}

type check struct {
	Artifact  []string    `kk:"artifact,required" doc:"offline files on the control node"`
	Files     []item      `kk:"files" doc:"files and charts that are needed"`
	Images    []string    `kk:"images" doc:"images that are needed, by their full names"`
	Packages  []needed    `kk:"packages" doc:"packages that hosts need, of which they lack some"`
	Reasons   *value.Dict `kk:"reasons" doc:"what needs an image, by its full name, for messages"`
	Platforms []string    `kk:"platforms" doc:"platforms that each image is needed for, such as linux/amd64"`
	Verify    bool        `kk:"verify" default:"yes" doc:"read and verify what is needed"`
}

// Rules implements schema.Ruled.
func (*check) Rules() schema.Rules { return schema.Rules{platformRule} }

// Run implements module.Runner.
func (m *check) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	bad := module.Result{BadInput: true}
	set, err := c.OfflineFiles(m.Artifact)
	if err != nil {
		return bad, err
	}
	needed, missing := m.find(set)
	lacks, err := neededPackages(set, m.Packages, func(f *artifact.File, i artifact.Item) {
		needed[f] = append(needed[f], i)
	})
	if err != nil {
		return bad, err
	}
	if missing = append(missing, lacks...); len(missing) > 0 {
		bad.Failed, bad.Data = true, value.NewDict("missing", value.Of(missing))
		bad.Msg = fmt.Sprintf("%s: not in there, but this config and these hosts need it:\n- %s\n%s",
			strings.Join(m.Artifact, ", "), strings.Join(missing, "\n- "), m.help())
		return bad, nil
	}
	if !m.Verify {
		return module.Result{}, nil
	}
	for _, f := range set {
		items := needed[f]
		only := func(i artifact.Item) bool {
			return slices.ContainsFunc(items, func(n artifact.Item) bool { return n.Kind == i.Kind && n.Blob == i.Blob })
		}
		if err := f.Verify(ctx, only, func(done, total int64) {
			if c.Progress != nil {
				c.Progress("verify "+f.Path, done, total)
			}
		}); err != nil {
			return bad, fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return module.Result{}, nil
}

// find returns the items that are needed, by file, and describes those that are missing.
func (m *check) find(set artifact.Set) (needed map[*artifact.File][]artifact.Item, missing []string) {
	needed = map[*artifact.File][]artifact.Item{}
	for _, i := range m.Files {
		if f, found, ok := set.File(i.File); ok && (i.SHA256 == "" || i.SHA256 == found.SHA256) {
			needed[f] = append(needed[f], found)
		} else {
			missing = append(missing, i.String()+", "+i.File+differs(ok))
		}
	}
	for _, ref := range m.Images {
		if _, _, ok := set.Image(ref); !ok {
			missing = append(missing, "image "+ref+m.reason(ref))
			continue
		}
		for _, p := range m.Platforms {
			if f, found, ok := set.ImageFor(ref, p); ok {
				needed[f] = append(needed[f], found)
			} else {
				missing = append(missing, fmt.Sprintf("image %s for %s%s", ref, p, m.reason(ref)))
			}
		}
	}
	return needed, missing
}

// reason says what needs an image.
func (m *check) reason(ref string) string {
	if why, ok := m.Reasons.Get(ref); ok {
		return ", needed by " + value.Str(why)
	}
	return ""
}

// help says which command makes a file with everything.
func (m *check) help() string {
	arches := map[string]bool{}
	for _, i := range m.Files {
		arches[i.Arch] = i.Arch != ""
	}
	for _, p := range m.Platforms {
		_, arch, _ := strings.Cut(p, "/")
		arches[arch] = true
	}
	delete(arches, "")
	systems := map[string]bool{}
	for _, p := range m.Packages {
		systems[p.Distributions[len(p.Distributions)-1]], arches[p.Arch] = true, true
	}
	flags := " --arch " + strings.Join(slices.Sorted(maps.Keys(arches)), ",")
	if len(systems) > 0 {
		flags += " --os " + strings.Join(slices.Sorted(maps.Keys(systems)), ",")
	}
	return fmt.Sprintf("where there is a network, run `kk artifact export -c CONFIG -i INVENTORY%s -o FILE` with this "+
		"config, and add FILE with -a", flags)
}

func differs(there bool) string {
	if there {
		return " (another file of that name is)"
	}
	return ""
}
