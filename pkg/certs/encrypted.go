package certs

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // what a file without a digest says
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"hash"
	"strconv"
	"strings"
)

// An encrypted key is PKCS #8 (RFC 5208) with PBES2 (RFC 8018): PBKDF2 derives a key from the
// passphrase, and AES in CBC mode encrypts the output of MarshalPKCS8PrivateKey. openssl produces
// the same format.

// rounds of PBKDF2 for a new file, and the maximum accepted: a host must not keep the control
// node busy.
const (
	NewRounds  = 100_000
	mostRounds = 2_000_000
)

type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

type pbes2 struct{ Derive, Encrypt pkix.AlgorithmIdentifier }

type pbkdf2Params struct {
	Salt   []byte
	Rounds int
	Length int                      `asn1:"optional"`
	Digest pkix.AlgorithmIdentifier `asn1:"optional"`
}

// algorithms by their object identifiers, as texts.
const (
	oidPBES2      = "1.2.840.113549.1.5.13"
	oidPBKDF2     = "1.2.840.113549.1.5.12"
	oidHMACSHA1   = "1.2.840.113549.2.7"
	oidHMACSHA256 = "1.2.840.113549.2.9"
	oidHMACSHA512 = "1.2.840.113549.2.11"
	oidAES128     = "2.16.840.1.101.3.4.1.2"
	oidAES192     = "2.16.840.1.101.3.4.1.22"
	oidAES256     = "2.16.840.1.101.3.4.1.42"
)

var (
	errPassphrase = errors.New("the passphrase is wrong")
	errCipher     = errors.New("its encryption is not supported: " +
		"encrypt it again with openssl pkcs8 -topk8 -v2 aes-256-cbc")
)

// DecryptKey reads a key that is encrypted with a passphrase.
func DecryptKey(der []byte, passphrase string) (crypto.Signer, error) {
	var file encryptedKey
	var scheme pbes2
	var params pbkdf2Params
	var iv []byte
	switch {
	case !parses(der, &file) || file.Algorithm.Algorithm.String() != oidPBES2 ||
		!parses(file.Algorithm.Parameters.FullBytes, &scheme),
		scheme.Derive.Algorithm.String() != oidPBKDF2 || !parses(scheme.Derive.Parameters.FullBytes, &params),
		params.Rounds < 1 || params.Rounds > mostRounds,
		!parses(scheme.Encrypt.Parameters.FullBytes, &iv) || len(iv) != aes.BlockSize,
		len(file.Data) == 0 || len(file.Data)%aes.BlockSize != 0:
		return nil, errCipher
	}
	digest, length := digestOf(params.Digest), keyLength(scheme.Encrypt)
	if digest == nil || length == 0 {
		return nil, errCipher
	}
	secret, err := pbkdf2.Key(digest, passphrase, params.Salt, params.Rounds, length)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	plain := make([]byte, len(file.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, file.Data)
	pad := int(plain[len(plain)-1])
	if pad < 1 || pad > aes.BlockSize {
		return nil, errPassphrase
	}
	key, err := readPKCS8(plain[:len(plain)-pad])
	signer, ok := key.(crypto.Signer)
	if err != nil || !ok {
		return nil, errPassphrase
	}
	return signer, nil
}

// EncryptKey is the reverse, with AES-256 and SHA-256.
func EncryptKey(key crypto.Signer, passphrase string, rounds int) ([]byte, error) {
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	random := make([]byte, 2*aes.BlockSize)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	salt, iv := random[:aes.BlockSize], random[aes.BlockSize:]
	secret, err := pbkdf2.Key(sha256.New, passphrase, salt, rounds, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	pad := aes.BlockSize - len(plain)%aes.BlockSize
	for range pad {
		plain = append(plain, byte(pad))
	}
	cipher.NewCBCEncrypter(block, iv).CryptBlocks(plain, plain)
	digest := pkix.AlgorithmIdentifier{Algorithm: OID(oidHMACSHA256), Parameters: asn1.NullRawValue}
	derive, err := algorithm(oidPBKDF2, pbkdf2Params{Salt: salt, Rounds: rounds, Digest: digest})
	if err != nil {
		return nil, err
	}
	encrypt, err := algorithm(oidAES256, iv)
	if err != nil {
		return nil, err
	}
	scheme, err := algorithm(oidPBES2, pbes2{derive, encrypt})
	if err != nil {
		return nil, err
	}
	return asn1.Marshal(encryptedKey{scheme, plain})
}

// parses decodes one value that uses all of the bytes.
func parses(der []byte, into any) bool {
	rest, err := asn1.Unmarshal(der, into)
	return err == nil && len(rest) == 0
}

func algorithm(id string, params any) (pkix.AlgorithmIdentifier, error) {
	der, err := asn1.Marshal(params)
	return pkix.AlgorithmIdentifier{Algorithm: OID(id), Parameters: asn1.RawValue{FullBytes: der}}, err
}

// OID is an identifier of this file.
func OID(text string) asn1.ObjectIdentifier {
	var out asn1.ObjectIdentifier
	for part := range strings.SplitSeq(text, ".") {
		n, _ := strconv.Atoi(part)
		out = append(out, n)
	}
	return out
}

// digestOf is the digest of PBKDF2, nil if unknown.
func digestOf(a pkix.AlgorithmIdentifier) func() hash.Hash {
	switch a.Algorithm.String() {
	case "", oidHMACSHA1:
		return sha1.New
	case oidHMACSHA256:
		return sha256.New
	case oidHMACSHA512:
		return sha512.New
	}
	return nil
}

// keyLength is the key length of a cipher in bytes, 0 if unknown.
func keyLength(a pkix.AlgorithmIdentifier) int {
	switch a.Algorithm.String() {
	case oidAES128:
		return 16
	case oidAES192:
		return 24
	case oidAES256:
		return 32
	}
	return 0
}
