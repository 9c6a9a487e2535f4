package crypto

import (
	"bytes"
	"cmp"
	"context"
	"crypto"
	"crypto/x509"
	_ "embed"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"kubekey/pkg/certs"
	"kubekey/pkg/hostscript"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

//go:embed pkcs12.sh
var pkcs12Script string

// PKCS12 is the module openssl_pkcs12.
type PKCS12 struct {
	Backend    string         `kk:"select_crypto_backend" default:"auto" choices:"auto,cryptography,pyopenssl" doc:"without effect: openssl on the host reads and writes them"`
	Action     string         `kk:"action" default:"export" choices:"export,parse" doc:"export: write a PKCS #12 file; parse: write the content of src as PEM"`
	Src        string         `kk:"src,path" doc:"PKCS #12 file on the host; needed for parse"`
	Name       string         `kk:"friendly_name,alias=name" doc:"name of the key and the certificate; needed for export"`
	Cert       string         `kk:"certificate_path,path" doc:"certificate, a PEM file of the host"`
	Others     []string       `kk:"other_certificates,alias=ca_certificates" doc:"more certificates, PEM files of the host; the first certificate of each"`
	All        bool           `kk:"other_certificates_parse_all" default:"no" doc:"use all certificates of each of them"`
	Passphrase *redact.Secret `kk:"passphrase" doc:"passphrase of the PKCS #12 file; without one it is not encrypted"`
	Level      string         `kk:"encryption_level" default:"auto" choices:"auto,compatibility2022" doc:"encryption: AES-256 and SHA-256, or Triple-DES and SHA-1 for older software. Not compared with an existing file"`
	Rounds     int            `kk:"iter_size" default:"50000" doc:"rounds of encryption. Not compared with an existing file"`
	keySource
	placement
}

func pkcs12Spec() module.Spec {
	return module.Spec{
		Name: "openssl_pkcs12", Collection: "community.crypto",
		Summary: "Manages a PKCS #12 file with a key and certificates on the host, or extracts them.",
		Notes: []string{
			"openssl on the host reads and writes the file; passphrases are passed in its environment, and with passphrase " +
				"no unencrypted key is written to disk. The content is compared on the control node.",
			"Without mode, the file gets mode 0400, even if it exists with another one.",
			"A file that cannot be read, for example with another passphrase, is replaced.",
		},
		Examples: []string{
			"- name: Export key and certificate for Java\n  openssl_pkcs12:\n    path: /etc/ssl/private/web.p12\n" +
				"    friendly_name: web\n    privatekey_path: /etc/ssl/private/web.pem\n" +
				"    certificate_path: /etc/ssl/web.crt\n    passphrase: \"{{ ada_password }}\"",
		},
		Returns: placementReturns("pkcs12",
			module.Return{Key: "privatekey_path", Type: "str", Doc: "the argument, where it is given"},
			module.Return{Key: "mode", Type: "str", Doc: "permission bits of the file, where it is there"},
		),
		New: func() module.Runner { return new(PKCS12) },
	}
}

// bundle is the content of a PKCS #12 file. The key's certificate comes first. Without a key there is no such
// certificate.
type bundle struct {
	key   crypto.Signer
	name  string // as openssl prints it
	certs []*x509.Certificate
}

// Rules implements schema.Ruled.
func (*PKCS12) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("src").If("action", "parse").If("state", "present").
			Says("action is parse but all of the following are missing: src"),
		schema.Needs("friendly_name").If("action", "export").If("state",
			"present").Says("friendly_name is needed for export"),
		schema.AtLeastOne("privatekey_path", "privatekey_content", "certificate_path", "other_certificates").
			If("action", "export").If("state", "present").
			Says("there is nothing to export: give privatekey_path, certificate_path or other_certificates"),
		schema.AtMostOne("privatekey_path", "privatekey_content"),
		schema.Between("iter_size", 1, schema.NoLimit),
	}
}

// Run implements module.Runner.
func (m *PKCS12) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.State == "absent" {
		r, left, err := m.remove(ctx, c)
		m.describe(c, &r, left, nil)
		return r, err
	}
	if err := m.setDefaults(); err != nil {
		return module.Result{}, err
	}
	files, err := pki.ReadHost(ctx, c, m.Path, m.sources()...)
	if err != nil {
		return module.Result{}, err
	}
	var text []byte
	if m.Action == "parse" {
		text, err = m.parse(ctx, c, files[1])
	} else {
		text, err = m.export(ctx, c, files[0], files[1:])
	}
	have := files[0]
	if errors.Is(err, pki.ErrAway) {
		r, err := notYet(c, have, err)
		m.describe(c, &r, have, nil)
		return r, err
	}
	if err != nil {
		return module.Result{}, err
	}
	r, err := m.keep(ctx, c, have, text, 0o400)
	if err != nil {
		return r, err
	}
	noteDiff(c, &r, have.Path, value.NewDict(), value.NewDict("friendly_name", given(m.Name)))
	m.describe(c, &r, have, text)
	return r, nil
}

// setDefaults sets the default mode.
func (m *PKCS12) setDefaults() error {
	if m.Mode.IsSet() {
		return nil
	}
	var err error
	m.Mode, err = schema.ParseMode("0400")
	return err
}

// sources returns the files to read: src, or those of the key, its certificate and the other certificates.
func (m *PKCS12) sources() []pki.Source {
	if m.Action == "parse" {
		return []pki.Source{{Path: m.Src}}
	}
	list := []pki.Source{m.source(), {Path: m.Cert}}
	for _, path := range m.Others {
		list = append(list, pki.Source{Path: path})
	}
	return list
}

// parse returns the content of the PKCS #12 file src as PEM text.
func (m *PKCS12) parse(ctx context.Context, c *module.Call, src pki.HostFile) ([]byte, error) {
	if !src.There {
		return nil, fmt.Errorf("%s %w", src.Path, pki.ErrAway)
	}
	held, err := m.open(ctx, c, src)
	if err != nil {
		return nil, err
	}
	var text []byte
	if held.key != nil {
		if text, err = (&PrivateKey{Format: "auto"}).encode(held.key); err != nil {
			return nil, err
		}
	}
	for _, crt := range held.certs {
		text = append(text, certs.EncodeCert(crt.Raw)...)
	}
	return text, nil
}

// export returns the file to write, or nil if the existing file is correct.
func (m *PKCS12) export(ctx context.Context, c *module.Call, have pki.HostFile, files []pki.HostFile) ([]byte, error) {
	want, err := m.desired(files)
	if err != nil {
		return nil, err
	}
	if have.There && !m.Force {
		held, err := m.open(ctx, c, have)
		switch {
		case err != nil && !errors.Is(err, errPKCS12):
			return nil, err
		case err == nil && held.equal(want):
			return nil, nil
		}
	}
	if c.Check {
		return []byte("a new file"), nil // only its presence matters
	}
	return m.make(ctx, c, want)
}

// desired returns the desired content of the file.
func (m *PKCS12) desired(files []pki.HostFile) (bundle, error) {
	b := bundle{name: m.Name}
	var err error
	if m.KeyPath != "" || m.KeyText != nil {
		if b.key, err = keyOf(files[0], m.KeyPass); err != nil {
			return b, err
		}
	}
	for i, f := range files[1:] {
		first := i == 0
		if first && m.Cert == "" {
			continue
		}
		if !f.There {
			return b, fmt.Errorf("%s %w", f.Path, pki.ErrAway)
		}
		list, err := certs.ParseCerts(f.Text)
		switch {
		case !first && m.All && !bytes.Contains(f.Text, []byte("-----BEGIN CERTIFICATE-----")):
			continue
		case err != nil:
			return b, fmt.Errorf("%s: %w", f.Path, err)
		case first && b.key != nil && !certs.Same(b.key.Public(), list[0].PublicKey):
			return b, fmt.Errorf("%s: the certificate is not of the private key", f.Path)
		case first || !m.All:
			list = list[:1]
		}
		b.certs = append(b.certs, list...)
	}
	return b, nil
}

// equal reports whether a file has the desired content. Names are only compared if there is a key.
func (b bundle) equal(want bundle) bool {
	if (b.key == nil) != (want.key == nil) || b.key != nil &&
		(!certs.Same(b.key.Public(), want.key.Public()) || b.name != want.name && b.name != lowBytes(want.name)) {
		return false
	}
	order := func(certs []*x509.Certificate) []*x509.Certificate {
		sorted := slices.SortedFunc(slices.Values(certs),
			func(x, y *x509.Certificate) int { return bytes.Compare(x.Raw, y.Raw) })
		return slices.CompactFunc(sorted, (*x509.Certificate).Equal)
	}
	return slices.EqualFunc(order(b.certs), order(want.certs), (*x509.Certificate).Equal)
}

// lowBytes returns a name as some versions of openssl print it: the low byte of each UTF-16 unit.
func lowBytes(name string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(name)) {
		out = append(out, byte(unit))
	}
	return string(out)
}

// errPKCS12 is the error for a file that cannot be read.
var errPKCS12 = errors.New("is no PKCS #12 file, or has another passphrase")

func (m *PKCS12) script(call string, stdin []byte) *hostscript.Script {
	s := hostscript.New(pkcs12Script, call)
	s.Stdin, s.Env = bytes.NewReader(stdin), map[string]string{"KK_PKCS12": m.secret()}
	return s
}

func (m *PKCS12) secret() string {
	if m.Passphrase == nil {
		return ""
	}
	return m.Passphrase.Reveal()
}

// open reads a PKCS #12 file.
func (m *PKCS12) open(ctx context.Context, c *module.Call, f pki.HostFile) (bundle, error) {
	s := m.script("pkcs12_open", f.Text)
	a, err := c.Probe(ctx, s)
	if err != nil {
		return bundle{}, err
	}
	if !a.Has("text") {
		return bundle{}, fmt.Errorf("%s %w", f.Path, errPKCS12)
	}
	return readBundle(f.Path, []byte(a.Get("text")))
}

// readBundle parses the output of openssl for a PKCS #12 file: PEM blocks, each preceded by lines about it.
func readBundle(path string, text []byte) (bundle, error) {
	var b bundle
	for {
		before, _, _ := bytes.Cut(text, []byte("-----BEGIN "))
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		if block.Type == "CERTIFICATE" {
			crt, err := certs.ReadCert(block.Bytes)
			if err != nil {
				return b, fmt.Errorf("%s: %w", path, err)
			}
			b.certs = append(b.certs, crt)
			continue
		}
		key, err := certs.DecodeBlock(block, nil)
		if err != nil || key == nil {
			return b, fmt.Errorf("%s: a key of a kind that is not supported: %w", path, cmp.Or(err, errPKCS12))
		}
		b.key = key
		for line := range strings.Lines(string(before)) {
			if name, ok := strings.CutPrefix(line, "    friendlyName: "); ok {
				b.name = strings.TrimSuffix(name, "\n")
			}
		}
	}
	slices.SortStableFunc(b.certs, func(x, y *x509.Certificate) int { return cmp.Compare(b.rank(x), b.rank(y)) })
	return b, nil
}

// rank returns 0 for the certificate of the key.
func (b bundle) rank(crt *x509.Certificate) int {
	if b.key != nil && certs.Same(b.key.Public(), crt.PublicKey) {
		return 0
	}
	return 1
}

// make creates a PKCS #12 file.
func (m *PKCS12) make(ctx context.Context, c *module.Call, b bundle) ([]byte, error) {
	var in []byte
	for _, crt := range b.certs {
		in = append(in, certs.EncodeCert(crt.Raw)...)
	}
	words := []string{"-caname", m.Name, "-nokeys"}
	if b.key != nil {
		pass := m.Passphrase
		if m.secret() == "" {
			pass = nil
		}
		key, err := (&PrivateKey{Format: "pkcs8", Passphrase: pass}).encode(b.key)
		if err != nil {
			return nil, err
		}
		in, words = append(key, in...), []string{"-name", m.Name}
	}
	if len(b.certs) == 0 {
		words = append(words, "-nocerts")
	}
	cipher, digest := "AES-256-CBC", "sha256"
	if m.Level == "compatibility2022" {
		cipher, digest = "PBE-SHA1-3DES", "sha1"
	}
	if m.secret() == "" {
		cipher = "NONE"
	}
	words = append(words, "-keypbe", cipher, "-certpbe", cipher, "-macalg", digest, "-iter", strconv.Itoa(m.Rounds))
	s := m.script(`pkcs12_make "$@"`, in)
	s.Words = words
	a, err := s.Run(ctx, c.Conn, c.Check)
	if err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(strings.ReplaceAll(a.Get("text"), "\n", ""))
}

// describe adds the values that Ansible returns for the file.
func (m *PKCS12) describe(c *module.Call, r *module.Result, have pki.HostFile, text []byte) {
	if r.Data == nil {
		return
	}
	if m.KeyPath != "" {
		r.Data.Set("privatekey_path", m.KeyPath)
	}
	old := fs.FileMode(0o400)
	if have.There {
		old = have.Mode
	}
	if mode, err := m.Mode.Apply(old, false); err == nil && m.State == "present" && !c.Check {
		r.Data.Set("mode", schema.FormatMode(mode))
	}
	m.content(c, r, "pkcs12", have, text)
	if content := r.Data.String("pkcs12"); content != "" {
		r.Data.Set("pkcs12", base64.StdEncoding.EncodeToString([]byte(content)))
	}
}
