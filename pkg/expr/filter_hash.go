package expr

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"math/big"
	"strings"

	"kubekey/pkg/charset"

	"github.com/GehirnInc/crypt"
	"github.com/GehirnInc/crypt/md5_crypt"
	"github.com/GehirnInc/crypt/sha256_crypt"
	"github.com/GehirnInc/crypt/sha512_crypt"
	"github.com/google/uuid"
)

func hashFilters() []filterSpec {
	return []filterSpec{
		{names: "b64encode", params: "encoding urlsafe", do: filterB64Encode},
		{names: "b64decode", params: "encoding urlsafe", do: filterB64Decode},
		{names: "md5", do: digest("md5")},
		{names: "sha1 checksum", do: digest("sha1")},
		{names: "hash", params: "hashtype", do: filterHash},
		{names: "password_hash", params: "hashtype salt salt_size rounds ident", do: filterPasswordHash},
		{names: "to_uuid", params: "namespace", do: filterToUUID},
	}
}

func filterB64Encode(_ *Call, in any, p *bound) (any, error) {
	s, err := plainText(in)
	if err != nil {
		return nil, err
	}
	raw, err := charset.Encode(s, p.str("encoding", "utf-8"))
	if p.flag("urlsafe", false) {
		return base64.URLEncoding.EncodeToString([]byte(raw)), err
	}
	return base64.StdEncoding.EncodeToString([]byte(raw)), err
}

// filterB64Decode skips what is no base64 character, as Python does.
func filterB64Decode(_ *Call, in any, p *bound) (any, error) {
	s, err := plainText(in)
	if err != nil {
		return nil, err
	}
	if p.flag("urlsafe", false) {
		s = strings.NewReplacer("-", "+", "_", "/").Replace(s)
	}
	kept := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("+/=", r) {
			return r
		}
		return -1
	}, s)
	raw, err := base64.StdEncoding.DecodeString(kept)
	if err != nil {
		return nil, fmt.Errorf("not base64: %w", err)
	}
	return charset.Decode(string(raw), p.str("encoding", "utf-8"))
}

func newHash(name string) (hash.Hash, error) {
	switch name {
	case "md5":
		return md5.New(), nil
	case "sha1":
		return sha1.New(), nil
	case "sha224":
		return sha256.New224(), nil
	case "sha256":
		return sha256.New(), nil
	case "sha384":
		return sha512.New384(), nil
	case "sha512":
		return sha512.New(), nil
	}
	return nil, fmt.Errorf("unsupported hash type %q (there are md5, sha1, sha224, sha256, sha384, sha512)", name)
}

func hexDigest(name string, in any) (any, error) {
	h, err := newHash(name)
	if err != nil {
		return nil, err
	}
	s, err := plainText(in)
	h.Write([]byte(s))
	return hex.EncodeToString(h.Sum(nil)), err
}

func digest(name string) func(*Call, any, *bound) (any, error) {
	return func(_ *Call, in any, _ *bound) (any, error) { return hexDigest(name, in) }
}

func filterHash(_ *Call, in any, p *bound) (any, error) {
	return hexDigest(p.str("hashtype", "sha1"), in)
}

func filterToUUID(_ *Call, in any, p *bound) (any, error) {
	s, err := plainText(in)
	if err != nil {
		return nil, err
	}
	space, err := uuid.Parse(p.str("namespace", "361E6D51-FAEC-444A-9079-341386DA8E2E"))
	if err != nil {
		return nil, fmt.Errorf("Invalid value for namespace: %w", err)
	}
	return uuid.NewSHA1(space, []byte(s)).String(), nil
}

// Passwords

// cryptScheme is one kind of crypt(3) hash.
type cryptScheme struct {
	ident    string
	salt     int // the longest salt
	make     func() crypt.Crypter
	min, max int // rounds; 0 when the scheme has none
}

func cryptSchemes() map[string]cryptScheme {
	return map[string]cryptScheme{
		"md5":    {ident: "1", salt: 8, make: md5_crypt.New},
		"sha256": {ident: "5", salt: 16, make: sha256_crypt.New, min: 1000, max: 10_000_000},
		"sha512": {ident: "6", salt: 16, make: sha512_crypt.New, min: 1000, max: 10_000_000},
		"bcrypt": {ident: "2b", salt: 22, min: 4, max: 20},
	}
}

const saltLetters = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func filterPasswordHash(_ *Call, in any, p *bound) (any, error) {
	secret, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("needs a text, not %s", aType(in))
	}
	name := strings.TrimSuffix(p.str("hashtype", "sha512"), "_crypt")
	if name == "blowfish" {
		name = "bcrypt"
	}
	salt, size, rounds := p.str("salt", ""), p.int("salt_size", 0), p.int("rounds", 0)
	if p.err != nil {
		return nil, p.err
	}
	return passwordHash(secret, name, salt, size, rounds, p.str("ident", ""))
}

// passwordHash hashes with a salt, a random one when it is "".
func passwordHash(secret, name, salt string, size, rounds int, ident string) (string, error) {
	scheme, ok := cryptSchemes()[name]
	if !ok {
		return "", fmt.Errorf("%s is not in the list of supported passlib algorithms: md5, sha256, sha512, bcrypt", name)
	}
	if rounds != 0 && (rounds < scheme.min || rounds > scheme.max) {
		return "", fmt.Errorf("argument rounds of %s must be from %d to %d, not %d", name, scheme.min, scheme.max, rounds)
	}
	if size == 0 {
		size = scheme.salt
	}
	if size < 1 || size > scheme.salt {
		return "", fmt.Errorf("argument salt_size of %s must be from 1 to %d, not %d", name, scheme.salt, size)
	}
	if salt == "" {
		var err error
		if salt, err = randomText(size, saltLetters); err != nil {
			return "", err
		}
	}
	if strings.Trim(salt, saltLetters) != "" || len(salt) > scheme.salt {
		return "", fmt.Errorf("argument salt must be at most %d of the characters a-z, A-Z, 0-9, . and /", scheme.salt)
	}
	if name == "bcrypt" {
		return bcryptHash(secret, salt, rounds, ident)
	}
	setting := "$" + scheme.ident + "$"
	if rounds != 0 {
		setting += fmt.Sprintf("rounds=%d$", rounds)
	}
	return scheme.make().Generate([]byte(secret), []byte(setting+salt))
}

// randomText is n characters from letters, fit for secrets.
func randomText(n int, letters string) (string, error) {
	runes := []rune(letters)
	out := make([]rune, n)
	for i := range out {
		k, err := rand.Int(rand.Reader, big.NewInt(int64(len(runes))))
		if err != nil {
			return "", fmt.Errorf("read random bytes: %w", err)
		}
		out[i] = runes[k.Int64()]
	}
	return string(out), nil
}
