package crypto

import (
	"bytes"
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// keySource contains the arguments for the private key of a file.
type keySource struct {
	KeyPath string         `kk:"privatekey_path,path" doc:"private key, a file of the host"`
	KeyText *redact.Secret `kk:"privatekey_content" doc:"private key, as a text"`
	KeyPass *redact.Secret `kk:"privatekey_passphrase" doc:"passphrase of the key; an error for a key without one"`
}

func (k *keySource) source() pki.Source {
	s := pki.Source{Path: k.KeyPath, Name: "privatekey_content"}
	if k.KeyText != nil {
		s.Text = k.KeyText.Reveal()
	}
	return s
}

// keyRules require exactly one key.
func keyRules() schema.Rules {
	return schema.Rules{
		schema.AtMostOne("privatekey_path", "privatekey_content"),
		schema.AtLeastOne("privatekey_path", "privatekey_content").If("state", "present").
			Says("one of the following is required: privatekey_path, privatekey_content"),
	}
}

// PublicKey is the module openssl_publickey.
type PublicKey struct {
	backend
	placement
	keySource
	Format string `kk:"format" default:"PEM" choices:"PEM,OpenSSH" doc:"format: PEM, or a line for authorized_keys"`
}

func publicKeySpec() module.Spec {
	return module.Spec{
		Name: "openssl_publickey", Collection: "community.crypto",
		Summary: "Manages the public key of a private key on the host.",
		Examples: []string{
			"- name: Write the public key in PEM format\n  openssl_publickey:\n    path: /etc/ssl/web.pub\n" +
				"    privatekey_path: /etc/ssl/private/web.pem",
			"- name: Write the public key in OpenSSH format\n  openssl_publickey:\n    path: /etc/ssl/web.ssh\n" +
				"    privatekey_path: /etc/ssl/private/web.pem\n    format: OpenSSH",
		},
		Returns: placementReturns("publickey",
			module.Return{Key: "fingerprint", Type: "dict", Doc: "digests of the key, by algorithm"},
			module.Return{Key: "format", Type: "str", Doc: "the argument"},
			module.Return{Key: "privatekey", Type: "str", Doc: "privatekey_path"},
		),
		New: func() module.Runner { return new(PublicKey) },
	}
}

// Rules implements schema.Ruled.
func (*PublicKey) Rules() schema.Rules { return keyRules() }

// Run implements module.Runner.
func (m *PublicKey) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.State == "absent" {
		r, _, err := m.remove(ctx, c)
		m.describe(&r, value.NewDict())
		m.content(c, &r, "publickey", pki.HostFile{}, nil)
		return r, err
	}
	files, err := pki.ReadHost(ctx, c, m.Path, m.source())
	if err != nil {
		return module.Result{}, err
	}
	key, err := keyOf(files[1], m.KeyPass)
	if err != nil {
		r, err := notYet(c, files[0], err)
		m.describe(&r, value.NewDict())
		return r, err
	}
	text, err := m.encode(key.Public())
	if err != nil {
		return module.Result{}, err
	}
	if !m.Force && m.there(key.Public(), text, files[0].Text) {
		text = nil
	}
	r, err := m.keep(ctx, c, files[0], text, 0o644)
	if err != nil {
		return r, err
	}
	fingerprint := certs.KeyFingerprint(key.Public())
	noteDiff(c, &r, files[0].Path, value.NewDict(), value.NewDict("fingerprint", fingerprint, "privatekey", m.KeyPath))
	m.describe(&r, fingerprint)
	m.content(c, &r, "publickey", files[0], text)
	return r, nil
}

func (m *PublicKey) describe(r *module.Result, fingerprint *value.Dict) {
	if r.Data != nil {
		r.Data.Merge(value.NewDict("privatekey", given(m.KeyPath), "format", m.Format, "fingerprint", fingerprint))
	}
}

func (m *PublicKey) encode(key crypto.PublicKey) ([]byte, error) {
	if m.Format == "OpenSSH" {
		text, err := certs.EncodeOpenSSH(key)
		return bytes.TrimSpace(text), err
	}
	return certs.EncodePublic(key)
}

// there reports whether the file contains the key in the requested format. Text after an OpenSSH key is a comment.
func (m *PublicKey) there(key crypto.PublicKey, want, have []byte) bool {
	if m.Format == "OpenSSH" {
		words := strings.Fields(string(have))
		return len(words) >= 2 && words[0]+" "+words[1] == strings.TrimSpace(string(want))
	}
	block, _ := pem.Decode(have)
	if block == nil || block.Type != "PUBLIC KEY" {
		return false
	}
	old, err := x509.ParsePKIXPublicKey(block.Bytes)
	return err == nil && certs.Same(key, old)
}

// notYet returns the result of a task whose input file is missing. In check mode an earlier task would perhaps
// create it, so this task's file is reported as changed.
func notYet(c *module.Call, have pki.HostFile, err error) (module.Result, error) {
	if !c.Check || !errors.Is(err, pki.ErrAway) {
		return module.Result{}, err
	}
	return module.Result{
		Changed: true, Data: value.NewDict("filename", have.Path),
		Warnings: []string{fmt.Sprintf("%v (check mode: assuming that a task before makes it)", err)},
	}, nil
}
