package expr

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"time"

	"kubekey/pkg/source"
	"kubekey/pkg/value"
)

func lookupURL(c *Call, terms []any, p *bound) ([]any, error) {
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
		case p.flag("split_lines", true):
			out = append(out, textLines(text)...)
		default:
			out = append(out, text)
		}
		return nil
	})
	return out, err
}

// urlClient asks as the arguments of the lookup say.
func urlClient(c *Call, p *bound) (*http.Client, error) {
	to := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: !p.flag("validate_certs", true)}}
	if p.flag("use_proxy", true) {
		to.Proxy = http.ProxyFromEnvironment
	}
	if file := p.str("ca_path", ""); file != "" {
		text, err := c.Env.Options().Files.Raw().Read(expandUser(file), source.MaxData)
		if err != nil {
			return nil, fmt.Errorf("argument ca_path: %w", err)
		}
		to.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !to.TLSClientConfig.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("argument ca_path: %s has no certificate in PEM", file)
		}
	}
	client := &http.Client{Transport: to}
	switch follow := p.str("follow_redirects", "urllib2"); follow {
	case "urllib2", "all", "safe", "yes":
	case "none", "no":
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	default:
		return nil, fmt.Errorf("argument follow_redirects must be all, safe, none or urllib2, not %q", follow)
	}
	return client, p.err
}

func fetch(c *Call, client *http.Client, address string, p *bound) (string, error) {
	ctx := c.Context
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(min(max(p.int("timeout", 10), 1), 3600))*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("User-Agent", p.str("http_agent", "ansible-httpget"))
	if p.flag("force", false) {
		req.Header.Set("Cache-Control", "no-cache")
	}
	if headers, ok := p.value("headers", nil).(*value.Dict); ok {
		for k, v := range headers.All() {
			req.Header.Set(value.Str(k), value.Str(v))
		}
	}
	if p.has("username") {
		req.SetBasicAuth(p.str("username", ""), p.str("password", ""))
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
		return "", errTextTooBig
	}
	return string(text), err
}
