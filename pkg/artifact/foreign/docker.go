package foreign

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// dockerArchive reads an archive of docker save.
type dockerArchive struct{}

func (dockerArchive) owns(string) bool { return true }

// dockerImage is an entry of manifest.json.
type dockerImage struct {
	Config   string
	RepoTags []string
	Layers   []string
}

func (t *tree) dockerImages() ([]dockerImage, error) {
	f, ok := t.files["manifest.json"]
	if !ok {
		return nil, nil
	}
	var all []dockerImage
	err := f.decode(&all)
	return all, err
}

// isDocker reports whether manifest.json is that of a docker archive.
func (t *tree) isDocker() bool {
	all, err := t.dockerImages()
	return err == nil && len(all) > 0 && all[0].Config != ""
}

// repoTags returns the names that manifest.json has for an image of an OCI layout.
func (t *tree) repoTags(d v1.Descriptor, blobs map[string]file) []string {
	var m v1.Manifest
	if blobs[d.Digest.Hex].decode(&m) != nil {
		return nil
	}
	all, _ := t.dockerImages() // it is optional
	for _, image := range all {
		if path.Base(image.Config) == m.Config.Digest.Hex {
			return image.RepoTags
		}
	}
	return nil
}

func (dockerArchive) read(ctx context.Context, i *Import, t *tree) error {
	all, err := t.dockerImages()
	if err != nil {
		return fmt.Errorf("manifest.json: %w", err)
	}
	var problems problemList
	for _, d := range all {
		if err := d.add(ctx, i, t); err != nil {
			problems.add(fmt.Errorf("image %s: %w", d.label(), err))
		}
	}
	return problems.join()
}

func (d dockerImage) label() string {
	if len(d.RepoTags) > 0 {
		return d.RepoTags[0]
	}
	return d.Config
}

// add makes an image of a config and its layers, which stay as they are. Its manifest is one of OCI: programs that
// read OCI layouts ignore those of docker.
func (d dockerImage) add(ctx context.Context, i *Import, t *tree) error {
	if len(d.RepoTags) == 0 {
		return errors.New("it has no name: save it by name, docker save NAME:TAG")
	}
	config, ok := t.find(path.Clean(d.Config))
	if !ok {
		return fmt.Errorf("its config %s is missing", d.Config)
	}
	base := path.Base(strings.TrimSuffix(d.Config, ".json"))
	if want := strings.TrimPrefix(base, "sha256:"); want != config.sha256() {
		return fmt.Errorf("its config %s is damaged: it has the digest sha256:%s", d.Config, config.sha256())
	}
	text, err := config.read()
	if err != nil {
		return fmt.Errorf("its config %s: %w", d.Config, err)
	}
	var c v1.ConfigFile
	if err := json.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("its config %s: %w", d.Config, err)
	}
	if len(c.RootFS.DiffIDs) != len(d.Layers) {
		return fmt.Errorf("it has %d layers instead of %d", len(d.Layers), len(c.RootFS.DiffIDs))
	}
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1,
		Config: config.descriptor(types.OCIConfigJSON), Layers: []v1.Descriptor{}}
	var problems problemList
	for n, name := range d.Layers {
		layer, err := d.layer(ctx, t, name, c.RootFS.DiffIDs[n])
		problems.add(err)
		m.Layers = append(m.Layers, layer)
	}
	if err := problems.join(); err != nil {
		return err
	}
	return d.addManifest(ctx, i, t, m)
}

func (d dockerImage) addManifest(ctx context.Context, i *Import, t *tree, m v1.Manifest) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	f, err := i.write(ctx, text)
	if err != nil {
		return err
	}
	blobs := t.digests()
	blobs[f.sha256()] = f
	var problems problemList
	for _, tag := range d.RepoTags {
		ref, err := fullName(tag)
		if err != nil {
			problems.add(err)
			continue
		}
		problems.add(i.add(ctx, ref, f.descriptor(m.MediaType), blobs, "manifest.json"))
	}
	return problems.join()
}

// layer describes a layer, whose content without compression must have the digest diff.
func (dockerImage) layer(ctx context.Context, t *tree, name string, diff v1.Hash) (v1.Descriptor, error) {
	f, ok := t.find(path.Clean(name))
	if !ok {
		return v1.Descriptor{}, fmt.Errorf("its layer %s is missing", name)
	}
	if f.sha256() == diff.Hex {
		return f.descriptor(types.OCIUncompressedLayer), nil
	}
	if got, err := f.contentOfGzip(ctx); err != nil || got != diff.Hex {
		return v1.Descriptor{}, errors.Join(fmt.Errorf("its layer %s is damaged: it does not have the digest %s", name,
			diff), err)
	}
	return f.descriptor(types.OCILayer), nil
}

// contentOfGzip returns the digest of the content of a gzip, "" for a file that is none.
func (f file) contentOfGzip(ctx context.Context) (string, error) {
	r, err := os.Open(f.path())
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // only read
	z, err := gzip.NewReader(r)
	if err != nil {
		return "", nil // it is no gzip
	}
	limit := f.size*maxGrowth + freely
	var content file
	if err := content.digest(ctx, io.LimitReader(z, limit)); err != nil {
		return "", cut(err)
	}
	if content.size == limit {
		return "", fmt.Errorf("it unpacks to more than %d bytes", limit)
	}
	return content.sha256(), nil
}
