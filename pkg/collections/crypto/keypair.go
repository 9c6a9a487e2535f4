package crypto

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// KeyPair is the module openssh_keypair.
type KeyPair struct {
	Path       string         `kk:"path,required,path" doc:"path of the private key on the host; the public key is PATH.pub"`
	State      string         `kk:"state" default:"present" choices:"absent,present" doc:"whether both files should exist"`
	Type       string         `kk:"type" default:"rsa" choices:"ecdsa,ed25519,rsa" doc:"type of the key"`
	Size       int            `kk:"size" doc:"size in bits. RSA: 1024 to 16384, by default 4096; ECDSA: 256, 384 or 521, by default 256; without effect for Ed25519"`
	Comment    *string        `kk:"comment" doc:"comment of the public key. Default: none for a new key, otherwise unchanged"`
	Passphrase *redact.Secret `kk:"passphrase" doc:"passphrase for a new key, and for reading an existing one; an empty one is none"`
	Format     string         `kk:"private_key_format" default:"auto" choices:"auto,pkcs1,pkcs8,ssh" doc:"format of the private key: OpenSSH, or PEM as in openssl_privatekey. auto is OpenSSH for a new key, and keeps the format of an existing one"`
	Backend    string         `kk:"backend" default:"auto" choices:"auto,cryptography,opensshbin" doc:"without effect: kk needs neither a library nor ssh-keygen for it"`
	Force      bool           `kk:"force" default:"no" doc:"regenerate the keys in each run"`
	Regenerate string         `kk:"regenerate" default:"partial_idempotence" choices:"always,fail,full_idempotence,never,partial_idempotence" doc:"what to do if the existing key differs: never keeps it, fail fails, partial_idempotence regenerates it. These fail if the key cannot be read, for example with another passphrase; full_idempotence regenerates it then, too"`
	access
}

func keyPairSpec() module.Spec {
	return module.Spec{
		Name: "openssh_keypair", Collection: "community.crypto",
		Summary: "Manages an OpenSSH key pair on the host.",
		Notes: []string{
			"The keys are generated on the control node and sent on standard input: the host needs no ssh-keygen. An " +
				"existing private key is read back for comparison.",
			"A public key that does not exist or does not match is written again. A comment is changed in both files, if " +
				"the private key has OpenSSH format.",
			"A key with a passphrase where none is set, or the reverse, counts as unreadable.",
		},
		Examples: []string{
			"- name: Create a key for the backups\n  openssh_keypair:\n    path: /root/.ssh/backup\n    type: ed25519\n" +
				"    comment: backup of the database",
		},
		Returns: []module.Return{
			{Key: "filename", Type: "str", Doc: "the private key"},
			{Key: "type", Type: "str", Doc: "the argument"},
			{Key: "size", Type: "int", Doc: "requested size in bits"},
			{Key: "fingerprint", Type: "str", Doc: "SHA256: and the digest of the public key; empty if it cannot be read"},
			{Key: "public_key", Type: "str", Doc: "the public key, without its comment"},
			{Key: "comment", Type: "str", Doc: "comment of the public key"},
		},
		New: func() module.Runner { return new(KeyPair) },
	}
}

// Rules implements schema.Ruled.
func (*KeyPair) Rules() schema.Rules {
	return schema.Rules{
		schema.Between("size", 1024, 16384).If("type", "rsa").Unless("size", 0),
		schema.Chooses("size", 256, 384, 521).If("type", "ecdsa").Unless("size", 0),
		schema.Chooses("private_key_format", "auto", "pkcs8", "ssh").If("type", "ed25519").
			Says("an Ed25519 key has no pkcs1 form"),
		schema.Chooses("private_key_format", "auto", "pkcs8", "ssh").With("passphrase").Unless("passphrase", "").
			Says("a key with a passphrase has no pkcs1 form here: leave out private_key_format"),
		schema.Looks("one line", schema.OneLine, "comment"),
	}
}

// Run implements module.Runner.
func (m *KeyPair) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	m.setDefaults()
	files, err := pki.ReadHost(ctx, c, m.Path, pki.Source{Path: m.Path + ".pub"})
	if err != nil {
		return module.Result{}, err
	}
	private, public := files[0], files[1]
	old, readErr := m.read(private)
	was, err := newPair(old, publicLine(string(public.Text)))
	if err != nil {
		return module.Result{}, err
	}
	if m.State == "absent" {
		changed, err := removeAll(ctx, c, private, public)
		r := m.result(was, private.Path)
		r.Changed = changed
		noteDiff(c, &r, private.Path, was.describe(), value.NewDict())
		return r, err
	}
	regenerate, err := m.mustRegenerate(private, old, readErr)
	if err != nil {
		return module.Result{}, err
	}
	key := old
	if regenerate && !c.Check {
		if key, err = m.generate(); err != nil {
			return module.Result{}, err
		}
	}
	want, err := m.desired(key, was, regenerate)
	if err != nil {
		return module.Result{}, err
	}
	changed, err := m.write(ctx, c, private, public, was, want, regenerate)
	if err != nil {
		return module.Result{}, err
	}
	r := m.result(want, private.Path)
	if c.Check {
		r = m.result(was, private.Path)
	}
	r.Changed = changed
	after := want.describe()
	if regenerate && c.Check {
		after = value.NewDict("type", m.Type, "size", m.Size, "comment", want.line.comment) // the rest is random
	}
	noteDiff(c, &r, private.Path, was.describe(), after)
	return r, nil
}

// setDefaults sets the default size.
func (m *KeyPair) setDefaults() {
	if m.Passphrase != nil && m.Passphrase.Reveal() == "" {
		m.Passphrase = nil
	}
	switch {
	case m.Type == "ed25519":
		m.Size = 256
	case m.Size == 0 && m.Type == "rsa":
		m.Size = 4096
	case m.Size == 0:
		m.Size = 256
	}
}

// sshCurve returns the curve of an ECDSA key of this size, or nil if OpenSSH has none.
func sshCurve(size int) elliptic.Curve {
	return map[int]elliptic.Curve{256: elliptic.P256(), 384: elliptic.P384(), 521: elliptic.P521()}[size]
}

func (m *KeyPair) generate() (crypto.Signer, error) {
	switch m.Type {
	case "rsa":
		return certs.KeyKind{Algorithm: "RSA", Bits: m.Size}.Generate()
	case "ecdsa":
		return ecdsa.GenerateKey(sshCurve(m.Size), rand.Reader)
	}
	return certs.KeyKind{Algorithm: "Ed25519"}.Generate()
}

// mustRegenerate reports whether the keys must be regenerated.
func (m *KeyPair) mustRegenerate(have pki.HostFile, old crypto.Signer, readErr error) (bool, error) {
	switch {
	case !have.There || m.Force || m.Regenerate == "always":
		return true, nil
	case readErr != nil && m.Regenerate != "full_idempotence":
		return false, fmt.Errorf("%w. Will not proceed. To force regeneration, call the module with regenerate: "+
			"full_idempotence or force: true", readErr)
	case readErr != nil:
		return true, nil
	case m.Regenerate == "never" || m.fits(have.Text, old):
		return false, nil
	case m.Regenerate == "fail":
		kind, size := sshKind(old)
		return false, fmt.Errorf("%s: the key is %s %d, or has another form than the desired one. Will not proceed. To "+
			"force regeneration, call the module with regenerate: partial_idempotence or force: true", have.Path, kind, size)
	}
	return true, nil
}

func (m *KeyPair) fits(text []byte, key crypto.Signer) bool {
	kind, size := sshKind(key)
	switch {
	case kind != m.Type || size != m.Size:
		return false
	case m.Format == "auto":
		return true
	case m.Format == "ssh":
		return opensshForm(text)
	}
	return m.pem().formed(text, key)
}

// sshKind returns the type of a key, as ssh-keygen names it, and its size.
func sshKind(key crypto.Signer) (kind string, size int) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return "rsa", k.N.BitLen()
	case *ecdsa.PrivateKey:
		return "ecdsa", k.Curve.Params().BitSize
	}
	return "ed25519", 256
}

// pem returns the module that writes and checks the formats that OpenSSH shares with other tools.
func (m *KeyPair) pem() *PrivateKey {
	return &PrivateKey{Format: m.Format, Passphrase: m.Passphrase}
}

func opensshForm(text []byte) bool {
	return bytes.Contains(text, []byte("-----BEGIN OPENSSH PRIVATE KEY-----"))
}

// read parses a private key on the host.
func (m *KeyPair) read(f pki.HostFile) (crypto.Signer, error) {
	if !f.There || !opensshForm(f.Text) {
		return keyOf(f, m.Passphrase)
	}
	var key any
	err := certs.CheckPrivate(f.Text)
	switch {
	case err != nil:
	case m.Passphrase == nil:
		key, err = ssh.ParseRawPrivateKey(f.Text)
	case opensshRounds(f.Text) > mostBcrypt:
		err = fmt.Errorf("its passphrase uses more than %d rounds: reduce them with ssh-keygen -p -a 100", mostBcrypt)
	default:
		key, err = ssh.ParseRawPrivateKeyWithPassphrase(f.Text, []byte(m.Passphrase.Reveal()))
	}
	if ed, ok := key.(*ed25519.PrivateKey); ok {
		key = *ed
	}
	signer, ok := key.(crypto.Signer)
	switch missing := (*ssh.PassphraseMissingError)(nil); {
	case errors.As(err, &missing):
		err = certs.ErrEncrypted
	case err == nil && !ok:
		err = fmt.Errorf("it is of a kind (%T) that is not supported", key)
	}
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w", f.Path, err)
	}
	return signer, nil
}

// mostBcrypt is the maximum number of bcrypt rounds of a key on the host. Each takes some milliseconds; ssh-keygen
// uses 24.
const mostBcrypt = 2000

// opensshRounds returns the number of bcrypt rounds for the passphrase of a key, or 0 without a passphrase.
func opensshRounds(text []byte) uint32 {
	const magic = "openssh-key-v1\x00"
	block, _ := pem.Decode(text)
	if block == nil || !bytes.HasPrefix(block.Bytes, []byte(magic)) {
		return 0
	}
	var file struct {
		Cipher, Derive, Options string
		Rest                    []byte `ssh:"rest"`
	}
	var options struct {
		Salt   string
		Rounds uint32
	}
	if ssh.Unmarshal(block.Bytes[len(magic):], &file) != nil || ssh.Unmarshal([]byte(file.Options), &options) != nil {
		return 0
	}
	return options.Rounds
}

func (m *KeyPair) encode(key crypto.Signer, comment string) ([]byte, error) {
	var block *pem.Block
	var err error
	switch {
	case m.Format == "pkcs1" || m.Format == "pkcs8":
		return m.pem().encode(key)
	case m.Passphrase != nil:
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, comment, []byte(m.Passphrase.Reveal()))
	default:
		block, err = ssh.MarshalPrivateKey(key, comment)
	}
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}

// sshLine is a public key in OpenSSH format: its type and data, and a comment.
type sshLine struct{ key, comment string }

func publicLine(text string) sshLine {
	words := strings.SplitN(strings.TrimSpace(text), " ", 3)
	if len(words) < 2 {
		return sshLine{}
	}
	return sshLine{words[0] + " " + words[1], strings.Join(words[2:], "")}
}

func (l sshLine) text() []byte { return []byte(strings.TrimSpace(l.key+" "+l.comment) + "\n") }

// sshPair is a private key (nil if there is no readable one), with the public key stored in it, and the line of the
// public key file.
type sshPair struct {
	key    crypto.Signer
	public string
	line   sshLine
}

func newPair(key crypto.Signer, line sshLine) (sshPair, error) {
	if key == nil {
		return sshPair{line: line}, nil
	}
	text, err := certs.EncodeOpenSSH(key.Public())
	return sshPair{key, strings.TrimSpace(string(text)), line}, err
}

// desired returns the pair in its desired state. Of a new pair in check mode, only the comment is known.
func (m *KeyPair) desired(key crypto.Signer, was sshPair, regenerate bool) (sshPair, error) {
	comment := ""
	switch {
	case m.Comment != nil:
		comment = *m.Comment
	case !regenerate && was.line.key == was.public:
		comment = was.line.comment
	}
	p, err := newPair(key, sshLine{})
	p.line = sshLine{p.public, comment}
	return p, err
}

// write writes the files that differ.
func (m *KeyPair) write(ctx context.Context, c *module.Call, private, public pki.HostFile, was, want sshPair,
	regenerate bool) (bool, error) {
	var privateText, publicText []byte
	stale := was.line != want.line
	switch {
	case regenerate && c.Check:
		privateText, publicText = []byte("a new key"), []byte("a new key") // only their presence matters
	case regenerate || stale:
		publicText = want.line.text()
	}
	if !c.Check && (regenerate || stale && m.Comment != nil && opensshForm(private.Text)) {
		var err error
		as := *m
		if !regenerate {
			as.Format = "ssh"
		}
		if privateText, err = as.encode(want.key, want.line.comment); err != nil {
			return false, err
		}
	}
	first, err := m.keep(ctx, c, private, privateText, 0o600, false)
	if err != nil {
		return false, err
	}
	second, err := m.keep(ctx, c, public, publicText, 0o644, false)
	return first.Changed || second.Changed, err
}

func (m *KeyPair) result(p sshPair, path string) module.Result {
	return module.Result{Data: value.NewDict("filename", path, "type", m.Type, "size", m.Size,
		"fingerprint", p.fingerprint(), "public_key", p.line.key, "comment", p.line.comment)}
}

// fingerprint returns the fingerprint as ssh-keygen -l prints it.
func (p sshPair) fingerprint() string {
	_, blob, _ := strings.Cut(p.public, " ")
	raw, err := base64.StdEncoding.DecodeString(blob)
	if err != nil || len(raw) == 0 {
		return ""
	}
	sum := sha256.Sum256(raw)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

func (p sshPair) describe() *value.Dict {
	d := value.NewDict()
	if p.key != nil {
		kind, size := sshKind(p.key)
		d.Merge(value.NewDict("type", kind, "size", size, "fingerprint", p.fingerprint()))
	}
	if p.line.key != "" {
		d.Merge(value.NewDict("public_key", p.line.key, "comment", p.line.comment))
	}
	return d
}
