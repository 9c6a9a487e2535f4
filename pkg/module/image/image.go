// Package image holds the module image: it copies container images between
// registries, OCI layouts and docker archives, on the control node.
package image

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// Modules returns the modules of this package.
func Modules() []module.Spec { return []module.Spec{imageSpec()} }

// Image is the module image.
type Image struct {
	Images       []Pair        `kk:"images" doc:"images to copy; instead of src and dest"`
	Src          string        `kk:"src" doc:"from where the one image comes"`
	Dest         string        `kk:"dest" doc:"where it goes"`
	Platforms    []string      `kk:"platforms" doc:"what to take of an image for several platforms, such as linux/amd64 (or amd64) and linux/arm64. Default: all"`
	Auth         *value.Dict   `kk:"auth" doc:"a user for each registry: {host: {username, password}}"`
	TLS          *value.Dict   `kk:"tls" doc:"how registries are reached: {host: {ca, skip_verify, plain_http}}; ca is PEM or a file of the control node"`
	DockerConfig bool          `kk:"docker_config" default:"no" doc:"use the users of ~/.docker/config.json for registries that auth does not name"`
	Parallel     int           `kk:"parallel" default:"4" doc:"how many images at a time, 1 to 64"`
	Attempts     int           `kk:"attempts" default:"3" doc:"how often to try each, 1 to 100"`
	Backoff      time.Duration `kk:"backoff" default:"1" doc:"wait before the second attempt, doubled for each further one"`
}

// Pair is one image.
type Pair struct {
	Src  string `kk:"src,required" doc:"from where it comes"`
	Dest string `kk:"dest,required" doc:"where it goes"`
}

func imageSpec() module.Spec {
	return module.Spec{
		Name: "image", Collection: "kk",
		Summary: "Copies container images between registries, OCI layouts and docker archives.",
		Notes: []string{
			"A place is the name of an image in a registry, as docker has it (busybox is docker.io/library/busybox:latest); oci:FOLDER:NAME in an OCI layout, where NAME may be left out: as a source it is the only image there is, as a destination it is the name of the source; or docker-archive:FILE:NAME, which holds one image for one platform.",
			"Of an image for several platforms, one that is named is copied as a single image, several are copied as an index of these. Their digests stay; without platforms, or if all are named, that of the index stays too.",
			"An image whose manifest is there with the same digest is not copied, and neither are layers that are there. All digests are verified.",
			"Every name is checked before anything is copied. All images are tried, and every failure is told.",
			"Broken connections and answers such as 503 are tried again; a missing image and a refused user are not.",
			"A registry is reached over TLS unless plain_http is set for it, on this machine too.",
			"In check mode a destination that cannot be reached counts as one without the image, with a warning.",
		},
		Examples: []string{
			"- name: Images to the registry at hand\n  image:\n    images:\n      - {src: registry.k8s.io/pause:3.10.1, dest: registry.local/pause:3.10.1}\n      - {src: \"oci:/srv/bundle:coredns\", dest: registry.local/coredns:v1.12.1}\n    platforms: [linux/amd64, linux/arm64]\n    auth:\n      registry.local: {username: admin, password: \"{{ password }}\"}\n    tls:\n      registry.local: {ca: /srv/pki/ca.crt}",
		},
		Returns: []module.Return{
			{Key: "images", Type: "list", Doc: "src and dest with their full names, changed and digest of each image, in order; msg of one that failed"},
			{Key: "copied", Type: "int", Doc: "how many were copied"},
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
	jobs, err := m.jobs(c)
	if err != nil {
		return module.Result{}, err
	}
	module.Parallel(len(jobs), m.Parallel, func(i int) { jobs[i].run(ctx) })
	if ctx.Err() != nil {
		return module.Result{}, ctx.Err()
	}
	return result(jobs), nil
}

// jobs are the images, with all that is wrong about them found at once.
func (m *Image) jobs(c *module.Call) ([]*job, error) {
	platforms, err := parsePlatforms(m.Platforms)
	wrong := []error{err}
	access, err := m.access(c)
	wrong = append(wrong, err)
	places := &places{access: access}
	shared := &jobShared{platforms: platforms, attempts: m.Attempts, backoff: m.Backoff, check: c.Check, progress: progress(c)}
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

// progress lets many images tell at once.
func progress(c *module.Call) func(what string, done, total int64) {
	if c.Progress == nil {
		return func(string, int64, int64) {}
	}
	var mu sync.Mutex
	return func(what string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		c.Progress(what, done, total)
	}
}

func result(jobs []*job) module.Result {
	r := module.Result{Data: value.NewDict()}
	list, copied := []any{}, 0
	var failures []string
	for _, j := range jobs {
		d := value.NewDict("src", j.src.String(), "dest", j.dest.String(), "changed", j.changed, "digest", j.digest)
		if j.changed {
			copied++
		}
		if j.warning != "" {
			r.Warnings = append(r.Warnings, j.warning)
		}
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
