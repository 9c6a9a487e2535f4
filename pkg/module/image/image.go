// Package image holds the module image: it copies container images between
// registries, OCI layouts and docker archives, on the control node.
package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/artifact"
	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Modules returns the modules of this package.
func Modules() []module.Spec { return []module.Spec{imageSpec(), loadSpec()} }

// Image is the module image.
type Image struct {
	Images       []Pair            `kk:"images" doc:"images to copy, instead of src and dest"`
	Src          string            `kk:"src" doc:"source of a single image"`
	Dest         string            `kk:"dest" doc:"destination of the image"`
	Platforms    []string          `kk:"platforms" doc:"platforms to copy of a multi-platform image, such as linux/amd64 (or amd64) and linux/arm64. Default: all"`
	Sparse       bool              `kk:"sparse" default:"no" doc:"keep the index of a multi-platform image with its digest, and copy only the images for platforms; for a layout that an offline file is made from"`
	Attached     bool              `kk:"attached" default:"no" doc:"also copy what is attached to images: signatures and attestations under cosign's tags, and manifests that name an image as their subject; not of and to docker archives, and not in check mode"`
	Sizes        bool              `kk:"sizes" default:"no" doc:"in check mode, return the sizes of images"`
	Auth         *value.Dict       `kk:"auth" doc:"credentials by registry: {host: {username, password}}"`
	TLS          *value.Dict       `kk:"tls" doc:"TLS options by registry: {host: {ca, skip_verify, plain_http}}; ca is PEM or a file on the control node"`
	Resolve      map[string]string `kk:"resolve" doc:"IP addresses by host name, without ports, for names of registries that the control node cannot resolve"`
	DockerConfig bool              `kk:"docker_config" default:"no" doc:"use the credentials in ~/.docker/config.json for registries that are not in auth"`
	Artifact     []string          `kk:"artifact" doc:"offline files on the control node that all sources are read from, by the names that the files list; no registry is asked for them"`
	Rate         int               `kk:"rate" default:"0" doc:"bytes per second that are received from registries; 0 is no limit"`
	Parallel     int               `kk:"parallel" default:"4" doc:"number of images to copy in parallel, 1 to 64"`
	Attempts     int               `kk:"attempts" default:"3" doc:"attempts per image, 1 to 100"`
	Backoff      time.Duration     `kk:"backoff" default:"1" doc:"wait before the second attempt; doubled for each further one"`
}

// Pair is one image.
type Pair struct {
	Src  string `kk:"src,required" doc:"source of the image"`
	Dest string `kk:"dest,required" doc:"destination of the image"`
}

func imageSpec() module.Spec {
	return module.Spec{
		Name: "image", Collection: "kk",
		Summary: "Copies container images between registries, OCI layouts and docker archives.",
		Notes: []string{
			"src and dest are the name of an image in a registry, as in docker (busybox is " +
				"docker.io/library/busybox:latest); oci:FOLDER:NAME in an OCI layout, where NAME defaults to the only image " +
				"of a source, and to the name of the source for a destination; or docker-archive:FILE:NAME, with one image " +
				"for one platform.",
			"Of a multi-platform image, a single platform is copied as a plain image, several as an index. Image digests " +
				"are preserved; without platforms, or with all of them, so is the digest of the index.",
			"An image whose manifest exists with the same digest is not copied, nor are existing layers. All digests are " +
				"verified.",
			"All names are validated before anything is copied. All images are tried, and every failure is reported.",
			"Of what is attached to one manifest, cosign's three tags and up to 64 referrers of up to 16 MiB each are copied; " +
				"more is skipped with a warning. A layout records what was attached, so a registry is asked once per manifest. " +
				"A tag of a destination registry is not replaced if signatures would be lost.",
			"Broken connections and responses such as 503 are retried; a missing image and denied access are not.",
			"A registry is accessed over TLS unless plain_http is set for it, even on localhost.",
			"Where a registry sends clients to another host name for tokens, as Harbor does, that host is accessed with the " +
				"TLS options of the registry unless it has its own, and at the address of the registry if its name cannot be " +
				"resolved.",
			"In check mode a destination that is unreachable, or whose project does not exist, counts as one without the " +
				"image, with a warning.",
		},
		Examples: []string{
			"- name: Copy images to the local registry\n  image:\n    images:\n" +
				"      - {src: registry.k8s.io/pause:3.10.1, dest: registry.local/pause:3.10.1}\n" +
				"      - {src: \"oci:/srv/bundle:coredns\", dest: registry.local/coredns:v1.12.1}\n" +
				"    platforms: [linux/amd64, linux/arm64]\n    auth:\n" +
				"      registry.local: {username: admin, password: \"{{ password }}\"}\n    tls:\n" +
				"      registry.local: {ca: /srv/pki/ca.crt}",
		},
		Returns: []module.Return{
			{Key: "images", Type: "list", Doc: "src and dest with their full names, changed and digest of each image, in " +
				"order; msg if it failed; with sizes, in check mode, size: of what the images before it do not have"},
			{Key: "copied", Type: "int", Doc: "number of copied images"},
		},
		New:   func() module.Runner { return new(Image) },
		Where: module.OnControl,
	}
}

// Rules implements schema.Ruled.
func (*Image) Rules() schema.Rules {
	return schema.Rules{
		schema.Between("parallel", 1, 64),
		schema.Between("attempts", 1, 100),
		schema.AtMostOne("images", "src"),
		schema.AtMostOne("images", "dest"),
		schema.AllOrNone("src", "dest"),
		schema.AtLeastOne("images", "src"),
		schema.Parses("a platform such as linux/amd64", isPlatform, "platforms"),
	}
}

// Run implements module.Runner.
func (m *Image) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	set, err := c.OfflineFiles(m.Artifact)
	if err != nil {
		return module.Result{}, err
	}
	jobs, err := m.jobs(c, set)
	if err != nil {
		return module.Result{}, err
	}
	module.Parallel(len(jobs), m.Parallel, func(i int) { jobs[i].run(ctx) })
	if ctx.Err() != nil {
		return module.Result{}, ctx.Err()
	}
	return result(jobs), nil
}

// jobs are the images; all problems with them are reported at once.
func (m *Image) jobs(c *module.Call, offline artifact.Set) ([]*job, error) {
	platforms, err := parsePlatforms(m.Platforms)
	wrong := []error{err}
	access, err := m.access(c)
	wrong = append(wrong, err)
	places := &places{access: access, offline: offline, attachments: map[*artifact.File]artifact.Attachments{}}
	for _, f := range offline {
		places.attachments[f] = f.Manifest.Attachments()
	}
	shared := &jobShared{platforms: platforms, attempts: m.Attempts, backoff: m.Backoff, check: c.Check,
		sparse: m.Sparse, sizes: m.Sizes, attached: m.Attached, progress: progress(c)}
	var jobs []*job
	seen := map[string]bool{}
	for _, p := range m.pairs() {
		j, err := newJob(p, places, shared)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if seen[j.dest.unique()] {
			wrong = append(wrong, fmt.Errorf("two images go to %s", j.dest))
		}
		seen[j.dest.unique()] = true
		jobs = append(jobs, j)
	}
	return jobs, errors.Join(wrong...)
}

func (m *Image) pairs() []Pair {
	if m.Src != "" {
		return []Pair{{m.Src, m.Dest}}
	}
	return m.Images
}

// parsePlatforms reads OS/ARCH[/VARIANT]; ARCH alone is of linux.
func parsePlatforms(words []string) ([]v1.Platform, error) {
	var all []v1.Platform
	for _, w := range words {
		if !strings.Contains(w, "/") {
			w = "linux/" + w
		}
		p, err := v1.ParsePlatform(w)
		if err != nil || p.Architecture == "" || p.OS == "" {
			return nil, fmt.Errorf("%q is not a platform: give linux/amd64", w)
		}
		all = append(all, *p)
	}
	return all, nil
}

func isPlatform(word string) error {
	_, err := parsePlatforms([]string{word})
	return err
}

// progress returns what receives the progress of images.
func progress(c *module.Call) func(what string, done, total int64) {
	if c.Progress == nil {
		return func(string, int64, int64) {}
	}
	return c.Progress
}

func result(jobs []*job) module.Result {
	r := module.Result{Data: value.NewDict()}
	list, copied := []any{}, 0
	var failures []string
	for _, j := range jobs {
		d := value.NewDict("src", j.src.String(), "dest", j.dest.String(), "changed", j.changed, "digest", j.digest)
		if j.size > 0 {
			d.Set("size", int(j.size))
		}
		if j.changed {
			copied++
		}
		r.Warnings = append(r.Warnings, j.warnings...)
		if j.err != nil {
			d.Set("msg", j.err.Error())
			failures = append(failures, fmt.Sprintf("%s to %s: %v", j.src, j.dest, j.err))
		}
		list = append(list, d)
	}
	r.Data.Set("images", list)
	r.Data.Set("copied", copied)
	r.Changed = copied > 0
	if len(failures) > 0 {
		r.Failed = true
		r.Msg = fmt.Sprintf("%d of %d images failed:\n%s", len(failures), len(jobs), strings.Join(failures, "\n"))
	}
	return r
}
