package catalog

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// File is a file that the catalog describes: of a component for one architecture, or a chart.
type File struct {
	Name, Version string
	Arch          string // none for a chart
	File          string // path below the cache
	Upstream      string // URL
	SHA256        string // hexadecimal digits; none if upstream publishes no digest
	Chart         bool
	Kubernetes    bool // the version is that of Kubernetes
}

// Digests maps the digests in the catalog, as hexadecimal digits, to their files.
func (c *Catalog) Digests() map[string]File {
	out := map[string]File{}
	for _, name := range slices.Sorted(maps.Keys(c.sums)) {
		for _, version := range Sort(slices.Collect(maps.Keys(c.sums[name]))) {
			for _, arch := range slices.Sorted(maps.Keys(c.sums[name][version])) {
				f := c.componentFile(name, version, arch)
				f.SHA256 = strings.ToLower(c.sums[name][version][arch])
				if _, ok := out[f.SHA256]; !ok && f.File != "" {
					out[f.SHA256] = f
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.charts)) {
		if f := c.chartFile(name, c.versions[allMinors][name].text); c.charts[name].sha256 != "" && f.Version != "" {
			f.SHA256 = strings.ToLower(c.charts[name].sha256)
			out[f.SHA256] = f
		}
	}
	return out
}

func (c *Catalog) componentFile(name, version, arch string) File {
	a := c.components[name]
	if a == nil {
		return File{}
	}
	url, _ := expand(a.pattern(arch), c.values(version, arch)) // names in URLs were checked when they were read
	return File{Name: name, Version: version, Arch: arch, File: fileOf(name, version, arch, url), Upstream: url,
		Kubernetes: a.versionOf == kubernetes}
}

func (c *Catalog) chartFile(name, version string) File {
	url, _ := expand(c.charts[name].pattern(anyArch), c.values(version, anyArch))
	return File{Name: name, Version: version, File: chartFile(name, version), Upstream: url, Chart: true}
}

// values are the names that a URL can use.
func (c *Catalog) values(version, arch string) func(string) (string, bool) {
	values := map[string]string{"version": version, "arch": arch, "machine": c.machines[arch]}
	return func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}
}

// FileNames are the names of upstream's files in a catalog.
type FileNames struct {
	c        *Catalog
	patterns []filePattern
}

// filePattern is the last part of a URL pattern.
type filePattern struct {
	name, arch   string // of the component; a chart has no architecture
	expression   *regexp.Regexp
	placeholders []string // in the order of the expression's groups
}

// FileNames returns the names of upstream's files.
func (c *Catalog) FileNames() *FileNames {
	n := &FileNames{c: c}
	for _, name := range slices.Sorted(maps.Keys(c.charts)) {
		n.add(name, "", c.charts[name].pattern(anyArch))
		n.add(name, "", name+"-{version}.tgz")
	}
	for _, name := range slices.Sorted(maps.Keys(c.components)) {
		for _, arch := range slices.Sorted(maps.Keys(c.machines)) {
			n.add(name, arch, c.components[name].pattern(arch))
		}
	}
	return n
}

func (n *FileNames) add(name, arch, url string) {
	url = path.Base(url)
	parts, names := placeholderText.Split(url, -1), placeholderText.FindAllString(url, -1)
	text := "^" + regexp.QuoteMeta(parts[0])
	for i, part := range parts[1:] {
		text += "(" + n.c.expression(names[i]) + ")" + regexp.QuoteMeta(part)
	}
	n.patterns = append(n.patterns, filePattern{name, arch, regexp.MustCompile(text + "$"), names})
}

// Find finds the file that a path stands for, by the name of upstream's file. What the path's last part does not
// show, version and architecture, is read from its folders. A file whose digest is in the catalog is not found:
// Digests has it.
func (n *FileNames) Find(file string) (File, bool) {
	dir, base := path.Split(path.Clean(file))
	folders := strings.Split(strings.Trim(dir, "/"), "/")
	for _, p := range n.patterns {
		version, arch, ok := n.c.match(p, base, folders)
		switch {
		case !ok || version == "":
		case p.arch == "":
			return n.c.chartFile(p.name, version), true
		case arch == p.arch:
			version = n.c.spelled(p.name, version)
			if f := n.c.componentFile(p.name, version, arch); f.File != "" && n.c.sums[p.name][version][arch] == "" {
				return f, true
			}
		}
	}
	return File{}, false
}

var (
	versionPattern  = regexp.MustCompile(`^v?[0-9]+([.][0-9]+)+([-+][0-9A-Za-z.-]+)?$`)
	placeholderText = regexp.MustCompile(`[{][a-z]+([.]bare)?[}]`)
)

// match compares a file's name with a pattern, and returns its version and architecture.
func (c *Catalog) match(p filePattern, base string, folders []string) (version, arch string, ok bool) {
	found := p.expression.FindStringSubmatch(base)
	if found == nil {
		return "", "", false
	}
	values := map[string]string{}
	for i, name := range p.placeholders {
		name = strings.TrimSuffix(strings.Trim(name, "{}"), ".bare")
		if before := values[name]; before != "" && before != found[i+1] {
			return "", "", false
		}
		values[name] = found[i+1]
	}
	version, arch = values["version"], values["arch"]
	for a, machine := range c.machines {
		if machine == values["machine"] {
			arch = a
		}
	}
	for _, folder := range folders {
		if _, known := c.machines[folder]; known && arch != "" && folder != arch {
			return "", "", false // KubeKey 3 has files of one architecture with names of another
		} else if known {
			arch = folder
		}
	}
	for _, folder := range folders {
		if values["version"] == "" && versionPattern.MatchString(folder) {
			version = folder
		}
	}
	return version, arch, true
}

// expression is the regular expression for a name in a URL.
func (c *Catalog) expression(name string) string {
	switch name {
	case "{arch}":
		return alternatives(maps.Keys(c.machines))
	case "{machine}":
		return alternatives(maps.Values(c.machines))
	}
	return `v?[0-9]+[.][0-9A-Za-z.+-]+`
}

func alternatives(texts func(func(string) bool)) string {
	var quoted []string
	for _, t := range slices.Sorted(texts) {
		quoted = append(quoted, regexp.QuoteMeta(t))
	}
	return strings.Join(quoted, "|")
}

// spelled returns a version as the catalog spells those of a component: with a leading v or without.
func (c *Catalog) spelled(name, version string) string {
	bare := strings.TrimPrefix(version, "v")
	for known := range c.sums[name] {
		if strings.HasPrefix(known, "v") {
			return "v" + bare
		}
		return bare
	}
	return version
}

// Repository returns the full name of an image's repository, such as registry.k8s.io/pause, from its path in its
// registry. It is not found if the catalog has none, or repositories with this path in several registries.
func (c *Catalog) Repository(path string) (string, bool) {
	return c.repository(func(name string) bool {
		_, rest, _ := strings.Cut(name, "/")
		return rest == path
	})
}

// Namesake returns the name that the catalog has for an image of another repository, if the last part of their paths is
// the same: registry.k8s.io/pause:3.9 for docker.io/kubesphere/pause:3.9. It is not found if the catalog has none, or
// several.
func (c *Catalog) Namesake(ref string) (string, bool) {
	repository, tag, _ := cutTag(ref)
	if _, ok := c.repository(func(name string) bool { return name == repository }); ok {
		return "", false
	}
	name, ok := c.repository(func(name string) bool { return path.Base(name) == path.Base(repository) })
	return name + ":" + tag, ok
}

// repository returns the only repository of the catalog's images that fits.
func (c *Catalog) repository(fits func(name string) bool) (string, bool) {
	var found []string
	for _, m := range c.images {
		if name, _, _ := cutTag(m.ref.text); fits(name) && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}

// Group returns the group of an image of the catalog, whatever its version; "" if it is in none or in several.
func (c *Catalog) Group(ref string) string {
	repository, _, _ := cutTag(ref)
	group := ""
	for _, m := range c.images {
		of, _, _ := cutTag(m.ref.text)
		if of != repository {
			continue
		}
		if group != "" && group != m.group {
			return ""
		}
		group = m.group
	}
	return group
}

// cutTag cuts a reference at the colon before its tag.
func cutTag(ref string) (repository, tag string, ok bool) {
	at := strings.LastIndexByte(ref, ':')
	if at < strings.LastIndexByte(ref, '/') || at < 0 {
		return ref, "", false
	}
	return ref[:at], ref[at+1:], true
}
