package net

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"kubekey/pkg/module"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

func httpGetFileSpec() module.Spec {
	return module.Spec{
		Name: "http_get_file", Collection: "kk",
		Summary: "Downloads a file from HTTP or HTTPS to the control node.",
		Notes: []string{
			"With a checksum, an interrupted transfer is resumed, and a file with a matching checksum is not fetched again.",
			"Mirrors are tried in order, after url.",
		},
		Examples: []string{
			"- name: Fetch the release once\n  http_get_file:\n    url: https://example.org/app.tar.gz\n" +
				"    mirrors: [https://mirror.example.org/app.tar.gz]\n    dest: /var/cache/app.tar.gz\n" +
				"    checksum: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n  run_once: true",
		},
		Returns: fetchReturns(),
		New:     func() module.Runner { return &httpGetFile{} },
		Where:   module.OnControl,
	}
}

type httpGetFile struct {
	origin
	Mirrors []string        `kk:"mirrors" doc:"further addresses of the same file"`
	Dest    string          `kk:"dest,required,path" doc:"path on the control node; if it is a folder, the name of the file is taken from the URL"`
	Force   bool            `kk:"force" default:"no" doc:"download the file even if it exists"`
	Mode    schema.FileMode `kk:"mode" default:"0644" doc:"permission bits"`
}

// Rules implements schema.Ruled.
func (m *httpGetFile) Rules() schema.Rules {
	return append(m.origin.Rules(), schema.Address("mirrors", "http", "https"))
}

// Run implements module.Runner.
func (m *httpGetFile) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	start := c.Now()
	want, at, err := parseChecksum(m.Checksum)
	if err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	if at != "" {
		text, err := m.text(ctx, at)
		if err == nil {
			want, err = findDigest(text, m.baseName(), want)
		}
		if err != nil {
			return module.Result{}, fmt.Errorf("fetch checksum: %w", err)
		}
	}
	dest := m.Dest
	if info, err := os.Stat(dest); err == nil && info.IsDir() {
		dest = filepath.Join(dest, m.baseName())
	}
	r, err := m.fetch(ctx, c, dest, want)
	if err != nil {
		return module.Result{Failed: true, Msg: "Request failed: " + err.Error(),
			Data: value.NewDict("dest", dest, "url", redacted(m.URL))}, nil
	}
	r.Data.Set("elapsed", int(c.Now().Sub(start).Seconds()))
	return r, nil
}

func (m *httpGetFile) fetch(ctx context.Context, c *module.Call, dest string, want digest) (module.Result, error) {
	data := value.NewDict("dest", dest, "url", redacted(m.URL))
	info, err := os.Stat(dest)
	exists := err == nil
	if exists && !m.Force && want.hex != "" {
		if msg, err := mismatch(dest, m.URL, want); err != nil || msg == "" {
			return m.finish(c, dest, data, false, "file already exists", err)
		}
	}
	var since time.Time
	if exists && !m.Force && want.hex == "" {
		since = info.ModTime()
	}
	if c.Check {
		if !since.IsZero() {
			return m.finish(c, dest, data, false, "file already exists", nil)
		}
		return module.Result{Changed: true, Msg: "would fetch the file", Data: data}, nil
	}
	part := dest + ".part"
	code, from, err := m.any(ctx, c, part, want, since)
	if err != nil {
		return module.Result{}, err
	}
	data.Set("url", redacted(from))
	data.Set("status_code", code)
	if code == notModified {
		return m.finish(c, dest, data, false, "HTTP Error 304: Not Modified", nil)
	}
	changed, err := m.place(part, dest, exists)
	return m.finish(c, dest, data, changed, "", err)
}

// any tries the addresses in order until one serves the expected file.
func (m *httpGetFile) any(ctx context.Context, c *module.Call, part string, want digest,
	since time.Time) (code int, from string, err error) {
	var problems []error
	for _, address := range append([]string{m.URL}, m.Mirrors...) {
		code, err := m.verified(ctx, c, address, part, want, since)
		if err == nil {
			return code, address, nil
		}
		if ctx.Err() != nil {
			return 0, "", ctx.Err()
		}
		problems = append(problems, withoutSecrets(err))
	}
	if want.hex == "" {
		_ = os.Remove(part) // it cannot be resumed
	}
	return 0, "", errors.Join(problems...)
}

// verified fetches one address. Only a digest can verify that two parts belong
// together; if they do not, the file is fetched again from the start.
func (m *httpGetFile) verified(ctx context.Context, c *module.Call, address, part string, want digest,
	since time.Time) (int, error) {
	for _, resume := range []bool{want.hex != "", false} {
		code, err := m.download(ctx, address, part, resume, since, report(c, m.baseName()))
		if err != nil || code == notModified {
			return code, err
		}
		msg, err := mismatch(part, address, want)
		if err != nil || msg == "" {
			return code, err
		}
		if code != http.StatusPartialContent {
			return 0, errors.Join(errors.New(msg), os.Remove(part))
		}
	}
	return 0, fmt.Errorf("%s serves partial content that does not belong together", redacted(address))
}

// place renames the fetched file into place, unless the existing one is identical.
func (m *httpGetFile) place(part, dest string, exists bool) (changed bool, err error) {
	if exists {
		old, _, err := sums(dest, "sha256")
		if err != nil {
			return false, err
		}
		now, _, err := sums(part, "sha256")
		if err != nil {
			return false, err
		}
		if old["sha256"] == now["sha256"] {
			return false, os.Remove(part)
		}
	}
	mode, err := m.Mode.Apply(0o644, false)
	if err == nil {
		err = os.Chmod(part, mode)
	}
	if err != nil {
		return false, err
	}
	return true, os.Rename(part, dest)
}

// finish adds the facts of the file, and sets its mode.
func (m *httpGetFile) finish(c *module.Call, dest string, data *value.Dict, changed bool, msg string,
	err error) (module.Result, error) {
	if err != nil {
		return module.Result{}, err
	}
	info, err := os.Stat(dest)
	if err != nil {
		return module.Result{}, err
	}
	mode, err := m.Mode.Apply(info.Mode(), false)
	if err != nil {
		return module.Result{}, err
	}
	if now, _ := (schema.FileMode{}).Apply(info.Mode(), false); mode != now {
		changed = true
		if !c.Check {
			if err := os.Chmod(dest, mode); err != nil {
				return module.Result{}, err
			}
		}
	}
	found, size, err := sums(dest, "sha1", "md5")
	if err != nil {
		return module.Result{}, err
	}
	data.Merge(value.NewDict("size", int(size), "checksum_dest", found["sha1"], "md5sum", found["md5"], "mode",
		schema.FormatMode(mode), "state", "file"))
	if msg == "" {
		data.Set("checksum_src", found["sha1"])
		msg = fmt.Sprintf("OK (%d bytes)", size)
	}
	return module.Result{Changed: changed, Msg: msg, Data: data}, nil
}

// redacted is an address without its password and query, which may hold secrets.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if u.RawQuery != "" {
		u.RawQuery = "..."
	}
	return u.Redacted()
}

// withoutSecrets is an error of net/http with its URL redacted.
func withoutSecrets(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("get %s: %w", redacted(u.URL), u.Err)
	}
	return err
}
