package crypto

import (
	"context"

	"kubekey/pkg/certs"
	"kubekey/pkg/module"
	"kubekey/pkg/module/pki"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// KeyInfo is the module openssl_privatekey_info.
type KeyInfo struct {
	Backend     string         `kk:"select_crypto_backend" default:"auto" choices:"auto,cryptography" doc:"without effect: kk needs no library for it"`
	Path        string         `kk:"path,path" doc:"path of the key on the host"`
	Content     *redact.Secret `kk:"content" doc:"the key, as a text"`
	Passphrase  *redact.Secret `kk:"passphrase" doc:"passphrase of the key; an error for a key without one"`
	PrivateData bool           `kk:"return_private_key_data" default:"no" doc:"also return private_data: keep it out of logs with no_log"`
	Consistent  bool           `kk:"check_consistency" default:"no" doc:"return in key_is_consistent whether the parts of the key belong together"`
}

func keyInfoSpec() module.Spec {
	return module.Spec{
		Name: "openssl_privatekey_info", Collection: "community.crypto",
		Summary: "Returns properties of a private key.",
		Notes: []string{"The key is parsed on the control node, so hosts need no openssl. A key whose parts do not " +
			"belong together cannot be read at all."},
		Examples: []string{
			"- name: Read the key of the web server\n  openssl_privatekey_info:\n    path: /etc/ssl/private/web.pem\n" +
				"  register: key",
		},
		Returns: append([]module.Return{
			{Key: "can_load_key", Type: "bool", Doc: "whether the file could be read"},
			{Key: "can_parse_key", Type: "bool", Doc: "whether it is a key, and the passphrase is right"},
			{Key: "key_is_consistent", Type: "bool", Doc: "whether its parts belong together; null unless " +
				"check_consistency is set"},
			{Key: "type", Type: "str", Doc: "RSA, ECC or Ed25519"},
			{Key: "public_data", Type: "dict", Doc: "size, modulus and exponent, or curve, exponent_size, x and y"},
			{Key: "private_data", Type: "dict", Doc: "p, q and exponent, or multiplier; with return_private_key_data"},
		}, publicReturns("the public half")...),
		New:   func() module.Runner { return &KeyInfo{} },
		Check: module.Harmless,
	}
}

func publicReturns(what string) []module.Return {
	return []module.Return{
		{Key: "public_key", Type: "str", Doc: what + ", PEM"},
		{Key: "public_key_fingerprints", Type: "dict", Doc: "its digests"},
	}
}

// Rules implements schema.Ruled.
func (*KeyInfo) Rules() schema.Rules { return pki.OneSource() }

// Run implements module.Runner.
func (m *KeyInfo) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	from := pki.Source{Path: m.Path, Name: "content"}
	if m.Content != nil {
		from.Text = m.Content.Reveal()
	}
	f, err := pki.ReadOne(ctx, c, from)
	r := module.Result{Data: value.NewDict("can_load_key", err == nil, "can_parse_key", false, "key_is_consistent", nil)}
	if err != nil {
		return failed(r, err), nil
	}
	key, err := certs.DecodeKey(f.Path, f.Text, m.Passphrase)
	if err != nil {
		return failed(r, err), nil
	}
	r.Data.Set("can_parse_key", true)
	if m.Consistent {
		r.Data.Set("key_is_consistent", true) // Go rejects inconsistent keys
	}
	kind, data := certs.PublicData(key.Public())
	r.Data.Set("type", kind)
	r.Data.Set("public_data", data)
	text, err := certs.EncodePublic(key.Public())
	if err != nil {
		return r, err
	}
	r.Data.Set("public_key", string(text))
	r.Data.Set("public_key_fingerprints", certs.KeyFingerprint(key.Public()))
	if m.PrivateData {
		r.Data.Set("private_data", certs.PrivateData(key))
	}
	return r, nil
}

// failed returns a result with everything that is known in spite of an error.
func failed(r module.Result, err error) module.Result {
	r.Failed, r.Msg = true, err.Error()
	return r
}
