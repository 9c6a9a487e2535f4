package net

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"kubekey/pkg/artifact"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/relay"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func downloadSpec() module.Spec {
	return module.Spec{
		Name: "download", Collection: "kk",
		Summary: "Downloads files to the control node in parallel and verifies them.",
		Notes: []string{
			"A file gets its name only when it is complete and its digest matches. Until then it is NAME.part; the next " +
				"attempt or the next run resumes it, if a digest is given and the server supports partial downloads.",
			"A file with a wrong digest is fetched again from the start once; then it fails.",
			"An existing file is verified against its digest in each run; without a digest it is kept unchanged. " +
				"Concurrent runs take turns on a file.",
			"Broken connections, timeouts and responses such as 503 are retried with exponential backoff; a response such " +
				"as 404 is not. The remaining files are still fetched, and all problems are reported.",
			"Proxies are read from HTTP_PROXY, HTTPS_PROXY and NO_PROXY; proxy replaces the first two.",
			"A user name and password in a URL are used and never shown.",
		},
		Examples: []string{
			"- name: Fetch binaries\n  download:\n    dir: /var/cache/app\n    items:\n" +
				"      - url: https://example.org/app-1.2-amd64\n        dest: amd64/app\n" +
				"        sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n" +
				"      - {path: /srv/mirror/tool, dest: amd64/tool, mode: \"0755\"}",
		},
		Returns: []module.Return{
			{Key: "files", Type: "list of dict",
				Doc: "dest, url (or path), changed and, if it is known, size of each file, in order"},
			{Key: "fetched", Type: "int", Doc: "number of files fetched"},
			{Key: "bytes", Type: "int", Doc: "bytes received over the network"},
		},
		New:   func() module.Runner { return &download{} },
		Where: module.Once,
	}
}

type download struct {
	Items    []downloadItem `kk:"items,required" doc:"files to fetch"`
	Dir      string         `kk:"dir,path" doc:"folder on the control node that relative dest paths start from"`
	Parallel int            `kk:"parallel" default:"4" doc:"number of parallel downloads, 1 to 64"`
	Attempts int            `kk:"attempts" default:"3" doc:"attempts per file, 1 to 100"`
	Backoff  time.Duration  `kk:"backoff" default:"1" doc:"wait before the second attempt; doubled for each further one"`
	Timeout  time.Duration  `kk:"timeout" default:"30" doc:"how long to wait for a connection, and for further data"`
	Artifact []string       `kk:"artifact" doc:"offline files to read all items from, by their dest as it is given; nothing is fetched then"`
	Rate     int            `kk:"rate" default:"0" doc:"bytes per second of all files together; 0 is no limit"`
	Sizes    bool           `kk:"sizes" default:"no" doc:"in check mode, ask servers for the sizes of missing files"`
	Proxy    redact.Secret  `kk:"proxy" doc:"URL of the proxy, except for addresses in NO_PROXY"`
}

type downloadItem struct {
	Dest    string          `kk:"dest,required,path,alias=file" doc:"path on the control node"`
	URL     string          `kk:"url" doc:"HTTP or HTTPS address"`
	Path    string          `kk:"path,path" doc:"file on the control node to copy instead of url"`
	SHA256  string          `kk:"sha256" doc:"SHA-256 digest, hexadecimal; without it the file is not verified"`
	Version string          `kk:"version" doc:"version of the file, for error messages"`
	Mode    schema.FileMode `kk:"mode" default:"0644" doc:"permission bits"`

	name string                        // dest as it is given
	open func() (io.ReadCloser, error) // its content in an offline file; nil without one
	size int64                         // of that
}

// Rules implements schema.Ruled.
func (*download) Rules() schema.Rules {
	return schema.Rules{
		schema.Between("parallel", 1, 64),
		schema.Between("attempts", 1, 100),
		schema.Address("proxy", "http", "https", "socks5", "socks5h"),
	}
}

// Run implements module.Runner.
func (m *download) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if err := m.prepare(); err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	via, err := proxyFunc(m.Proxy)
	if err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	if err := m.open(c); err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	o := origin{Timeout: m.Timeout, Validate: true, Agent: "kk", proxy: via, rate: relay.NewLimiter(int64(m.Rate))}
	got := make([]fetched, len(m.Items))
	module.Parallel(len(m.Items), m.Parallel, func(i int) {
		item := m.Items[i]
		j := job{download: m, item: item, origin: o, check: c.Check, progress: item.report(c)}
		got[i] = j.run(ctx)
	})
	if ctx.Err() != nil {
		return module.Result{}, ctx.Err()
	}
	return m.result(got), nil
}

// open opens the offline files, and assigns the items to what is in them.
func (m *download) open(c *module.Call) error {
	if len(m.Artifact) == 0 {
		return nil
	}
	set, err := c.OfflineFiles(m.Artifact)
	if err != nil {
		return err
	}
	var problems []error
	for i := range m.Items {
		item := &m.Items[i]
		f, found, ok := set.File(item.name)
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("%s%s %w %s", item.name, ofVersion(item.Version), artifact.ErrMissing,
				strings.Join(m.Artifact, ", ")))
		case item.SHA256 != "" && item.SHA256 != found.SHA256:
			problems = append(problems, &wrongDigest{f.Path + ": " + item.name, found.SHA256, item.SHA256})
		default:
			item.SHA256, item.size = found.SHA256, found.Size
			item.open = func() (io.ReadCloser, error) { return f.Content(found) }
		}
	}
	return errors.Join(problems...)
}

// prepare checks the items and completes their paths.
func (m *download) prepare() error {
	var problems []error
	seen := map[string]downloadItem{}
	for i := range m.Items {
		item := &m.Items[i]
		item.name = filepath.ToSlash(item.Dest)
		if !filepath.IsAbs(item.Dest) {
			item.Dest = filepath.Join(m.Dir, item.Dest)
		}
		item.SHA256 = strings.ToLower(strings.TrimPrefix(item.SHA256, "sha256:"))
		if other, twice := seen[item.Dest]; twice && !other.same(*item) {
			problems = append(problems, fmt.Errorf("two different files have the dest %s", item.Dest))
		}
		seen[item.Dest] = *item
	}
	m.Items = slices.DeleteFunc(m.Items, func(item downloadItem) bool {
		_, first := seen[item.Dest]
		delete(seen, item.Dest)
		return !first
	})
	return errors.Join(problems...)
}

// same reports whether two items are one file.
func (item downloadItem) same(other downloadItem) bool {
	return item.URL == other.URL && item.Path == other.Path && item.SHA256 == other.SHA256 &&
		item.Mode.String() == other.Mode.String()
}

// Rules implements schema.Ruled.
func (*downloadItem) Rules() schema.Rules {
	return schema.Rules{
		schema.AtLeastOne("url", "path"),
		schema.Address("url", "http", "https").Without("path"),
		schema.Parses("64 hexadecimal digits", isSHA256, "sha256"),
	}
}

func isSHA256(digest string) error {
	_, from, err := parseChecksum("sha256:" + strings.TrimPrefix(digest, "sha256:"))
	if err == nil && from != "" {
		err = errors.New("sha256 must be the digest itself, not a URL")
	}
	return err
}

// proxyFunc finds the proxy for a request.
func proxyFunc(address redact.Secret) (func(*http.Request) (*url.URL, error), error) {
	conf := httpproxy.FromEnvironment()
	if !address.IsZero() {
		u, err := url.Parse(address.Reveal())
		if err != nil {
			return nil, err
		}
		conf.HTTPProxy, conf.HTTPSProxy = u.String(), u.String()
	}
	find := conf.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return find(r.URL) }, nil
}

// fetched is the result of an item.
type fetched struct {
	item    downloadItem
	changed bool
	bytes   int64 // over the network
	size    int64 // of the file; -1 if its server does not know it
	err     error
}

func (m *download) result(got []fetched) module.Result {
	var r module.Result
	var problems []string
	var count, bytes int
	files := make([]any, 0, len(got))
	for _, g := range got {
		if g.err != nil {
			problems = append(problems, g.err.Error())
			continue
		}
		if g.changed {
			count++
		}
		bytes += int(g.bytes)
		files = append(files, g.describe())
	}
	r.Changed = count > 0
	r.Data = value.NewDict("files", files, "fetched", count, "bytes", bytes)
	r.Msg = fmt.Sprintf("%d of %d files fetched", count, len(got))
	if len(problems) > 0 {
		r.Failed, r.Msg = true, strings.Join(problems, "\n")
	}
	return r
}

func (g fetched) describe() *value.Dict {
	d := value.NewDict("dest", g.item.Dest, "changed", g.changed)
	if g.size >= 0 {
		d.Set("size", int(g.size))
	}
	if g.item.Path != "" {
		d.Set("path", g.item.Path)
	} else {
		d.Set("url", redacted(g.item.URL))
	}
	return d
}

// report receives the progress of the file.
func (item downloadItem) report(c *module.Call) func(done, total int64) {
	if c.Progress == nil {
		return nil
	}
	return func(done, total int64) { c.Progress(filepath.Base(item.Dest), done, total) }
}
