package lookups

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"

	"kubekey/pkg/expr"
	"kubekey/pkg/expr/filters"
	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func lookupURL(c *expr.Call, terms []any, p *expr.Bound) ([]any, error) {
	client, err := urlClient(c, p)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	var out []any
	err = eachTerm(terms, func(term string) error {
		text, err := fetch(c, client, term, p)
		switch {
		case err != nil:
			return err
		case p.Flag("split_lines", true):
			out = append(out, textLines(text)...)
		default:
			out = append(out, text)
		}
		return nil
	})
	return out, err
}

// urlClient returns an HTTP client configured by the arguments of the lookup.
func urlClient(c *expr.Call, p *expr.Bound) (*http.Client, error) {
	to := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: !p.Flag("validate_certs", true)}}
	if p.Flag("use_proxy", true) {
		to.Proxy = http.ProxyFromEnvironment
	}
	if file := p.Str("ca_path", ""); file != "" {
		text, err := c.Env.Options().Files.Raw().Read(filters.ExpandUser(file), source.MaxData)
		if err != nil {
			return nil, fmt.Errorf("argument ca_path: %w", err)
		}
		to.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !to.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("argument ca_path: %s has no certificate in PEM", file)
		}
	}
	client := &http.Client{Transport: to}
	switch follow := p.Str("follow_redirects", "urllib2"); follow {
	case "urllib2", "all", "safe", "yes":
	case "none", "no":
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	default:
		return nil, fmt.Errorf("argument follow_redirects must be all, safe, none or urllib2, not %q", follow)
	}
	return client, p.Err
}

func fetch(c *expr.Call, client *http.Client, address string, p *expr.Bound) (string, error) {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(min(max(p.Int("timeout", 10), 1), 3600))*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", p.Str("http_agent", "ansible-httpget"))
	if p.Flag("force", false) {
		req.Header.Set("Cache-Control", "no-cache")
	}
	if headers, ok := p.Value("headers", nil).(*value.Dict); ok {
		for k, v := range headers.All() {
			req.Header.Set(value.Str(k), value.Str(v))
		}
	}
	if p.Has("username") {
		req.SetBasicAuth(p.Str("username", ""), p.Str("password", ""))
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("get %s: %s", req.URL.Redacted(), resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	if len(text) > maxOutput {
		return "", expr.ErrTextTooBig
	}
	return string(text), err
}
