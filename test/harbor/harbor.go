// Package harbor is a stand-in for Harbor, for tests. It has what kk uses of Harbor, and rejects what Harbor rejects:
// repositories without a project, projects that do not exist, and clients that do not get their token at the host name
// that Harbor is configured with. It stores images in memory. Its policies copy images to other Harbors.
package harbor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Harbor is one instance, an http.Handler.
type Harbor struct {
	Name           string // HOST[:PORT] as in harbor.yml: where clients get tokens
	User, Password string
	Trust          http.RoundTripper // reaches other Harbors, with the CAs of ca_bundle; nil trusts the system's

	images  http.Handler
	address string // that it listens at

	mu         sync.Mutex
	projects   map[string]bool            // whether they are public
	tokens     map[string]map[string]bool // actions by token, as REPOSITORY:ACTION
	registries []*otherRegistry
	policies   []*policy
	executions []*execution
	uploads    int
	requests   []string
	running    int // replications
	finished   *sync.Cond
}

// New returns an instance with the project library, which a new Harbor has.
func New(name, user, password string) *Harbor {
	h := &Harbor{Name: name, User: user, Password: password, images: registry.New(
		registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true)),
		projects: map[string]bool{"library": true}, tokens: map[string]map[string]bool{}}
	h.finished = sync.NewCond(&h.mu)
	return h
}

// Uploads returns how many uploads of blobs were begun.
func (h *Harbor) Uploads() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.uploads
}

// Requests returns the requests of the API so far, as METHOD PATH STATUS.
func (h *Harbor) Requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

// Projects returns the names of the projects, sorted.
func (h *Harbor) Projects() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var names []string
	for p := range h.projects {
		names = append(names, p)
	}
	slices.Sort(names)
	return names
}

// Wait returns when no replication is running.
func (h *Harbor) Wait() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.running > 0 {
		h.finished.Wait()
	}
}

// start does work in the background, with h.mu held.
func (h *Harbor) start(work func()) {
	h.running++
	go func() {
		work()
		h.mu.Lock()
		defer h.mu.Unlock()
		h.running--
		h.finished.Broadcast()
	}()
}

// Digest returns the digest that a repository has for a tag, "" for none.
func (h *Harbor) Digest(repository, tag string) string {
	r := httptest.NewRecorder()
	h.images.ServeHTTP(r, httptest.NewRequest(http.MethodHead, "/v2/"+repository+"/manifests/"+tag, nil))
	return r.Header().Get("Docker-Content-Digest")
}

// ServeHTTP implements http.Handler.
func (h *Harbor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/service/token":
		h.token(w, r)
	case path == "/v2/" || strings.HasPrefix(path, "/v2/"):
		h.registry(w, r)
	case strings.HasPrefix(path, "/api/v2.0/"):
		answer := &recorder{ResponseWriter: w, status: http.StatusOK}
		h.api(answer, r)
		h.mu.Lock()
		h.requests = append(h.requests, fmt.Sprintf("%s %s %d", r.Method, path, answer.status))
		h.mu.Unlock()
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// recorder keeps the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// fail answers with an error as Harbor does.
func fail(w http.ResponseWriter, status int, code, format string, args ...any) {
	text, err := json.Marshal(map[string]any{"errors": []map[string]string{
		{"code": code, "message": fmt.Sprintf(format, args...)}}})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client is gone
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

// login returns the user of a request: "" for nobody, ok is false for wrong credentials.
func (h *Harbor) login(r *http.Request) (user string, ok bool) {
	user, password, set := r.BasicAuth()
	if !set {
		return "", true
	}
	return user, user == h.User && password == h.Password
}

// token answers with a token for what the user may do of what it asks for.
func (h *Harbor) token(w http.ResponseWriter, r *http.Request) {
	user, ok := h.login(r)
	if !ok {
		fail(w, http.StatusUnauthorized, "UNAUTHORIZED", "unauthorized")
		return
	}
	if host := r.Host; host != h.Name {
		fail(w, http.StatusNotFound, "NOT_FOUND", "tokens are at %s, not at %s", h.Name, host)
		return
	}
	if service := r.URL.Query().Get("service"); service != "harbor-registry" {
		fail(w, http.StatusBadRequest, "BAD_REQUEST", "unable to handle service: %s", service)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	granted := map[string]bool{}
	for _, scope := range strings.Fields(strings.Join(r.URL.Query()["scope"], " ")) {
		kind, rest, _ := strings.Cut(scope, ":")
		i := strings.LastIndexByte(rest, ':')
		if kind != "repository" || i < 0 {
			continue
		}
		project, _, _ := strings.Cut(rest[:i], "/")
		public, exists := h.projects[project]
		for _, action := range strings.Split(rest[i+1:], ",") {
			if exists && (user != "" || public && action == "pull") {
				granted[rest[:i]+":"+action] = true
			}
		}
	}
	token := rand.Text()
	h.tokens[token] = granted
	answer(w, map[string]any{"token": token, "expires_in": 1800, "issued_at": "2026-01-01T00:00:00Z"})
}

var repositoryPath = regexp.MustCompile(`^/v2/(.+)/(blobs|manifests|tags|referrers)/`)

// registry is the API of registries, behind Harbor's checks.
func (h *Harbor) registry(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	repository := ""
	if m := repositoryPath.FindStringSubmatch(r.URL.Path); m != nil {
		repository = m[1]
	}
	project, _, inProject := strings.Cut(repository, "/")
	if repository != "" && !inProject {
		fail(w, http.StatusBadRequest, "BAD_REQUEST", "invalid repository name: %s", repository)
		return
	}
	action := "pull"
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		action = "push"
	}
	if why, challenge := h.denied(r, repository, project, action); why != "" {
		if challenge {
			w.Header().Set("WWW-Authenticate", h.challenge(r, repository, action))
		}
		fail(w, http.StatusUnauthorized, "UNAUTHORIZED", "%s", why)
		return
	}
	if r.Method == http.MethodPost {
		h.mu.Lock()
		h.uploads++
		h.mu.Unlock()
	}
	r.Header.Del("Authorization")
	answer := &recorder{ResponseWriter: w, status: http.StatusOK}
	h.images.ServeHTTP(answer, r)
	_, tag, isManifest := strings.Cut(r.URL.Path, "/manifests/")
	if r.Method == http.MethodPut && isManifest && answer.status == http.StatusCreated {
		h.pushed(repository, tag)
	}
}

// denied returns why a request is rejected, and whether credentials may help.
func (h *Harbor) denied(r *http.Request, repository, project, action string) (why string, challenge bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	header := r.Header.Get("Authorization")
	token, bearer := strings.CutPrefix(header, "Bearer ")
	user, ok := h.login(r)
	granted, known := h.tokens[token]
	switch {
	case bearer && !known || !ok || header == "" && repository == "":
		return "unauthorized", true
	case repository == "":
		return "", false
	}
	public, exists := h.projects[project]
	if !exists && header != "" {
		return "project " + project + " not found", false
	}
	if bearer && granted[repository+":"+action] || user != "" || header == "" && exists && public && action == "pull" {
		return "", false
	}
	return fmt.Sprintf("unauthorized to access repository: %s, action: %s", repository, action), true
}

func (h *Harbor) challenge(r *http.Request, repository, action string) string {
	if r.Header.Get("Authorization") != "" {
		return `Basic realm="harbor"`
	}
	scheme := "https"
	if r.TLS == nil {
		scheme = "http"
	}
	c := fmt.Sprintf(`Bearer realm="%s://%s/service/token",service="harbor-registry"`, scheme, h.Name)
	if repository != "" {
		c += fmt.Sprintf(`,scope="repository:%s:%s"`, repository, action)
	}
	return c
}

// otherRegistry, policy and execution are those of the API.
type otherRegistry struct {
	ID         int    `json:"id"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	URL        string `json:"url"`
	Insecure   bool   `json:"insecure"`
	Credential struct {
		Type         string `json:"type"`
		AccessKey    string `json:"access_key"`
		AccessSecret string `json:"access_secret,omitempty"`
	} `json:"credential"`
}

type policy struct {
	ID              int            `json:"id"`
	Name            string         `json:"name"`
	SrcRegistry     *otherRegistry `json:"src_registry"`
	DestRegistry    *otherRegistry `json:"dest_registry"`
	DestNamespace   string         `json:"dest_namespace"`
	DestReplaceable int            `json:"dest_namespace_replace_count"`
	Filters         []any          `json:"filters"`
	Trigger         struct {
		Type     string         `json:"type"`
		Settings map[string]any `json:"trigger_settings"`
	} `json:"trigger"`
	Deletion bool `json:"replicate_deletion"`
	Override bool `json:"override"`
	Enabled  bool `json:"enabled"`
}

type execution struct {
	ID       int    `json:"id"`
	PolicyID int    `json:"policy_id"`
	Status   string `json:"status"`
}

// projectName is what Harbor accepts.
var projectName = regexp.MustCompile(`^[a-z0-9]+(?:[._-][a-z0-9]+)*$`)

// api is Harbor's own API.
func (h *Harbor) api(w http.ResponseWriter, r *http.Request) {
	user, ok := h.login(r)
	what := strings.TrimPrefix(r.URL.Path, "/api/v2.0/")
	switch {
	case !ok:
		fail(w, http.StatusUnauthorized, "UNAUTHORIZED", "unauthorized")
		return
	case what == "health":
		answer(w, map[string]any{"status": "healthy", "components": []any{}})
		return
	case what == "systeminfo":
		answer(w, map[string]any{"auth_mode": "db_auth", "external_url": "https://" + h.Name, "registry_url": h.Name})
		return
	case user == "":
		fail(w, http.StatusUnauthorized, "UNAUTHORIZED", "unauthorized")
		return
	}
	if r.Method == http.MethodPost && !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		fail(w, http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "unsupported media type %q, only "+
			"[application/json] are allowed", r.Header.Get("Content-Type"))
		return
	}
	switch r.Method + " " + what {
	case "HEAD projects":
		h.mu.Lock()
		_, exists := h.projects[r.URL.Query().Get("project_name")]
		h.mu.Unlock()
		if !exists {
			w.WriteHeader(http.StatusNotFound)
		}
	case "GET projects":
		list := []any{}
		for _, p := range h.Projects() {
			if strings.Contains(p, r.URL.Query().Get("name")) {
				list = append(list, map[string]any{"name": p})
			}
		}
		answer(w, list)
	case "POST projects":
		h.createProject(w, r)
	case "GET registries":
		answer(w, page(h, r, &h.registries))
	case "POST registries":
		h.createRegistry(w, r)
	case "GET replication/policies":
		answer(w, page(h, r, &h.policies))
	case "POST replication/policies":
		h.createPolicy(w, r)
	case "GET replication/executions":
		answer(w, page(h, r, &h.executions))
	case "POST replication/executions":
		h.execute(w, r)
	default:
		if id, isOne := strings.CutPrefix(what, "registries/"); isOne && r.Method == http.MethodPut {
			h.updateRegistry(w, r, id)
			return
		}
		fail(w, http.StatusNotFound, "NOT_FOUND", "path %s was not found", r.URL.Path)
	}
}

// page returns the first entries of a list: 10, or as many as page_size allows, at most 100.
func page[T any](h *Harbor, r *http.Request, list *[]T) []T {
	size := 10
	_, _ = fmt.Sscan(r.URL.Query().Get("page_size"), &size) // none is the default
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]T{}, (*list)[:min(len(*list), size, 100)]...)
}

// body decodes a request strictly: a key that Harbor does not have would do nothing.
func body(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		fail(w, http.StatusBadRequest, "BAD_REQUEST", "parsing body failed: %s", err)
		return false
	}
	return true
}

func created(w http.ResponseWriter, r *http.Request, id any) {
	w.Header().Set("Location", fmt.Sprintf("%s/%v", r.URL.Path, id))
	w.WriteHeader(http.StatusCreated)
}

func (h *Harbor) createProject(w http.ResponseWriter, r *http.Request) {
	var p struct {
		Name     string            `json:"project_name"`
		Metadata map[string]string `json:"metadata"`
	}
	if !body(w, r, &p) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch _, exists := h.projects[p.Name]; {
	case !projectName.MatchString(p.Name):
		fail(w, http.StatusBadRequest, "BAD_REQUEST", "invalid project name %q", p.Name)
	case exists:
		fail(w, http.StatusConflict, "CONFLICT", "The project named %s already exists", p.Name)
	default:
		h.projects[p.Name] = p.Metadata["public"] == "true"
		created(w, r, p.Name)
	}
}

func (h *Harbor) createRegistry(w http.ResponseWriter, r *http.Request) {
	other := &otherRegistry{}
	if !body(w, r, other) {
		return
	}
	if why := h.healthy(r.Context(), other); why != "" {
		fail(w, http.StatusBadRequest, "BAD_REQUEST", "the registry is unhealthy: %s", why)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.ContainsFunc(h.registries, func(o *otherRegistry) bool { return o.Name == other.Name }) {
		fail(w, http.StatusConflict, "CONFLICT", "registry %s already exists", other.Name)
		return
	}
	other.ID = len(h.registries) + 1
	h.registries = append(h.registries, other)
	created(w, r, other.ID)
}

// updateRegistry is PUT: keys that are not set are kept.
func (h *Harbor) updateRegistry(w http.ResponseWriter, r *http.Request, id string) {
	var u struct {
		URL          *string `json:"url"`
		Insecure     *bool   `json:"insecure"`
		AccessKey    *string `json:"access_key"`
		AccessSecret *string `json:"access_secret"`
	}
	if !body(w, r, &u) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, other := range h.registries {
		if fmt.Sprint(other.ID) == id {
			other.URL, other.Insecure = *cmp.Or(u.URL, &other.URL), *cmp.Or(u.Insecure, &other.Insecure)
			other.Credential.AccessKey = *cmp.Or(u.AccessKey, &other.Credential.AccessKey)
			other.Credential.AccessSecret = *cmp.Or(u.AccessSecret, &other.Credential.AccessSecret)
			return
		}
	}
	fail(w, http.StatusNotFound, "NOT_FOUND", "registry %s not found", id)
}

// healthy returns why another registry cannot be used.
func (h *Harbor) healthy(ctx context.Context, other *otherRegistry) string {
	if other.Type != "harbor" || other.Insecure || other.Credential.Type != "basic" {
		return fmt.Sprintf("type %q with credential %q and insecure %t is not in the stand-in", other.Type,
			other.Credential.Type, other.Insecure)
	}
	resp, err := h.ask(ctx, other, http.MethodGet, "/api/v2.0/projects", nil)
	if err != nil {
		return err.Error()
	}
	if resp != http.StatusOK {
		return fmt.Sprintf("status %d", resp)
	}
	return ""
}

// ask sends a request to another Harbor's API.
func (h *Harbor) ask(ctx context.Context, other *otherRegistry, method, path string, v any) (int, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, method, other.URL+path, bytes.NewReader(text))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.reach(other).RoundTrip(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

func (h *Harbor) createPolicy(w http.ResponseWriter, r *http.Request) {
	p := &policy{}
	if !body(w, r, p) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if p.DestRegistry == nil || p.SrcRegistry != nil || !slices.ContainsFunc(h.registries, func(o *otherRegistry) bool {
		return o.ID == p.DestRegistry.ID
	}) {
		fail(w, http.StatusBadRequest, "BAD_REQUEST", "either src_registry or dest_registry must be set, and exist")
		return
	}
	if slices.ContainsFunc(h.policies, func(o *policy) bool { return o.Name == p.Name }) {
		fail(w, http.StatusConflict, "CONFLICT", "policy %s already exists", p.Name)
		return
	}
	p.ID = len(h.policies) + 1
	h.policies = append(h.policies, p)
	created(w, r, p.ID)
}

func (h *Harbor) execute(w http.ResponseWriter, r *http.Request) {
	var e execution
	if !body(w, r, &e) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.policies, func(p *policy) bool { return p.ID == e.PolicyID })
	if i < 0 {
		fail(w, http.StatusNotFound, "NOT_FOUND", "policy %d not found", e.PolicyID)
		return
	}
	e.ID, e.Status = len(h.executions)+1, "Succeed"
	h.executions = append(h.executions, &e)
	p := h.policies[i]
	h.start(func() { h.copyAll(p) })
	created(w, r, e.ID)
}

// self is how the instance calls the registry of its own images.
const self = "self.invalid"

// pushed starts the replications of what has been pushed.
func (h *Harbor) pushed(repository, tag string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.policies {
		if p.Enabled && p.Trigger.Type == "event_based" && !strings.Contains(tag, ":") {
			h.start(func() { h.copy(p, repository, tag) })
		}
	}
}

func (h *Harbor) copyAll(p *policy) {
	local := remote.WithTransport(h.local())
	own, err := name.NewRegistry(self, name.Insecure)
	if err != nil {
		panic(err)
	}
	repositories, err := remote.Catalog(context.Background(), own, local)
	if err != nil {
		panic(err)
	}
	for _, r := range repositories {
		tags, err := remote.List(own.Repo(r), local)
		if err != nil {
			panic(err)
		}
		for _, tag := range tags {
			h.copy(p, r, tag)
		}
	}
}

// copy brings one image to the other registry, in a project of the same name. What it cannot copy, the test misses
// there.
func (h *Harbor) copy(p *policy, repository, tag string) {
	h.mu.Lock()
	i := slices.IndexFunc(h.registries, func(o *otherRegistry) bool { return o.ID == p.DestRegistry.ID })
	other := h.registries[i]
	h.mu.Unlock()
	ctx := context.Background()
	project, _, _ := strings.Cut(repository, "/")
	_, err := h.ask(ctx, other, http.MethodPost, "/api/v2.0/projects", map[string]any{"project_name": project})
	if err != nil {
		log.Print(err)
		return
	}
	if err := h.send(ctx, other, repository, tag); err != nil {
		log.Printf("replicate %s:%s to %s: %s", repository, tag, other.URL, err)
	}
}

func (h *Harbor) send(ctx context.Context, other *otherRegistry, repository, tag string) error {
	from, err := name.ParseReference(self+"/"+repository+":"+tag, name.Insecure)
	to, err2 := name.ParseReference(strings.TrimPrefix(other.URL, "https://") + "/" + repository + ":" + tag)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	local := remote.WithTransport(h.local())
	there := []remote.Option{remote.WithContext(ctx), remote.WithTransport(h.reach(other))}
	d, err := remote.Get(from, local)
	if err != nil {
		return err
	}
	if had, err := remote.Head(to, there...); err == nil && had.Digest == d.Digest {
		return nil // which ends the circle of two that replicate to each other
	}
	if d.MediaType.IsIndex() {
		index, err := d.ImageIndex()
		if err != nil {
			return err
		}
		return remote.WriteIndex(to, index, there...)
	}
	image, err := d.Image()
	if err != nil {
		return err
	}
	return remote.Write(to, image, there...)
}

// roundTrip is a function as a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// local reaches the instance's own images.
func (h *Harbor) local() http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		h.images.ServeHTTP(w, r)
		resp := w.Result()
		resp.Request = r
		return resp, nil
	})
}

// Transport reaches the instance with its user's name and password.
func (h *Harbor) Transport() http.RoundTripper {
	own := &otherRegistry{}
	own.Credential.AccessKey, own.Credential.AccessSecret = h.User, h.Password
	return h.reach(own)
}

// reach reaches another registry as Harbor does: with its user's name and password in each request.
func (h *Harbor) reach(other *otherRegistry) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.SetBasicAuth(other.Credential.AccessKey, other.Credential.AccessSecret)
		if h.Trust == nil {
			return http.DefaultTransport.RoundTrip(r)
		}
		return h.Trust.RoundTrip(r)
	})
}
