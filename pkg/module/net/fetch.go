package net

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	stdnet "net"
	"net/http"
	"os"
	"strings"
	"time"

	"kubekey/pkg/relay"
)

// newHash makes the hash of an algorithm's name.
func newHash(algorithm string) (hash.Hash, bool) {
	switch algorithm {
	case "md5":
		return md5.New(), true
	case "sha1":
		return sha1.New(), true
	case "sha224":
		return sha256.New224(), true
	case "sha256":
		return sha256.New(), true
	case "sha384":
		return sha512.New384(), true
	case "sha512":
		return sha512.New(), true
	}
	return nil, false
}

// sums returns the digests of a file by several algorithms, reading it once.
func sums(file string, algorithms ...string) (map[string]string, int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = f.Close() }() // only read
	hashes := make([]hash.Hash, len(algorithms))
	writers := make([]io.Writer, len(algorithms))
	for i, a := range algorithms {
		h, known := newHash(a)
		if !known {
			return nil, 0, fmt.Errorf("unknown checksum algorithm %q", a)
		}
		hashes[i], writers[i] = h, h
	}
	n, err := io.Copy(io.MultiWriter(writers...), f)
	if err != nil {
		return nil, 0, err
	}
	found := map[string]string{}
	for i, a := range algorithms {
		found[a] = hex.EncodeToString(hashes[i].Sum(nil))
	}
	return found, n, nil
}

// statusError is a response of the server that is not a success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return "the server responded with " + e.text }

func (o origin) client() *http.Client {
	t := &http.Transport{
		DialContext:           (&stdnet.Dialer{Timeout: o.Timeout}).DialContext,
		TLSHandshakeTimeout:   o.Timeout,
		ResponseHeaderTimeout: o.Timeout,
		//nolint:gosec // validate_certs: no is the author's choice
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: !o.Validate},
		DisableKeepAlives: true,
	}
	switch {
	case o.proxy != nil:
		t.Proxy = o.proxy
	case o.UseProxy:
		t.Proxy = http.ProxyFromEnvironment
	}
	return &http.Client{Transport: t}
}

// get asks for address from byte from on; since, if not zero, makes the
// answer 304 when the file is not newer.
func (o origin) get(ctx context.Context, address string, from int64, since time.Time) (*http.Response, error) {
	header := http.Header{}
	if from > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	if !since.IsZero() {
		header.Set("If-Modified-Since", since.UTC().Format(http.TimeFormat))
	}
	return o.request(ctx, http.MethodGet, address, header)
}

// size asks for the size of a file; -1 if the server does not know it.
func (o origin) size(ctx context.Context, address string) (int64, error) {
	resp, err := o.request(ctx, http.MethodHead, address, nil)
	if err != nil {
		return -1, err
	}
	return resp.ContentLength, resp.Body.Close()
}

func (o origin) request(ctx context.Context, method, address string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", o.Agent)
	for k, v := range o.Headers {
		req.Header.Set(k, v)
	}
	for k := range header {
		req.Header.Set(k, header.Get(k))
	}
	if o.User != "" || !o.Password.IsZero() {
		req.SetBasicAuth(o.User, o.Password.Reveal())
	}
	resp, err := o.client().Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode != http.StatusNotModified {
		_ = resp.Body.Close() // the body is not needed
		return nil, &statusError{resp.StatusCode, resp.Status}
	}
	return resp, nil
}

// errStalled means that no data arrived for the whole timeout.
var errStalled = errors.New("no data arrived for the whole timeout")

// download fetches address into file and returns the status code. With resume, the
// existing content of file is kept and only the rest is requested.
func (o origin) download(ctx context.Context, address, file string, resume bool, since time.Time,
	progress func(done, total int64)) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var from int64
	if info, err := os.Stat(file); err == nil && resume {
		from = info.Size()
	}
	resp, err := o.getRest(ctx, address, from, since)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if resp.StatusCode == http.StatusNotModified {
		return resp.StatusCode, nil
	}
	f, from, err := openPart(file, from, resp)
	if err != nil {
		return 0, err
	}
	total := resp.ContentLength
	if total >= 0 {
		total += from
	}
	watched := &watched{Reader: resp.Body, ctx: ctx, rate: o.rate, limit: o.Timeout, done: from, total: total,
		progress: progress}
	watched.timer = time.AfterFunc(max(o.Timeout, time.Second), func() { cancel(errStalled) })
	defer watched.timer.Stop()
	_, err = io.Copy(f, watched)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return resp.StatusCode, errors.Join(err, f.Close())
}

// getRest is get, from the start if the server has nothing from byte from on.
func (o origin) getRest(ctx context.Context, address string, from int64, since time.Time) (*http.Response, error) {
	resp, err := o.get(ctx, address, from, since)
	var status *statusError
	if errors.As(err, &status) && status.code == http.StatusRequestedRangeNotSatisfiable && from > 0 {
		return o.get(ctx, address, 0, since)
	}
	return resp, err
}

// openPart opens the file for the server's response: to append if that is the rest of
// it, otherwise from the start. kept is the number of bytes that are kept.
func openPart(file string, from int64, resp *http.Response) (f *os.File, kept int64, err error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if resp.StatusCode == http.StatusPartialContent && from > 0 {
		flags, kept = os.O_CREATE|os.O_WRONLY|os.O_APPEND, from
	}
	f, err = os.OpenFile(file, flags, 0o600)
	return f, kept, err
}

// watched reports progress, and cancels a transfer that stalls.
type watched struct {
	io.Reader
	ctx         context.Context
	rate        *relay.Limiter
	limit       time.Duration
	timer       *time.Timer
	done, total int64
	progress    func(done, total int64)
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	w.timer.Stop() // waiting for the rate is no stall
	if waited := w.rate.Wait(w.ctx, n); waited != nil {
		return n, waited
	}
	w.timer.Reset(max(w.limit, time.Second))
	w.done += int64(n)
	if w.progress != nil {
		w.progress(w.done, w.total)
	}
	return n, err
}

// text fetches a small file.
func (o origin) text(ctx context.Context, address string) (string, error) {
	resp, err := o.get(ctx, address, 0, time.Time{})
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	const most = 1 << 20
	var b strings.Builder
	_, err = io.Copy(&b, io.LimitReader(resp.Body, most))
	return b.String(), err
}
