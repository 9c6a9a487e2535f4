package catalog

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"kubekey/pkg/source"
)

// loader reads files into a catalog, each overriding the previous ones.
type loader struct {
	c      *Catalog
	ds     source.Diagnostics
	checks []func() // checks that need all files
}

// reader reads one file.
type reader struct {
	*loader
	source.Mappings
}

func (l *loader) open(name string, text func() ([]byte, error)) *reader {
	data, err := text()
	if err != nil {
		l.ds.Add(source.Errorf(source.Pos{}, "read the catalog %s: %s", name, err))
		return nil
	}
	return &reader{l, source.Mappings{File: source.NewFile(name, data), Problems: &l.ds}}
}

func (l *loader) file(name string, text func() ([]byte, error)) {
	if isChecksums(name) {
		l.checksums(name, text)
		return
	}
	r := l.open(name, text)
	if r == nil {
		return
	}
	docs, ds := source.ParseYAML(r.File)
	l.ds = append(l.ds, ds...)
	if len(ds) > 0 {
		return
	}
	for _, doc := range docs {
		for _, n := range doc.Content {
			r.document(n)
		}
	}
}

func (l *loader) finish() (*Catalog, error) {
	if l.ds.Err() == nil {
		for _, check := range l.checks {
			check()
		}
	}
	if err := l.ds.Sort().Err(); err != nil {
		return nil, err
	}
	return l.c, nil
}

func (r *reader) document(n *yaml.Node) {
	r.Fields(n, "a catalog", map[string]func(*yaml.Node){
		"versions":      r.versions,
		"releases":      r.releases,
		"architectures": func(n *yaml.Node) { maps.Copy(r.c.machines, r.texts(n, "architectures")) },
		"components":    func(n *yaml.Node) { r.artifacts(n, "component", r.c.components) },
		"charts":        func(n *yaml.Node) { r.artifacts(n, "chart", r.c.charts) },
		"images":        r.images,
		"checksums":     r.sums,
		"mirrors":       func(n *yaml.Node) { r.c.rewrites.add(r.texts(n, "mirrors"), nil) },
		"registries":    func(n *yaml.Node) { r.c.rewrites.add(nil, r.texts(n, "registries")) },
		"zones":         r.zones,
	})
}

// versions reads the versions for minor releases. Those for "all" apply to all releases: they
// override what earlier files have for one release.
func (r *reader) versions(n *yaml.Node) {
	tables := map[string]map[string]entry{}
	for k, v := range r.Pairs(n, "versions") {
		if k.Value != allMinors && !isMinor(k.Value) {
			r.wrong(k, "%q is not a minor release of Kubernetes", k.Value).WithHelp(`write "1.34", or all`)
			continue
		}
		tables[k.Value] = r.entries(v, "versions of "+k.Value)
	}
	for name := range tables[allMinors] {
		for _, table := range r.c.versions {
			delete(table, name)
		}
	}
	for minor, table := range tables {
		r.into(minor, table)
	}
}

func (r *reader) into(minor string, table map[string]entry) {
	if r.c.versions[minor] == nil {
		r.c.versions[minor] = map[string]entry{}
	}
	maps.Copy(r.c.versions[minor], table)
	for name, v := range table {
		r.checks = append(r.checks, func() { r.checkVersion(name, v) })
	}
}

func (r *reader) checkVersion(name string, v entry) {
	a := r.c.components[name]
	switch {
	case name == kubernetes || a != nil && a.versionOf != "":
		r.ds.Add(source.Errorf(v.at, "%s shares the version of another component", name).WithHelp("remove it"))
	case isSeries(v.text) || r.c.sums[name] != nil:
		if _, err := r.c.newest(name, v.text); err != nil {
			r.ds.Add(source.Errorf(v.at, "%s", err).WithHelp("%s", r.c.nearestHelp(name, v.text)))
		}
	}
}

func (r *reader) releases(n *yaml.Node) {
	for k, v := range r.Pairs(n, "releases") {
		if r.c.releases[k.Value] == nil {
			r.c.releases[k.Value] = map[string]map[string]entry{}
		}
		for version, brings := range r.Pairs(v, "releases of "+k.Value) {
			r.c.releases[k.Value][version.Value] = r.entries(brings, "what a release brings")
		}
	}
}

// artifacts reads components or charts. Values that the file does not set are kept.
func (r *reader) artifacts(n *yaml.Node, what string, into map[string]*artifact) {
	for k, v := range r.Pairs(n, what+"s") {
		a := into[k.Value]
		if a == nil {
			a = &artifact{url: map[string]entry{}}
			into[k.Value] = a
		}
		r.Fields(v, "a "+what, map[string]func(*yaml.Node){
			"url":        func(n *yaml.Node) { r.urls(n, a) },
			"version_of": func(n *yaml.Node) { a.versionOf = r.text(n, "version_of") },
			"config":     func(n *yaml.Node) { a.config = r.text(n, "config") },
			"path":       func(n *yaml.Node) { a.path = r.text(n, "path") },
			"version":    func(n *yaml.Node) { r.ownVersion(k.Value, n) },
			"sha256":     func(n *yaml.Node) { r.digests(k.Value, what, n, a) },
		})
		r.checks = append(r.checks, func() { r.checkArtifact(k, what, a) })
	}
}

// ownVersion is the version that a component or chart has with all versions of Kubernetes.
func (r *reader) ownVersion(name string, n *yaml.Node) {
	v := entry{r.text(n, "version"), r.at(n)}
	for _, table := range r.c.versions {
		delete(table, name)
	}
	r.into(allMinors, map[string]entry{name: v})
}

// digests reads the sha256 of a chart.
func (r *reader) digests(name, what string, n *yaml.Node, a *artifact) {
	if what == "component" {
		r.wrong(n, "digests of components belong in checksums").
			WithHelp("checksums: {%s: {VERSION: {ARCHITECTURE: sha256:DIGEST}}}", name)
		return
	}
	a.sha256 = r.digest(n)
}

func (r *reader) checkArtifact(k *yaml.Node, what string, a *artifact) {
	if len(a.url) == 0 {
		r.wrong(k, "%s %q has no url", what, k.Value).WithHelp("%s", r.nearestArtifact(k.Value, what))
	}
}

func (r *reader) nearestArtifact(name, what string) string {
	known := r.c.components
	if what == "chart" {
		known = r.c.charts
	}
	return source.DidYouMean(name, slices.DeleteFunc(slices.Collect(maps.Keys(known)), func(k string) bool {
		return len(known[k].url) == 0
	}))
}

// urls reads one URL for all architectures, or a mapping by architecture. It replaces all
// previous URLs.
func (r *reader) urls(n *yaml.Node, a *artifact) {
	clear(a.url)
	if n.Kind == yaml.ScalarNode {
		a.url[anyArch] = entry{r.text(n, "url"), r.at(n)}
	} else {
		maps.Copy(a.url, r.entries(n, "url"))
	}
	for _, e := range a.url {
		r.placeholders(e, func(name string) bool { return slices.Contains(urlNames, name) }, urlNames)
	}
}

// urlNames are the names that a URL can use.
var urlNames = []string{"version", "arch", "machine"}

func (r *reader) placeholders(e entry, known func(string) bool, names []string) {
	_, unknown := expand(e.text, func(name string) (string, bool) { return "", known(name) })
	if unknown != "" {
		r.ds.Add(source.Errorf(e.at, "unknown version %s", unknown).
			WithHelp("%s", source.DidYouMean(strings.Trim(unknown, "{}"), names)))
	}
}

func (r *reader) images(n *yaml.Node) {
	for k, v := range r.Pairs(n, "images") {
		m := r.c.images[k.Value]
		if m == nil {
			m = &image{group: k.Value}
			r.c.images[k.Value] = m
		}
		if v.Kind == yaml.ScalarNode {
			r.ref(v, m)
			continue
		}
		r.Fields(v, "an image", map[string]func(*yaml.Node){
			"ref":   func(n *yaml.Node) { r.ref(n, m) },
			"group": func(n *yaml.Node) { m.group = r.text(n, "group") },
		})
	}
}

// imagePattern is REGISTRY/REPOSITORY:TAG. A registry has a dot or a port, unlike a folder of Docker Hub.
var imagePattern = regexp.MustCompile(
	`^[A-Za-z0-9-]+([.][A-Za-z0-9.-]+|:[0-9]+|[.][A-Za-z0-9.-]+:[0-9]+)` +
		`(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:[A-Za-z0-9._{}-]+$`)

func (r *reader) ref(n *yaml.Node, m *image) {
	m.ref = entry{r.text(n, "an image"), r.at(n)}
	if !imagePattern.MatchString(m.ref.text) {
		r.wrong(n, "%q is not REGISTRY/REPOSITORY:TAG", m.ref.text).
			WithHelp("docker.io/library/NAME:TAG for images of Docker itself")
	}
	e := m.ref
	r.checks = append(r.checks, func() {
		names := r.c.names()
		r.placeholders(e, func(name string) bool { return names[name] }, slices.Collect(maps.Keys(names)))
	})
}

func (r *reader) sums(n *yaml.Node) {
	for k, versions := range r.Pairs(n, "checksums") {
		for version, arches := range r.Pairs(versions, "checksums of "+k.Value) {
			for arch, digest := range r.Pairs(arches, "checksums of a version") {
				r.sum(k.Value, version.Value, arch.Value, r.digest(digest))
				r.checks = append(r.checks, func() { r.known(arch, "an architecture", r.c.machines) })
			}
		}
		r.checks = append(r.checks, func() { known(r, k, "a component", r.c.components) })
	}
}

func (r *reader) known(k *yaml.Node, what string, names map[string]string) { known(r, k, what, names) }

func known[T any](r *reader, k *yaml.Node, what string, names map[string]T) {
	if _, ok := names[k.Value]; !ok {
		r.wrong(k, "%q is not %s of the catalog", k.Value, what).
			WithHelp("%s", source.DidYouMean(k.Value, slices.Collect(maps.Keys(names))))
	}
}

func (l *loader) sum(component, version, arch, digest string) {
	if l.c.sums[component] == nil {
		l.c.sums[component] = map[string]map[string]string{}
	}
	if l.c.sums[component][version] == nil {
		l.c.sums[component][version] = map[string]string{}
	}
	l.c.sums[component][version][arch] = digest
}

// checksums reads lines of component, version, architecture and digest.
func (l *loader) checksums(name string, text func() ([]byte, error)) {
	r := l.open(name, text)
	if r == nil {
		return
	}
	number := 0
	for line := range bytes.Lines(r.File.Text) {
		number++
		fields := strings.Fields(string(line))
		switch {
		case len(fields) == 0 || fields[0][0] == '#':
		case len(fields) != 4 || !isDigest(fields[3]):
			l.ds.Add(source.Errorf(source.Pos{File: r.File, Line: number, Col: 1}, "not COMPONENT VERSION ARCHITECTURE SHA256"))
		default:
			l.sum(fields[0], fields[1], fields[2], fields[3])
		}
	}
}

func (r *reader) digest(n *yaml.Node) string {
	text := strings.TrimPrefix(r.text(n, "a digest"), "sha256:")
	if text != "" && !isDigest(text) {
		r.wrong(n, "%q is not a sha256 digest", n.Value).WithHelp("write sha256: and 64 hexadecimal digits")
	}
	return text
}

func isDigest(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 32
}

func (r *reader) zones(n *yaml.Node) {
	for k, v := range r.Pairs(n, "zones") {
		if r.c.zones[k.Value] == nil {
			zone := newRewrites()
			r.c.zones[k.Value] = &zone
		}
		zone := r.c.zones[k.Value]
		r.Fields(v, "a zone", map[string]func(*yaml.Node){
			"mirrors":    func(n *yaml.Node) { zone.add(r.texts(n, "mirrors"), nil) },
			"registries": func(n *yaml.Node) { zone.add(nil, r.texts(n, "registries")) },
		})
	}
}

func (r *reader) at(n *yaml.Node) source.Pos { return source.NodePos(r.File, n) }

func (r *reader) wrong(n *yaml.Node, format string, args ...any) *source.Diagnostic {
	d := source.Errorf(r.at(n), format, args...)
	r.ds.Add(d)
	return d
}

// text is a scalar as it is written: 3.10 is no number here.
func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		r.wrong(n, "%s must be a text", what)
		return ""
	}
	return n.Value
}

func (r *reader) entries(n *yaml.Node, what string) map[string]entry {
	out := map[string]entry{}
	for k, v := range r.Pairs(n, what) {
		out[k.Value] = entry{r.text(v, fmt.Sprintf("%s: %s", what, k.Value)), r.at(v)}
	}
	return out
}

func (r *reader) texts(n *yaml.Node, what string) map[string]string {
	out := map[string]string{}
	for k, v := range r.entries(n, what) {
		out[k] = v.text
	}
	return out
}
