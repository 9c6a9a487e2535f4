package crypto

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa" //nolint:gosec // a documented key of results
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// PrivateKey is the module openssl_privatekey.
type PrivateKey struct {
	backend
	placement
	Type       string         `kk:"type" default:"RSA" choices:"ECC,Ed25519,RSA" doc:"type of the key"`
	Size       int            `kk:"size" default:"4096" doc:"bits of an RSA key, 2048 to 8192"`
	Curve      string         `kk:"curve" choices:"prime256v1,secp224r1,secp256r1,secp384r1,secp521r1" doc:"curve of an ECC key; needed for one"`
	Format     string         `kk:"format" default:"auto_ignore" choices:"auto,auto_ignore,pkcs1,pkcs8" doc:"PEM format: pkcs1 is the traditional one for RSA and ECC; auto uses it where it exists. auto_ignore keeps the format of an existing key"`
	Passphrase *redact.Secret `kk:"passphrase" doc:"passphrase of the key; the format is PKCS #8 with AES-256 then"`
	Cipher     string         `kk:"cipher" choices:"auto" doc:"cipher for a key with a passphrase; only auto is supported"`
	Mismatch   string         `kk:"format_mismatch" default:"regenerate" choices:"convert,regenerate" doc:"what to do with a key in another format: generate a new key, or convert it"`
	Regenerate string         `kk:"regenerate" default:"full_idempotence" choices:"always,fail,full_idempotence,never,partial_idempotence" doc:"what to do if the existing key differs: never keeps it, fail fails, and so does partial_idempotence if it is not a key; full_idempotence regenerates it"`
}

func privateKeySpec() module.Spec {
	return module.Spec{
		Name: "openssl_privatekey", Collection: "community.crypto",
		Summary: "Manages a private key on the host.",
		Notes: []string{
			"The key is generated on the control node and sent on standard input: the host needs no openssl. An existing " +
				"key is read back for comparison.",
			"A key with another passphrase, or without one, counts as different: see regenerate.",
		},
		Examples: []string{
			"- name: Create a key for the web server\n  openssl_privatekey:\n    path: /etc/ssl/private/web.pem\n" +
				"    type: ECC\n    curve: secp384r1",
		},
		Returns: placementReturns("privatekey",
			module.Return{Key: "type", Type: "str", Doc: "the argument"},
			module.Return{Key: "size", Type: "int", Doc: "the argument, of any type of key"},
			module.Return{Key: "curve", Type: "str", Doc: "the argument, with type ECC"},
			module.Return{Key: "fingerprint", Type: "dict", Doc: "digests of the public key, by algorithm, as hexadecimal " +
				"pairs with colons between"},
		),
		New: func() module.Runner { return new(PrivateKey) },
	}
}

// curves returns the curves of ECC keys by their OpenSSL names.
func curves() map[string]elliptic.Curve {
	return map[string]elliptic.Curve{
		"secp224r1": elliptic.P224(), "prime256v1": elliptic.P256(), "secp256r1": elliptic.P256(),
		"secp384r1": elliptic.P384(), "secp521r1": elliptic.P521(),
	}
}

// Rules implements schema.Ruled.
func (*PrivateKey) Rules() schema.Rules {
	return schema.Rules{
		schema.Needs("curve").If("type", "ECC").If("state", "present").
			Says("type is ECC but all of the following are missing: curve"),
		schema.Between("size", 2048, 8192).If("type", "RSA").If("state", "present"),
		schema.Chooses("format", "auto", "auto_ignore", "pkcs8").If("type", "Ed25519").
			Says("an Ed25519 key has no pkcs1 form"),
		schema.Needs("passphrase").With("cipher").Says("parameters are required together: cipher, passphrase"),
		schema.Refuses("passphrase").If("passphrase", "").Says("the passphrase is empty"),
		schema.Chooses("format", "auto", "auto_ignore", "pkcs8").With("passphrase").
			Says("a key with a passphrase has no pkcs1 form here: leave out format"),
	}
}

// Run implements module.Runner.
func (m *PrivateKey) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.State == "absent" {
		r, _, err := m.remove(ctx, c)
		m.describe(&r, nil)
		m.content(c, &r, "privatekey", pki.HostFile{}, nil)
		return r, err
	}
	files, err := pki.ReadHost(ctx, c, m.Path)
	if err != nil {
		return module.Result{}, err
	}
	have := files[0]
	old, readErr := keyOf(have, m.Passphrase)
	regenerate, err := m.mustRegenerate(have, old, readErr)
	if err != nil {
		return module.Result{}, err
	}
	key, text := old, []byte(nil)
	switch {
	case regenerate && c.Check:
		text = []byte("a new key") // only its presence matters
	case regenerate:
		if key, err = m.generate(); err != nil {
			return module.Result{}, err
		}
		text, err = m.encode(key)
	case m.Mismatch == "convert" && !m.formed(have.Text, old):
		text, err = m.encode(old)
	}
	if err != nil {
		return module.Result{}, err
	}
	r, err := m.keep(ctx, c, have, text, 0o600)
	if err != nil {
		return r, err
	}
	noteDiff(c, &r, have.Path, certs.DescribeKey(old), certs.DescribeKey(key))
	m.describe(&r, key)
	m.content(c, &r, "privatekey", have, text)
	return r, nil
}

// describe adds the requested values and the fingerprint of the key.
func (m *PrivateKey) describe(r *module.Result, key crypto.Signer) {
	if r.Data == nil {
		return
	}
	r.Data.Merge(value.NewDict("type", m.Type, "size", m.Size, "fingerprint", nil))
	if m.Type == "ECC" {
		r.Data.Set("curve", m.Curve)
	}
	if key != nil {
		r.Data.Set("fingerprint", certs.KeyFingerprint(key.Public()))
	}
}

// mustRegenerate reports whether the key must be regenerated.
func (m *PrivateKey) mustRegenerate(have pki.HostFile, old crypto.Signer, readErr error) (bool, error) {
	unfit := readErr
	switch {
	case readErr != nil:
	case !m.fits(old):
		unfit = fmt.Errorf("the key is %s, not of the requested type", certs.KindName(old.Public()))
	case m.Mismatch == "regenerate" && !m.formed(have.Text, old):
		unfit = errors.New("the key has another format; set format_mismatch: convert to rewrite it")
	}
	switch {
	case !have.There || m.Force || m.Regenerate == "always":
		return true, nil
	case unfit == nil || m.Regenerate == "never" && readErr == nil:
		return false, nil
	case m.Regenerate == "full_idempotence", m.Regenerate == "partial_idempotence" && readErr == nil:
		return true, nil
	}
	return false, fmt.Errorf("%s: %w. Will not proceed. To force regeneration, call the module with regenerate: "+
		"full_idempotence or force: true", have.Path, unfit)
}

// formed reports whether a key has the requested format.
func (m *PrivateKey) formed(text []byte, key crypto.Signer) bool {
	return m.Format == "auto_ignore" || bytes.Contains(text, []byte("-----BEGIN "+m.pemType(key)))
}

func (m *PrivateKey) fits(key crypto.Signer) bool {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return m.Type == "RSA" && k.N.BitLen() == m.Size
	case *ecdsa.PrivateKey:
		return m.Type == "ECC" && k.Curve == curves()[m.Curve]
	}
	return m.Type == "Ed25519"
}

func (m *PrivateKey) generate() (crypto.Signer, error) {
	switch m.Type {
	case "RSA":
		return certs.KeyKind{Algorithm: "RSA", Bits: m.Size}.Generate()
	case "ECC":
		return ecdsa.GenerateKey(curves()[m.Curve], rand.Reader)
	}
	return certs.KeyKind{Algorithm: "Ed25519"}.Generate()
}

// pemType returns the PEM label of the requested format.
func (m *PrivateKey) pemType(key crypto.Signer) string {
	if m.Passphrase != nil {
		return "ENCRYPTED PRIVATE KEY"
	}
	if m.Format != "pkcs8" {
		switch key.(type) {
		case *rsa.PrivateKey:
			return "RSA PRIVATE KEY"
		case *ecdsa.PrivateKey:
			return "EC PRIVATE KEY"
		}
	}
	return "PRIVATE KEY"
}

func (m *PrivateKey) encode(key crypto.Signer) ([]byte, error) {
	var der []byte
	var err error
	switch label := m.pemType(key); label {
	case "ENCRYPTED PRIVATE KEY":
		der, err = certs.EncryptKey(key, m.Passphrase.Reveal(), certs.NewRounds)
	case "RSA PRIVATE KEY":
		k, _ := key.(*rsa.PrivateKey)
		der = x509.MarshalPKCS1PrivateKey(k)
	case "EC PRIVATE KEY":
		k, _ := key.(*ecdsa.PrivateKey)
		der, err = x509.MarshalECPrivateKey(k)
	default:
		return certs.EncodeKey(key)
	}
	return pem.EncodeToMemory(&pem.Block{Type: m.pemType(key), Bytes: der}), err
}

// keyOf reads a key on the host, with its passphrase if it has one.
func keyOf(f pki.HostFile, passphrase *redact.Secret) (crypto.Signer, error) {
	if !f.There {
		return nil, fmt.Errorf("%s: %w", f.Path, pki.ErrAway)
	}
	return certs.DecodeKey(f.Path, f.Text, passphrase)
}
