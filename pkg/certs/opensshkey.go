package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
)

// EncodeOpenSSH writes a public key as OpenSSH does, without a comment: its
// kind, and its numbers as strings with a length before (RFC 4253, 5656, 8709).
func EncodeOpenSSH(key crypto.PublicKey) ([]byte, error) {
	var kind string
	var parts [][]byte
	switch k := key.(type) {
	case *rsa.PublicKey:
		kind, parts = "ssh-rsa", [][]byte{mpint(big.NewInt(int64(k.E))), mpint(k.N)}
	case *ecdsa.PublicKey:
		curve := map[string]string{"P-256": "nistp256", "P-384": "nistp384", "P-521": "nistp521"}[k.Params().Name]
		if curve == "" {
			return nil, fmt.Errorf("OpenSSH does not support the curve %s", k.Params().Name)
		}
		point, err := k.Bytes()
		if err != nil {
			return nil, err
		}
		kind, parts = "ecdsa-sha2-"+curve, [][]byte{[]byte(curve), point}
	case ed25519.PublicKey:
		kind, parts = "ssh-ed25519", [][]byte{k}
	default:
		return nil, fmt.Errorf("OpenSSH does not support this type of key (%T)", key)
	}
	var blob []byte
	for _, part := range append([][]byte{[]byte(kind)}, parts...) {
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(part)))
		blob = append(blob, part...)
	}
	return []byte(kind + " " + base64.StdEncoding.EncodeToString(blob) + "\n"), nil
}

// mpint encodes a positive number such that its first bit is not a sign.
func mpint(n *big.Int) []byte {
	b := n.Bytes()
	if len(b) > 0 && b[0] >= 0x80 {
		b = append([]byte{0}, b...)
	}
	return b
}
