package filters

import (
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/blowfish" //lint:ignore SA1019 bcrypt is made of it
)

// bcryptHash is bcrypt with a salt that the caller chooses, so that the hash is the same in every run.
// x/crypto/bcrypt only generates its own salts.
func bcryptHash(secret, salt string, cost int, ident string) (string, error) {
	if cost == 0 {
		cost = 12
	}
	if ident == "" {
		ident = "2b"
	}
	if !strings.Contains(" 2 2a 2b 2y ", " "+ident+" ") {
		return "", fmt.Errorf("argument ident of bcrypt must be 2a, 2b or 2y, not %q", ident)
	}
	if len(salt) != 22 {
		return "", fmt.Errorf("argument salt of bcrypt must have 22 characters, not %d", len(salt))
	}
	if len(secret) > 72 {
		return "", fmt.Errorf("bcrypt takes passwords of at most 72 bytes")
	}
	encoding := base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").WithPadding(base64.NoPadding)
	raw, err := encoding.DecodeString(salt)
	if err != nil {
		return "", fmt.Errorf("argument salt: %w", err)
	}
	sum, err := bcryptSum(append([]byte(secret), 0), raw, cost)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("$%s$%02d$%s%s", ident, cost, encoding.EncodeToString(raw), encoding.EncodeToString(sum)), nil
}

// bcryptSum is the algorithm itself: an expensive key schedule, then 64 encryptions of a fixed text. 23 bytes of
// the result are used.
func bcryptSum(key, salt []byte, cost int) ([]byte, error) {
	c, err := blowfish.NewSaltedCipher(key, salt)
	if err != nil {
		return nil, fmt.Errorf("bcrypt: %w", err)
	}
	for range 1 << cost {
		blowfish.ExpandKey(key, c)
		blowfish.ExpandKey(salt, c)
	}
	sum := []byte("OrpheanBeholderScryDoubt")
	for i := 0; i < len(sum); i += 8 {
		for range 64 {
			c.Encrypt(sum[i:i+8], sum[i:i+8])
		}
	}
	return sum[:23], nil
}
