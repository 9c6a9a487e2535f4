package serve

import (
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// address is HOST or HOST:PORT.
var address = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

// overlay sends the catalog overlay that makes kk fetch everything from here, at the address that the client used.
func (h *Handler) overlay(w http.ResponseWriter, r *http.Request) {
	if !address.MatchString(r.Host) {
		http.Error(w, "the header Host is not HOST or HOST:PORT", http.StatusBadRequest)
		return
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	base := scheme + "://" + r.Host + "/"
	o := overlay{Mirrors: map[string]string{"https://": base}, Registries: map[string]string{}}
	for _, s := range h.files {
		if strings.HasPrefix(s.Source, "http://") {
			o.Mirrors["http://"] = base
		}
	}
	for _, repo := range h.repositories {
		registry, _, _ := strings.Cut(repo.name, "/")
		o.Registries[registry] = r.Host + "/" + registry
	}
	out, err := yaml.Marshal(o)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-store") // it differs by address
	text := "# In the config: catalog: {overlays: [overlay.yaml]}\n" + plainNote(r) + string(out)
	_, _ = io.WriteString(w, text) // the client is gone
}

// plainNote is a comment about what the config needs as well: images are not fetched without TLS unless it says so.
func plainNote(r *http.Request) string {
	if r.TLS != nil {
		return ""
	}
	return fmt.Sprintf("# Images over plain HTTP: cri: {registries: {mirrors: {%q: {endpoints: [%q]}}}}\n", r.Host,
		"http://"+r.Host)
}

// overlay is a file of a catalog with the places of one site.
type overlay struct {
	Mirrors    map[string]string `yaml:"mirrors"`
	Registries map[string]string `yaml:"registries,omitempty"`
}

// list is the page at /.
var list = template.Must(template.New("").Parse(`<!DOCTYPE html>
<meta charset="utf-8"><title>Offline file</title>
<h1>Offline file</h1>
<p><a href="/overlay.yaml">overlay.yaml</a>: the catalog overlay for this address</p>
<h2>Files</h2>
<ul>
{{range .Files}}<li><a href="{{.Link}}">{{.Path}}</a>, {{.Size}} bytes, sha256:{{.SHA256}}</li>
{{end}}</ul>
<h2>Images</h2>
<ul>
{{range .Images}}<li>{{.Reference}}, {{.Digest}}</li>
{{end}}</ul>
`))

type listedFile struct {
	Path, Link, SHA256 string
	Size               int64
}

type listedImage struct{ Reference, Digest string }

// page lists what is served.
func (h *Handler) page(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	var all struct {
		Files  []listedFile
		Images []listedImage
	}
	for _, at := range slices.Sorted(maps.Keys(h.files)) {
		s := h.files[at]
		all.Files = append(all.Files, listedFile{at, link(at), s.SHA256, s.Size})
	}
	for _, key := range slices.Sorted(maps.Keys(h.repositories)) {
		repo := h.repositories[key]
		for _, tag := range slices.Sorted(maps.Keys(repo.tags)) {
			all.Images = append(all.Images, listedImage{repo.name + ":" + tag, repo.tags[tag]})
		}
	}
	_ = list.Execute(w, all) // the client is gone
}

// link is the URL of a path.
func link(at string) string {
	p, query, _ := strings.Cut(at, "?")
	u := url.URL{Path: "/" + p, RawQuery: query}
	return u.String()
}
