package file

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"kubekey/pkg/hostscript"
)

//go:embed unarchive.sh
var unarchiveScript string

// fetch downloads the archive from a URL to the host. Normally the host downloads it itself. The control node
// downloads and sends it if the host has neither curl nor wget, or if the URL contains a password, which would be
// visible on a command line. drop removes the downloaded file.
func (u *unpacking) fetch(ctx context.Context) (drop func(), err error) {
	address, err := url.Parse(u.Src)
	if err != nil {
		return nil, fmt.Errorf("src: %w", err)
	}
	name := path.Base(address.Path)
	if name == "/" || name == "." {
		name = "archive"
	}
	if address.User == nil {
		s := hostscript.New(unarchiveScript, "unarchive_fetch").Set("url", u.Src).Set("name", name).Flag("insecure",
			!u.ValidateCerts)
		s.Probe = true // a temporary file does not count as a change
		a, err := s.Run(ctx, u.c.Conn, u.c.Check)
		if err != nil {
			return nil, err
		}
		if a.Has("fetched") {
			u.Src = a.Get("fetched")
			return func() { u.drop(ctx, u.Src) }, nil
		}
	}
	dir, err := os.MkdirTemp("", "kk-*")
	if err != nil {
		return nil, err
	}
	drop = func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, name)
	if err := u.download(ctx, address, file); err != nil {
		drop()
		return nil, fmt.Errorf("fetch %s: %w", address.Redacted(), err)
	}
	u.Src, u.RemoteSrc, u.Decrypt = file, false, false
	return drop, nil
}

// drop removes the downloaded file, even if the task is being canceled.
func (u *unpacking) drop(ctx context.Context, fetched string) {
	s := hostscript.New(unarchiveScript, "unarchive_drop").Set("fetched", fetched)
	s.Probe = true
	_, _ = s.Run(context.WithoutCancel(ctx), u.c.Conn, u.c.Check)
}

func (u *unpacking) download(ctx context.Context, address *url.URL, file string) (err error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		//nolint:gosec // validate_certs: no is the author's choice
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: !u.ValidateCerts},
		DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		var refused *url.Error
		if errors.As(err, &refused) {
			err = refused.Err // does not repeat the URL, which may contain a password
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}

// atURL reports whether the source is a URL.
func (m *Unarchive) atURL() bool { return m.RemoteSrc && strings.Contains(m.Src, "://") }
