package sbom

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// contents is what was found in a blob, by path in it.
type contents struct {
	Programs  map[string]program   `json:"programs,omitempty"`
	Databases map[string][]pack    `json:"databases,omitempty"` // of packages
	Releases  map[string]osRelease `json:"releases,omitempty"`
	// Removed are the paths that a layer removes from those below it. One that ends in / means everything
	// in this directory.
	Removed []string `json:"removed,omitempty"`
	// Problems is what could not be read, and why.
	Problems []string `json:"problems,omitempty"`
	// Read means that the blob is of a format whose contents are read.
	Read bool `json:"read"`
}

// program is a Go program.
type program struct {
	Go      string   `json:"go"`             // version of the toolchain
	Path    string   `json:"path,omitempty"` // of the main package
	Main    module   `json:"main"`
	Modules []module `json:"modules,omitempty"`
}

// module is a module of a Go program, after replacements.
type module struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	For     string `json:"for,omitempty"` // the module that it replaces
}

// pack is a package of a distribution.
type pack struct {
	Type         string `json:"type"` // of its package URL: deb, apk
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture,omitempty"`
	Licence      string `json:"licence,omitempty"`
	Source       string `json:"source,omitempty"` // the source package
}

// osRelease is what /etc/os-release says.
type osRelease struct {
	ID      string `json:"id"`
	Version string `json:"version,omitempty"`
}

func newContents() *contents {
	return &contents{Programs: map[string]program{}, Databases: map[string][]pack{}, Releases: map[string]osRelease{}}
}

// layer lays the contents of the next layer over those of the layers below it.
func (c *contents) layer(next *contents) {
	for _, removed := range next.Removed {
		drop(c.Programs, removed)
		drop(c.Databases, removed)
		drop(c.Releases, removed)
	}
	maps.Copy(c.Programs, next.Programs)
	maps.Copy(c.Databases, next.Databases)
	maps.Copy(c.Releases, next.Releases)
	c.Problems = append(c.Problems, next.Problems...)
	c.Read = c.Read || next.Read
}

// drop deletes a path and everything below it.
func drop[V any](from map[string]V, removed string) {
	dir := strings.TrimSuffix(removed, "/") + "/"
	if removed == "/" {
		dir = ""
	}
	maps.DeleteFunc(from, func(name string, _ V) bool { return name == removed || strings.HasPrefix(name, dir) })
}

// Names that mark what a layer removes, of the OCI image specification.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// removes returns what an entry of a layer removes.
func removes(name string) (string, bool) {
	dir, base := path.Split(name)
	switch {
	case base == opaque && dir == "":
		return "/", true
	case base == opaque:
		return dir, true
	case strings.HasPrefix(base, whiteout) && len(base) > len(whiteout):
		return dir + base[len(whiteout):], true
	}
	return "", false
}

// release is the distribution of an image.
func (c *contents) release() (osRelease, bool) {
	for _, name := range releaseFiles {
		if r, ok := c.Releases[name]; ok {
			return r, true
		}
	}
	return osRelease{}, false
}

// size is the number of bytes of the texts of a package.
func (p pack) size() int {
	return len(p.Name) + len(p.Version) + len(p.Architecture) + len(p.Licence) + len(p.Source)
}

// size is the number of bytes of the texts of a module.
func (m module) size() int { return len(m.Path) + len(m.Version) + len(m.For) }

// sorted brings lists into an order that does not depend on that of the archive.
func (c *contents) sorted() *contents {
	slices.Sort(c.Removed)
	c.Removed = slices.Compact(c.Removed)
	slices.Sort(c.Problems)
	c.Problems = slices.Compact(c.Problems)
	return c
}
