package image

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// realms are the token services that registries have named. A registry that is reached by its address names one by a
// host name, which may be known only where the registry is used.
type realms struct {
	mu    sync.Mutex
	hosts map[string]*url.URL // of registries, by HOST[:PORT] of the token service
	names map[string]string   // of registries, by the host name of the token service
}

var realmParameter = regexp.MustCompile(`(?i)\brealm="([^"]*)"`)

// realmOf returns the address of the token service that a response names, nil for none.
func realmOf(header http.Header) *url.URL {
	for _, challenge := range header.Values("WWW-Authenticate") {
		scheme, parameters, _ := strings.Cut(strings.TrimSpace(challenge), " ")
		m := realmParameter.FindStringSubmatch(parameters)
		if !strings.EqualFold(scheme, "bearer") || m == nil {
			continue
		}
		u, err := url.Parse(m[1])
		if err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" {
			return u
		}
	}
	return nil
}

// add records the token service of a registry that answered a request.
func (r *realms) add(header http.Header, registry *url.URL) {
	u := realmOf(header)
	if u == nil || u.Host == registry.Host {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts == nil {
		r.hosts, r.names = map[string]*url.URL{}, map[string]string{}
	}
	r.hosts[u.Host], r.names[u.Hostname()] = registry, registry.Hostname()
}

// registry returns the host name or address of the registry that has named a token service, "" for none.
func (r *realms) registry(host string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names[host]
}

// like returns the HOST[:PORT] whose options apply to an address: its own, or those of the registry of a token service
// that has none. A token service over plain HTTP is that of a registry over plain HTTP.
func (r *realms) like(u *url.URL, own map[string]*http.Transport) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if registry := r.hosts[u.Host]; registry != nil && own[u.Host] == nil && registry.Scheme == u.Scheme {
		return registry.Host
	}
	return u.Host
}
