package pki

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

// keyKind is the kind of a key: RSA with its bits, ECDSA with its curve, or Ed25519.
type keyKind struct {
	algorithm string
	bits      int
	curve     string
}

func (k keyKind) String() string {
	switch k.algorithm {
	case "RSA":
		return fmt.Sprintf("RSA %d", k.bits)
	case "ECDSA":
		return "ECDSA " + k.curve
	}
	return k.algorithm
}

func (k keyKind) generate() (crypto.Signer, error) {
	switch {
	case k.algorithm == "RSA":
		return rsa.GenerateKey(rand.Reader, k.bits)
	case k.algorithm == "Ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case k.curve == "P-384":
		return ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// kindName names the kind of a public key as keyKind.String does.
func kindName(public any) string {
	switch p := public.(type) {
	case *rsa.PublicKey:
		return keyKind{algorithm: "RSA", bits: p.N.BitLen()}.String()
	case *ecdsa.PublicKey:
		return keyKind{algorithm: "ECDSA", curve: p.Curve.Params().Name}.String()
	case ed25519.PublicKey:
		return "Ed25519"
	}
	return "of an unknown kind"
}

// same reports whether two public keys are equal.
func same(a, b any) bool {
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// errEncrypted says that a key needs a passphrase.
var errEncrypted = errors.New("the key is encrypted with a passphrase; give it, or store the key without one")

// errPlain says that a key has no passphrase where one is given.
var errPlain = errors.New("a passphrase is given, but the key is not encrypted")

func readPEM(path string) ([]byte, error) { return input.Tree{}.Raw().Read(path, input.MaxSecret) }

// readKey reads a key in any of the usual PEM forms.
func readKey(path string) (crypto.Signer, error) {
	text, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	return decodeKey(path, text, nil)
}

// decodeKey finds the key in the text of a file. With a passphrase it must be
// encrypted, without one it must not.
func decodeKey(path string, text []byte, passphrase *redact.Secret) (crypto.Signer, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := decodeBlock(block, passphrase)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		case key != nil:
			return key, nil
		}
	}
	return nil, fmt.Errorf("%s holds no key in PEM form", path)
}

// decodeBlock is the key in a block, nil if it is something else.
func decodeBlock(block *pem.Block, passphrase *redact.Secret) (crypto.Signer, error) {
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
		return nil, errEncrypted
	}
	return decryptKey(block.Bytes, passphrase.Reveal())
}

func parseKey(block *pem.Block) (crypto.Signer, bool) {
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	}
	signer, ok := key.(crypto.Signer)
	return signer, ok && err == nil
}

// parseCerts reads the certificates of a PEM text, in order.
func parseCerts(text []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		crt, err := x509.ParseCertificate(block.Bytes)
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

func readCerts(path string) ([]*x509.Certificate, error) {
	text, err := readPEM(path)
	if err != nil {
		return nil, err
	}
	certs, err := parseCerts(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return certs, nil
}

func encodeKey(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

func encodePublic(public any) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), err
}

func encodeCert(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
