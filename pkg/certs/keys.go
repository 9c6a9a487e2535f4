// Package certs reads, writes and describes keys, and the parts of X.509 certificates and requests:
// names (RFC 5280), encrypted keys (PKCS #8 with PBES2), OpenSSH public keys.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"kubekey/pkg/redact"
	input "kubekey/pkg/source"
)

// Authority is the certificate of a CA, and its key.
type Authority struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// KeyKind is the kind of a key: RSA with its bits, ECDSA with its curve, or Ed25519.
type KeyKind struct {
	Algorithm string
	Bits      int
	Curve     string
}

func (k KeyKind) String() string {
	switch k.Algorithm {
	case "RSA":
		return fmt.Sprintf("RSA %d", k.Bits)
	case "ECDSA":
		return "ECDSA " + k.Curve
	}
	return k.Algorithm
}

// Generate makes a new key of the kind.
func (k KeyKind) Generate() (crypto.Signer, error) {
	switch {
	case k.Algorithm == "RSA":
		return rsa.GenerateKey(rand.Reader, k.Bits)
	case k.Algorithm == "Ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case k.Curve == "P-384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// KindName names the kind of a public key as KeyKind.String does.
func KindName(public any) string {
	switch p := public.(type) {
	case *rsa.PublicKey:
		return KeyKind{Algorithm: "RSA", Bits: p.N.BitLen()}.String()
	case *ecdsa.PublicKey:
		return KeyKind{Algorithm: "ECDSA", Curve: p.Curve.Params().Name}.String()
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return "of an unknown kind"
}

// Same reports whether two public keys are equal.
func Same(a, b any) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// ErrEncrypted reports that a key needs a passphrase.
var ErrEncrypted = errors.New("the key is encrypted with a passphrase: give it, or store the key without one")

// errPlain reports that a passphrase is given for a key without one.
var errPlain = errors.New("a passphrase is given, but the key is not encrypted")

// ReadPEM reads a file of the control node.
func ReadPEM(path string) ([]byte, error) { return input.Tree{}.Raw().Read(path, input.MaxSecret) }

// ReadKey reads a key in any of the usual PEM forms.
func ReadKey(path string) (crypto.Signer, error) {
	text, err := ReadPEM(path)
	if err != nil {
		return nil, err
	}
	return DecodeKey(path, text, nil)
}

// DecodeKey finds the key in the text of a file. With a passphrase it must be
// encrypted, without one it must not be.
func DecodeKey(path string, text []byte, passphrase *redact.Secret) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := DecodeBlock(block, passphrase)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		case key != nil:
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s holds no key in PEM form", path)
}

// DecodeBlock is the key in a block, nil if it is something else.
func DecodeBlock(block *pem.Block, passphrase *redact.Secret) (crypto.Signer, error) {
	switch {
	case block.Headers["DEK-Info"] != "" && passphrase != nil:
		return nil, errCipher
	case block.Type != "ENCRYPTED PRIVATE KEY" && block.Headers["DEK-Info"] == "":
		key, ok := parseKey(block)
		if ok && passphrase != nil {
			return nil, errPlain
		}
		return key, nil
	case passphrase == nil:
		return nil, ErrEncrypted
	}
	return DecryptKey(block.Bytes, passphrase.Reveal())
}

func parseKey(block *pem.Block) (crypto.Signer, bool) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = readPKCS8(block.Bytes)
	case "RSA PRIVATE KEY":
		if err = CheckPrivate(block.Bytes); err == nil {
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		}
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	}
	signer, ok := key.(crypto.Signer)
	return signer, ok && err == nil
}

// ParseCerts reads the certificates of a PEM text, in order.
func ParseCerts(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		crt, err := ReadCert(block.Bytes)
		if err != nil {
			return nil, err
		}
		certs = append(certs, crt)
	}
	if len(certs) == 0 {
		return nil, errors.New("holds no certificate in PEM form")
	}
	return certs, nil
}

// ReadCerts reads the certificates of a file of the control node.
func ReadCerts(path string) ([]*x509.Certificate, error) {
	text, err := ReadPEM(path)
	if err != nil {
		return nil, err
	}
	certs, err := ParseCerts(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return certs, nil
}

// EncodeKey encodes a key as PKCS #8 in PEM, without a passphrase.
func EncodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// EncodePublic is a public key as SubjectPublicKeyInfo in PEM.
func EncodePublic(public any) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}

// EncodeCert is a certificate in PEM.
func EncodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
