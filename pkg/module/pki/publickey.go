package pki

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/value"
)

// keySource are the arguments that name the private key of a file.
type keySource struct {
	KeyPath string         `kk:"privatekey_path,path" doc:"private key, a file of the host"`
	KeyText *redact.Secret `kk:"privatekey_content" doc:"private key, as a text"`
}

func (k *keySource) source() source {
	s := source{path: k.KeyPath, name: "privatekey_content"}
	if k.KeyText != nil {
		s.text = k.KeyText.Reveal()
	}
	return s
}

func (k *keySource) check() error {
	if (k.KeyPath == "") == (k.KeyText == nil) {
		return errors.New("give one of privatekey_path and privatekey_content")
	}
	return nil
}

// PublicKey is the module openssl_publickey.
type PublicKey struct {
	placement
	keySource
}

func publicKeySpec() module.Spec {
	return module.Spec{
		Name: "openssl_publickey", Collection: "community.crypto",
		Summary: "Keep the public half of a private key on the host, in PEM form.",
		Notes:   []string{"Keys with a passphrase are not read."},
		Examples: []string{
			"- name: The public key beside the private one\n  openssl_publickey:\n    path: /etc/ssl/web.pub\n    privatekey_path: /etc/ssl/private/web.pem",
		},
		Returns: placementReturns("publickey", module.Return{Key: "fingerprint", Type: "dict", Doc: "digests of the key, by algorithm"}),
		New:     func() module.Runner { return new(PublicKey) },
	}
}

// Run implements module.Runner.
func (m *PublicKey) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	if m.State == "absent" {
		return m.remove(ctx, c)
	}
	if err := m.check(); err != nil {
		return module.Result{}, err
	}
	files, err := readHost(ctx, c, m.Path, m.source())
	if err != nil {
		return module.Result{}, err
	}
	key, err := keyOf(files[1])
	if err != nil {
		return notYet(c, files[0], err)
	}
	text, err := encodePublic(key.Public())
	if err != nil {
		return module.Result{}, err
	}
	if block, _ := pem.Decode(files[0].text); !m.Force && block != nil && block.Type == "PUBLIC KEY" {
		if old, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil && same(key.Public(), old) {
			text = nil
		}
	}
	r, err := m.keep(ctx, c, files[0], text, 0o644)
	if err != nil {
		return r, err
	}
	told(c, &r, files[0].path, value.NewDict(), value.NewDict("fingerprint", keyFingerprint(key.Public()), "privatekey", m.KeyPath))
	m.content(&r, "publickey", files[0], text)
	return r, nil
}

// content puts what is in the file into the result, where asked for.
func (p *placement) content(r *module.Result, key string, have hostFile, text []byte) {
	if !p.Content {
		return
	}
	if text == nil {
		text = have.text
	}
	r.Data.Set(key, string(text))
}

// notYet is the result of a task that lacks a file: in check mode a task
// before may be about to make it, so the file of this one will change.
func notYet(c *module.Call, have hostFile, err error) (module.Result, error) {
	if !c.Check || !errors.Is(err, errAway) {
		return module.Result{}, err
	}
	return module.Result{
		Changed: true, Data: value.NewDict("filename", have.path),
		Warnings: []string{fmt.Sprintf("%v (check mode: assuming that a task before makes it)", err)},
	}, nil
}
