// Package catalog determines which version of each component goes with which Kubernetes, where it
// is downloaded, its sha256, and which images a cluster needs.
//
// The catalog is data: the files in the folder catalog of the builtin project, and overlays, for
// organisations with their own mirror. All files have the same format; this package reads, merges
// and resolves them.
package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// Catalog is the merged content of all files. It does not change after Load.
type Catalog struct {
	versions   map[string]map[string]entry            // minor release, or "all" → name → version
	releases   map[string]map[string]map[string]entry // name → its version → dependency → version
	components map[string]*artifact
	charts     map[string]*artifact
	images     map[string]*image
	sums       map[string]map[string]map[string]string // component → version → architecture → hex
	machines   map[string]string                       // architecture → its name in uname
	zones      map[string]*rewrites
	rewrites   rewrites
}

// entry is a text and its position.
type entry struct {
	text string
	at   source.Pos
}

// artifact is a file that is downloaded: a component or a chart.
type artifact struct {
	url       map[string]entry // by architecture; anyArch is for all others
	sha256    string           // of a chart
	path      string           // a file of the control node to use instead
	versionOf string           // component whose version it shares; "" is its own
	config    string           // config key that requests a version
}

type image struct {
	ref   entry
	group string
}

// rewrites are prefixes of URLs and of image names, and their replacements.
type rewrites struct{ mirrors, registries map[string]string }

const (
	allMinors  = "all"
	anyArch    = "any"
	kubernetes = "kubernetes" // the version of Kubernetes among the names
)

// Document is a file of a catalog with its text. A name that ends in .txt is a list of checksums.
type Document struct {
	Name string
	Text []byte
}

// Load reads the folder catalog of the builtin project, then the overlays in order, with read:
// later files override earlier ones. The error is source.Diagnostics with all problems of all
// files.
func Load(read func(path string) ([]byte, error), builtin fs.FS, overlays []string) (*Catalog, error) {
	names := Files(builtin)
	if len(names) == 0 {
		return nil, errors.New("the builtin project has no catalog")
	}
	l := &loader{c: empty()}
	for _, name := range names {
		l.file(name, func() ([]byte, error) { return fs.ReadFile(builtin, strings.TrimPrefix(name, source.Builtin+"/")) })
	}
	for _, name := range overlays {
		l.file(name, func() ([]byte, error) { return read(name) })
	}
	return l.finish()
}

// Files lists the paths of the builtin catalog, as playbooks refer to them.
func Files(builtin fs.FS) []string {
	names, _ := fs.Glob(builtin, "catalog/*") // the pattern is valid
	for i, name := range names {
		names[i] = source.Builtin + "/" + name
	}
	return names
}

// Parse reads documents, each overriding the previous ones.
func Parse(documents []Document) (*Catalog, error) {
	l := &loader{c: empty()}
	for _, d := range documents {
		l.file(d.Name, func() ([]byte, error) { return d.Text, nil })
	}
	return l.finish()
}

// Portable returns a document without what applies to one site only: zones, mirrors and registries.
func Portable(d Document) (Document, error) {
	if isChecksums(d.Name) {
		return d, nil
	}
	var some bool
	docs, ds := source.ParseYAML(source.NewFile(d.Name, d.Text))
	if err := ds.Err(); err != nil {
		return d, err
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	for _, doc := range docs {
		for _, n := range doc.Content {
			var kept []*yaml.Node
			for i := 0; i+1 < len(n.Content); i += 2 {
				if !slices.Contains(ofSites, n.Content[i].Value) {
					kept = append(kept, n.Content[i], n.Content[i+1])
				}
			}
			n.Content = kept
			some = some || len(kept) > 0
		}
		if err := e.Encode(doc); err != nil {
			return d, err
		}
	}
	if !some {
		out.Reset()
	}
	return Document{d.Name, out.Bytes()}, e.Close()
}

// PortableFiles reads the files of a catalog, in order, as Portable returns them: under the names of the files alone,
// and without those that have nothing left.
func PortableFiles(paths []string, read func(path string) ([]byte, error)) ([]Document, error) {
	var out []Document
	for _, name := range paths {
		text, err := read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		d, err := Portable(Document{path.Base(filepath.ToSlash(name)), text})
		if err != nil {
			return nil, err
		}
		if len(d.Text) > 0 {
			out = append(out, d)
		}
	}
	return out, nil
}

// ofSites are the keys of a document that apply to one site only.
var ofSites = []string{"zones", "mirrors", "registries"}

func isChecksums(name string) bool { return strings.HasSuffix(name, ".txt") }

func empty() *Catalog {
	return &Catalog{
		versions:   map[string]map[string]entry{allMinors: {}},
		releases:   map[string]map[string]map[string]entry{},
		components: map[string]*artifact{},
		charts:     map[string]*artifact{},
		images:     map[string]*image{},
		sums:       map[string]map[string]map[string]string{},
		machines:   map[string]string{},
		zones:      map[string]*rewrites{},
		rewrites:   newRewrites(),
	}
}

func newRewrites() rewrites { return rewrites{map[string]string{}, map[string]string{}} }

// Versions are the Kubernetes versions in the catalog, oldest first.
func (c *Catalog) Versions() []string {
	return slices.DeleteFunc(c.known("kubeadm"), func(v string) bool { return c.versions[minorOf(v)] == nil })
}

// Minors are the minor releases of Kubernetes in the catalog, oldest first, with their oldest and
// newest patch releases.
func (c *Catalog) Minors() (minors []Minor) {
	for _, v := range c.Versions() {
		name := minorOf(v)
		if len(minors) == 0 || minors[len(minors)-1].Name != name {
			minors = append(minors, Minor{Name: name, Oldest: v})
		}
		minors[len(minors)-1].Newest = v
	}
	return minors
}

// Minor is a minor release of Kubernetes, with its first and last patch release in the catalog.
type Minor struct{ Name, Oldest, Newest string }

// Names are the names of everything that has a version: components, charts and images.
func (c *Catalog) Names() []string {
	names := map[string]bool{}
	for _, table := range c.versions {
		for name := range table {
			names[name] = true
		}
	}
	for _, set := range []map[string]*artifact{c.components, c.charts} {
		for name := range set {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Known are the versions of a component whose digests are in the catalog, oldest first; none if
// upstream publishes no digests. A component with the version of Kubernetes has the versions of
// Kubernetes.
func (c *Catalog) Known(component string) []string {
	if a := c.components[component]; component == kubernetes || a != nil && a.versionOf == kubernetes {
		return c.Versions()
	}
	return c.known(component)
}

func (c *Catalog) known(component string) []string {
	return Sort(slices.Collect(maps.Keys(c.sums[component])))
}

// Chosen are the versions that go with a Kubernetes version, by name; nil if that is not in the
// catalog.
func (c *Catalog) Chosen(kubeVersion string) map[string]string {
	r := c.resolver(Request{KubeVersion: kubeVersion})
	if !r.kubernetes() {
		return nil
	}
	r.choose()
	return r.chosen
}

// ConfigKeys are the components with a version key in the config, and that key: etcd and
// "etcd.version".
func (c *Catalog) ConfigKeys() map[string]string {
	keys := map[string]string{}
	for name, a := range c.components {
		if a.config != "" {
			keys[name] = a.config
		}
	}
	return keys
}

// names are the names that the template of an image can use.
func (c *Catalog) names() map[string]bool {
	names := map[string]bool{kubernetes: true}
	for _, table := range c.versions {
		for name := range table {
			names[name] = true
		}
	}
	for _, releases := range c.releases {
		for _, brings := range releases {
			for name := range brings {
				names[name] = true
			}
		}
	}
	return names
}

// pattern is the URL pattern of a component for an architecture, "" if there is none.
func (a *artifact) pattern(arch string) string {
	if e, ok := a.url[arch]; ok {
		return e.text
	}
	return a.url[anyArch].text
}

// expand replaces {NAME} with its value; {NAME.bare} is the value without the leading v. unknown
// is the first name without a value, with its braces.
func expand(text string, value func(name string) (string, bool)) (out, unknown string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "{")
		b.WriteString(before)
		if !found {
			return b.String(), ""
		}
		name, after, _ := strings.Cut(rest, "}")
		plain, bare := strings.CutSuffix(name, ".bare")
		v, ok := value(plain)
		if !ok {
			return "", "{" + name + "}"
		}
		if bare {
			v = strings.TrimPrefix(v, "v")
		}
		b.WriteString(v)
		text = after
	}
}

// rewrite replaces the longest key that is a prefix of text with its value. A key matches only
// whole parts of the path.
func rewrite(table map[string]string, text string) string {
	best := ""
	for from := range table {
		rest, ok := strings.CutPrefix(text, from)
		if ok && (rest == "" || rest[0] == '/') && len(from) > len(best) {
			best = from
		}
	}
	if best == "" {
		return text
	}
	return table[best] + text[len(best):]
}

// over adds rewrites that override existing ones.
func (w rewrites) over(other rewrites) {
	maps.Copy(w.mirrors, other.mirrors)
	maps.Copy(w.registries, other.registries)
}

// add adds rewrites in the form of the config, overriding existing ones. The key "https://"
// matches everything that is downloaded.
func (w rewrites) add(mirrors, registries map[string]string) {
	for from, to := range mirrors {
		w.mirrors[strings.TrimSuffix(from, "/")] = strings.TrimSuffix(to, "/")
	}
	for from, to := range registries {
		w.registries[strings.TrimSuffix(from, "/")] = strings.TrimSuffix(to, "/")
	}
}

// fileOf is the path of a component's file below the cache.
func fileOf(name, version, arch, origin string) string {
	if origin == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s/%s/%s", name, version, arch, path.Base(origin))
}

// chartFile is the path of a chart below the cache.
func chartFile(name, version string) string { return path.Join("charts", name+"-"+version+".tgz") }
