// Package offline holds the modules that make, check and distribute offline files.
package offline

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
)

// Modules returns the modules of this package.
func Modules() []module.Spec {
	return []module.Spec{exportSpec(), knownSpec(), checkSpec(), packagesSpec(), repositorySpec(), distributeSpec()}
}

// item is a file as the catalog describes it.
type item struct {
	Name         string `kk:"name,required" doc:"name of the component or chart"`
	Version      string `kk:"version" doc:"version"`
	Arch         string `kk:"arch" doc:"architecture; none for a chart"`
	File         string `kk:"file,required" doc:"name of the file, relative to the cache"`
	Distribution string `kk:"distribution" doc:"distribution of a package, such as debian-12"`
	SHA256       string `kk:"sha256" doc:"SHA-256 digest, hexadecimal"`
	Upstream     string `kk:"upstream" doc:"where upstream publishes it"`
	URL          string `kk:"url" doc:"where it was fetched; not used"`
	Path         string `kk:"path" doc:"file of the control node that it was copied from; not used"`
}

func (i item) String() string {
	return strings.Join(strings.Fields(strings.Join([]string{i.Name, i.Version, i.Arch}, " ")), " ")
}

// parsePlatforms reads linux/ARCH.
func parsePlatforms(texts []string) ([]v1.Platform, error) {
	var all []v1.Platform
	for _, text := range texts {
		p, err := v1.ParsePlatform(text)
		if err != nil || p.OS == "" || p.Architecture == "" {
			return nil, fmt.Errorf("%q is not a platform: write linux/amd64", text)
		}
		all = append(all, *p)
	}
	return all, nil
}

func isPlatform(text string) error {
	_, err := parsePlatforms([]string{text})
	return err
}

var platformRule = schema.Parses("a platform such as linux/amd64", isPlatform, "platforms")

// each runs work for n things on all cores, and joins the errors in their order.
func each(n int, work func(i int) error) error {
	problems := make([]error, n)
	module.Parallel(n, runtime.GOMAXPROCS(0), func(i int) { problems[i] = work(i) })
	return errors.Join(problems...)
}
