package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

// Request is what a config requests from the catalog.
type Request struct {
	KubeVersion string              // with its patch release: v1.34.4
	Versions    map[string]string   // requested version by name; "" is the catalog's; 2.2.x is the newest of 2.2
	Components  map[string]Override // by name of a component, of a chart, or of anything that has a version
	Zone        string              // zone whose mirrors and registries to use; "" is none

	Mirrors    map[string]string // prefixes of URLs and their replacements; override those of the zone
	Registries map[string]string // registries, optionally with a path, and their replacements

	// Offline omits all mirrors and registries but the private one: files and images have the names of upstream.
	Offline bool

	PrivateRegistry string // HOST[:PORT] that nodes pull all images from; "" is upstream's or Registries'
	Project         string // path put before all repositories of the private registry
	Alone           string // project of repositories of the private registry that would be in none; "" for none
}

// Override replaces the catalog's data about one component.
type Override struct {
	Version string
	URL     string            // of the file, used unchanged except for {version}, {arch} and {machine}
	Path    string            // file on the control node to use instead of the URL
	SHA256  map[string]string // by architecture, or "any"
}

// Problem is something that is requested and not in the catalog.
type Problem struct {
	Path []string // config key that requests it
	Msg  string
	Help string // what to do; may be empty
}

// Resolve determines versions, files, charts and images for one version of Kubernetes: the
// variable catalog of playbooks. It is deterministic, including its order. The result is nil if
// Kubernetes itself is not in the catalog, and omits what other problems are about.
func (c *Catalog) Resolve(q Request) (*value.Dict, []Problem) {
	r := c.resolver(q)
	if !r.kubernetes() {
		return nil, r.problems
	}
	r.zone()
	r.names()
	r.choose()
	out := value.NewDict(
		"kube_version", q.KubeVersion,
		"minor", minorOf(q.KubeVersion),
		"kubeadm_api", r.chosen["kubeadm_api"],
		"components", r.components(),
		"charts", r.charts(),
		"images", r.images(),
	)
	return out, r.problems
}

type resolver struct {
	*Catalog
	Request
	chosen   map[string]string // name → version
	rewrites rewrites
	problems []Problem
}

func (c *Catalog) resolver(q Request) *resolver {
	return &resolver{Catalog: c, Request: q, chosen: map[string]string{kubernetes: q.KubeVersion}, rewrites: newRewrites()}
}

func (r *resolver) problem(key, help, format string, args ...any) {
	r.problems = append(r.problems, Problem{strings.Split(key, "."), fmt.Sprintf(format, args...), help})
}

// kubernetes checks the version of Kubernetes, on which all others depend.
func (r *resolver) kubernetes() bool {
	all := r.Catalog.Versions()
	v := r.KubeVersion
	if slices.Contains(all, v) {
		return true
	}
	minor := strings.TrimPrefix(v, "v")
	if i := slices.IndexFunc(r.Minors(), func(m Minor) bool { return m.Name == minor }); i >= 0 {
		r.problem("kubernetes.kube_version", fmt.Sprintf("write %s, the newest of %s", r.Minors()[i].Newest, minor),
			"%q is not a patch release of Kubernetes", v)
		return false
	}
	r.problem("kubernetes.kube_version", nearestHelp(v, all), "Kubernetes %q is not in the catalog", v)
	return false
}

// zone merges the rewrites of overlays, of the zone and of the request.
func (r *resolver) zone() {
	if r.Offline {
		return
	}
	if z := r.zones[r.Zone]; z != nil {
		r.rewrites.over(*z)
	} else if r.Zone != "" {
		zones := slices.Sorted(maps.Keys(r.zones))
		r.problem("catalog.zone", cmp.Or(source.DidYouMean(r.Zone, zones), "use one of: "+strings.Join(zones, ", ")),
			"unknown zone %q", r.Zone)
	}
	r.rewrites.over(r.Catalog.rewrites)
	r.rewrites.add(r.Mirrors, r.Registries)
}

// names checks that the names in the request are in the catalog.
func (r *resolver) names() {
	known := r.Catalog.names()
	for _, name := range r.Catalog.Names() {
		known[name] = true
	}
	delete(known, kubernetes)
	for _, name := range slices.Sorted(maps.Keys(r.Components)) {
		if !known[name] {
			r.problem("catalog.components."+name, source.DidYouMean(name, slices.Collect(maps.Keys(known))),
				"the catalog has no component %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Request.Versions)) {
		if !known[name] {
			r.problem(r.keyOf(name), source.DidYouMean(name, slices.Collect(maps.Keys(known))), "the catalog has no %q", name)
		}
	}
}

// keyOf is the config key that requests the version of a name.
func (r *resolver) keyOf(name string) string {
	if r.Components[name].Version != "" {
		return "catalog.components." + name + ".version"
	}
	if a := r.Catalog.components[name]; a != nil && a.config != "" {
		return a.config
	}
	return "catalog.components." + name + ".version"
}

// choose determines the version of every name: first independent ones, then their dependencies.
func (r *resolver) choose() {
	minor := minorOf(r.KubeVersion)
	table := maps.Clone(r.versions[allMinors])
	maps.Copy(table, r.versions[minor])
	for _, name := range slices.Sorted(maps.Keys(table)) {
		r.chosen[name] = r.version(name, cmp.Or(r.asked(name), table[name].text))
	}
	for _, name := range slices.Sorted(maps.Keys(r.releases)) {
		r.bring(name)
	}
	for _, set := range []map[string]*artifact{r.Catalog.components, r.Catalog.charts} {
		for _, name := range slices.Sorted(maps.Keys(set)) {
			r.ofOther(name, set[name])
		}
	}
}

func (r *resolver) asked(name string) string {
	return cmp.Or(r.Components[name].Version, r.Request.Versions[name])
}

// version is the version that text selects. One without a digest in the catalog needs a digest in
// the config, or a file of the control node.
func (r *resolver) version(name, text string) string {
	o := r.Components[name]
	if !isSeries(text) && (len(o.SHA256) > 0 || o.Path != "") {
		return text
	}
	v, err := r.newest(name, text)
	if err != nil {
		r.problem(r.keyOf(name), r.digestHelp(name, text), "%s", err)
		return text
	}
	return v
}

func (r *resolver) digestHelp(name, text string) string {
	help := r.nearestHelp(name, text)
	if isSeries(text) || strings.HasPrefix(help, "did you mean") {
		return help
	}
	return help + fmt.Sprintf("; for another version, set its digest in catalog.components.%s.sha256", name)
}

// bring chooses the versions that depend on the release of a name.
func (r *resolver) bring(name string) {
	release := r.chosen[name]
	brings, known := r.releases[name][release]
	if known {
		for _, what := range slices.Sorted(maps.Keys(brings)) {
			r.chosen[what] = cmp.Or(r.asked(what), brings[what].text)
		}
		return
	}
	for _, what := range r.brought(name) {
		if r.chosen[what] = r.asked(what); r.chosen[what] == "" {
			help := nearestHelp(release, Sort(slices.Collect(maps.Keys(r.releases[name]))))
			r.problem(r.keyOf(name), fmt.Sprintf("%s; for another version, set catalog.components.%s.version", help, what),
				"the catalog has no %s for %s %s", what, name, release)
		}
	}
}

// brought is everything that depends on releases of a name.
func (r *resolver) brought(name string) []string {
	all := map[string]bool{}
	for _, brings := range r.releases[name] {
		for what := range brings {
			all[what] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// ofOther gives an artifact without a version the version of another.
func (r *resolver) ofOther(name string, a *artifact) {
	if a.versionOf == "" {
		if r.chosen[name] == "" {
			r.chosen[name] = r.unversioned(name)
		}
		return
	}
	r.chosen[name] = r.chosen[a.versionOf]
	if v := r.asked(name); v != "" && v != r.chosen[name] {
		r.problem(r.keyOf(name), "set "+r.versionKey(a.versionOf),
			"%s has the version of %s, %s", name, a.versionOf, r.chosen[name])
	}
}

// unversioned is the requested version of a name that has none in the catalog.
func (r *resolver) unversioned(name string) string {
	if v := r.asked(name); v != "" {
		return r.version(name, v)
	}
	r.problem(r.keyOf(name), "", "the catalog has no %s for Kubernetes %s", name, minorOf(r.KubeVersion))
	return ""
}

func (r *resolver) components() *value.Dict {
	out := value.NewDict()
	for _, name := range slices.Sorted(maps.Keys(r.Catalog.components)) {
		arches := value.NewDict()
		for _, arch := range slices.Sorted(maps.Keys(r.machines)) {
			arches.Set(arch, r.component(name, arch))
		}
		r.complete(name)
		out.Set(name, value.NewDict("version", r.chosen[name], "arch", arches))
	}
	return out
}

// component is the file of a component for one architecture.
func (r *resolver) component(name, arch string) *value.Dict {
	a, o, version := r.Catalog.components[name], r.Components[name], r.chosen[name]
	upstream := r.fill(name, a.pattern(arch), version, arch)
	url := rewrite(r.rewrites.mirrors, upstream)
	if o.URL != "" {
		url = r.fill(name, o.URL, version, arch)
	}
	local := cmp.Or(o.Path, a.path)
	digest := r.digest(name, arch)
	if r.sums[name] != nil && digest == "" && local == "" {
		url = "" // do not download what cannot be verified
	}
	return value.NewDict("url", url, "sha256", digest, "file", fileOf(name, version, arch, cmp.Or(upstream, url, local)),
		"path", local, "upstream", upstream, "name", name, "version", version, "arch", arch)
}

// complete reports a component without a digest for any architecture.
func (r *resolver) complete(name string) {
	v := r.chosen[name]
	a := r.Catalog.components[name]
	if r.sums[name] == nil || r.sums[name][v] != nil || a.versionOf == "" {
		return // components with their own version were checked with it
	}
	if o := r.Components[name]; len(o.SHA256) == 0 && o.Path == "" && a.path == "" {
		r.problem(r.versionKey(a.versionOf), fmt.Sprintf("set its digest in catalog.components.%s.sha256", name),
			"the catalog has no digest of %s %s", name, v)
	}
}

func (r *resolver) versionKey(name string) string {
	if name == kubernetes {
		return "kubernetes.kube_version"
	}
	return r.keyOf(name)
}

func (r *resolver) digest(name, arch string) string {
	o := r.Components[name].SHA256
	given := cmp.Or(o[arch], o[anyArch], r.sums[name][r.chosen[name]][arch])
	given = strings.TrimPrefix(given, "sha256:")
	if given != "" && !isDigest(given) {
		r.problem("catalog.components."+name+".sha256", "write sha256: and 64 hexadecimal digits",
			"%q is not a sha256 digest", given)
	}
	return given
}

// fill puts version and architecture into a URL.
func (r *resolver) fill(name, pattern, version, arch string) string {
	text, unknown := expand(pattern, func(what string) (string, bool) {
		values := map[string]string{"version": version, "arch": arch, "machine": r.machines[arch]}
		v, ok := values[what]
		return v, ok
	})
	if unknown != "" {
		r.problem("catalog.components."+name+".url", "use "+strings.Join(urlNames, ", "), "unknown %s in a URL", unknown)
	}
	return text
}

func (r *resolver) charts() *value.Dict {
	out := value.NewDict()
	for _, name := range slices.Sorted(maps.Keys(r.Catalog.charts)) {
		out.Set(name, r.chart(name))
	}
	return out
}

func (r *resolver) chart(name string) *value.Dict {
	a, o, version := r.Catalog.charts[name], r.Components[name], r.chosen[name]
	upstream := r.fill(name, a.pattern(anyArch), version, anyArch)
	url := rewrite(r.rewrites.mirrors, upstream)
	if o.URL != "" {
		url = r.fill(name, o.URL, version, anyArch)
	}
	digest := strings.TrimPrefix(cmp.Or(o.SHA256[anyArch], a.sha256), "sha256:")
	return value.NewDict("name", name, "version", version, "url", url, "upstream", upstream, "sha256", digest,
		"file", chartFile(name, version), "path", cmp.Or(o.Path, a.path))
}

func (r *resolver) images() *value.Dict {
	out := value.NewDict()
	for _, name := range slices.Sorted(maps.Keys(r.Catalog.images)) {
		m := r.Catalog.images[name]
		upstream, unknown := expand(m.ref.text, func(what string) (string, bool) {
			return r.chosen[what], r.chosen[what] != ""
		})
		if unknown == "" {
			out.Set(name, r.image(upstream, m.group))
		}
	}
	return out
}

// image is the name of an image on nodes, as a whole and in the parts that charts need, and its source.
func (r *resolver) image(upstream, group string) *value.Dict {
	colon := strings.LastIndexByte(upstream, ':')
	original, tag := upstream[:colon], upstream[colon:]
	from := rewrite(r.rewrites.registries, original)
	name := from
	if r.PrivateRegistry != "" {
		_, repository, _ := strings.Cut(original, "/")
		repository = path.Join(r.Project, repository)
		if !strings.Contains(repository, "/") {
			repository = path.Join(r.Alone, repository)
		}
		name = path.Join(r.PrivateRegistry, repository)
	}
	registry, repository, _ := strings.Cut(name, "/")
	return value.NewDict("ref", name+tag, "source", from+tag, "upstream", upstream,
		"name", name, "registry", registry, "repository", repository, "tag", tag[1:], "group", group)
}
