package net

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kubekey/pkg/connector"
	"kubekey/pkg/module"
	"kubekey/pkg/shell"
	"kubekey/pkg/value"
)

//go:embed get_url.sh
var getScript string

func getURLSpec() module.Spec {
	return module.Spec{
		Name:    "get_url",
		Summary: "Downloads a file from HTTP, HTTPS or FTP to the host.",
		Notes: []string{
			"The host downloads the file itself with curl or wget. A host with neither of them, or with wget only when the " +
				"request contains secrets, receives it from the control node.",
			"An existing file is fetched again only if force is set, if its checksum differs, or, without a checksum, if " +
				"the server has a newer one.",
			"The file is put in place atomically, with its owner and mode, after it has been verified.",
			"In check mode, without checksum and force, an existing file is assumed to be up to date.",
		},
		Examples: []string{
			"- name: Fetch a release\n  get_url:\n    url: https://example.org/app-1.2.tar.gz\n    dest: /opt/app.tar.gz\n" +
				"    checksum: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n    mode: \"0644\"",
			"- name: Verify against the publisher's file\n  get_url:\n    url: https://example.org/app\n" +
				"    dest: /usr/local/bin/app\n    checksum: sha256:https://example.org/SHA256SUMS\n    mode: \"0755\"",
		},
		Returns: append(fetchReturns(),
			module.Return{Key: "backup_file", Type: "str", Doc: "backup of the replaced file"},
			module.Return{Key: "owner", Type: "str", Doc: "owner of the file; also uid, gid, group, mode, size, state"},
		),
		New: func() module.Runner { return &getURL{} },
	}
}

func fetchReturns() []module.Return {
	return []module.Return{
		{Key: "dest", Type: "str", Doc: "path of the file"},
		{Key: "url", Type: "str", Doc: "address of the file"},
		{Key: "checksum_src", Type: "str", Doc: "SHA-1 of the downloaded file"},
		{Key: "checksum_dest", Type: "str", Doc: "SHA-1 of the file on the host"},
		{Key: "md5sum", Type: "str", Doc: "MD5 of the file on the host"},
		{Key: "status_code", Type: "int", Doc: "HTTP status code"},
		{Key: "size", Type: "int", Doc: "size of the file in bytes"},
		{Key: "elapsed", Type: "int", Doc: "seconds it took"},
		{Key: "msg", Type: "str", Doc: "such as OK (31 bytes), or the reason of a failure"},
	}
}

type getURL struct {
	origin
	Dest   string `kk:"dest,required,path" doc:"absolute path on the host; if it is a folder, the name of the file is taken from the URL"`
	Force  bool   `kk:"force" default:"no" doc:"download the file even if it exists"`
	Backup bool   `kk:"backup" default:"no" doc:"keep the previous file next to the new one"`
	Tmp    string `kk:"tmp_dest,path" doc:"folder on the host for the temporary file. Default: that of dest"`
	tlsClient
	attributes
}

// curlConfig is that of the origin, with the client certificate of the host.
func (m *getURL) curlConfig(address string) string {
	return m.origin.curlConfig(address) + m.tlsClient.curlConfig()
}

// wget is that of the origin, without a client certificate.
func (m *getURL) wget() (address, options string) {
	if !m.tlsClient.isZero() {
		return "", ""
	}
	return m.origin.wget()
}

// Run implements module.Runner.
func (m *getURL) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	start := c.Now()
	want, at, err := parseChecksum(m.Checksum)
	if err != nil {
		return module.Result{Failed: true, Msg: err.Error()}, nil
	}
	if at != "" {
		if want, err = m.lookUp(ctx, c, at, want); err != nil {
			return module.Result{}, fmt.Errorf("fetch checksum: %w", err)
		}
	}
	a, err := m.ask(ctx, c, want)
	if err != nil {
		return module.Result{}, err
	}
	if a["tool"] == "none" && !c.Check {
		if !m.tlsClient.isZero() {
			return module.Result{Failed: true, Msg: "client_cert, client_key and ciphers need curl on the host: install it",
				Data: m.data(a, start, c)}, nil
		}
		if a, err = m.send(ctx, c, want, a); err != nil {
			return module.Result{Failed: true, Msg: "Request failed: " + withoutSecrets(err).Error(),
				Data: m.data(a, start, c)}, nil
		}
	}
	return m.result(a, want, start, c), nil
}

// answer is what the script printed.
type answer map[string]string

// ask runs the script.
func (m *getURL) ask(ctx context.Context, c *module.Call, want digest) (answer, error) {
	address, options := m.wget()
	line := shell.Script(getScript, m.Dest, m.baseName(), want.algorithm, want.hex, flag(m.Force), flag(m.Backup),
		m.chmod(), m.Owner, m.Group, flag(c.Check), m.Tmp, seconds(max(m.Timeout, time.Second)), address, options)
	out, errs, code, err := converse(ctx, c, line, m.curlConfig(m.URL), c.Check)
	if err != nil {
		return nil, err
	}
	a := answer{"stderr": errs}
	for _, l := range strings.Split(out, "\n") {
		if k, v, ok := strings.Cut(l, "="); ok {
			a[k] = v
		}
	}
	if code != 0 {
		return nil, fmt.Errorf("fetch %s on the host: exited with status %d: %s", m.Dest, code, errs)
	}
	return a, nil
}

func converse(ctx context.Context, c *module.Call, line, stdin string,
	probe bool) (out, errs string, code int, err error) {
	cmd := connector.Command{Line: line, Stdin: strings.NewReader(stdin), Probe: probe}
	got, err := connector.Collect(ctx, c.Conn, cmd, connector.MaxLargeAnswer)
	return string(got.Stdout), strings.TrimSpace(got.Stderr), got.Code, err
}

func flag(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// chmod is the mode in the form of chmod, "" to keep it.
func (m *getURL) chmod() string {
	if m.Mode.IsPreserve() {
		return ""
	}
	return m.Mode.String()
}

const lookUpScript = `if command -v curl >/dev/null 2>&1; then exec curl -K -
elif [ -n "$1" ] && command -v wget >/dev/null 2>&1; then exec wget -q $3 -T "$2" -O - "$1"
fi
exit 77`

// lookUp finds the digest in a file of digests, fetched like the file itself.
func (m *getURL) lookUp(ctx context.Context, c *module.Call, at string, want digest) (digest, error) {
	address, options := m.wget()
	if address != "" {
		address = at
	}
	out, errs, code, err := converse(ctx, c,
		shell.Script(lookUpScript, address, seconds(max(m.Timeout, time.Second)), options), m.curlConfig(at), true)
	switch {
	case err != nil:
		return digest{}, err
	case code == 77:
		if out, err = m.text(ctx, at); err != nil {
			return digest{}, err
		}
	case code != 0:
		return digest{}, fmt.Errorf("%s", errs)
	}
	return findDigest(out, m.baseName(), want)
}

// send fetches the file here and copies it to a host that cannot fetch it.
func (m *getURL) send(ctx context.Context, c *module.Call, want digest, a answer) (answer, error) {
	dir, err := os.MkdirTemp(c.WorkDir, "get_url-")
	if err != nil {
		return a, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the work folder is cleaned up anyway
	file := filepath.Join(dir, "file")
	code, err := m.download(ctx, m.URL, file, false, time.Time{}, report(c, m.baseName()))
	if err != nil {
		return a, err
	}
	a["code"] = strconv.Itoa(code)
	found, size, err := sums(file, "sha256", "sha1", "md5")
	if err != nil {
		return a, err
	}
	if msg, err := mismatch(file, m.URL, want); err != nil || msg != "" {
		return a, errors.Join(err, errorText(msg))
	}
	put, err := m.put(ctx, c, file, a, size, found["sha256"])
	if err != nil {
		return a, err
	}
	a["after"], err = statOf(ctx, c, a["dest"])
	a["backup"] = put.Backup
	a["src_sha1"], a["sha1"], a["md5"] = found["sha1"], found["sha1"], found["md5"]
	if put.Changed {
		a["replaced"] = "1"
	}
	delete(a, "tool")
	return a, err
}

// put sends a file of the control node to the destination that the script found.
func (m *getURL) put(ctx context.Context, c *module.Call, file string, a answer, size int64,
	sha256 string) (connector.PutResult, error) {
	f, err := m.file(a["dest"], a["before"])
	if err != nil {
		return connector.PutResult{}, err
	}
	f.Size, f.SHA256, f.Backup = size, sha256, m.Backup
	src, err := os.Open(file)
	if err != nil {
		return connector.PutResult{}, err
	}
	defer func() { _ = src.Close() }() // only read
	return connector.Put(ctx, c.Conn, f, src)
}

func errorText(msg string) error {
	if msg == "" {
		return nil
	}
	return errors.New(msg)
}

func report(c *module.Call, name string) func(done, total int64) {
	if c.Progress == nil {
		return nil
	}
	return func(done, total int64) { c.Progress(name, done, total) }
}

// mismatch is the message for a file with a wrong digest.
func mismatch(file, address string, want digest) (string, error) {
	if want.hex == "" {
		return "", nil
	}
	found, _, err := sums(file, want.algorithm)
	if err != nil || found[want.algorithm] == want.hex {
		return "", err
	}
	return mismatchText(address, found[want.algorithm], want), nil
}

func mismatchText(address, got string, want digest) string {
	return fmt.Sprintf("The checksum for %s did not match %s; it was %s.", redacted(address), want.hex, got)
}

func (m *getURL) result(a answer, want digest, start time.Time, c *module.Call) module.Result {
	r := module.Result{Data: m.data(a, start, c)}
	switch {
	case c.Check:
		r.Changed = a["fetch"] != "" || m.wouldChangeAttributes(a)
		r.Msg = "file already exists"
		if a["fetch"] != "" {
			r.Msg = "would fetch the file"
		}
	case a["problem"] != "":
		r.Failed, r.Msg = true, a["problem"]
	case a["failed"] != "":
		r.Failed, r.Msg = true, "Request failed: "+strings.TrimPrefix(a["stderr"], "curl: ")
	case a["mismatch"] != "":
		r.Failed, r.Msg = true, mismatchText(m.URL, a["mismatch"], want)
	default:
		r.Changed = a["replaced"] != "" || attributesChanged(a["before"], a["after"])
		size, _ := r.Data.Get("size")
		r.Msg = fmt.Sprintf("OK (%v bytes)", size)
		if a["fetch"] == "" {
			r.Msg = "file already exists"
		} else if a["code"] == "304" {
			r.Msg = "HTTP Error 304: Not Modified"
		}
	}
	return r
}

// wouldChangeAttributes predicts attributesChanged.
func (m *getURL) wouldChangeAttributes(a answer) bool {
	now, there := parseStat(a["before"])
	mode, err := m.Mode.Apply(now.mode, false)
	differs := func(want, name, number string) bool { return want != "" && want != name && want != number }
	return there && (err != nil || mode != now.mode || differs(m.Owner, now.owner, now.uid) ||
		differs(m.Group, now.group, now.gid))
}

func (m *getURL) data(a answer, start time.Time, c *module.Call) *value.Dict {
	d := value.NewDict("dest", a["dest"], "url", redacted(m.URL), "elapsed", int(c.Now().Sub(start).Seconds()),
		"checksum_src", nil, "checksum_dest", nil, "md5sum", nil)
	if code, err := strconv.Atoi(a["code"]); err == nil {
		d.Set("status_code", code)
	}
	for key, name := range map[string]string{"checksum_src": "src_sha1", "checksum_dest": "sha1", "md5sum": "md5",
		"backup_file": "backup"} {
		if a[name] != "" {
			d.Set(key, a[name])
		}
	}
	if s, ok := parseStat(a["after"]); ok {
		s.describe(d)
	}
	return d
}

// notModified is the code of an answer without a file.
const notModified = http.StatusNotModified
