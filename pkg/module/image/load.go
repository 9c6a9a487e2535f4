package image

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"kubekey/pkg/artifact"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed load.sh
var loadScript string

func loadSpec() module.Spec {
	return module.Spec{
		Name: "image_load", Collection: "kk",
		Summary: "Loads images of an offline file into containerd, for the kubelet.",
		Notes: []string{
			"The images keep their names and digests. They are pinned, so the kubelet does not remove them when the disk " +
				"is full: there may be nowhere to pull them from again.",
			"Only what the host does not have, and only the image for its platform, is sent.",
		},
		Examples: []string{
			"- name: Load images\n  image_load:\n    artifact: [/srv/kubernetes.tar]\n" +
				"    images: [\"registry.k8s.io/pause:3.10.1\"]\n    platform: linux/amd64",
		},
		Returns: []module.Return{{Key: "loaded", Type: "list", Doc: "images that were loaded or pinned"}},
		New:     func() module.Runner { return &load{} },
	}
}

type load struct {
	Artifact []string `kk:"artifact,required" doc:"offline files on the control node"`
	Images   []string `kk:"images,required" doc:"full names of the images, as the file lists them"`
	Platform string   `kk:"platform,required" doc:"platform of the host, such as linux/amd64"`
	Blobs    string   `kk:"blobs" doc:"folder on the host that has the blobs of the images, as artifact_distribute brings them: only their list is sent"`
	Ctr      string   `kk:"ctr" default:"ctr" doc:"containerd's command line client on the host"`
}

// Rules implements schema.Ruled.
func (*load) Rules() schema.Rules {
	return schema.Rules{schema.Parses("a platform such as linux/amd64", isPlatform, "platform")}
}

// Run implements module.Runner.
func (m *load) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	set, err := c.OfflineFiles(m.Artifact)
	if err != nil {
		return module.Result{}, err
	}
	images, err := m.find(set)
	if err != nil {
		return module.Result{}, err
	}
	has, err := m.existing(ctx, c)
	if err != nil {
		return module.Result{}, err
	}
	var send []artifact.NamedImage
	var pin []string
	loaded := []any{}
	for _, i := range images {
		complete, pinned := true, true
		for _, n := range i.Names {
			state := has[n]
			complete = complete && state.digest == i.Item.Blob
			pinned = pinned && state.pinned
		}
		if complete && pinned {
			continue
		}
		loaded = append(loaded, i.Item.Name)
		pin = append(pin, i.Names...)
		if !complete {
			send = append(send, i)
		}
	}
	r := module.Result{Changed: len(loaded) > 0, Data: value.NewDict("loaded", loaded)}
	if !r.Changed || c.Check {
		return r, nil
	}
	return r, m.load(ctx, c, send, pin)
}

// find looks for the images in the files. An image has two names: pods can refer to its digest, too.
func (m *load) find(set artifact.Set) ([]artifact.NamedImage, error) {
	var images []artifact.NamedImage
	var wrong []error
	seen := map[string]bool{}
	for _, ref := range m.Images {
		if seen[ref] {
			continue
		}
		seen[ref] = true
		f, item, ok := set.ImageFor(ref, m.Platform)
		if !ok {
			wrong = append(wrong, fmt.Errorf("image %s for %s %w %s", ref, m.Platform, artifact.ErrMissing, paths(set)))
			continue
		}
		parsed, err := name.ParseReference(ref)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%q is not the name of an image: %w", ref, err))
			continue
		}
		names := []string{ref}
		if digest := artifact.FullName(parsed.Context().Digest(item.Blob)); digest != ref {
			names = append(names, digest)
		}
		images = append(images, artifact.NamedImage{File: f, Item: item, Names: names})
	}
	return images, errors.Join(wrong...)
}

// state is what containerd has under a name.
type state struct {
	digest string
	pinned bool
}

func (m *load) script(what string) *hostscript.Script {
	return hostscript.New(loadScript).Set("ctr", m.Ctr).Set("platform", m.Platform).Set("blobs", m.Blobs).Set("do", what)
}

func (m *load) existing(ctx context.Context, c *module.Call) (map[string]state, error) {
	a, err := c.Probe(ctx, m.script("list"))
	if err != nil {
		if c.Check && a.Get("fail") != "" { // containerd is not set up yet
			return nil, nil
		}
		return nil, err
	}
	return parseImages(a.Get("check"), a.Get("ls")), nil
}

// parseImages reads the tables of `ctr images check` (REF TYPE DIGEST STATUS ...) and `ctr images ls` (REF TYPE DIGEST
// ... LABELS). Images with missing content are omitted.
func parseImages(check, ls string) map[string]state {
	has := map[string]state{}
	for line := range strings.Lines(check) {
		if fields := strings.Fields(line); len(fields) > 3 && fields[3] == "complete" {
			has[fields[0]] = state{digest: fields[2]}
		}
	}
	for line := range strings.Lines(ls) {
		fields := strings.Fields(line)
		if len(fields) > 2 && has[fields[0]].digest == fields[2] {
			has[fields[0]] = state{fields[2], strings.Contains(fields[len(fields)-1], "io.cri-containerd.pinned=pinned")}
		}
	}
	return has
}

// load sends images and pins names.
func (m *load) load(ctx context.Context, c *module.Call, send []artifact.NamedImage, pin []string) error {
	s := m.script("load").Flag("import", len(send) > 0)
	s.Words = pin
	if len(send) == 0 {
		_, err := s.Run(ctx, c.Conn, false)
		return err
	}
	platform, err := parsePlatforms([]string{m.Platform})
	if err != nil {
		return err
	}
	report := progress(c)
	from, to := io.Pipe()
	s.Stdin = from
	var wrote, ran error
	module.Parallel(2, 2, func(i int) {
		if i == 0 {
			defer func() { _ = to.CloseWithError(wrote) }() // never fails
			if m.Blobs != "" {
				wrote = artifact.WriteArchiveHead(ctx, to, send, platform[0])
				return
			}
			wrote = artifact.WriteArchive(ctx, to, send, platform[0], func(done, total int64) { report("images", done, total) })
			return
		}
		defer func() { _ = from.Close() }() // never fails; it stops the writer
		_, ran = s.Run(ctx, c.Conn, false)
	})
	if wrote != nil && !errors.Is(wrote, io.ErrClosedPipe) {
		return wrote // the cause, if the import failed too
	}
	return ran
}
