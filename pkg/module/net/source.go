package net

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"sort"
	"strings"
	"time"

	"kubekey/pkg/redact"
	"kubekey/pkg/relay"
	"kubekey/pkg/schema"
)

// origin is the source of a file, and how to fetch it.
type origin struct {
	URL        string            `kk:"url,required" doc:"HTTP, HTTPS or FTP address of the file"`
	Checksum   string            `kk:"checksum" doc:"ALGORITHM:DIGEST (sha256:9f86...), or ALGORITHM:URL of a checksum file; the file is verified, and not fetched again if it matches"`
	Headers    map[string]string `kk:"headers" doc:"HTTP headers of the request"`
	Timeout    time.Duration     `kk:"timeout" default:"10" doc:"how long to wait for a connection, and for further data"`
	User       string            `kk:"url_username,alias=username" doc:"user name"`
	Password   redact.Secret     `kk:"url_password,alias=password" doc:"password; it does not appear in the process list"`
	Basic      bool              `kk:"force_basic_auth" default:"no" doc:"send user name and password with the first request"`
	Validate   bool              `kk:"validate_certs" default:"yes" doc:"verify the TLS certificate of the server"`
	UseProxy   bool              `kk:"use_proxy" default:"yes" doc:"use the proxy set in the environment"`
	Agent      string            `kk:"http_agent" default:"kk" doc:"User-Agent header of the request"`
	Netrc      bool              `kk:"use_netrc" default:"yes" doc:"without effect: netrc files are not read"`
	Decompress bool              `kk:"decompress" default:"yes" doc:"without effect: compressed responses are not requested"`

	proxy func(*http.Request) (*url.URL, error) // nil is that of the environment
	rate  *relay.Limiter                        // nil is no limit
}

// Rules implements schema.Ruled.
func (*origin) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("url"),
		schema.Address("url", "http", "https", "ftp", "ftps", "file"),
		schema.Parses("ALGORITHM:DIGEST", isChecksum, "checksum"),
		schema.Looks("one line each", schema.OneLine, "headers").Says("headers must be one line each"),
	}
}

func isChecksum(text string) error {
	_, _, err := parseChecksum(text)
	return err
}

// secret reports whether the request contains secrets, which the process list must not show.
func (o origin) secret() bool {
	u, err := url.Parse(o.URL)
	return err != nil || u.User != nil || u.RawQuery != "" || len(o.Headers) > 0 || o.User != "" || !o.Password.IsZero()
}

// baseName is the name of the file if dest is a folder.
func (o origin) baseName() string {
	u, err := url.Parse(o.URL)
	if err != nil {
		return "index.html"
	}
	if name := path.Base(u.Path); name != "." && name != "/" {
		return name
	}
	return "index.html"
}

// curlConfig is what `curl -K -` reads to fetch a file.
func (o origin) curlConfig(address string) string { return "fail\nlocation\n" + o.curlOptions(address) }

// curlSetting is one line of a curl config.
func curlSetting(key, v string) string {
	return key + ` = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(v) + "\"\n"
}

// curlSettings omits those without a value.
func curlSettings(all ...[2]string) string {
	var b strings.Builder
	for _, s := range all {
		if s[1] != "" {
			b.WriteString(curlSetting(s[0], s[1]))
		}
	}
	return b.String()
}

// tlsClient holds the arguments for client certificates.
type tlsClient struct {
	Cert    string   `kk:"client_cert,path" doc:"file on the host with the client certificate, and its key unless client_key is given; needs curl"`
	Key     string   `kk:"client_key,path" doc:"file on the host with the key of client_cert"`
	Ciphers []string `kk:"ciphers" doc:"ciphers to offer for TLS up to 1.2, in OpenSSL's names; needs curl on the host"`
}

func (t tlsClient) isZero() bool { return t.Cert == "" && t.Key == "" && len(t.Ciphers) == 0 }

func (t tlsClient) curlConfig() string {
	return curlSettings([2]string{"cert", t.Cert}, [2]string{"key", t.Key},
		[2]string{"ciphers", strings.Join(t.Ciphers, ":")})
}

// curlOptions is the part of the configuration that every request has.
func (o origin) curlOptions(address string) string {
	var b strings.Builder
	set := func(key, v string) { b.WriteString(curlSetting(key, v)) }
	set("url", address)
	b.WriteString("silent\nshow-error\ngloboff\n")
	limit := seconds(max(o.Timeout, time.Second))
	set("connect-timeout", limit)
	set("speed-limit", "1")
	set("speed-time", limit)
	set("user-agent", o.Agent)
	names := make([]string, 0, len(o.Headers))
	for k := range o.Headers {
		names = append(names, k)
	}
	sort.Strings(names)
	for _, k := range names {
		set("header", k+": "+o.Headers[k])
	}
	if o.User != "" || !o.Password.IsZero() {
		set("user", o.User+":"+o.Password.Reveal())
		if !o.Basic {
			b.WriteString("anyauth\n")
		}
	}
	if !o.Validate {
		b.WriteString("insecure\n")
	}
	if !o.UseProxy {
		set("noproxy", "*")
	}
	return b.String()
}

// wget returns the URL and the options for wget, or "" when only curl will do.
func (o origin) wget() (address, options string) {
	if o.secret() {
		return "", ""
	}
	if !o.Validate {
		options += " --no-check-certificate"
	}
	if !o.UseProxy {
		options += " -Y off"
	}
	return o.URL, options
}

// digest is the expected checksum of a file; the zero value is none.
type digest struct{ algorithm, hex string }

// parseChecksum reads ALGORITHM:HEX, or ALGORITHM:URL into at.
func parseChecksum(s string) (d digest, at string, err error) {
	if s == "" {
		return digest{}, "", nil
	}
	algorithm, rest, ok := strings.Cut(s, ":")
	algorithm = strings.ToLower(strings.TrimSpace(algorithm))
	if _, known := newHash(algorithm); !ok || !known {
		return digest{}, "", fmt.Errorf("checksum must be ALGORITHM:DIGEST with md5, sha1, sha224, sha256, sha384 or "+
			"sha512, got: %s", s)
	}
	rest = strings.TrimSpace(rest)
	if strings.Contains(rest, "://") {
		return digest{algorithm: algorithm}, rest, nil
	}
	rest = strings.ToLower(rest)
	if h, _ := newHash(algorithm); len(rest) != 2*h.Size() || strings.Trim(rest, "0123456789abcdef") != "" {
		return digest{}, "", fmt.Errorf("%q is not a %s digest", rest, algorithm)
	}
	return digest{algorithm, rest}, "", nil
}

// findDigest finds the digest of a file in a checksum file: lines of DIGEST NAME,
// DIGEST alone, or ALGORITHM (NAME) = DIGEST.
func findDigest(text, name string, want digest) (digest, error) {
	var lone []string
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if left, right, ok := strings.Cut(line, ") = "); ok {
			_, file, _ := strings.Cut(left, "(")
			line = right + " " + file
		}
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		d, _, err := parseChecksum(want.algorithm + ":" + w[0])
		switch {
		case err != nil:
		case len(w) == 1:
			lone = append(lone, d.hex)
		case path.Base(strings.TrimLeft(w[len(w)-1], "*.")) == name || path.Base(strings.TrimLeft(w[len(w)-1], "*")) == name:
			return d, nil
		}
	}
	if len(lone) == 1 {
		return digest{want.algorithm, lone[0]}, nil
	}
	return digest{}, fmt.Errorf("the checksum file has no entry for %s", name)
}
