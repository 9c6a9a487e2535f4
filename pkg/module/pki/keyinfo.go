package pki

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"
	"math/big"

	"kubekey/pkg/module"
	"kubekey/pkg/redact"
	"kubekey/pkg/schema"
	"kubekey/pkg/value"
)

// KeyInfo is the module openssl_privatekey_info.
type KeyInfo struct {
	Backend     string         `kk:"select_crypto_backend" default:"auto" choices:"auto,cryptography" doc:"without effect: kk needs no library for it"`
	Path        string         `kk:"path,path" doc:"file of the host that holds the key"`
	Content     *redact.Secret `kk:"content" doc:"the key, as a text"`
	Passphrase  *redact.Secret `kk:"passphrase" doc:"its passphrase; one that is given to a key without any is an error"`
	PrivateData bool           `kk:"return_private_key_data" default:"no" doc:"tell private_data too: keep that out of logs with no_log"`
	Consistent  bool           `kk:"check_consistency" default:"no" doc:"tell in key_is_consistent that the parts of the key belong together"`
}

func keyInfoSpec() module.Spec {
	return module.Spec{
		Name: "openssl_privatekey_info", Collection: "community.crypto",
		Summary: "Tells what a private key is.",
		Notes:   []string{"It is judged on the control node, so hosts need no openssl. A key whose parts do not belong together cannot be read at all."},
		Examples: []string{
			"- name: What the web server's key is\n  openssl_privatekey_info:\n    path: /etc/ssl/private/web.pem\n  register: key",
		},
		Returns: append([]module.Return{
			{Key: "can_load_key", Type: "bool", Doc: "the file could be read"},
			{Key: "can_parse_key", Type: "bool", Doc: "it holds a key, and the passphrase is its own"},
			{Key: "key_is_consistent", Type: "bool", Doc: "its parts belong together; null unless check_consistency is given"},
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
func (*KeyInfo) Rules() schema.Rules { return oneSource() }

// Run implements module.Runner.
func (m *KeyInfo) Run(ctx context.Context, c *module.Call) (module.Result, error) {
	from := source{path: m.Path, name: "content"}
	if m.Content != nil {
		from.text = m.Content.Reveal()
	}
	f, err := readOne(ctx, c, from)
	r := module.Result{Data: value.NewDict("can_load_key", err == nil, "can_parse_key", false, "key_is_consistent", nil)}
	if err != nil {
		return failed(r, err), nil
	}
	key, err := decodeKey(f.path, f.text, m.Passphrase)
	if err != nil {
		return failed(r, err), nil
	}
	r.Data.Set("can_parse_key", true)
	if m.Consistent {
		r.Data.Set("key_is_consistent", true) // or Go would not have read it
	}
	kind, data := publicData(key.Public())
	r.Data.Set("type", kind)
	r.Data.Set("public_data", data)
	text, err := encodePublic(key.Public())
	if err != nil {
		return r, err
	}
	r.Data.Set("public_key", string(text))
	r.Data.Set("public_key_fingerprints", keyFingerprint(key.Public()))
	if m.PrivateData {
		r.Data.Set("private_data", privateData(key))
	}
	return r, nil
}

// failed is a result that tells what is known in spite of an error.
func failed(r module.Result, err error) module.Result {
	r.Failed, r.Msg = true, err.Error()
	return r
}

// oneSource are the rules of arguments of which one says what to look at.
func oneSource() schema.Rules {
	return schema.Rules{schema.AtMostOne("path", "content"), schema.AtLeastOne("path", "content"), schema.Needs("path").If("content", "")}
}

// readOne is the one file or text that a task is to look at.
func readOne(ctx context.Context, c *module.Call, from source) (hostFile, error) {
	if from.text != "" {
		return hostFile{path: from.name, there: true, text: []byte(from.text)}, nil
	}
	files, err := readHost(ctx, c, from.path)
	if err != nil {
		return hostFile{}, err
	}
	if !files[0].there {
		return hostFile{}, fmt.Errorf("%s: %w", from.path, errAway)
	}
	return files[0], nil
}

// publicData is the kind of a public key and its numbers.
func publicData(public crypto.PublicKey) (kind string, data *value.Dict) {
	switch k := public.(type) {
	case *rsa.PublicKey:
		return "RSA", value.NewDict("size", k.N.BitLen(), "modulus", intOrDigits(k.N), "exponent", k.E)
	case *ecdsa.PublicKey:
		data = value.NewDict("curve", curveName(k.Curve), "exponent_size", k.Params().BitSize)
		if point, err := k.Bytes(); err == nil { // 4, x, y
			half := len(point) / 2
			data.Set("x", intOrDigits(new(big.Int).SetBytes(point[1:half+1])))
			data.Set("y", intOrDigits(new(big.Int).SetBytes(point[half+1:])))
		}
		return "ECC", data
	case ed25519.PublicKey:
		return "Ed25519", value.NewDict()
	}
	return "unknown", value.NewDict()
}

func privateData(key crypto.Signer) *value.Dict {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		d := value.NewDict("exponent", intOrDigits(k.D))
		for i, name := range []string{"p", "q"} {
			d.Set(name, intOrDigits(k.Primes[i]))
		}
		return d
	case *ecdsa.PrivateKey:
		if b, err := k.Bytes(); err == nil {
			return value.NewDict("multiplier", intOrDigits(new(big.Int).SetBytes(b)))
		}
	}
	return value.NewDict()
}
