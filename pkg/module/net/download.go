package net

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func downloadSpec() module.Spec {
	return module.Spec{
		Name: "download", Collection: "kk",
		Summary: "Fetches many files to the control node, several at a time, and verifies them.",
		Notes: []string{
			"A file is put under its name only when it is whole and has its digest. Until then it is NAME.part, from which the next attempt or the next run goes on, if a digest is given to tell that the parts fit together and the server can send a part.",
			"A file with a wrong digest is fetched once more as a whole, then given up.",
			"A file that is there is verified by its digest each time; one without a digest is kept as it is. Two runs at once take turns on a file.",
			"Broken connections, timeouts and answers such as 503 are tried again, with doubled waits; an answer such as 404 is not. The other files are fetched all the same, and every problem is told.",
			"Proxies are those of HTTP_PROXY, HTTPS_PROXY and NO_PROXY, and proxy in place of the first two.",
			"A user and password in a URL are used, and never shown.",
		},
		Examples: []string{
			"- name: Fetch binaries\n  download:\n    dir: /var/cache/app\n    items:\n      - url: https://example.org/app-1.2-amd64\n        dest: amd64/app\n        sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n      - {path: /srv/mirror/tool, dest: amd64/tool, mode: \"0755\"}",
		},
		Returns: []module.Return{
			{Key: "files", Type: "list of dict", Doc: "dest, url (or path), changed and size of each file, in order"},
			{Key: "fetched", Type: "int", Doc: "how many were fetched"},
			{Key: "bytes", Type: "int", Doc: "how many bytes came over the network"},
		},
		New:   func() module.Runner { return &download{} },
		Where: module.Once,
	}
}

type download struct {
	Items    []downloadItem `kk:"items,required" doc:"the files"`
	Dir      string         `kk:"dir,path" doc:"folder on the control node for a dest that is relative"`
	Parallel int            `kk:"parallel" default:"4" doc:"how many at a time, 1 to 64"`
	Attempts int            `kk:"attempts" default:"3" doc:"how often to try each, 1 to 100"`
	Backoff  time.Duration  `kk:"backoff" default:"1" doc:"wait before the second attempt, doubled for each further one"`
	Timeout  time.Duration  `kk:"timeout" default:"30" doc:"how long to wait for the connection, and for more bytes"`
	Proxy    redact.Secret  `kk:"proxy" doc:"URL of the proxy for what NO_PROXY does not name"`
}

type downloadItem struct {
	Dest    string          `kk:"dest,required,path,alias=file" doc:"path on the control node"`
	URL     string          `kk:"url" doc:"HTTP or HTTPS address"`
	Path    string          `kk:"path,path" doc:"file of the control node to take instead of url"`
	SHA256  string          `kk:"sha256" doc:"its digest, hexadecimal; without one nothing is verified"`
	Version string          `kk:"version" doc:"version of what the file holds; told where it cannot be fetched"`
	Mode    schema.FileMode `kk:"mode" default:"0644" doc:"permission bits"`
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
	o := origin{Timeout: m.Timeout, Validate: true, Agent: "kk", proxy: via}
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

// prepare checks the items and completes their paths.
func (m *download) prepare() error {
	var problems []error
	seen := map[string]downloadItem{}
	for i := range m.Items {
		item := &m.Items[i]
		if !filepath.IsAbs(item.Dest) {
			item.Dest = filepath.Join(m.Dir, item.Dest)
		}
		item.SHA256 = strings.ToLower(strings.TrimPrefix(item.SHA256, "sha256:"))
		if other, twice := seen[item.Dest]; twice && !other.same(*item) {
			problems = append(problems, fmt.Errorf("two different files go to %s", item.Dest))
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
	return item.URL == other.URL && item.Path == other.Path && item.SHA256 == other.SHA256 && item.Mode.String() == other.Mode.String()
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
		err = errors.New("sha256 must be the digest itself, not an address")
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

// fetched is what became of an item.
type fetched struct {
	item    downloadItem
	changed bool
	bytes   int64 // over the network
	size    int64 // of the file
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
	d := value.NewDict("dest", g.item.Dest, "changed", g.changed, "size", int(g.size))
	if g.item.Path != "" {
		d.Set("path", g.item.Path)
	} else {
		d.Set("url", redacted(g.item.URL))
	}
	return d
}

// progressEvery is how often a file's progress is told.
const progressEvery = 100 * time.Millisecond

// report is told how far the file is, and passes it on now and then and at its end.
func (item downloadItem) report(c *module.Call) func(done, total int64) {
	if c.Progress == nil {
		return nil
	}
	var last time.Time
	return func(done, total int64) {
		if now := time.Now(); done == total || now.Sub(last) >= progressEvery {
			last = now
			c.Progress(filepath.Base(item.Dest), done, total)
		}
	}
}
