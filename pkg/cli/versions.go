package cli

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/artifact"
	"kubekey/pkg/artifact/signature"
	"kubekey/pkg/catalog"
	"kubekey/pkg/config"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
	"kubekey/pkg/vars"
)

// registryGroup is the group of the hosts that run the cluster's own registry.
const registryGroup = "image_registry"

// versions returns the variable catalog: the versions that the config resolves to, their locations and their names.
// For roles it replaces the config key of the same name, from which it is made.
func (a *app) versions(s *session, c *config.Config) *vars.Layer {
	q := &question{app: a, config: c}
	offline := q.files("artifact", "files")
	known, err := a.knownIn(q, offline)
	if err != nil {
		s.diagnostics.Add(source.DiagnosticsOf(err)...)
		return nil
	}
	request := q.request(known.ConfigKeys())
	request.Offline = len(offline) > 0
	if !s.inventoryFails && (len(s.inventory.HostsIn(registryGroup)) > 0 || q.set("image_registry", "auth")) {
		q.privateRegistry(&request)
	}
	if q.ds.Err() != nil {
		s.diagnostics.Add(q.ds...)
		return nil
	}
	found, problems := known.Resolve(request)
	for _, p := range problems {
		d := c.Problem(p.Path, p.Msg, p.Help)
		if !reported(s.diagnostics, d.Pos) {
			s.diagnostics.Add(d)
		}
	}
	if found == nil {
		return nil
	}
	if !request.Offline {
		found.Set("files", value.Of(append(catalog.Files(a.tree.Embedded), q.overlays()...)))
	}
	settings, _ := c.Get("artifact")
	d, _ := settings.(*value.Dict)
	artifact := d.Clone()
	artifact.Set("files", value.Of(offline))
	artifact.Set("catalogs", a.catalogs(s, q, known, request, found))
	return vars.Values("catalog", value.NewDict("catalog", found, "artifact", artifact))
}

// catalogs returns what the catalog resolves to for each version of Kubernetes in artifact.kubernetes, and for that
// of the cluster, which has been found.
func (a *app) catalogs(s *session, q *question, known *catalog.Catalog, request catalog.Request,
	found *value.Dict) []any {
	out := []any{found}
	first := request.KubeVersion
	v, _ := q.config.Get("artifact", "kubernetes")
	list, _ := v.([]any)
	for i := range list {
		path := []string{"artifact", "kubernetes", strconv.Itoa(i)}
		if request.KubeVersion = q.text(path...); request.KubeVersion == first {
			continue
		}
		other, problems := known.Resolve(request)
		for _, p := range problems {
			s.diagnostics.Add(q.config.Problem(path, p.Msg, p.Help))
		}
		if other != nil {
			out = append(out, other)
		}
	}
	s.diagnostics.Add(q.ds...)
	return out
}

// knownIn returns the catalog of the offline files, or without any the one that kk ships with its overlays.
func (a *app) knownIn(q *question, offline []string) (*catalog.Catalog, error) {
	if len(offline) == 0 {
		return catalog.Load(a.readFile, a.tree.Embedded, q.overlays())
	}
	set, err := artifact.OpenSet(offline)
	if err != nil {
		return nil, source.Errorf(q.config.At("artifact", "files"), "%s", err).
			WithHelp("`kk artifact verify FILE` checks a file; copy a damaged one again")
	}
	defer func() { _ = set.Close() }() // only read
	if err := a.checkSigners(q, set); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(set, func(f *artifact.File) bool { return len(f.Manifest.Catalog) > 0 })
	if i < 0 {
		return nil, source.Errorf(q.config.At("artifact", "files"), "%s: no catalog is in there",
			strings.Join(offline, ", ")).WithHelp("name the file that `kk artifact export` made as well")
	}
	if j := slices.IndexFunc(set, func(f *artifact.File) bool {
		return len(f.Manifest.Catalog) > 0 && !isBase(f, set) && !slices.Equal(f.Manifest.Catalog, set[i].Manifest.Catalog)
	}); j >= 0 {
		return nil, source.Errorf(q.config.At("artifact", "files"), "%s and %s were made with different catalogs",
			set[i].Path, set[j].Path).WithHelp("export both together, or name only one of them")
	}
	var out []catalog.Document
	for _, d := range set[i].Manifest.Catalog {
		out = append(out, catalog.Document{Name: set[i].Path + ":" + d.Name, Text: []byte(d.Text)})
	}
	return catalog.Parse(out)
}

// isBase reports whether a file of the set is a delta for this one: its catalog is the one that applies.
func isBase(f *artifact.File, set artifact.Set) bool {
	return slices.ContainsFunc(set, func(o *artifact.File) bool { return o.Base() == f.Digest() })
}

// checkSigners checks the signatures that artifact.allowed_signers demands.
func (a *app) checkSigners(q *question, set artifact.Set) error {
	allowed, err := a.allowedSigners(q.file("artifact", "allowed_signers"))
	if err != nil || allowed == nil {
		return err
	}
	var ds source.Diagnostics
	for _, f := range set {
		signatures, err := f.Signatures()
		if err == nil {
			_, err = signature.Verify(f.ManifestBytes(), signatures, allowed, time.Now())
		}
		if err != nil {
			ds.Add(source.Errorf(q.config.At("artifact", "allowed_signers"), "%s: %s", f.Path, err))
		}
	}
	return ds.Err()
}

// reported reports whether there already is a diagnostic at a position.
func reported(ds source.Diagnostics, at source.Pos) bool {
	return at.IsValid() && slices.ContainsFunc(ds, func(d *source.Diagnostic) bool { return d.Pos == at })
}

func (a *app) readFile(name string) ([]byte, error) {
	text, err := a.tree.ReadFile(name)
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		err = pe.Err // the caller adds the file name
	}
	return text, err
}

// question reads from a config the input for the catalog. It is evaluated before any host is known, so none of it
// may be a template.
type question struct {
	*app
	config *config.Config
	ds     source.Diagnostics
}

func (q *question) request(keys map[string]string) catalog.Request {
	r := catalog.Request{
		KubeVersion: q.text("kubernetes", "kube_version"),
		Zone:        q.text("catalog", "zone"),
		Mirrors:     q.texts("catalog", "mirrors"),
		Registries:  q.texts("catalog", "registries"),
		Components:  map[string]catalog.Override{},
		Versions:    map[string]string{},
	}
	for name, key := range keys {
		r.Versions[name] = q.text(strings.Split(key, ".")...)
	}
	for _, name := range q.keys("catalog", "components") {
		path := []string{"catalog", "components", name}
		r.Components[name] = catalog.Override{
			Version: q.text(append(path[:3:3], "version")...),
			URL:     q.text(append(path[:3:3], "url")...),
			Path:    q.file(append(path[:3:3], "path")...),
			SHA256:  q.texts(append(path[:3:3], "sha256")...),
		}
	}
	return r
}

// projectOfNone is the project of Harbor that exists from its installation on.
const projectOfNone = "library"

// privateRegistry sets the address and the projects of the private registry, as nodes use them.
func (q *question) privateRegistry(r *catalog.Request) {
	r.PrivateRegistry, r.Project = q.text("image_registry", "name"), q.text("image_registry", "project")
	if port := q.text("image_registry", "port"); port != "443" {
		r.PrivateRegistry += ":" + port
	}
	if q.text("image_registry", "type") == "harbor" {
		r.Alone = projectOfNone
	}
}

// text returns a value as text, or "" when it is not set.
func (q *question) text(path ...string) string {
	v, ok := q.config.Get(path...)
	switch v.(type) {
	case nil, *value.Dict, []any:
		return "" // the schema rejects other types where they are wrong
	}
	if ok && config.IsTemplate(v) && !q.config.Unsafe(path) {
		q.ds.Add(q.config.Problem(path, "a template cannot be evaluated here: versions and files are worked out before a "+
			"host is known", "write the value itself"))
	}
	return value.Str(v)
}

// set reports whether a key has a value other than null.
func (q *question) set(path ...string) bool {
	v, ok := q.config.Get(path...)
	return ok && v != nil
}

func (q *question) keys(path ...string) []string {
	v, _ := q.config.Get(path...)
	d, _ := v.(*value.Dict)
	var out []string
	for k := range d.All() {
		out = append(out, value.Str(k))
	}
	return out
}

func (q *question) texts(path ...string) map[string]string {
	out := map[string]string{}
	for _, key := range q.keys(path...) {
		out[key] = q.text(append(slices.Clone(path), key)...)
	}
	return out
}

// file returns a path on this machine. It is relative to the file that sets it, or to the current folder when the
// command line does.
func (q *question) file(path ...string) string {
	name := q.text(path...)
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	if at := q.config.At(path...); at.File != nil {
		name = filepath.Join(filepath.Dir(at.File.Name), name)
	}
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}

func (q *question) overlays() []string { return q.files("catalog", "overlays") }

// files returns the paths of a list.
func (q *question) files(path ...string) []string {
	v, _ := q.config.Get(path...)
	list, _ := v.([]any)
	var out []string
	for i := range list {
		out = append(out, q.file(append(slices.Clone(path), strconv.Itoa(i))...))
	}
	return out
}
