package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"
)

// Constants of format 1.1.
const (
	iterations = 10000
	saltSize   = 32
	keySize    = 32
	macSize    = sha256.Size
	blockSize  = aes.BlockSize
)

// Encrypt encrypts a text with a password. The header names the password's ID unless it is the
// default one.
func Encrypt(plain []byte, p Password) ([]byte, error) {
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // it never fails
	return EncryptWithSalt(plain, p, salt)
}

// EncryptWithSalt is Encrypt with deterministic output. Two texts encrypted with the same password
// and salt reveal where they are equal.
func EncryptWithSalt(plain []byte, p Password, salt []byte) ([]byte, error) {
	if strings.ContainsAny(p.ID, ";\r\n") {
		return nil, fmt.Errorf("the vault ID %q contains a character that is not allowed in a vault header", p.ID)
	}
	k, err := derive(p.secret, salt)
	if err != nil {
		return nil, err
	}
	pad := blockSize - len(plain)%blockSize
	e := envelope{id: p.ID, salt: salt}
	e.payload = append(bytes.Clone(plain), bytes.Repeat([]byte{byte(pad)}, pad)...)
	k.stream.XORKeyStream(e.payload, e.payload)
	e.mac = k.sum(e.payload)
	return e.format(), nil
}

// open decrypts; ok is false if the checksum does not match: the password is another one.
func (e envelope) open(p Password) (plain []byte, ok bool, err error) {
	k, err := derive(p.secret, e.salt)
	if err != nil {
		return nil, false, err
	}
	if !hmac.Equal(k.sum(e.payload), e.mac) { // runs in constant time
		return nil, false, nil
	}
	plain = bytes.Clone(e.payload)
	k.stream.XORKeyStream(plain, plain)
	pad := int(plain[len(plain)-1])
	if pad == 0 || pad > blockSize || !bytes.HasSuffix(plain, bytes.Repeat([]byte{byte(pad)}, pad)) {
		return nil, false, &FormatError{1, "the padding of the data is invalid"}
	}
	return plain[:len(plain)-pad], true, nil
}

// keys are derived from a password and a salt.
type keys struct {
	stream cipher.Stream
	mac    []byte
}

func derive(password, salt []byte) (keys, error) {
	raw, err := pbkdf2.Key(sha256.New, string(password), salt, iterations, 2*keySize+blockSize)
	if err != nil {
		return keys{}, err
	}
	block, err := aes.NewCipher(raw[:keySize])
	if err != nil {
		return keys{}, err
	}
	return keys{cipher.NewCTR(block, raw[2*keySize:]), raw[keySize : 2*keySize]}, nil
}

func (k keys) sum(text []byte) []byte {
	h := hmac.New(sha256.New, k.mac)
	h.Write(text)
	return h.Sum(nil)
}
