package image

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kubekey/pkg/module"
	"kubekey/pkg/relay"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// dockerHub is the host under which docker.io is known here.
const dockerHub = name.DefaultRegistry

// access is how registries are reached: users, and transports by host.
type access struct {
	users      map[string]authn.Authenticator
	docker     bool
	transports map[string]*http.Transport
	plain      map[string]bool
	others     *http.Transport
	rate       *relay.Limiter    // of what is received; nil is no limit
	resolve    map[string]string // addresses by host name, without ports
	realms     realms
}

func (m *Image) access(c *module.Call) (*access, error) {
	a := &access{
		users: map[string]authn.Authenticator{}, docker: m.DockerConfig,
		transports: map[string]*http.Transport{}, plain: map[string]bool{},
		rate: relay.NewLimiter(int64(m.Rate)), resolve: m.Resolve,
	}
	a.others = a.newTransport(nil)
	var wrong []error
	for host, address := range m.Resolve {
		if !schema.Host(host) || !schema.Host(address) {
			wrong = append(wrong, fmt.Errorf("resolve: %q: %q must be a host name, and its IP address, without ports", host,
				address))
		}
	}
	for host, v := range m.Auth.All() {
		wrong = append(wrong, a.addUser(hostOf(host), v))
	}
	for host, v := range m.TLS.All() {
		wrong = append(wrong, a.addTLS(c, hostOf(host), v))
	}
	return a, errors.Join(wrong...)
}

// hostOf is the name of a registry as requests have it.
func hostOf(key any) string {
	switch host := strings.TrimSuffix(strings.TrimPrefix(value.Str(key), "https://"), "/"); host {
	case "docker.io", "registry-1.docker.io":
		return dockerHub
	default:
		return host
	}
}

// options reads {key: value} and rejects unknown keys.
func options(what, host string, v any, known ...string) (*value.Dict, error) {
	d, ok := v.(*value.Dict)
	if !ok && v != nil {
		return nil, fmt.Errorf("%s of %s must be a dictionary", what, host)
	}
	for k := range d.All() {
		if !strings.Contains(" "+strings.Join(known, " ")+" ", " "+value.Str(k)+" ") {
			return nil, fmt.Errorf("%s of %s has no %q: it has %s", what, host, value.Str(k), strings.Join(known, ", "))
		}
	}
	return d, nil
}

func (a *access) addUser(host string, v any) error {
	d, err := options("auth", host, v, "username", "password")
	if err != nil {
		return err
	}
	a.users[host] = &authn.Basic{Username: text(d, "username"), Password: text(d, "password")}
	return nil
}

func text(d *value.Dict, key string) string {
	v, ok := d.Get(key)
	if !ok || v == nil {
		return ""
	}
	return value.Str(v)
}

func (a *access) addTLS(c *module.Call, host string, v any) error {
	d, err := options("tls", host, v, "ca", "skip_verify", "plain_http")
	if err != nil {
		return err
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	skip, _ := d.Get("skip_verify")
	conf.InsecureSkipVerify = value.Truth(skip) //nolint:gosec // asked for
	if ca := text(d, "ca"); ca != "" {
		if conf.RootCAs, err = roots(c, ca); err != nil {
			return fmt.Errorf("tls of %s: %w", host, err)
		}
	}
	plain, _ := d.Get("plain_http")
	a.plain[host] = value.Truth(plain)
	a.transports[host] = a.newTransport(conf)
	return nil
}

// roots is the system's CAs and one more, PEM or a file.
func roots(c *module.Call, ca string) (*x509.CertPool, error) {
	pem := []byte(ca)
	if !strings.Contains(ca, "-----BEGIN") {
		path, err := c.Find("files", ca)
		if err == nil {
			pem, err = c.Files.ReadFile(path)
		}
		if err != nil {
			return nil, fmt.Errorf("read the CA: %w", err)
		}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("the CA holds no certificate in PEM")
	}
	return pool, nil
}

// newTransport makes a transport that connects to the addresses in resolve, without a proxy.
func (a *access) newTransport(conf *tls.Config) *http.Transport {
	t, _ := remote.DefaultTransport.(*http.Transport)
	t = t.Clone()
	t.TLSClientConfig = conf
	dial, proxy := t.DialContext, t.Proxy
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if at, known := a.resolve[host]; known {
			return dial(ctx, network, net.JoinHostPort(at, port))
		}
		conn, err := dial(ctx, network, address)
		if unknown := (*net.DNSError)(nil); errors.As(err, &unknown) {
			if registry := a.realms.registry(host); registry != "" && registry != host {
				return dial(ctx, network, net.JoinHostPort(cmp.Or(a.resolve[registry], registry), port))
			}
		}
		return conn, err
	}
	t.Proxy = func(req *http.Request) (*url.URL, error) {
		if _, known := a.resolve[req.URL.Hostname()]; known || proxy == nil {
			return nil, nil //nolint:nilnil // means no proxy
		}
		return proxy(req)
	}
	return t
}

var errPlain = errors.New("plain HTTP is off for this registry (tls: plain_http)")

// RoundTrip implements http.RoundTripper. The library turns to plain HTTP by
// itself for private addresses: it is not let, since passwords go that way.
func (a *access) RoundTrip(req *http.Request) (*http.Response, error) {
	host := a.realms.like(req.URL, a.transports)
	if (req.URL.Scheme == "http") != a.plain[host] {
		if a.plain[host] {
			return nil, fmt.Errorf("%s is a registry of plain HTTP", host)
		}
		return nil, errPlain
	}
	t := a.others
	if own := a.transports[host]; own != nil {
		t = own
	}
	resp, err := t.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		a.realms.add(resp.Header, req.URL)
	}
	if err == nil && path.Base(path.Dir(req.URL.Path)) == "referrers" && listsNone(resp) {
		resp.StatusCode = http.StatusNotFound // which the library knows, and falls back to tags
	}
	if err == nil && a.rate != nil {
		resp.Body = &limited{resp.Body, req.Context(), a.rate}
	}
	return resp, err
}

// listsNone reports whether a registry without lists of referrers has answered: some reject them for want of a right,
// or send a page.
func listsNone(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusOK:
		media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		return err != nil || media != string(types.OCIImageIndex)
	case http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusGone,
		http.StatusNotImplemented:
		return true
	}
	return false
}

// limited is a body that arrives at a rate.
type limited struct {
	io.ReadCloser
	ctx  context.Context
	rate *relay.Limiter
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if waited := l.rate.Wait(l.ctx, n); waited != nil {
		return n, waited
	}
	return n, err
}

// Resolve implements authn.Keychain.
func (a *access) Resolve(r authn.Resource) (authn.Authenticator, error) {
	if u, ok := a.users[r.RegistryStr()]; ok {
		return u, nil
	}
	if a.docker {
		return authn.DefaultKeychain.Resolve(r)
	}
	return authn.Anonymous, nil
}

// remote is the options for requests. The library does not try again by
// itself: jobs do, with what they know.
func (a *access) remote(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(a), remote.WithTransport(a),
		remote.WithUserAgent("kk"), remote.WithJobs(3), remote.WithRetryBackoff(remote.Backoff{Duration: 1, Steps: 1}),
	}
}

// locks is a lock for each layout.
type locks struct {
	mu   sync.Mutex
	held map[string]*sync.Mutex
}

func (l *locks) of(path string) *sync.Mutex {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*sync.Mutex{}
	}
	if l.held[path] == nil {
		l.held[path] = &sync.Mutex{}
	}
	return l.held[path]
}
