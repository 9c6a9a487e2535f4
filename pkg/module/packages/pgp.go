package packages

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// The OpenPGP reader serves apt_key, apt_repository (PPAs), deb822_repository and rpm_key. It finds the
// fingerprints of the keys that they install, so that hosts need no gpg.

// pgpKey is an OpenPGP public key (RFC 4880, RFC 9580).
type pgpKey struct {
	fingerprint string   // upper-case hexadecimal
	all         []string // of the key itself and of its subkeys
	packets     []byte   // in binary, with signatures and names
}

// id is the key's number of 64 bits.
func (k pgpKey) id() string { return pgpID(k.fingerprint) }

// pgpID is the end of a fingerprint of 160 bits, and the beginning of a longer one.
func pgpID(fingerprint string) string {
	if len(fingerprint) > 40 {
		return fingerprint[:16]
	}
	return fingerprint[len(fingerprint)-16:]
}

// has reports whether a number or fingerprint of the key or a subkey is id:
// upper-case hexadecimal of 8 digits or more.
func (k pgpKey) has(id string) bool {
	for _, f := range k.all {
		if f == id || pgpID(f) == id || len(f) == 40 && strings.HasSuffix(f, id) {
			return true
		}
	}
	return false
}

// parseKeyID reads a number or fingerprint as people write it.
func parseKeyID(text string) (string, error) {
	id := strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	id = strings.TrimPrefix(id, "0X")
	if len(id) < 8 || strings.Trim(id, "0123456789ABCDEF") != "" {
		return "", fmt.Errorf("%q is not the ID of a key: write 8, 16 or 40 hexadecimal digits", text)
	}
	return id, nil
}

const (
	armorBegin = "-----BEGIN PGP PUBLIC KEY BLOCK-----"
	armorEnd   = "-----END PGP PUBLIC KEY BLOCK-----"
)

func isArmored(data []byte) bool { return bytes.Contains(data, []byte(armorBegin)) }

// pgpKeys reads the public keys of a file, armored or not.
func pgpKeys(data []byte) ([]pgpKey, error) {
	if len(data) >= 12 && string(data[8:12]) == "KBXf" {
		return nil, errors.New("it is a keybox of GnuPG, which apt does not read: export the keys")
	}
	if isArmored(data) {
		binary, err := dearmor(data)
		if err != nil {
			return nil, err
		}
		data = binary
	}
	var keys []pgpKey
	for len(data) > 0 {
		tag, body, size, err := pgpPacket(data)
		if err != nil {
			return nil, err
		}
		if tag == 6 {
			keys = append(keys, pgpKey{})
		}
		if len(keys) == 0 {
			return nil, fmt.Errorf("it begins with a packet of type %d and not with a public key", tag)
		}
		k := &keys[len(keys)-1]
		k.packets = append(k.packets, data[:size]...)
		if tag == 6 || tag == 14 {
			f, err := pgpFingerprint(body)
			if err != nil {
				return nil, err
			}
			k.all = append(k.all, f)
			k.fingerprint = k.all[0]
		}
		data = data[size:]
	}
	return keys, nil
}

// dearmor decodes all blocks of a text; checksums are ignored.
func dearmor(data []byte) ([]byte, error) {
	var out []byte
	text := strings.ReplaceAll(string(data), "\r", "")
	for {
		_, rest, found := strings.Cut(text, armorBegin)
		if !found {
			return out, nil
		}
		block, after, ended := strings.Cut(rest, armorEnd)
		_, body, headed := strings.Cut(block, "\n\n")
		if !ended || !headed {
			return nil, errors.New("the armored key is incomplete: it has no end, or no blank line after its headers")
		}
		body, _, _ = strings.Cut(body, "\n=") // the checksum
		binary, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(body), ""))
		if err != nil {
			return nil, fmt.Errorf("decode the armored key: %w", err)
		}
		out, text = append(out, binary...), after
	}
}

// pgpPacket reads the head of a packet: its type, its body and the size of both.
func pgpPacket(data []byte) (tag int, body []byte, size int, err error) {
	broken := errors.New("it is not an OpenPGP key")
	if len(data) < 2 || data[0]&0x80 == 0 {
		return 0, nil, 0, broken
	}
	head, length := 0, 0
	if data[0]&0x40 != 0 {
		tag = int(data[0] & 0x3f)
		head, length = newLength(data[1:])
	} else {
		tag = int(data[0] >> 2 & 0x0f)
		head, length = oldLength(data[0]&3, data[1:])
	}
	size = 1 + head + length
	if head == 0 || length < 0 || size > len(data) {
		return 0, nil, 0, broken
	}
	return tag, data[1+head : size], size, nil
}

// newLength returns the number of bytes of a length, and the length; 0 bytes if it is
// invalid, or partial, which keys do not use.
func newLength(d []byte) (bytes, length int) {
	switch first := int(d[0]); {
	case first < 192:
		return 1, first
	case first < 224 && len(d) >= 2:
		return 2, (first-192)<<8 + int(d[1]) + 192
	case first == 255 && len(d) >= 5:
		return 5, int(binary.BigEndian.Uint32(d[1:]))
	}
	return 0, 0
}

func oldLength(kind byte, d []byte) (bytes, length int) {
	switch {
	case kind == 0:
		return 1, int(d[0])
	case kind == 1 && len(d) >= 2:
		return 2, int(binary.BigEndian.Uint16(d))
	case kind == 2 && len(d) >= 4:
		return 4, int(binary.BigEndian.Uint32(d))
	}
	return 0, 0
}

func pgpFingerprint(body []byte) (string, error) {
	if len(body) == 0 {
		return "", errors.New("a key in it is empty")
	}
	switch version := body[0]; version {
	case 4:
		head := binary.BigEndian.AppendUint16([]byte{0x99}, uint16(len(body)))
		return fmt.Sprintf("%X", sha1.Sum(append(head, body...))), nil
	case 5, 6:
		head := binary.BigEndian.AppendUint32([]byte{0x95 + version}, uint32(len(body)))
		return fmt.Sprintf("%X", sha256.Sum256(append(head, body...))), nil
	default:
		return "", fmt.Errorf("a key in it has the unknown version %d", version)
	}
}

// armored is the counterpart of dearmor. Its checksum, which readers may require,
// is the CRC-24 of RFC 4880.
func armored(data []byte) []byte {
	var out bytes.Buffer
	out.WriteString(armorBegin + "\n\n")
	text := base64.StdEncoding.EncodeToString(data)
	for len(text) > 64 {
		out.WriteString(text[:64] + "\n")
		text = text[64:]
	}
	crc := 0xb704ce
	for _, b := range data {
		crc ^= int(b) << 16
		for range 8 {
			crc <<= 1
			if crc&0x1000000 != 0 {
				crc ^= 0x1864cfb
			}
		}
	}
	sum := base64.StdEncoding.EncodeToString([]byte{byte(crc >> 16), byte(crc >> 8), byte(crc)})
	out.WriteString(text + "\n=" + sum + "\n" + armorEnd + "\n")
	return out.Bytes()
}
