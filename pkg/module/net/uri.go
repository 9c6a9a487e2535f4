package net

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

func uriSpec() module.Spec {
	return module.Spec{
		Name:    "uri",
		Summary: "Sends an HTTP request from the host and returns the response.",
		Notes: []string{
			"The host needs curl. URL, headers, body and passwords do not appear in its process list.",
			"In check mode the task is skipped.",
		},
		Examples: []string{
			"- name: Wait until the service is healthy\n  uri:\n    url: https://127.0.0.1:6443/healthz\n" +
				"    validate_certs: false\n    return_content: true\n  register: health\n  until: health.status == 200\n" +
				"  retries: 30",
			"- name: Create a project\n  uri:\n    url: https://registry.local/api/v2.0/projects\n    method: POST\n" +
				"    body_format: json\n    body: {project_name: library}\n    status_code: [201, 409]\n" +
				"    url_username: admin\n    url_password: \"{{ registry_password }}\"\n    force_basic_auth: true",
		},
		Returns: []module.Return{
			{Key: "status", Type: "int", Doc: "status code; -1 if there was no response"},
			{Key: "content", Type: "str", Doc: "body of the response, with return_content or on failure"},
			{Key: "json", Type: "any", Doc: "decoded body, if the response is JSON"},
			{Key: "url", Type: "str", Doc: "address of the response, after redirects"},
			{Key: "redirected", Type: "bool", Doc: "whether a redirection was followed"},
			{Key: "elapsed", Type: "int", Doc: "seconds it took"},
			{Key: "cookies", Type: "dict", Doc: "cookies set by the response"},
			{Key: "cookies_string", Type: "str", Doc: "the cookies in the form of a Cookie header"},
			{Key: "path", Type: "str", Doc: "file that the response was written to, with dest"},
			{Key: "owner", Type: "str", Doc: "owner of that file; also uid, gid, group, mode, size, state"},
			{Key: "content_type", Type: "str", Doc: "header Content-Type; every other header of the response is returned " +
				"too, in lower case with - as _"},
		},
		New:          func() module.Runner { return &uri{} },
		Check:        module.Skips,
		CheckSkipMsg: "remote module (uri) does not support check mode",
	}
}

type uri struct {
	URL      string            `kk:"url,required" doc:"address, http or https"`
	Method   string            `kk:"method" default:"GET" doc:"HTTP method"`
	Body     any               `kk:"body" doc:"body of the request"`
	Format   string            `kk:"body_format" default:"raw" choices:"raw,json,form-urlencoded,form-multipart" doc:"how to encode a body that is not a string; sets Content-Type. For form-multipart, body is a dict of fields, each a string or a dict with content or filename (on the control node), and mime_type"`
	Src      string            `kk:"src,path,file=files,away=remote_src" doc:"file to send instead of body: on the control node, or with remote_src on the host"`
	Remote   bool              `kk:"remote_src" default:"no" doc:"src is a file on the host"`
	Headers  map[string]string `kk:"headers" doc:"headers of the request"`
	Status   []string          `kk:"status_code" default:"200" doc:"status codes that mean success"`
	Return   bool              `kk:"return_content" default:"no" doc:"return the body of the response as content"`
	Timeout  time.Duration     `kk:"timeout" default:"30" doc:"how long the request may take"`
	Redirect string            `kk:"follow_redirects" default:"safe" choices:"all,yes,no,none,safe,urllib2" doc:"which redirects to follow; safe follows them for GET and HEAD only"`
	User     string            `kk:"url_username,alias=user" doc:"user name"`
	Password redact.Secret     `kk:"url_password,alias=password" doc:"password"`
	Basic    bool              `kk:"force_basic_auth" default:"no" doc:"send user name and password with the first request"`
	Validate bool              `kk:"validate_certs" default:"yes" doc:"verify the TLS certificate of the server"`
	UseProxy bool              `kk:"use_proxy" default:"yes" doc:"use the proxy set in the environment"`
	Agent    string            `kk:"http_agent" default:"kk" doc:"User-Agent header of the request"`
	CA       string            `kk:"ca_path,path" doc:"file on the host with CA certificates"`
	Connect  string            `kk:"connect_to" doc:"host name or IP address to connect to, without a proxy, instead of the host in url; a certificate is still verified for the host in url"`
	Socket   string            `kk:"unix_socket,path" doc:"UNIX socket on the host to connect to"`
	Dest     string            `kk:"dest,path" doc:"file on the host to write the response to; if it is a folder, the name is taken from the URL"`
	Creates  string            `kk:"creates,path" doc:"file on the host; if it exists, no request is made"`
	Removes  string            `kk:"removes,path" doc:"file on the host; if it does not exist, no request is made"`
	Netrc    bool              `kk:"use_netrc" default:"yes" doc:"without effect: netrc files are not read"`
	tlsClient
	attributes
}

const uriScript = `mark=$1
if [ -n "$2" ] && [ -e "$2" ]; then echo "$mark creates"; exit 0; fi
if [ -n "$3" ] && [ ! -e "$3" ]; then echo "$mark removes"; exit 0; fi
folder=0
[ -z "$4" ] || [ ! -d "$4" ] || folder=1
command -v curl >/dev/null 2>&1 || { echo "$mark nocurl"; exit 0; }
exec curl -K - -w "
$mark $folder %{http_code} %{url_effective}"`

// Rules implements schema.Ruled.
func (*uri) Rules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("body", "src"),
		schema.Address("url", "http", "https", "ftp", "ftps", "file"),
		schema.Looks("a host name or an IP address", schema.Host, "connect_to"),
		schema.Looks("one line each", schema.OneLine, "headers").Says("headers must be one line each"),
	}
}

// Run implements module.Runner.
func (m *uri) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	start := c.Now()
	config, err := m.config(c)
	if err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	mark := "kk-uri-" + rand.Text()
	out, errs, _, err := converse(ctx, c, shell.Script(uriScript, mark, m.Creates, m.Removes, m.Dest), config, false)
	if err != nil {
		return module.Result{}, err
	}
	text, trailer, _ := strings.Cut("\n"+out, "\n"+mark+" ")
	if r, done := m.early(strings.TrimSpace(trailer)); done {
		return r, nil
	}
	a := parseAnswer(m.URL, text, trailer)
	a.data.Set("elapsed", int(c.Now().Sub(start).Seconds()))
	r := m.result(a, errs)
	if m.Dest == "" || a.status == -1 {
		return r, nil
	}
	if err := m.save(ctx, c, a, &r); err != nil {
		return module.Result{}, err
	}
	return r, nil
}

// save writes the response to dest, unless it is a failure, and returns its path.
func (m *uri) save(ctx context.Context, c *module.Call, a httpAnswer, r *module.Result) error {
	dest := m.Dest
	if a.folder {
		dest = path.Join(dest, nameOf(a.data.String("url")))
	}
	r.Data.Set("path", dest)
	if r.Failed {
		return nil
	}
	before, err := statOf(ctx, c, dest)
	if err != nil {
		return err
	}
	f, err := m.file(dest, before)
	if err != nil {
		return err
	}
	f.Size = int64(len(a.body))
	put, err := connector.Put(ctx, c.Conn, f, strings.NewReader(a.body))
	if err != nil {
		return err
	}
	after, err := statOf(ctx, c, dest)
	if s, ok := parseStat(after); ok {
		s.describe(r.Data)
	}
	r.Changed = put.Changed || attributesChanged(before, after)
	return err
}

// early is the result when no request was made.
func (m *uri) early(why string) (module.Result, bool) {
	switch why {
	case "creates":
		return module.Result{Data: value.NewDict("stdout", "skipped, since '"+m.Creates+"' exists")}, true
	case "removes":
		return module.Result{Data: value.NewDict("stdout", "skipped, since '"+m.Removes+"' does not exist")}, true
	case "nocurl":
		return module.Result{Failed: true, Msg: "curl is not installed on the host: install it, or delegate the task to " +
			"a host that has it", Data: value.NewDict("status", -1)}, true
	}
	return module.Result{}, false
}

func (m *uri) config(c *module.Call) (string, error) {
	o := origin{
		URL: m.URL, Headers: map[string]string{}, Timeout: m.Timeout, User: m.User, Password: m.Password, Basic: m.Basic,
		Validate: m.Validate, UseProxy: m.UseProxy && m.Connect == "", Agent: m.Agent,
	}
	for k, v := range m.Headers {
		o.Headers[k] = v
	}
	body, kind, err := m.body(c)
	if err != nil {
		return "", err
	}
	if _, set := o.Headers["Content-Type"]; kind != "" && !set {
		o.Headers["Content-Type"] = kind
	}
	config := o.curlOptions(m.URL) + "include\n" + curlSetting("max-time", seconds(max(m.Timeout, time.Second)))
	method := strings.ToUpper(m.Method)
	if method == "HEAD" {
		config += "head\n"
	} else {
		config += curlSetting("request", method)
	}
	if m.Redirect == "all" || m.Redirect == "yes" ||
		(m.Redirect != "no" && m.Redirect != "none" && (method == "GET" || method == "HEAD")) {
		config += "location\n"
	}
	switch {
	case m.Src != "" && m.Remote:
		config += curlSetting("data-binary", "@"+m.Src)
	case m.Body != nil || m.Src != "":
		config += curlSetting("data-binary", body)
	}
	if m.Connect != "" {
		config += curlSetting("connect-to", "::"+bracketed(m.Connect)+":")
	}
	return config + curlSettings([2]string{"cacert", m.CA}, [2]string{"unix-socket", m.Socket}) +
		m.tlsClient.curlConfig(), nil
}

// bracketed writes an IPv6 address as URLs have it.
func bracketed(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// body is the text to send and its type, "" if the author sets the type.
func (m *uri) body(c *module.Call) (text, kind string, err error) {
	if m.Src != "" {
		return m.source(c)
	}
	if m.Format == "form-multipart" {
		return m.form(c)
	}
	text, isText := m.Body.(string)
	switch m.Format {
	case "json":
		if !isText && m.Body != nil {
			text, err = value.JSON(m.Body, value.JSONOptions{})
		}
		return text, "application/json", err
	case "form-urlencoded":
		if d, ok := m.Body.(*value.Dict); ok {
			var pairs []string
			for k, v := range d.All() {
				many, several := v.([]any)
				if !several {
					many = []any{v}
				}
				for _, one := range many {
					if one != nil {
						pairs = append(pairs, url.QueryEscape(value.Str(k))+"="+url.QueryEscape(value.Str(one)))
					}
				}
			}
			text = strings.Join(pairs, "&")
		}
		return text, "application/x-www-form-urlencoded", nil
	}
	if !isText && m.Body != nil {
		text, err = value.JSON(m.Body, value.JSONOptions{})
	}
	if strings.HasPrefix(text, "@") {
		return "", "", errors.New("a raw body cannot start with @")
	}
	return text, "", err
}

// httpAnswer is the response of a server.
type httpAnswer struct {
	status int
	folder bool // dest is a folder
	body   string
	json   bool
	data   *value.Dict
}

// parseAnswer reads the output of curl: the headers of each response,
// the body of the last one, and the trailer "FOLDER CODE URL".
func parseAnswer(asked, text, trailer string) httpAnswer {
	a := httpAnswer{status: -1, data: value.NewDict()}
	folder, rest, _ := strings.Cut(strings.TrimSpace(trailer), " ")
	a.folder = folder == "1"
	if code, address, ok := strings.Cut(rest, " "); ok {
		if n, err := strconv.Atoi(code); err == nil && n > 0 {
			a.status = n
		}
		// an authentication challenge is not a redirect, though curl counts it
		a.data.Set("redirected", !sameAddress(address, asked))
		a.data.Set("url", redacted(address))
	}
	a.body = strings.TrimPrefix(text, "\n")
	var block string
	for strings.HasPrefix(a.body, "HTTP/") {
		head, rest, ok := strings.Cut(a.body, "\r\n\r\n")
		if !ok {
			break
		}
		block, a.body = head, rest
	}
	if a.status != -1 {
		a.headers(block)
	}
	a.data.Set("status", a.status)
	return a
}

// sameAddress compares addresses; curl adds a slash to one without a path.
func sameAddress(a, b string) bool {
	return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/")
}

// headers puts the headers into the result, and the cookies by name.
func (a *httpAnswer) headers(block string) {
	header := http.Header{}
	for _, l := range strings.Split(block, "\r\n") {
		k, v, ok := strings.Cut(l, ":")
		if ok {
			header.Add(k, strings.TrimSpace(v))
		}
	}
	for k, v := range header {
		name := strings.ReplaceAll(strings.ToLower(k), "-", "_")
		if !a.data.Has(name) {
			a.data.Set(name, strings.Join(v, ", "))
		}
	}
	a.json = strings.Contains(header.Get("Content-Type"), "json")
	cookies := value.NewDict()
	for _, cookie := range (&http.Response{Header: header}).Cookies() {
		cookies.Set(cookie.Name, cookie.Value)
	}
	a.data.Set("cookies", cookies)
	var pairs []string
	for k, v := range cookies.All() {
		pairs = append(pairs, value.Str(k)+"="+value.Str(v))
	}
	a.data.Set("cookies_string", strings.Join(pairs, "; "))
}

func (m *uri) result(a httpAnswer, errs string) module.Result {
	r := module.Result{Data: a.data}
	if !a.data.Has("url") {
		a.data.Set("url", redacted(m.URL))
	}
	if a.json {
		if v, err := value.FromJSON([]byte(a.body)); err == nil {
			a.data.Set("json", v)
		}
	}
	if to, ok := a.data.Get("location"); ok {
		a.data.Set("location", absolute(m.URL, value.Str(to)))
	}
	if slices.Contains(m.Status, strconv.Itoa(a.status)) {
		r.Msg = a.verdict()
		if m.Return {
			a.data.Set("content", a.body)
		}
		return r
	}
	why := http.StatusText(a.status)
	if a.status == -1 {
		why = "Request failed: " + strings.TrimPrefix(errs, "curl: ")
	}
	r.Failed, r.Msg = true, fmt.Sprintf("Status code was %d and not [%s]: %s", a.status, strings.Join(m.Status, ", "), why)
	if a.status != -1 {
		a.data.Set("content", a.body)
	}
	return r
}

// verdict is Ansible's message for a response, before status_code is evaluated.
func (a httpAnswer) verdict() string {
	if a.status >= http.StatusMultipleChoices {
		return fmt.Sprintf("HTTP Error %d: %s", a.status, http.StatusText(a.status))
	}
	size, ok := a.data.Get("content_length")
	if !ok {
		size = "unknown"
	}
	return fmt.Sprintf("OK (%v bytes)", size)
}

// absolute is the absolute form of an address in a header.
func absolute(base, to string) string {
	from, err := url.Parse(base)
	if err != nil {
		return to
	}
	at, err := from.Parse(to)
	if err != nil {
		return to
	}
	return redacted(at.String())
}
