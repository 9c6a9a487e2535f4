// Package serve serves offline files over HTTP, read only: files under the paths that they have upstream, the
// repositories of packages, and a registry that speaks the pull side of the OCI distribution specification 1.1.
package serve

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/artifact"
)

// Handler serves what is in offline files. It does not change after New, and can be used concurrently.
type Handler struct {
	files        map[string]stored // by path, without the leading slash
	repositories map[string]*repository
	decoders     chan struct{} // one element for each decoder in use
	log          func(error)
}

// stored is an item and the file that has it.
type stored struct {
	file *artifact.File
	artifact.Item
}

const (
	// maxDecoders limits the decoders, each of which needs some 13 MB.
	maxDecoders = 6
	// stall is how long a client may take to accept one piece of a response.
	stall = time.Minute

	packages = "packages/" // the folder of repositories of packages
	others   = "files/"    // the folder of items that have no URL upstream
)

// New returns the handler for a set of files, which must stay open. Of two items with one path or one reference the
// first counts. Manifests of images are read and checked; all that are damaged are reported. log gets what goes wrong
// while a response is sent: it is called concurrently.
func New(set artifact.Set, log func(error)) (*Handler, error) {
	h := &Handler{files: map[string]stored{}, repositories: map[string]*repository{},
		decoders: make(chan struct{}, maxDecoders), log: log}
	var problems []error
	for _, f := range set {
		for _, i := range f.Manifest.Items {
			if i.Kind == artifact.KindImage {
				if err := h.addImage(f, i); err != nil {
					problems = append(problems, fmt.Errorf("%s: %s: %w", f.Path, i, err))
				}
				continue
			}
			at := location(i)
			if _, known := h.files[at]; !known && at != "" {
				h.files[at] = stored{f, i}
			}
		}
	}
	return h, errors.Join(problems...)
}

// location is the path that an item is served at, without the leading slash: that of its URL upstream below the name
// of its host. "" is an item that has neither a URL nor a name.
func location(i artifact.Item) string {
	if i.Kind == artifact.KindPackage {
		if strings.HasPrefix(i.File, packages) {
			return i.File
		}
		return ""
	}
	u, err := url.Parse(i.Source)
	switch {
	case err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.Path != "":
		at := u.Host + u.Path
		if u.RawQuery != "" {
			at += "?" + u.RawQuery
		}
		return at
	case i.File != "":
		return others + i.File
	}
	return ""
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := &paced{w, http.NewResponseController(w)}
	p.extend()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		w.Header().Set("Connection", "close") // the body is not read
		fail(p, r, isRegistry(r), http.StatusMethodNotAllowed, "UNSUPPORTED", "this server is read only")
	case isRegistry(r):
		h.registry(p, r)
	case r.URL.Path == "/":
		h.page(p)
	case r.URL.Path == "/overlay.yaml":
		h.overlay(p, r)
	default:
		h.item(p, r)
	}
}

func isRegistry(r *http.Request) bool {
	return r.URL.Path == "/v2" || strings.HasPrefix(r.URL.Path, "/v2/")
}

// fail sends an error: to clients of the registry in the form of the distribution specification.
func fail(w http.ResponseWriter, r *http.Request, registry bool, status int, code, message string) {
	w.Header().Del("Etag")
	if !registry {
		http.Error(w, message, status)
		return
	}
	sendJSON(w, r, "application/json", status, problems{[]problem{{code, message}}})
}

// item sends the file that a path belongs to.
func (h *Handler) item(w http.ResponseWriter, r *http.Request) {
	at := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/") // apt asks for amd64/./Packages
	s, ok := h.files[at+"?"+r.URL.RawQuery]
	if !ok {
		s, ok = h.files[at]
	}
	if !ok {
		http.Error(w, "not in the offline file; / lists what is", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaType(s.File))
	if s.Encoding == artifact.Plain {
		h.send(w, r, s.blob(s.Blob, s.Size))
		return
	}
	w.Header().Set("Vary", "Accept-Encoding")
	if size, ok := s.file.Manifest.BlobSize(s.Blob); ok && r.Header.Get("Range") == "" &&
		accepts(r.Header.Values("Accept-Encoding"), string(s.Encoding)) {
		w.Header().Set("Content-Encoding", string(s.Encoding))
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10)) // http.ServeContent sets none with an encoding
		h.send(w, r, s.blob(s.Blob, size))
		return
	}
	h.send(w, r, s.decoded(h.decoders))
}

// mediaType is the type of a file, by its name.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".tgz", ".gz":
		return "application/gzip"
	case ".zst":
		return "application/zstd"
	case ".deb":
		return "application/vnd.debian.binary-package"
	case ".rpm":
		return "application/x-rpm"
	}
	return "application/octet-stream"
}

// accepts reports whether a client can decode an encoding. The wildcard is not enough: programs send it that store
// what comes as it is.
func accepts(headers []string, encoding string) bool {
	for _, one := range strings.Split(strings.Join(headers, ","), ",") {
		name, parameter, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), encoding) {
			continue
		}
		weight, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !ok || err == nil && q > 0
	}
	return false
}

// send sends content with its digest as ETag: ranges, conditions and HEAD as well. If it turns out to be damaged, the
// connection is cut, so that the client gets less than it was promised.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, c *content) {
	c.ctx = r.Context()
	defer c.close()
	w.Header().Set("Etag", strconv.Quote(c.digest))
	if strings.Contains(r.Header.Get("Range"), ",") {
		// The whole is an allowed answer to several ranges, and reading each from the start is not for free.
		r = r.Clone(r.Context())
		r.Header.Del("Range")
	}
	http.ServeContent(w, r, "", time.Time{}, c)
	if c.err == nil {
		return
	}
	if r.Context().Err() == nil {
		h.log(fmt.Errorf("send %s: %s of %s: %w (`kk artifact verify` lists all damage)", r.URL.Path, c.digest,
			c.from, c.err))
	}
	panic(http.ErrAbortHandler) // the way to cut a connection
}

// paced is a response to a client that has to accept some of it in each minute.
type paced struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p *paced) extend() {
	_ = p.control.SetWriteDeadline(time.Now().Add(stall)) // a recorder of tests has none
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (int, error) {
	p.extend()
	return p.ResponseWriter.Write(b)
}
