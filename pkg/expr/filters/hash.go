package filters

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

	"github.com/GehirnInc/crypt"
	"github.com/GehirnInc/crypt/md5_crypt"
	"github.com/GehirnInc/crypt/sha256_crypt"
	"github.com/GehirnInc/crypt/sha512_crypt"
	"github.com/google/uuid"

	"kubekey/pkg/charset"
	"kubekey/pkg/expr"
)

func hashFilters() []expr.Filter {
	return []expr.Filter{
		{Names: "b64encode", Params: "encoding urlsafe", Do: filterB64Encode},
		{Names: "b64decode", Params: "encoding urlsafe", Do: filterB64Decode},
		{Names: "md5", Do: digest("md5")},
		{Names: "sha1 checksum", Do: digest("sha1")},
		{Names: "hash", Params: "hashtype", Do: filterHash},
		{Names: "password_hash", Params: "hashtype salt salt_size rounds ident", Do: filterPasswordHash},
		{Names: "to_uuid", Params: "namespace", Do: filterToUUID},
	}
}

func filterB64Encode(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	raw, err := charset.Encode(s, p.Str("encoding", "utf-8"))
	if p.Flag("urlsafe", false) {
		return base64.URLEncoding.EncodeToString([]byte(raw)), err
	}
	return base64.StdEncoding.EncodeToString([]byte(raw)), err
}

// filterB64Decode skips characters that are not base64, as Python does.
func filterB64Decode(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	if p.Flag("urlsafe", false) {
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
	return charset.Decode(string(raw), p.Str("encoding", "utf-8"))
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
	s, err := expr.Text(in)
	h.Write([]byte(s))
	return hex.EncodeToString(h.Sum(nil)), err
}

func digest(name string) func(*expr.Call, any, *expr.Bound) (any, error) {
	return func(_ *expr.Call, in any, _ *expr.Bound) (any, error) { return hexDigest(name, in) }
}

func filterHash(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	return hexDigest(p.Str("hashtype", "sha1"), in)
}

func filterToUUID(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	s, err := expr.Text(in)
	if err != nil {
		return nil, err
	}
	space, err := uuid.Parse(p.Str("namespace", "361E6D51-FAEC-444A-9079-341386DA8E2E"))
	if err != nil {
		return nil, fmt.Errorf("Invalid value for namespace: %w", err)
	}
	return uuid.NewSHA1(space, []byte(s)).String(), nil
}

// Passwords

// cryptScheme is one kind of crypt(3) hash.
type cryptScheme struct {
	ident    string
	Salt     int // the maximum length of a salt
	make     func() crypt.Crypter
	min, max int // rounds; 0 when the scheme has none
}

// CryptSchemes returns the schemes for hashing passwords, by name.
func CryptSchemes() map[string]cryptScheme {
	return map[string]cryptScheme{
		"md5":    {ident: "1", Salt: 8, make: md5_crypt.New},
		"sha256": {ident: "5", Salt: 16, make: sha256_crypt.New, min: 1000, max: 10_000_000},
		"sha512": {ident: "6", Salt: 16, make: sha512_crypt.New, min: 1000, max: 10_000_000},
		"bcrypt": {ident: "2b", Salt: 22, min: 4, max: 20},
	}
}

// SaltLetters are the characters of salts.
const SaltLetters = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

func filterPasswordHash(_ *expr.Call, in any, p *expr.Bound) (any, error) {
	secret, ok := in.(string)
	if !ok {
		return nil, fmt.Errorf("needs a text, not %s", expr.DescribeType(in))
	}
	name := strings.TrimSuffix(p.Str("hashtype", "sha512"), "_crypt")
	if name == "blowfish" {
		name = "bcrypt"
	}
	salt, size, rounds := p.Str("salt", ""), p.Int("salt_size", 0), p.Int("rounds", 0)
	if p.Err != nil {
		return nil, p.Err
	}
	return HashPassword(secret, name, salt, size, rounds, p.Str("ident", ""))
}

// HashPassword hashes with a salt; "" generates a random salt.
func HashPassword(secret, name, salt string, size, rounds int, ident string) (string, error) {
	scheme, ok := CryptSchemes()[name]
	if !ok {
		return "", fmt.Errorf("%s is not in the list of supported passlib algorithms: md5, sha256, sha512, bcrypt", name)
	}
	if rounds != 0 && (rounds < scheme.min || rounds > scheme.max) {
		return "", fmt.Errorf("argument rounds of %s must be from %d to %d, not %d", name, scheme.min, scheme.max, rounds)
	}
	if size == 0 {
		size = scheme.Salt
	}
	if size < 1 || size > scheme.Salt {
		return "", fmt.Errorf("argument salt_size of %s must be from 1 to %d, not %d", name, scheme.Salt, size)
	}
	if salt == "" {
		var err error
		if salt, err = RandomText(size, SaltLetters); err != nil {
			return "", err
		}
	}
	if strings.Trim(salt, SaltLetters) != "" || len(salt) > scheme.Salt {
		return "", fmt.Errorf("argument salt must be at most %d of the characters a-z, A-Z, 0-9, . and /", scheme.Salt)
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

// RandomText returns n random characters from letters, suitable for secrets.
func RandomText(n int, letters string) (string, error) {
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
